"""What a rule waits for, derived from the schema fields it reads: cluster events, and kinds of objects to watch."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from policyengine.cluster import pod_groups
from policyengine.cluster.events import ActionType, ClusterEvent, Resource
from policyengine.compiler.lower.scope import Scope, all_read
from policyengine.framework.events import ClusterEventWithHint, QueueingHint
from policyengine.language import ir
from policyengine.language.ir.ir_walk import expressions_in

_EVENTS: dict[str, tuple[Resource, ActionType]] = {
    "node.add": (Resource.NODE, ActionType.ADD),
    "node.delete": (Resource.NODE, ActionType.DELETE),
    "node.allocatable": (Resource.NODE, ActionType.UPDATE_NODE_ALLOCATABLE),
    "node.label": (Resource.NODE, ActionType.UPDATE_NODE_LABEL),
    "node.annotation": (Resource.NODE, ActionType.UPDATE_NODE_ANNOTATION),
    "node.taint": (Resource.NODE, ActionType.UPDATE_NODE_TAINT),
    "node.condition": (Resource.NODE, ActionType.UPDATE_NODE_CONDITION),
    "assignedPod.add": (Resource.ASSIGNED_POD, ActionType.ADD),
    "assignedPod.delete": (Resource.ASSIGNED_POD, ActionType.DELETE),
    "assignedPod.update": (Resource.ASSIGNED_POD, ActionType.UPDATE),
    "unscheduledPod.add": (Resource.UNSCHEDULED_POD, ActionType.ADD),
    "unscheduledPod.delete": (Resource.UNSCHEDULED_POD, ActionType.DELETE),
    "unscheduledPod.update": (Resource.UNSCHEDULED_POD, ActionType.UPDATE),
    "pod.label": (Resource.UNSCHEDULED_POD, ActionType.UPDATE_POD_LABEL),
    "pod.annotation": (Resource.UNSCHEDULED_POD, ActionType.UPDATE_POD_ANNOTATION),
    "pod.scaleDown": (Resource.UNSCHEDULED_POD, ActionType.UPDATE_POD_SCALE_DOWN),
    "pod.toleration": (Resource.UNSCHEDULED_POD, ActionType.UPDATE_POD_TOLERATION),
    "pod.other": (Resource.UNSCHEDULED_POD, ActionType.UPDATE_OTHER),
    "time": (Resource.TIME, ActionType.UPDATE_OTHER),
    "podGroup.add": (Resource.POD_GROUP, ActionType.ADD),
    "podGroup.update": (Resource.POD_GROUP, ActionType.UPDATE),
    "podGroup.delete": (Resource.POD_GROUP, ActionType.DELETE),
}
"""The schema's changes as events. `node.image` is none: the periodic flush asks again."""

_OWN = frozenset(change for change in _EVENTS if change.startswith("pod."))


def own_update(refused: Any, old: Any, new: Any) -> QueueingHint:
    """A change of the pod itself; another pod's changes nothing for it."""
    return QueueingHint.QUEUE if new is not None and new.uid == refused.uid else QueueingHint.SKIP


def events_of(expressions: Iterable[ir.Expr], scope: Scope, reads_node: bool) -> tuple[ClusterEventWithHint, ...]:
    """The registrations of a rule made of these expressions; a rule that asks nodes also waits for new ones."""
    changes = all_read(expressions, scope).changes
    return _registered(changes | {"node.add"} if reads_node else changes)


@lru_cache(maxsize=256)
def _registered(changes: frozenset[str]) -> tuple[ClusterEventWithHint, ...]:
    registered: dict[tuple[Resource, bool], ActionType] = {}
    for change in changes & _EVENTS.keys():
        resource, action = _EVENTS[change]
        place = resource, change in _OWN
        registered[place] = registered.get(place, action) | action
    return tuple(
        ClusterEventWithHint(ClusterEvent(resource, action), own_update if own else None)
        for (resource, own), action in sorted(registered.items(), key=lambda item: (item[0][0].value, item[0][1]))
    )


def kinds_read(policy: ir.Policy, scope: Scope) -> tuple[str, ...]:
    """The kinds behind the roots that the policy names anywhere, lets included."""
    return pod_groups.KINDS if "podGroup" in all_read(expressions_in(policy), scope).roots else ()
