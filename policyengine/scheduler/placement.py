"""The part of a cycle that one pod and a member of a gang go through alike: a node, and what the pod needs there.

filter_nodes (PreFilter, Filter, nominated pods, room reserved for a gang)
-> select_node (PreScore, Score, NormalizeScore) -> [assume] -> reserve (Reserve, the plans of PreBind)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyengine.framework.evaluator import Evaluator
from policyengine.framework.filtering import Diagnosis
from policyengine.framework.nominated import filter_with_nominated
from policyengine.framework.reservation import PreBindPlugin
from policyengine.framework.status import SKIP, SUCCESS, Code, Status
from policyengine.scheduler.binding.reservation import Reservation, failed_with
from policyengine.scheduler.core import Core
from policyengine.scheduler.logs import log
from policyengine.scheduler.profiles import ServedProfile

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.cluster.view import Snapshot


def filter_nodes(core: Core, served: ServedProfile, pod: PodInfo) -> Diagnosis:
    """Which nodes may hold the pod, as things stand in the view, and why the others may not."""
    log(core, served.runtime, "preFilter", pod)
    diagnosis = filter_with_nominated(served.runtime.evaluator, core.view, pod)
    if core.reserved_room is not None:
        diagnosis = core.reserved_room.refuse(core.view, core.now, served.runtime.evaluator, pod, diagnosis)
    return diagnosis


def select_node(evaluator: Evaluator, pod: PodInfo, snapshot: Snapshot, diagnosis: Diagnosis) -> int:
    """The row of the node to take, of those that `diagnosis` (from this snapshot as it is) found feasible. The node
    that the pod is nominated to comes first, unscored."""
    if len(diagnosis.feasible) == 1:
        return int(diagnosis.feasible[0])
    nominated = snapshot.nodes.row_of.get(pod.nominated_node_name) if pod.nominated_node_name else None
    if nominated is not None and diagnosis.refusal(nominated).is_success:
        return nominated
    return evaluator.select_among(pod, snapshot, diagnosis)


def select_node_at_once(core: Core, served: ServedProfile, pod: PodInfo) -> int | None:
    """The row that `filter_nodes` and `select_node` would come to, if only the plugins have a say; else, and if no node
    is feasible, None."""
    if core.view.nominated or core.reserved_room is not None or pod.nominated_node_name:
        return None
    row = served.runtime.evaluator.select_node(pod, core.view.snapshot())
    if row is not None and served.runtime.has_logs:
        log(core, served.runtime, "preFilter", pod)
    return row


def error_in(diagnosis: Diagnosis) -> str | None:
    """The first node's Error answer, if a filter gave one: then the attempt is an error, not a refusal."""
    if diagnosis.pre_filter is not None:
        status = diagnosis.pre_filter
        failed = status.code is Code.ERROR
        return f'running PreFilter plugin "{status.plugin}": {status.message}' if failed else None
    rows = diagnosis.rows_with(Code.ERROR)
    if len(rows) == 0:
        return None
    status = diagnosis.refusal(int(rows[0]))
    return f'running "{status.plugin}" filter plugin: {status.message}'


def reserve(core: Core, held: Reservation) -> Status:
    """Have the plugins take what the pod, assumed on its node, needs. The first refusal, signed, or SUCCESS."""
    pod = held.queued.pod
    if held.runtime.has_logs:
        log(core, held.runtime, "reserve", pod, held.node)
    reserving, preparing = held.runtime.needed_by(pod.shape)
    for plugin in reserving:
        try:
            status = plugin.reserve(pod, held.node, core.view.snapshot())
        except Exception as failure:
            status = failed_with(failure)
        if status is not SUCCESS and not status.is_success and not status.is_skip:
            return status.by(plugin.name)
    for preparer in preparing:
        status = _plan(core, held, preparer)
        if status is not SUCCESS and not status.is_success:
            return status.by(preparer.name)
    return SUCCESS


def _plan(core: Core, held: Reservation, plugin: PreBindPlugin) -> Status:
    """Note what the plugin will have to do before the pod is bound, and show it to others as done."""
    pod = held.queued.pod
    try:
        status, plan = plugin.plan(pod, held.node, core.view.snapshot())
        if status is SKIP or status.is_skip:
            return SUCCESS
        if status.is_success:
            held.plans.append((plugin, plan))
            for kind, item in plan.assumed:
                core.view.assume_object(pod.uid, kind, item)
    except Exception as failure:
        return failed_with(failure)
    return status
