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
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyengine.framework.evaluation import Evaluator
from policyengine.framework.fit_error import NO_NODES
from policyengine.framework.judgement import Judgement
from policyengine.framework.nominated import judge_with_nominated
from policyengine.framework.reservation import MAX_PERMIT_WAIT, PreBindPlugin
from policyengine.framework.status import SUCCESS, Code, Status
from policyengine.scheduler import notices, prebind, preemption
from policyengine.scheduler.bindings import Decision
from policyengine.scheduler.core import Core
from policyengine.scheduler.lanes import Lane
from policyengine.scheduler.messages import Bind
from policyengine.scheduler.permits import Waiting
from policyengine.scheduler.queued_pod import QueuedPod
from policyengine.scheduler.reservation import Reservation
from policyengine.scheduler.undo import failed_with, undo

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
        judgement = judge_with_nominated(evaluator, core.view, queued.pod)
        if len(judgement.feasible) == 0:
            _refuse(core, lane, queued, judgement)
            return
        row = pick(evaluator, queued.pod, core.view.snapshot(), judgement)
    except Exception as failure:
        core.fail(lane, queued, notices.SCHEDULER_ERROR, _worded(failure))
        return
    _place(core, lane, queued, snapshot.nodes.names[row])


def pick(evaluator: Evaluator, pod: PodInfo, snapshot: Snapshot, judgement: Judgement) -> int:
    """The row of the node to take, of those that `judgement` (from this snapshot as it is) found feasible. The node
    that the pod is nominated to comes first, unscored."""
    if len(judgement.feasible) == 1:
        return int(judgement.feasible[0])
    nominated = snapshot.nodes.row_of.get(pod.nominated_node_name) if pod.nominated_node_name else None
    if nominated is not None and judgement.refusal(nominated).is_success:
        return nominated
    return evaluator.rank(pod, snapshot, judgement).best(pod.uid)


def ask_permit(core: Core, held: Reservation) -> None:
    """Bind a reserved pod if every Permit plugin lets it go; have it wait, or refuse it, if one does not."""
    waits: list[tuple[float, str]] = []
    for plugin in held.serving.permit:
        try:
            status, timeout = plugin.permit(held.queued.pod, held.node, core.view.snapshot())
        except Exception as failure:
            status, timeout = failed_with(failure), 0.0
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


def _refuse(core: Core, lane: Lane, queued: QueuedPod, judgement: Judgement) -> None:
    error = _error_in(judgement)
    if error is not None:
        core.fail(lane, queued, notices.SCHEDULER_ERROR, error)
        return
    preemption.refuse(core, lane, queued, judgement)


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
    core.nominations.forget(pod.uid)
    core.evictions.forget(pod.uid)
    core.story.tell(pod.uid, core.now, "reserved", node, held.serving.policy_hash)
    for plugin in held.serving.reserve:
        try:
            status = plugin.reserve(pod, node, core.view.snapshot())
        except Exception as failure:
            status = failed_with(failure)
        if not status.is_success and not status.is_skip:
            undo(core, held, status.by(plugin.name), "Reserve")
            return
    for preparer in held.serving.pre_bind:
        status = _plan(core, held, preparer)
        if not status.is_success:
            undo(core, held, status.by(preparer.name), "Reserve")
            return
    ask_permit(core, held)


def _plan(core: Core, held: Reservation, plugin: PreBindPlugin) -> Status:
    """Note what the plugin will have to do before the pod is bound, and show it to others as done."""
    pod = held.queued.pod
    try:
        status, plan = plugin.plan(pod, held.node, core.view.snapshot())
        if status.is_skip:
            return SUCCESS
        if status.is_success:
            held.plans.append((plugin, plan))
            for kind, item in plan.assumed:
                core.view.assume_object(pod.uid, kind, item)
    except Exception as failure:
        return failed_with(failure)
    return status


def _bind(core: Core, held: Reservation) -> None:
    pod = held.queued.pod
    held.lane.queue.done(pod.uid)
    bind = Bind(pod.uid, pod.namespace, pod.name, held.node, held.serving.policy_hash)
    prebind.begin(core, Decision(held, bind, core.now))


def _worded(failure: Exception) -> str:
    return str(failure) or type(failure).__name__
