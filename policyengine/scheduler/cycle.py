"""One scheduling cycle: a popped pod is filtered, scored, placed and sent to be bound, or refused.

    filter (PreFilter, Filter) -> score (PreScore, Score, NormalizeScore) -> select a node -> assume
    -> Reserve -> Permit -> PreBind -> Bind

Rules (kube-scheduler's schedule_one.go, v1.36):
1. A refusal is worded `0/N nodes are available: …` and names the plugins whose events may cure it.
2. One feasible node is taken without scoring.
3. A plugin that fails, or answers Error, makes the attempt an error: condition SchedulerError, error backoff. It
   never ends the loop.
4. A refusal by Reserve or Permit gives the reservation back.
5. The decision carries the policy hash it was made with.
6. A member of a gang that is not satisfied is tried together with the others (`gang_cycle`).
7. Where extenders have a say, the cycle stops before `rank`, or before a node is cleared, and goes on when they have
   answered (`extenders.consult`).
"""

from __future__ import annotations

from policyengine.framework.filtering import NO_NODES, Diagnosis
from policyengine.scheduler.binding.permit import ask_permit
from policyengine.scheduler.binding.reservation import Reservation
from policyengine.scheduler.conditions_and_events import SCHEDULER_ERROR, UNSCHEDULABLE
from policyengine.scheduler.core import Core
from policyengine.scheduler.extenders import consult
from policyengine.scheduler.extenders.extender import Question
from policyengine.scheduler.gangs import gang_cycle
from policyengine.scheduler.messages import ExtendersAnswered, VictimsAnswered
from policyengine.scheduler.placement import error_in, filter_nodes, reserve, select_node, select_node_at_once
from policyengine.scheduler.preemption import preempt
from policyengine.scheduler.profiles import ServedProfile
from policyengine.scheduler.queue.queued_pod import QueuedPod


def run_cycle(core: Core, served: ServedProfile, queued: QueuedPod) -> None:
    """Try to place the pod, which the profile's queue has just popped, alone or with its gang."""
    core.timeline.record(queued.uid, core.now, "attempted", queued.attempts, served.runtime.policy_hash)
    if core.view.nodes.n == 0:
        core.fail(served, queued, UNSCHEDULABLE, NO_NODES)
        return
    gang = served.queue.gangs.of(queued.uid)
    if gang is not None and gang.minimum > 1 and gang_cycle.needed(core, gang) and not consult.concern(core, gang):
        gang_cycle.run(core, served, gang, queued)
        return
    _attempt(core, served, queued)


def extenders_answered(core: Core, message: ExtendersAnswered) -> None:
    """What was asked about a pod's nodes is known: go on where its cycle stopped, with things as they are now."""
    question = _answered(core, message)
    if question is not None and message.error:
        core.fail(question.served, question.queued, SCHEDULER_ERROR, message.error)
    elif question is not None:
        _decide(core, question.served, question.queued, message)


def victims_answered(core: Core, message: VictimsAnswered) -> None:
    """What was asked about a pod's victims is known: likewise."""
    question = _answered(core, message)
    if question is not None:
        _preempt(core, question, message)


def _answered(core: Core, message: ExtendersAnswered | VictimsAnswered) -> Question | None:
    """The question, if the answer still counts. If another policy serves meanwhile the pod is attempted anew."""
    question = consult.awaited(core, message)
    if question is None or (question.runtime is question.served.runtime and question.served.is_served):
        return question
    if question.served.is_served:
        _attempt(core, question.served, question.queued)
    else:
        question.served.queue.put_back(question.queued, core.now, "Unserved")
    return None


def _attempt(core: Core, served: ServedProfile, queued: QueuedPod) -> None:
    """Place the pod, or refuse it, or ask the extenders first."""
    numbers = consult.interested(core, queued.pod) if core.extenders else ()
    try:
        row = None if numbers else select_node_at_once(core, served, queued.pod)
        diagnosis = None if row is not None else filter_nodes(core, served, queued.pod)
        is_refused = diagnosis is not None and len(diagnosis.feasible) == 0
        core.timeline.mark(queued.uid, core.now, "filtered", "Unschedulable" if is_refused else "Success")
        if diagnosis is not None and is_refused:
            _refuse(core, served, queued, diagnosis)
            return
        if diagnosis is not None and numbers:
            consult.ask(core, served, queued, numbers, diagnosis)
            return
        if diagnosis is not None:
            row = select_node(served.runtime.evaluator, queued.pod, core.view.snapshot(), diagnosis)
        assert row is not None
        core.timeline.mark(queued.uid, core.now, "scored")
    except Exception as failure:
        core.fail(served, queued, SCHEDULER_ERROR, str(failure) or type(failure).__name__)
        return
    _place(core, served, queued, core.view.nodes.names[row])


def _decide(core: Core, served: ServedProfile, queued: QueuedPod, message: ExtendersAnswered) -> None:
    """Place or refuse a pod whose extenders have answered."""
    try:
        diagnosis = consult.filter_again(core, served, queued, message)
        if len(diagnosis.feasible) == 0:
            _refuse(core, served, queued, diagnosis, message)
            return
        row = consult.select_node_with(core, served, queued, diagnosis, message.scores)
    except Exception as failure:
        core.fail(served, queued, SCHEDULER_ERROR, str(failure) or type(failure).__name__)
        return
    _place(core, served, queued, core.view.nodes.names[row])


def _preempt(core: Core, question: Question, message: VictimsAnswered) -> None:
    """Clear a node for a pod whose extenders have answered, or refuse the pod; or place it, if it fits by now."""
    served, queued = question.served, question.queued
    try:
        if question.answered is None:
            diagnosis = filter_nodes(core, served, queued.pod)
        else:
            diagnosis = consult.filter_again(core, served, queued, question.answered)
        if len(diagnosis.feasible):
            _attempt(core, served, queued)
            return
        error = error_in(diagnosis)
        if error is not None:
            core.fail(served, queued, SCHEDULER_ERROR, error)
            return
        found = consult.room_left(core, question, diagnosis, message)
    except Exception as failure:
        core.fail(served, queued, SCHEDULER_ERROR, str(failure) or type(failure).__name__)
        return
    preempt.refuse(core, served, queued, diagnosis, found)


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
    found = preempt.find_room(core, served, queued, diagnosis)
    if not (core.extenders and consult.ask_about_victims(core, served, queued, diagnosis, found, answered)):
        preempt.refuse(core, served, queued, diagnosis, found)


def _place(core: Core, served: ServedProfile, queued: QueuedPod, node: str) -> None:
    held = Reservation(queued, served, node, served.runtime, core.now)
    core.view.assume(queued.uid, node)
    core.took(held)
    status = reserve(core, held)
    if status.is_success:
        ask_permit(core, held)
    else:
        core.reject(held, status, "Reserve")
