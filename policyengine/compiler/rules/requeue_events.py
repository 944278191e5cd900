"""What a rule reads of the schema, through lets too, and so what a pod that it refused waits for.

Rules:
1. The schema says of each field what may change it: `node.add`, `assignedPod.delete`, or a field of an object such as
   `node.labels`. `_EVENTS` says which event each of them raises.
2. An update wakes only where one of the fields that the rule reads is another than before.
3. A field of a list's element is read of every object in the list: the lists say of which kinds (`pods`: placed and
   waiting pods).
4. A filter that gets no truer as nodes fill up (`trends`) waits for no pod to be placed.
5. A filter that reads no PodGroup but its pod's own waits for that one alone.

Example: `pods.exists(p, p.labels[?"app"].orValue("") == "db")` waits for pods that come or go, and for updates of pods
that change a label. `node.free.cpu >= 1` waits for nodes that come, for another allocatable, for placed pods that go,
and for those that request something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, reduce
from operator import attrgetter, or_
from typing import Any, Final

from policyengine.cluster import pod_groups
from policyengine.cluster.events import ActionType, ClusterEvent, Resource
from policyengine.cluster.kinds import FINISHED_PODS, NAMESPACES
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.workload_objects import NativePodGroup
from policyengine.compiler.columns.frame import Decision
from policyengine.compiler.columns.object_fields import POD_FIELDS, Getter, field_getter
from policyengine.compiler.columns.row_columns import REGION, USAGE_ANNOTATIONS, ZONE
from policyengine.compiler.lower.lets import in_order
from policyengine.compiler.lower.scope import Path, Scope
from policyengine.framework.events import ClusterEventWithHint, QueueingHint, QueueingHintFn
from policyengine.language import ir
from policyengine.language.ir.ir_walk import expressions_in, key, walk
from policyengine.language.schema import NAMED_GROUPS, OBJECTS, attribute
from policyengine.language.types import Kind, Type

PLACING: Final = "assignedPod.add"
"""The schema's word for a pod that is placed."""
DOMAIN: Final[Path] = ("domain",)
"""Stands among the paths read where a domain of nodes is asked about."""
_NOBODY: Any = None
"""The pod of what depends on none."""
ELEMENT: Final = "element"
"""Begins the paths of what is read of each pod of a list."""


def paths_read(expressions: Iterable[ir.Expr], scope: Scope) -> frozenset[Path]:
    """The fields of the schema that expressions read, and `DOMAIN`."""
    return frozenset[Path]().union(*(_read(expr, scope) for expr in expressions))


def _read(expr: ir.Expr, scope: Scope) -> frozenset[Path]:
    paths: set[Path] = set()
    for part in walk(expr):
        if isinstance(part, ir.Field):
            paths.add(part.path)
        elif isinstance(part, ir.LetRef):
            paths |= _read_by(part.name, scope)
        elif isinstance(part, ir.Select) and (owner := element_of(part.operand.type)) is not None:
            paths.add((owner, part.name))
        elif isinstance(part, ir.Call) and part.function == "domain":
            paths.add(DOMAIN)
        elif isinstance(part, ir.Call) and part.function == "history":
            paths.add(("pods",))  # it is another when a pod is placed
    return frozenset(paths)


def _read_by(let: str, scope: Scope) -> frozenset[Path]:
    """What a let reads, found once for a policy."""
    for name in in_order(let, scope.lets.needs, scope.paths):
        value = scope.lets.value(name)
        scope.paths[name] = frozenset() if value is None else _read(value, scope)
    return scope.paths[let]


def element_of(type_: Type) -> str | None:
    """The first name of the paths read of an object of the cluster; None for any other type."""
    content = type_.args[0] if type_.kind is Kind.OPTIONAL else type_
    return _ELEMENTS.get(content.name) if content.kind is Kind.OBJECT else None


@lru_cache(maxsize=1024)
def is_evictable(paths: frozenset[Path]) -> bool:
    """Whether an eviction could change what is read."""
    return any(one is not None and one.evictable for one in map(attribute, paths))


_EVENTS: dict[str, tuple[Resource, ActionType]] = {
    "node.add": (Resource.NODE, ActionType.ADD),
    "node.delete": (Resource.NODE, ActionType.DELETE),
    "assignedPod.add": (Resource.ASSIGNED_POD, ActionType.ADD),
    "assignedPod.delete": (Resource.ASSIGNED_POD, ActionType.DELETE),
    "unscheduledPod.add": (Resource.UNSCHEDULED_POD, ActionType.ADD),
    "unscheduledPod.delete": (Resource.UNSCHEDULED_POD, ActionType.DELETE),
    "finishedPod.add": (Resource.FINISHED_POD, ActionType.ADD),
    "podGroup.add": (Resource.POD_GROUP, ActionType.ADD),
    "podGroup.delete": (Resource.POD_GROUP, ActionType.DELETE),
    "time": (Resource.TIME, ActionType.UPDATE_OTHER),
}
"""The schema's changes as events, but for updates: these are `<thing>.<field>`, with a getter in `_FIELDS`."""


def _label(key: str) -> Getter:
    return lambda node: node.metadata.labels.get(key, "")


_POD: Mapping[str, Getter] = {**POD_FIELDS, "nominated": attrgetter("nominated_node_name")}
_FIELDS: Mapping[str, tuple[Resource, Mapping[str, Getter]]] = {
    "node": (
        Resource.NODE,
        {
            "labels": attrgetter("metadata.labels"),
            "annotations": attrgetter("metadata.annotations"),
            "capacity": attrgetter("status.capacity"),
            "allocatable": attrgetter("status.allocatable"),
            "taints": attrgetter("spec.taints"),
            "unschedulable": attrgetter("spec.unschedulable"),
            "ready": lambda node: [one.status for one in node.status.conditions if one.type == "Ready"],
            "conditions": attrgetter("status.conditions"),
            "images": attrgetter("status.images"),
            "usage": lambda node: [node.metadata.annotations.get(key) for key in USAGE_ANNOTATIONS],
            "zone": _label(ZONE),
            "region": _label(REGION),
        },
    ),
    "assignedPod": (Resource.ASSIGNED_POD, _POD),
    "unscheduledPod": (Resource.UNSCHEDULED_POD, _POD),
    "pod": (Resource.UNSCHEDULED_POD, _POD),
    "podGroup": (
        Resource.POD_GROUP,
        {name: field_getter("podGroup", name) for name in OBJECTS["podGroup"].fields},
    ),
}
"""What an update may change of each thing, and how that is read of the object."""
_OF_NAMESPACE = {"namespaceLabels": "labels", "namespaceAnnotations": "annotations"}
"""A field of a pod -> what it is of its namespace's metadata."""
_LABEL = ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_POD_LABEL
_ANNOTATION = ActionType.UPDATE_NODE_ANNOTATION | ActionType.UPDATE_POD_ANNOTATION
_ACTIONS: Mapping[str, ActionType] = {
    **dict.fromkeys(("labels", "zone", "region"), _LABEL),
    **dict.fromkeys(("annotations", "usage"), _ANNOTATION),
    "allocatable": ActionType.UPDATE_NODE_ALLOCATABLE,
    "taints": ActionType.UPDATE_NODE_TAINT,
}
"""The updates that change a field; any may where the table does not say."""
_ELEMENTS: Mapping[str, str] = {"node": "node", "clusterPod": ELEMENT, "podGroup": "podGroup"}
"""An object that a variable or an optional stands for -> the first name of the paths read of it."""


def own_update(refused: Any, old: Any, new: Any) -> QueueingHint:
    """A change of the pod itself; another pod's changes nothing for it."""
    return QueueingHint.QUEUE if new is not None and new.uid == refused.uid else QueueingHint.SKIP


def own_group(refused: PodInfo, old: Any, new: Any) -> QueueingHint:
    """A change of the PodGroup that the pod names; another one's changes nothing for it."""
    group = old if new is None else new
    kind = pod_groups.NATIVE if isinstance(group, NativePodGroup) else pod_groups.POD_GROUP
    is_own = pod_groups.named_by(refused) == (kind, group.metadata.key)
    return QueueingHint.QUEUE if is_own else QueueingHint.SKIP


def reads_own_group(expressions: Iterable[ir.Expr], scope: Scope) -> bool:
    """Whether expressions read the pod's PodGroup, and no other one."""
    return _only_own_group(paths_read(expressions, scope))


def _only_own_group(paths: frozenset[Path]) -> bool:
    others = any(path == NAMED_GROUPS or path[0] == "gang" for path in paths)
    return not others and any(path[0] == "podGroup" for path in paths)


def events_of(
    expressions: Iterable[ir.Expr], scope: Scope, reads_node: bool, is_filter: bool = False, gets_truer: bool = True
) -> tuple[ClusterEventWithHint, ...]:
    """The registrations of a rule made of these expressions; a rule that asks nodes also waits for new ones.

    `is_filter`: the pods it refuses are told apart by their PodGroups, where it reads them (`RuleFilter.waits_with`).
    `gets_truer`: whether it may let a pod pass once others were placed.
    """
    return _registered(paths_read(expressions, scope), reads_node, is_filter, gets_truer)


@lru_cache(maxsize=1024)
def _registered(
    paths: frozenset[Path], reads_node: bool, is_filter: bool, gets_truer: bool
) -> tuple[ClusterEventWithHint, ...]:
    changes = set[str]().union(*map(changes_of, paths))
    if not gets_truer:
        changes.discard(PLACING)
    if reads_node:
        changes.add("node.add")
    things = [thing for thing in ("assignedPod", "unscheduledPod") if f"{thing}.delete" in changes]
    changes |= {f"{thing}.{path[1]}" for path in paths if path[0] == ELEMENT for thing in things}
    actions: dict[Resource, ActionType] = {}
    fields: dict[str, list[str]] = {}
    homes: dict[bool, list[str]] = {}
    for change in sorted(changes):
        thing, _, name = change.partition(".")
        if change in _EVENTS:
            resource, action = _EVENTS[change]
            actions[resource] = actions.get(resource, action) | action
        elif name in _OF_NAMESPACE:
            homes.setdefault(thing == "pod", []).append(_OF_NAMESPACE[name])
        elif name in _FIELDS[thing][1]:
            fields.setdefault(thing, []).append(name)
    groups = own_group if is_filter and _only_own_group(paths) else None
    whole = [
        ClusterEventWithHint(ClusterEvent(resource, action), groups if resource is Resource.POD_GROUP else None)
        for resource, action in actions.items()
    ]
    owners: dict[str, QueueingHintFn | None] = {"pod": own_update, "podGroup": groups}
    updates = [_update(thing, names, owners.get(thing)) for thing, names in fields.items()]
    return (*whole, *updates, *(_of_namespace(is_own, parts) for is_own, parts in homes.items()))


def changes_of(path: Path) -> Iterable[str]:
    """What may change at a path, in the schema's words."""
    if path == NAMED_GROUPS:
        return ("podGroup.add", "podGroup.delete")
    if path[0] == "podGroup" and len(path) > 1:
        return (f"podGroup.{path[1]}",)
    known = attribute(path)
    return () if known is None else known.changes


def _update(thing: str, names: Sequence[str], is_own: QueueingHintFn | None) -> ClusterEventWithHint:
    """Waits for updates that change one of the fields; `is_own`: of what is the pod's own, where that is asked for."""
    resource, fields = _FIELDS[thing]
    getters = [fields[name] for name in names]
    action = reduce(or_, (_ACTIONS.get(name, ActionType.UPDATE) for name in names))
    action &= ~(ActionType.UPDATE_POD if resource is Resource.NODE else ActionType.UPDATE_NODE)

    def hint(refused: Any, old: Any, new: Any) -> QueueingHint:
        if is_own is not None and is_own(refused, old, new) is QueueingHint.SKIP:
            return QueueingHint.SKIP
        if old is None or new is None:
            return QueueingHint.QUEUE
        return QueueingHint.QUEUE if any(read(old) != read(new) for read in getters) else QueueingHint.SKIP

    return ClusterEventWithHint(ClusterEvent(resource, action), hint)


def _of_namespace(is_own: bool, parts: Sequence[str]) -> ClusterEventWithHint:
    """Waits for a namespace that comes, goes or is changed in `parts` of its metadata; `is_own`: the pod's alone."""

    def hint(refused: Any, old: Any, new: Any) -> QueueingHint:
        if is_own and (old if new is None else new).metadata.name != refused.namespace:
            return QueueingHint.SKIP
        before, after = (None if one is None else one.metadata for one in (old, new))
        is_other = any(getattr(before, part, {}) != getattr(after, part, {}) for part in parts)
        return QueueingHint.QUEUE if is_other else QueueingHint.SKIP

    return ClusterEventWithHint(ClusterEvent(Resource.NAMESPACE, ActionType.ALL), hint)


def namespace_events(expressions: Iterable[ir.Expr], scope: Scope) -> tuple[ClusterEventWithHint, ...]:
    """Waits for any namespace whose labels or annotations, as expressions read them of a pod, are others."""
    parts = {
        _OF_NAMESPACE[path[1]] for path in paths_read(expressions, scope) if path[1:2] and path[1] in _OF_NAMESPACE
    }
    return (_of_namespace(False, sorted(parts)),) if parts else ()


def kinds_read(policy: ir.Policy, scope: Scope) -> tuple[str, ...]:
    """The kinds behind the roots that the policy names anywhere, lets included."""
    paths = paths_read(expressions_in(policy), scope)
    groups = pod_groups.KINDS if any(path[0] == "podGroup" or path == NAMED_GROUPS for path in paths) else ()
    homes = [NAMESPACES.kind] if any(path[-1] in _OF_NAMESPACE for path in paths) else []
    ended = any("finished" in path for path in paths) or any(gang.counts_finished for gang in policy.gangs)
    return (*groups, *homes, *([FINISHED_PODS.kind] if ended else []))


def histories_read(policy: ir.Policy, scope: Scope) -> tuple[tuple[str, float], ...]:
    """(label, smoothing) of each `history` that the policy reads anywhere, lets included."""
    calls = {
        key(part): tuple(scope.value(arg)(Decision(_NOBODY)) for arg in part.args[-2:])
        for expr in expressions_in(policy)
        for part in walk(expr)
        if isinstance(part, ir.Call) and part.function == "history"
    }
    return tuple(sorted(set(calls.values())))


def reads_queue(policy: ir.Policy, scope: Scope) -> bool:
    """Whether the policy reads what only queue and gang say of a pod."""
    paths = paths_read(expressions_in(policy), scope)
    return any(path[0] == "gang" or path[:2] in (("pod", "queuedAt"), ("pod", "attempts")) for path in paths)
