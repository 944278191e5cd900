"""What an update changed, in kube-scheduler's words: old and new object -> `ClusterEvent`s.

Source: kube-scheduler's framework/events.go, v1.36. An update of a pod that changes nothing a plugin can ask for
is `UPDATE_OTHER`; one of a node is no event at all.
"""

from __future__ import annotations

from policyengine.cluster.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    UNSCHEDULED_POD_ADD,
    UNSCHEDULED_POD_DELETE,
    ActionType,
    ClusterEvent,
    Resource,
)
from policyengine.cluster.kinds import BY_KIND
from policyengine.cluster.node_objects import Node
from policyengine.cluster.pod_info import PodInfo, PodState
from policyengine.cluster.requests import Requests

_NODE_LABELS = {
    ActionType.UPDATE_NODE_ALLOCATABLE: "UpdateNodeAllocatable",
    ActionType.UPDATE_NODE_LABEL: "UpdateNodeLabel",
    ActionType.UPDATE_NODE_TAINT: "UpdateNodeTaint",
    ActionType.UPDATE_NODE_CONDITION: "UpdateNodeCondition",
    ActionType.UPDATE_NODE_ANNOTATION: "UpdateNodeAnnotation",
    ActionType.UPDATE_NODE_DECLARED_FEATURE: "UpdateNodeDeclaredFeature",
}
_POD_LABELS = {
    ActionType.UPDATE_POD_LABEL: "UpdatePodLabel",
    ActionType.UPDATE_POD_ANNOTATION: "UpdatePodAnnotation",
    ActionType.UPDATE_POD_SCALE_DOWN: "UpdatePodScaleDown",
    ActionType.UPDATE_POD_TOLERATION: "UpdatePodToleration",
    ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: "UpdatePodSchedulingGatesEliminated",
    ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM: "UpdatePodGeneratedResourceClaim",
    ActionType.UPDATE_OTHER: "Update",
}
_NODE_EVENTS = {action: ClusterEvent(Resource.NODE, action, f"Node{label}") for action, label in _NODE_LABELS.items()}
_POD_EVENTS = {
    (resource, action): ClusterEvent(resource, action, f"{resource.value}{label}")
    for resource in (Resource.ASSIGNED_POD, Resource.UNSCHEDULED_POD)
    for action, label in _POD_LABELS.items()
}
_OTHER_EVENTS = {
    (kind.kind, action): ClusterEvent(kind.event, action, f"{kind.event.value}{label}")
    for kind in BY_KIND.values()
    if kind.event is not None
    for action, label in (
        (ActionType.ADD, "Add"),
        (ActionType.DELETE, "Delete"),
        (ActionType.UPDATE_OTHER, "Update"),
    )
}


def node_events(old: Node, new: Node) -> list[ClusterEvent]:
    """What an update of a node can cure; uncordoning counts as a change of taints."""
    changed: list[ActionType] = []
    uncordoned = old.spec.unschedulable and not new.spec.unschedulable
    if uncordoned or old.spec.taints != new.spec.taints:
        changed.append(ActionType.UPDATE_NODE_TAINT)
    if (old.status.allocatable or {}) != (new.status.allocatable or {}):
        changed.append(ActionType.UPDATE_NODE_ALLOCATABLE)
    if old.metadata.labels != new.metadata.labels:
        changed.append(ActionType.UPDATE_NODE_LABEL)
    if _statuses(old) != _statuses(new):
        changed.append(ActionType.UPDATE_NODE_CONDITION)
    if old.metadata.annotations != new.metadata.annotations:
        changed.append(ActionType.UPDATE_NODE_ANNOTATION)
    if old.status.declared_features != new.status.declared_features:
        changed.append(ActionType.UPDATE_NODE_DECLARED_FEATURE)
    return [_NODE_EVENTS[action] for action in changed]


def pod_events(old: PodInfo | None, new: PodInfo | None) -> list[ClusterEvent]:
    """What a pod's coming, going, binding or update can cure.

    An assumed pod is not yet assigned: its arrival on the node is its `AssignedPodAdd`. It holds room all the
    same, so that its going, or its turning up elsewhere, is an `AssignedPodDelete`.
    """
    if old is None:
        return [] if new is None else [_arrival(new)]
    if new is None:
        return [departure(old)]
    if old.state is not PodState.PENDING and old.node_name != new.node_name:
        return [ASSIGNED_POD_DELETE, _arrival(new)]
    if (old.state is PodState.BOUND) != (new.state is PodState.BOUND):
        return [_arrival(new)]
    resource = Resource.ASSIGNED_POD if new.state is PodState.BOUND else Resource.UNSCHEDULED_POD
    return [_POD_EVENTS[resource, action] for action in _pod_actions(old, new)]


def departure(pod: PodInfo) -> ClusterEvent:
    """What the going of a pod is called."""
    return UNSCHEDULED_POD_DELETE if pod.state is PodState.PENDING else ASSIGNED_POD_DELETE


def object_event(kind: str, action: ActionType) -> list[ClusterEvent]:
    """The event of another kind's object: ADD, DELETE or UPDATE_OTHER; none for kinds no plugin waits for."""
    event = _OTHER_EVENTS.get((kind, action))
    return [] if event is None else [event]


def _arrival(pod: PodInfo) -> ClusterEvent:
    return ASSIGNED_POD_ADD if pod.state is PodState.BOUND else UNSCHEDULED_POD_ADD


def _pod_actions(old: PodInfo, new: PodInfo) -> list[ActionType]:
    changed: list[ActionType] = []
    if old.labels != new.labels:
        changed.append(ActionType.UPDATE_POD_LABEL)
    if old.annotations != new.annotations:
        changed.append(ActionType.UPDATE_POD_ANNOTATION)
    if old.shape is not new.shape:
        if _scaled_down(old.shape.requests, new.shape.requests):
            changed.append(ActionType.UPDATE_POD_SCALE_DOWN)
        if old.shape.spec.scheduling_gates and not new.shape.spec.scheduling_gates:
            changed.append(ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
        if len(old.shape.spec.tolerations) != len(new.shape.spec.tolerations):
            changed.append(ActionType.UPDATE_POD_TOLERATION)
    if old.resource_claims != new.resource_claims:
        changed.append(ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    return changed or [ActionType.UPDATE_OTHER]


def _scaled_down(old: Requests, new: Requests) -> bool:
    return any(new.get(name) < amount for name, amount in old.items())


def _statuses(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}
