"""One scheduling cycle: a popped pod is judged, placed and sent to be bound, or refused.

    judge (PreFilter, Filter) -> rank (PreScore, Score, NormalizeScore) -> pick -> assume -> Reserve -> Permit -> Bind

Rules (kube-scheduler's schedule_one.go, v1.36):
1. A refusal is worded `0/N nodes are available: …` and names the plugins whose events may cure it.
2. One feasible node is taken without scoring.
3. A plugin that fails, or answers Error, makes the attempt an error: condition SchedulerError, error backoff. It
   never ends the loop.
4. A refusal by Reserve or Permit gives the reservation back.
5. The decision carries the policy hash it was made with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyengine.framework.evaluation import Evaluator
from policyengine.framework.fit_error import NO_NODES, fit_error_message
from policyengine.framework.judgement import Judgement
from policyengine.framework.reservation import MAX_PERMIT_WAIT
from policyengine.framework.status import Code, Status
from policyengine.scheduler import notices
from policyengine.scheduler.bindings import Decision
from policyengine.scheduler.core import Core
from policyengine.scheduler.lanes import Lane
from policyengine.scheduler.messages import Bind
from policyengine.scheduler.permits import Waiting
from policyengine.scheduler.queued_pod import NO_PLUGINS, QueuedPod
from policyengine.scheduler.reservation import Reservation

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.cluster.snapshot import Snapshot


def run_cycle(core: Core, lane: Lane, queued: QueuedPod) -> None:
    """Try to place the pod, which the lane's queue has just popped."""
    evaluator = lane.serving.evaluator
    core.story.tell(queued.uid, core.now, "attempted", queued.attempts, lane.serving.policy_hash)
    snapshot = core.view.snapshot()
    if snapshot.nodes.n == 0:
        core.fail(lane, queued, notices.UNSCHEDULABLE, NO_NODES)
        return
    try:
        judgement = evaluator.judge(queued.pod, snapshot)
        if len(judgement.feasible) == 0:
            _refuse(core, lane, queued, judgement)
            return
        row = pick(evaluator, queued.pod, snapshot, judgement)
    except Exception as failure:
        core.fail(lane, queued, notices.SCHEDULER_ERROR, _worded(failure))
        return
    _place(core, lane, queued, snapshot.nodes.names[row])


def pick(evaluator: Evaluator, pod: PodInfo, snapshot: Snapshot, judgement: Judgement) -> int:
    """The row of the node to take, of those that `judgement` (from this snapshot as it is) found feasible."""
    if len(judgement.feasible) == 1:
        return int(judgement.feasible[0])
    return evaluator.rank(pod, snapshot, judgement).best(pod.uid)


def ask_permit(core: Core, held: Reservation) -> None:
    """Bind a reserved pod if every Permit plugin lets it go; have it wait, or refuse it, if one does not."""
    waits: list[tuple[float, str]] = []
    for plugin in held.serving.permit:
        try:
            status, timeout = plugin.permit(held.queued.pod, held.node, core.view.snapshot())
        except Exception as failure:
            status, timeout = Status(Code.ERROR, (_worded(failure),)), 0.0
        if status.code is Code.WAIT:
            waits.append((held.since + min(timeout, MAX_PERMIT_WAIT), plugin.name))
        elif not status.is_success and not status.is_skip:
            undo(core, held, status.by(plugin.name), "Permit")
            return
    if not waits:
        _bind(core, held)
        return
    deadline, name = min(waits)
    asked = {plugin for _, plugin in waits}
    waiters = [plugin for plugin in held.serving.permit if plugin.name in asked]
    events = [registered.event for plugin in waiters for registered in plugin.events_to_register()]
    core.permits.add(Waiting(held, name, tuple(events), deadline))
    core.story.tell(held.queued.uid, core.now, "waiting", name, deadline - core.now)


def time_out(core: Core, waiting: Waiting) -> None:
    """The pod has waited at Permit for as long as its plugins allowed."""
    waited = waiting.deadline - waiting.held.since
    reason = f"rejected due to timeout after waiting {waited:g}s at plugin {waiting.plugin}"
    undo(core, waiting.held, Status(Code.UNSCHEDULABLE, (reason,), waiting.plugin), "Permit")


def undo(core: Core, held: Reservation, status: Status, point: str) -> None:
    """Give the reservation back and have the pod try again later. `point` is where it was refused."""
    lane, queued = held.lane, held.queued
    core.release(held, status.message)
    if status.is_rejection:
        plugins = frozenset({status.plugin})
        pending = plugins if status.code is Code.PENDING else NO_PLUGINS
        message = fit_error_message(1, [(reason, 1) for reason in status.reasons])
        core.fail(lane, queued, notices.UNSCHEDULABLE, message, plugins, pending)
    else:
        message = f'running {point} plugin "{status.plugin}": {status.message}'
        core.fail(lane, queued, notices.SCHEDULER_ERROR, message)


def _refuse(core: Core, lane: Lane, queued: QueuedPod, judgement: Judgement) -> None:
    error = _error_in(judgement)
    if error is not None:
        core.fail(lane, queued, notices.SCHEDULER_ERROR, error)
        return
    plugins, pending = judgement.plugins, judgement.pending_plugins
    core.fail(lane, queued, notices.UNSCHEDULABLE, judgement.message(), plugins, pending)


def _error_in(judgement: Judgement) -> str | None:
    """The first node's Error answer, if a filter gave one: then the attempt is an error, not a refusal."""
    if judgement.pre_filter is not None:
        status = judgement.pre_filter
        failed = status.code is Code.ERROR
        return f'running PreFilter plugin "{status.plugin}": {status.message}' if failed else None
    rows = judgement.rows_with(Code.ERROR)
    if len(rows) == 0:
        return None
    status = judgement.refusal(int(rows[0]))
    return f'running "{status.plugin}" filter plugin: {status.message}'


def _place(core: Core, lane: Lane, queued: QueuedPod, node: str) -> None:
    pod = queued.pod
    held = Reservation(queued, lane, node, lane.serving, core.now)
    core.view.assume(pod.uid, node)
    core.story.tell(pod.uid, core.now, "reserved", node, held.serving.policy_hash)
    for plugin in held.serving.reserve:
        try:
            status = plugin.reserve(pod, node, core.view.snapshot())
        except Exception as failure:
            status = Status(Code.ERROR, (_worded(failure),))
        if not status.is_success and not status.is_skip:
            undo(core, held, status.by(plugin.name), "Reserve")
            return
    ask_permit(core, held)


def _bind(core: Core, held: Reservation) -> None:
    pod = held.queued.pod
    held.lane.queue.done(pod.uid)
    bind = Bind(pod.uid, pod.namespace, pod.name, held.node, held.serving.policy_hash)
    core.bindings.add(Decision(held, bind))
    core.actions.append(bind)


def _worded(failure: Exception) -> str:
    return str(failure) or type(failure).__name__
