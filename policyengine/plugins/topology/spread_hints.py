"""Which changes may cure a refusal by PodTopologySpread (kube-scheduler's queueing hints for it)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from policyengine.cluster.objects import Node
from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.events import ActionType, ClusterEventWithHint, Resource
from policyengine.plugins.event_hints import on
from policyengine.plugins.topology.spread_constraint import Constraint

ConstraintsOf = Callable[[PodInfo], Sequence[Constraint] | None]


def spread_events(constraints_of: ConstraintsOf) -> Sequence[ClusterEventWithHint]:
    """The registrations. `constraints_of` answers None for a pod whose constraints a hint cannot know."""

    def pod_changed(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
        constraints = constraints_of(pod)
        return constraints is None or _pod_matters(pod, old, new, constraints)

    def node_changed(pod: PodInfo, old: Node | None, new: Node | None) -> bool:
        constraints = constraints_of(pod)
        return constraints is None or _node_matters(old, new, constraints)

    pods = ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_TOLERATION | ActionType.DELETE
    nodes = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
    return (
        on(Resource.POD, pods, pod_changed),
        on(Resource.NODE, nodes, node_changed),
    )


def _pod_matters(pod: PodInfo, old: PodInfo | None, new: PodInfo | None, constraints: Sequence[Constraint]) -> bool:
    if any(one is not None and not _involved(one, pod) for one in (old, new)):
        return False
    if old is None or new is None:
        one = new or old
        return one is not None and any(constraint.selector.matches(one.labels) for constraint in constraints)
    own_toleration = new.uid == pod.uid and new.shape.spec.tolerations != old.shape.spec.tolerations
    if own_toleration and any(constraint.honors_taints for constraint in constraints):
        return True
    return any(
        constraint.selector.matches(old.labels) != constraint.selector.matches(new.labels) for constraint in constraints
    )


def _involved(other: PodInfo, pod: PodInfo) -> bool:
    if other.uid == pod.uid:
        return True
    return bool(other.node_name or other.nominated_node_name) and other.namespace == pod.namespace


def _node_matters(old: Node | None, new: Node | None, constraints: Sequence[Constraint]) -> bool:
    had = old is not None and _has_keys(old.metadata.labels, constraints)
    has = new is not None and _has_keys(new.metadata.labels, constraints)
    if old is None or new is None:
        return had or has
    if had != has:
        return True
    moved = any(old.metadata.labels.get(one.key) != new.metadata.labels.get(one.key) for one in constraints)
    return has and (moved or old.spec.taints != new.spec.taints)


def _has_keys(labels: Mapping[str, str], constraints: Sequence[Constraint]) -> bool:
    return all(constraint.key in labels for constraint in constraints)
