"""The scheduling cycles: whose turn it is, and how the popped pod is tried.

    next_turn -> pop -> with its gang (`gang_cycle`) | with extenders (`consult`) | alone:
        select a node -> place (assume, Reserve, Permit, PreBind, Bind)
                     └──> refused: preempt

Rules (kube-scheduler's schedule_one.go, v1.36):
1. A refusal is worded `0/N nodes are available: …` and names the plugins whose events may cure it.
2. One feasible node is taken without scoring.
3. A plugin that fails, or answers Error, makes the attempt an error: condition SchedulerError, error backoff. It
   never ends the loop.
4. A member of a gang that is not satisfied is tried together with the others; of a PodGroup with a topology constraint,
   always.
5. Turns go by `share` among the profiles with active pods (smooth weighted round robin): of any `n · Σ share`
   consecutive turns in which the same profiles had work, a profile got `n · share`, evenly spread.
6. Only if no profile has an active pod may one take a pod out of backoff before its time, by the same turns.

Example of rule 5: with shares a: 2 and b: 1 the turns are a, b, a, a, b, a, …
"""

from __future__ import annotations

from collections.abc import Callable

from policyengine.framework.filtering import NO_NODES, Diagnosis
from policyengine.framework.scoring import Choice
from policyengine.scheduler import consult
from policyengine.scheduler.conditions_and_events import SCHEDULER_ERROR, UNSCHEDULABLE
from policyengine.scheduler.core import Core, failed_with
from policyengine.scheduler.extender import Question
from policyengine.scheduler.gangs import gang_cycle
from policyengine.scheduler.gangs.topology_placement import constraint_of
from policyengine.scheduler.messages import ExtendersAnswered, VictimsAnswered
from policyengine.scheduler.placement import error_in, filter_nodes, place, select_node, select_node_at_once
from policyengine.scheduler.preempt import find_room, refuse
from policyengine.scheduler.profiles import ServedProfile
from policyengine.scheduler.queue.gang_table import Gang
from policyengine.scheduler.queue.queued_pods import QueuedPod

NO_DOMAINS = "a topology constraint cannot be kept for pods that an extender is asked about"


def next_turn(core: Core) -> ServedProfile | None:
    """The profile that may try a pod now; None if none has one."""
    ready = [one for one in core.profiles.values() if one.is_served and one.queue.has_work]
    ready = [one for one in ready if one.queue.active_q] or ready
    if len(ready) <= 1:
        return ready[0] if ready else None
    for one in ready:
        one.credit += one.runtime.profile.share
    chosen = max(ready, key=lambda one: one.credit)
    chosen.credit -= sum(one.runtime.profile.share for one in ready)
    return chosen


def run_cycle(core: Core, served: ServedProfile, queued: QueuedPod) -> None:
    """Try to place the pod, which the profile's queue has just popped, alone or with its gang."""
    core.timeline.record(queued.uid, core.now, "attempted", queued.attempts, served.runtime.policy_hash)
    if core.view.nodes.n == 0:
        core.fail(served, queued, UNSCHEDULABLE, NO_NODES)
        return
    gang = served.queue.gang_of(queued.uid)
    group = None if gang is None else constraint_of(queued.pod)
    if gang is not None and group is not None and consult.concern(core, gang):
        core.fail(served, queued, UNSCHEDULABLE, f"PodGroup {group.metadata.key}: {NO_DOMAINS}")
    elif gang is not None and (group is not None or _is_tried_whole(core, gang)):
        gang_cycle.run(core, served, gang, queued)
    else:
        _attempt(core, served, queued, lambda: _select(core, served, queued))


def _is_tried_whole(core: Core, gang: Gang) -> bool:
    return gang.minimum > 1 and bool(gang_cycle.needed(core, gang)) and not consult.concern(core, gang)


def extenders_answered(core: Core, message: ExtendersAnswered) -> None:
    """What was asked about a pod's nodes is known: go on where its cycle stopped, with things as they are now."""
    question = _answered(core, message)
    if question is None:
        return
    served, queued = question.served, question.queued
    if message.error:
        core.fail(served, queued, SCHEDULER_ERROR, message.error)
    else:
        _attempt(core, served, queued, lambda: _select_answered(core, served, queued, message))


def victims_answered(core: Core, message: VictimsAnswered) -> None:
    """What was asked about a pod's victims is known: likewise."""
    question = _answered(core, message)
    if question is not None:
        _attempt(core, question.served, question.queued, lambda: _make_room(core, question, message))


def _answered(core: Core, message: ExtendersAnswered | VictimsAnswered) -> Question | None:
    """The question, if the answer still counts. If another policy serves meanwhile the pod is attempted anew."""
    question = consult.awaited(core, message)
    if question is None:
        return None
    served, queued = question.served, question.queued
    if not served.is_served:
        served.queue.put_back(queued, core.now, "Unserved")
    elif question.runtime is not served.runtime:
        _attempt(core, served, queued, lambda: _select(core, served, queued))
    else:
        return question
    return None


def _attempt(core: Core, served: ServedProfile, queued: QueuedPod, select: Callable[[], Choice | None]) -> None:
    """Place the pod on the node that `select` finds; None: it was refused, or its extenders are asked. Rule 3."""
    try:
        choice = select()
    except Exception as failure:
        core.fail(served, queued, SCHEDULER_ERROR, failed_with(failure).message)
        return
    if choice is not None:
        place(core, served, queued, choice)


def _select(core: Core, served: ServedProfile, queued: QueuedPod) -> Choice | None:
    """Find a node for the pod, or refuse it, or ask the extenders first."""
    pod = queued.pod
    numbers = consult.interested(core, pod) if core.extenders else ()
    choice = None if numbers else select_node_at_once(core, served, pod)
    if choice is None:
        diagnosis = filter_nodes(core, served, pod)
        is_refused = len(diagnosis.feasible) == 0
        core.timeline.mark(queued.uid, core.now, "filtered", "Unschedulable" if is_refused else "Success")
        if is_refused:
            _refuse(core, served, queued, diagnosis)
            return None
        if numbers:
            consult.ask(core, served, queued, numbers, diagnosis)
            return None
        choice = select_node(served.runtime.evaluator, pod, core.view.snapshot(), diagnosis)
    else:
        core.timeline.mark(queued.uid, core.now, "filtered", "Success")
    core.timeline.mark(queued.uid, core.now, "scored")
    return choice


def _select_answered(core: Core, served: ServedProfile, queued: QueuedPod, message: ExtendersAnswered) -> Choice | None:
    """Find a node for a pod whose extenders have answered, or refuse it."""
    diagnosis = consult.filter_again(core, served, queued, message)
    if len(diagnosis.feasible):
        return consult.select_node_with(core, served, queued, diagnosis, message.scores)
    _refuse(core, served, queued, diagnosis, message)
    return None


def _make_room(core: Core, question: Question, message: VictimsAnswered) -> Choice | None:
    """Clear a node for a pod whose extenders have answered, or refuse the pod; or find its node, if it fits by now."""
    served, queued = question.served, question.queued
    if question.answered is None:
        diagnosis = filter_nodes(core, served, queued.pod)
    else:
        diagnosis = consult.filter_again(core, served, queued, question.answered)
    if len(diagnosis.feasible):
        return _select(core, served, queued)
    error = error_in(diagnosis)
    if error is not None:
        core.fail(served, queued, SCHEDULER_ERROR, error)
    else:
        refuse(core, served, queued, diagnosis, consult.room_left(core, question, diagnosis, message))
    return None


def _refuse(
    core: Core,
    served: ServedProfile,
    queued: QueuedPod,
    diagnosis: Diagnosis,
    answered: ExtendersAnswered | None = None,
) -> None:
    error = error_in(diagnosis)
    if error is not None:
        core.fail(served, queued, SCHEDULER_ERROR, error)
        return
    gang = served.queue.gang_of(queued.uid)
    if gang is not None and gang_cycle.preempt_for_one(core, served, gang, queued, diagnosis):
        return
    found = find_room(core, served, queued, diagnosis)
    if not (core.extenders and consult.ask_about_victims(core, served, queued, diagnosis, found, answered)):
        refuse(core, served, queued, diagnosis, found)
