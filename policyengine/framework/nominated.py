"""Filters run with and without the pods that are to come to a node (`status.nominatedNodeName`).

A pod must fit on a node as it is, and as it will be once the pods of equal or higher priority nominated to the node
stand there: room made for them is not for others. A nomination is no promise, so the first alone is not enough either
(RunFilterPluginsWithNominatedPods, framework/runtime/framework.go, v1.36).

A node that refuses the pod as it is is reported with that refusal; kube-scheduler reports the refusal with the
nominated pods there first. Which nodes are feasible is the same.
"""

from __future__ import annotations

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import ClusterView
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.filtering import Diagnosis
from policyengine.framework.profile import Profile
from policyengine.framework.status import Status


def nominees(evaluator: Evaluator, view: ClusterView, node_name: str, pod: PodInfo) -> list[str]:
    """UIDs of the pods nominated to the node that `pod` has to yield to: those of equal or higher priority, and those
    that a quota owes the room that `pod` would borrow."""
    on_node = view.nominated_on(node_name)
    return [uid for uid, other in on_node.items() if uid != pod.uid and yields(evaluator.profile, view, pod, other)]


def yields(profile: Profile, view: ClusterView, pod: PodInfo, coming: PodInfo) -> bool:
    """Whether the pod keeps off the room that is being made for `coming`."""
    if coming.priority >= pod.priority:
        return True
    return bool(profile.quotas) and profile.quotas.minds(pod, coming, view.snapshot())


def filter_with_nominated(evaluator: Evaluator, view: ClusterView, pod: PodInfo) -> Diagnosis:
    """`Evaluator.filter`, less the nodes that will not have room once the pods nominated to them have come."""
    diagnosis = evaluator.filter(pod, view.snapshot())
    if not view.nominated or len(diagnosis.feasible) == 0:
        return diagnosis
    feasible = set(diagnosis.feasible.tolist())
    row_of = view.nodes.row_of
    contested = {
        row: [(uid, name) for uid in uids]
        for name in list(view.nominated)
        if (row := row_of.get(name, -1)) in feasible and (uids := nominees(evaluator, view, name, pod))
    }
    refusals: dict[int, Status] = {}
    for row, coming in contested.items():
        with view.hypothetically(add=coming) as snapshot:
            status = evaluator.filter_node(pod, snapshot, row)
        if not status.is_success:
            refusals[row] = status
    return diagnosis.also_refused(refusals) if refusals else diagnosis


def filter_node_with_nominated(evaluator: Evaluator, view: ClusterView, pod: PodInfo, row: int) -> Status:
    """One node's verdict, first with the pods nominated to it, then without."""
    name = view.nodes.names[row]
    coming = nominees(evaluator, view, name, pod)
    if coming:
        with view.hypothetically(add=[(uid, name) for uid in coming]) as snapshot:
            status = evaluator.filter_node(pod, snapshot, row)
        if not status.is_success:
            return status
    return evaluator.filter_node(pod, view.snapshot(), row)
