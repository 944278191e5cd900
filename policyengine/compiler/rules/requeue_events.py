"""What a rule reads of the schema, through lets too, and so what a pod that it refused waits for.

The schema says of each field what may change it, as `node.label` or `assignedPod.add`; that becomes cluster events.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

from policyengine.cluster import pod_groups
from policyengine.cluster.events import ActionType, ClusterEvent, Resource
from policyengine.cluster.kinds import FINISHED_PODS
from policyengine.compiler.lower.scope import Path, Scope
from policyengine.framework.events import ClusterEventWithHint, QueueingHint
from policyengine.language import ir
from policyengine.language.ir.ir_walk import children, expressions_in
from policyengine.language.schema import NODE, attribute

DOMAIN: Final[Path] = ("domain",)
"""Stands among the paths read where a domain of nodes is asked about."""


def paths_read(expressions: Iterable[ir.Expr], scope: Scope) -> frozenset[Path]:
    """The fields of the schema that expressions read, and `DOMAIN`."""
    return frozenset[Path]().union(*(_read(expr, scope) for expr in expressions))


def _read(expr: ir.Expr, scope: Scope) -> frozenset[Path]:
    known = scope.paths.get(id(expr))
    if known is not None:
        return known[1]
    paths: set[Path] = set()
    pending = [expr]
    while pending:
        part = pending.pop()
        if isinstance(part, ir.Field):
            paths.add(part.path)
        elif isinstance(part, ir.LetRef):
            value = scope.let_value(part.name)
            paths |= frozenset() if value is None else _read(value, scope)
        else:
            if isinstance(part, ir.Select) and part.operand.type == NODE:
                paths.add(("node", part.name))
            if isinstance(part, ir.Call) and part.function == "domain":
                paths.add(DOMAIN)
            pending += children(part)
    scope.paths[id(expr)] = expr, frozenset(paths)
    return scope.paths[id(expr)][1]


@lru_cache(maxsize=1024)
def is_evictable(paths: frozenset[Path]) -> bool:
    """Whether an eviction could change what is read."""
    return any(one is not None and one.evictable for one in map(attribute, paths))


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
    "finishedPod.add": (Resource.FINISHED_POD, ActionType.ADD),
    "podGroup.add": (Resource.POD_GROUP, ActionType.ADD),
    "podGroup.update": (Resource.POD_GROUP, ActionType.UPDATE),
    "podGroup.delete": (Resource.POD_GROUP, ActionType.DELETE),
}
"""The schema's changes as events. `node.image` is none: the periodic flush asks again."""


def own_update(refused: Any, old: Any, new: Any) -> QueueingHint:
    """A change of the pod itself; another pod's changes nothing for it."""
    return QueueingHint.QUEUE if new is not None and new.uid == refused.uid else QueueingHint.SKIP


def events_of(expressions: Iterable[ir.Expr], scope: Scope, reads_node: bool) -> tuple[ClusterEventWithHint, ...]:
    """The registrations of a rule made of these expressions; a rule that asks nodes also waits for new ones."""
    return _registered(paths_read(expressions, scope), reads_node)


@lru_cache(maxsize=1024)
def _registered(paths: frozenset[Path], reads_node: bool) -> tuple[ClusterEventWithHint, ...]:
    changes = {change for path in paths if (known := attribute(path)) is not None for change in known.changes}
    if reads_node:
        changes.add("node.add")
    registered: dict[tuple[Resource, bool], ActionType] = {}
    for change in changes & _EVENTS.keys():
        resource, action = _EVENTS[change]
        place = resource, change.startswith("pod.")
        registered[place] = registered.get(place, action) | action
    return tuple(
        ClusterEventWithHint(ClusterEvent(resource, action), own_update if own else None)
        for (resource, own), action in sorted(registered.items(), key=lambda item: (item[0][0].value, item[0][1]))
    )


def kinds_read(policy: ir.Policy, scope: Scope) -> tuple[str, ...]:
    """The kinds behind the roots that the policy names anywhere, lets included."""
    paths = paths_read(expressions_in(policy), scope)
    groups = pod_groups.KINDS if any(path[0] == "podGroup" for path in paths) else ()
    return (*groups, *([FINISHED_PODS.kind] if any("finished" in path for path in paths) else []))
