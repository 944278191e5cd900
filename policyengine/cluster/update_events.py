"""What an update changed, in kube-scheduler's words: old and new object -> `ClusterEvent`s.

Source: kube-scheduler's framework/events.go, v1.36. An update of a pod that changes nothing a plugin can ask for
is `UPDATE_OTHER`; one of a node is so only where it changes what a policy can read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

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

_NODE_PARTS: Mapping[ActionType, Callable[[Node], object]] = {
    ActionType.UPDATE_NODE_TAINT: lambda node: node.spec.taints,
    ActionType.UPDATE_NODE_ALLOCATABLE: lambda node: node.status.allocatable or {},
    ActionType.UPDATE_NODE_LABEL: lambda node: node.metadata.labels,
    ActionType.UPDATE_NODE_CONDITION: lambda node: {one.type: one.status for one in node.status.conditions},
    ActionType.UPDATE_NODE_ANNOTATION: lambda node: node.metadata.annotations,
    ActionType.UPDATE_NODE_DECLARED_FEATURE: lambda node: node.status.declared_features,
}
"""What an update of a node is called -> the part that is another one then."""


def _only_rules_read(node: Node) -> object:
    """What kube-scheduler's plugins do not wait for."""
    status = node.status
    return node.spec.unschedulable, status.capacity, status.conditions, status.images


def _named(resource: Resource, action: ActionType) -> ClusterEvent:
    """The event, labelled as kube-scheduler does: `NodeAdd`, `AssignedPodUpdatePodLabel`, `PersistentVolumeUpdate`."""
    words = "Update" if action is ActionType.UPDATE_OTHER else (action.name or "").title().replace("_", "")
    return ClusterEvent(resource, action, f"{resource.value}{words}")


_UPDATES = {
    (resource, action): _named(resource, action)
    for resource in (Resource.NODE, Resource.ASSIGNED_POD, Resource.UNSCHEDULED_POD)
    for action in ActionType
}
_OTHER_EVENTS = {
    (kind.kind, action): _named(kind.event, action)
    for kind in BY_KIND.values()
    if kind.event is not None
    for action in (ActionType.ADD, ActionType.DELETE, ActionType.UPDATE_OTHER)
}


def node_events(old: Node, new: Node) -> list[ClusterEvent]:
    """What an update of a node can cure; uncordoning counts as a change of taints."""
    changed = [action for action, part in _NODE_PARTS.items() if part(old) != part(new)]
    if old.spec.unschedulable and not new.spec.unschedulable and ActionType.UPDATE_NODE_TAINT not in changed:
        changed.insert(0, ActionType.UPDATE_NODE_TAINT)
    if not changed and _only_rules_read(old) != _only_rules_read(new):
        changed.append(ActionType.UPDATE_OTHER)
    return [_UPDATES[Resource.NODE, action] for action in changed]


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
    return [_UPDATES[resource, action] for action in _pod_actions(old, new)]


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
        if any(new.requests.get(name) < amount for name, amount in old.requests.items()):
            changed.append(ActionType.UPDATE_POD_SCALE_DOWN)
        if old.shape.spec.scheduling_gates and not new.shape.spec.scheduling_gates:
            changed.append(ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
        if len(old.shape.spec.tolerations) != len(new.shape.spec.tolerations):
            changed.append(ActionType.UPDATE_POD_TOLERATION)
    if old.resource_claims != new.resource_claims:
        changed.append(ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    return changed or [ActionType.UPDATE_OTHER]
