"""One scheduling cycle: a popped pod is judged, placed and sent to be bound, or refused.

    judge (PreFilter, Filter) -> rank (PreScore, Score, NormalizeScore) -> pick -> assume
    -> Reserve -> Permit -> PreBind -> Bind

Rules (kube-scheduler's schedule_one.go, v1.36):
1. A refusal is worded `0/N nodes are available: …` and names the plugins whose events may cure it.
2. One feasible node is taken without scoring.
3. A plugin that fails, or answers Error, makes the attempt an error: condition SchedulerError, error backoff. It
   never ends the loop.
4. A refusal by Reserve or Permit gives the reservation back.
5. The decision carries the policy hash it was made with.
6. A member of a gang that is not satisfied is tried together with its mates (`gang_cycle`).
7. Where extenders have a say, the cycle stops before `rank`, or before a node is cleared, and goes on when they have
   answered (`extenders`, `extender_victims`).
"""

from __future__ import annotations

from policyengine.framework.filtering import Diagnosis
from policyengine.framework.fit_error import NO_NODES
from policyengine.scheduler import conditions_and_events
from policyengine.scheduler.binding.permit import ask_permit
from policyengine.scheduler.binding.reservation import Reservation
from policyengine.scheduler.binding.unreserve import undo
from policyengine.scheduler.core import Core
from policyengine.scheduler.extenders import extender, extender_victims
from policyengine.scheduler.extenders.extender import Question
from policyengine.scheduler.gangs import gang_cycle
from policyengine.scheduler.messages import ExtendersAnswered, VictimsAnswered
from policyengine.scheduler.placement import error_in, judge, pick, pick_again, reserve
from policyengine.scheduler.preemption import preempt
from policyengine.scheduler.profiles import Lane
from policyengine.scheduler.queue.queued_pod import QueuedPod


def run_cycle(core: Core, lane: Lane, queued: QueuedPod) -> None:
    """Try to place the pod, which the lane's queue has just popped, alone or with its gang."""
    core.story.tell(queued.uid, core.now, "attempted", queued.attempts, lane.serving.policy_hash)
    if core.view.nodes.n == 0:
        core.fail(lane, queued, conditions_and_events.UNSCHEDULABLE, NO_NODES)
        return
    gang = lane.queue.gangs.of(queued.uid)
    if gang is not None and gang.minimum > 1 and gang_cycle.needed(core, gang) and not extender.concern(core, gang):
        gang_cycle.run(core, lane, gang, queued)
        return
    _attempt(core, lane, queued)


def extenders_answered(core: Core, message: ExtendersAnswered) -> None:
    """What was asked about a pod's nodes is known: go on where its cycle stopped, with things as they are now."""
    found = extender.awaited(core, message)
    if found is None:
        return
    lane, queued = found.lane, found.queued
    if not lane.is_served:
        lane.queue.put_back(queued, core.now, "Unserved")
    elif found.serving is not lane.serving:
        _attempt(core, lane, queued)
    elif message.error:
        core.fail(lane, queued, conditions_and_events.SCHEDULER_ERROR, message.error)
    else:
        _decide(core, lane, queued, message)


def victims_answered(core: Core, message: VictimsAnswered) -> None:
    """What was asked about a pod's victims is known: likewise."""
    found = extender.awaited(core, message)
    if found is None:
        return
    if not found.lane.is_served:
        found.lane.queue.put_back(found.queued, core.now, "Unserved")
    elif found.serving is not found.lane.serving:
        _attempt(core, found.lane, found.queued)
    else:
        _preempt(core, found, message)


def _attempt(core: Core, lane: Lane, queued: QueuedPod) -> None:
    """Place the pod, or refuse it, or ask the extenders first."""
    numbers = extender.interested(core, queued.pod) if core.extenders else ()
    try:
        row = None if numbers else pick_again(core, lane, queued.pod)
        diagnosis = None if row is not None else judge(core, lane, queued.pod)
        is_refused = diagnosis is not None and len(diagnosis.feasible) == 0
        core.story.mark(queued.uid, core.now, "filtered", "Unschedulable" if is_refused else "Success")
        if diagnosis is not None and is_refused:
            _refuse(core, lane, queued, diagnosis)
            return
        if diagnosis is not None and numbers:
            extender.ask(core, lane, queued, numbers, diagnosis)
            return
        if diagnosis is not None:
            row = pick(lane.serving.evaluator, queued.pod, core.view.snapshot(), diagnosis)
        assert row is not None
        core.story.mark(queued.uid, core.now, "scored")
    except Exception as failure:
        core.fail(lane, queued, conditions_and_events.SCHEDULER_ERROR, str(failure) or type(failure).__name__)
        return
    _place(core, lane, queued, core.view.nodes.names[row])


def _decide(core: Core, lane: Lane, queued: QueuedPod, message: ExtendersAnswered) -> None:
    """Place or refuse a pod whose extenders have answered."""
    try:
        diagnosis = extender.judge_again(core, lane, queued, message)
        if len(diagnosis.feasible) == 0:
            _refuse(core, lane, queued, diagnosis, message)
            return
        row = extender.pick_with(core, lane, queued, diagnosis, message.scores)
    except Exception as failure:
        core.fail(lane, queued, conditions_and_events.SCHEDULER_ERROR, str(failure) or type(failure).__name__)
        return
    _place(core, lane, queued, core.view.nodes.names[row])


def _preempt(core: Core, question: Question, message: VictimsAnswered) -> None:
    """Clear a node for a pod whose extenders have answered, or refuse the pod; or place it, if it fits by now."""
    lane, queued = question.lane, question.queued
    try:
        if question.answered is None:
            diagnosis = judge(core, lane, queued.pod)
        else:
            diagnosis = extender.judge_again(core, lane, queued, question.answered)
        if len(diagnosis.feasible):
            _attempt(core, lane, queued)
            return
        error = error_in(diagnosis)
        if error is not None:
            core.fail(lane, queued, conditions_and_events.SCHEDULER_ERROR, error)
            return
        found = extender_victims.chosen(core, question, diagnosis, message)
    except Exception as failure:
        core.fail(lane, queued, conditions_and_events.SCHEDULER_ERROR, str(failure) or type(failure).__name__)
        return
    preempt.refuse(core, lane, queued, diagnosis, found)


def _refuse(
    core: Core, lane: Lane, queued: QueuedPod, diagnosis: Diagnosis, answered: ExtendersAnswered | None = None
) -> None:
    error = error_in(diagnosis)
    if error is not None:
        core.fail(lane, queued, conditions_and_events.SCHEDULER_ERROR, error)
        return
    found = preempt.find_room(core, lane, queued, diagnosis)
    if not (core.extenders and extender_victims.ask(core, lane, queued, diagnosis, found, answered)):
        preempt.refuse(core, lane, queued, diagnosis, found)


def _place(core: Core, lane: Lane, queued: QueuedPod, node: str) -> None:
    held = Reservation(queued, lane, node, lane.serving, core.now)
    core.view.assume(queued.uid, node)
    core.took(held)
    status = reserve(core, held)
    if status.is_success:
        ask_permit(core, held)
    else:
        undo(core, held, status, "Reserve")
