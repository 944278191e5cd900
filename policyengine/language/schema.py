"""What a rule can see: the one table of names, types and meanings.

Documentation, completion, hover, the checker and the compiler's bindings come from it. A path (`node.free.memory`)
starts at a root, goes through objects and stops at the first list, map or optional. What holds for the first two
names of a path (reach, evictable, changes) holds for everything below.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from msgspec.structs import replace

from policyengine.language.attributes import (
    CONDITION,
    CONTAINER,
    LIMITS,
    OWNER,
    RESOURCES,
    SMALL_OBJECTS,
    TAINT,
    TOLERATION,
    USAGE,
    VOLUME,
    Attribute,
    ObjectInfo,
    field_of,
    object_info_of,
)
from policyengine.language.types import (
    BOOL,
    CPU,
    DOUBLE,
    DURATION,
    INT,
    MEMORY,
    QOS,
    STORAGE,
    STRING,
    TIMESTAMP,
    Kind,
    Reach,
    Type,
    list_of,
    map_of,
    object_of,
    optional_of,
)

POD = object_of("pod")
CLUSTER_POD = object_of("clusterPod")
NODE = object_of("node")
DOMAIN = object_of("domain")
FINISHED = object_of("finishedPod")
POD_GROUP = object_of("podGroup")
GANG = object_of("gang")
HISTORY = object_of("history")
DEMAND = object_of("demand")
LABELS = map_of(STRING, STRING)

QOS_CLASSES = ("BestEffort", "Burstable", "Guaranteed")
"""The values of type qos, lowest first; an int column holds their place in this tuple."""


_ASSIGNED = ("assignedPod.add", "assignedPod.delete")
_WAITING = ("unscheduledPod.add", "unscheduledPod.delete")
_PODS = (*_ASSIGNED, *_WAITING)
_GROUPS = ("podGroup.add", "podGroup.delete", "pod.podGroup")


def _node(name: str, type_: Type, doc: str, *changes: str) -> Attribute:
    """A field of the Node object itself."""
    return Attribute(name=name, type=type_, doc=doc, reach=Reach.NODE_FIXED, changes=("node.add", *changes))


def _on_node(name: str, type_: Type, doc: str, *changes: str) -> Attribute:
    """A field that what stands on the node decides."""
    return Attribute(
        name=name,
        type=type_,
        doc=doc,
        reach=Reach.NODE_CHANGING,
        evictable=True,
        changes=("node.add", *changes, *_ASSIGNED),
    )


_POD_FIELDS = (
    field_of("name", STRING, "metadata.name"),
    field_of("namespace", STRING, "metadata.namespace"),
    field_of("uid", STRING, "metadata.uid"),
    field_of("labels", LABELS, "metadata.labels"),
    field_of("annotations", LABELS, "metadata.annotations"),
    field_of("namespaceLabels", LABELS, "the labels of its namespace, none where that is not known"),
    field_of("namespaceAnnotations", LABELS, "the annotations of its namespace, none where that is not known"),
    field_of("requests", RESOURCES, "what the pod asks for in all, as the scheduler counts it; 0 when unset"),
    field_of("limits", LIMITS, "what the pod may use at most; a resource without a limit is absent"),
    field_of("qos", QOS, "BestEffort < Burstable < Guaranteed"),
    field_of("priority", INT, "spec.priority, 0 when unset"),
    field_of("priorityClass", STRING, "spec.priorityClassName, '' when unset"),
    field_of("nodeSelector", LABELS, "spec.nodeSelector"),
    field_of("tolerations", list_of(TOLERATION), "spec.tolerations"),
    field_of("containers", list_of(CONTAINER), "spec.containers"),
    field_of("initContainers", list_of(CONTAINER), "spec.initContainers"),
    field_of("images", list_of(STRING), "the images of its containers, init containers and image volumes"),
    field_of("volumes", list_of(VOLUME), "spec.volumes"),
    field_of("owner", optional_of(OWNER), "the controller that made the pod"),
    field_of("serviceAccount", STRING, "spec.serviceAccountName"),
    field_of("createdAt", TIMESTAMP, "metadata.creationTimestamp"),
    field_of("podGroup", optional_of(STRING), "the name of the pod group it belongs to"),
)

_POD_GROUP_FIELDS = (
    field_of("name", STRING, "metadata.name"),
    field_of("minMember", INT, "spec.minMember"),
    field_of("scheduleTimeout", optional_of(DURATION), "spec.scheduleTimeoutSeconds"),
    field_of("minResources", LIMITS, "spec.minResources"),
)

_GANG = (
    *(f"{pod}.{field.name}" for pod in ("assignedPod", "unscheduledPod") for field in _POD_FIELDS),
    *(f"podGroup.{field.name}" for field in _POD_GROUP_FIELDS),
    *_GROUPS,
)
"""What a gang rule may read of its pods."""

_WAITING_FIELDS = (
    field_of("queuedAt", TIMESTAMP, "when it entered the queue; refreshed at each refusal"),
    field_of("attempts", INT, "how often it was tried before"),
)

_PLACED_FIELDS = (
    field_of("node", STRING, "the name of the node it stands on, '' while pending"),
    field_of("scheduledAt", optional_of(TIMESTAMP), "when it was bound"),
    field_of("startedAt", optional_of(TIMESTAMP), "status.startTime"),
    field_of("terminating", BOOL, "whether it is being deleted"),
    field_of("restarts", INT, "the restarts of its containers, summed"),
)

_NODE_FIELDS = (
    _node("name", STRING, "metadata.name"),
    _node("labels", LABELS, "metadata.labels", "node.labels"),
    _node("annotations", LABELS, "metadata.annotations", "node.annotations"),
    _node("capacity", RESOURCES, "status.capacity", "node.capacity"),
    _node("allocatable", RESOURCES, "status.allocatable: what pods may use", "node.allocatable"),
    _on_node("used", RESOURCES, "the requests of the pods on the node, summed", "assignedPod.requests"),
    _on_node(
        "free", RESOURCES, "allocatable less used; may be negative", "node.allocatable", "assignedPod.requests"
    ),
    _on_node("podCount", INT, "how many pods stand on the node"),
    _on_node("pods", list_of(CLUSTER_POD), "the pods assigned or assumed there, finished ones not"),
    replace(
        _on_node("nominated", list_of(CLUSTER_POD), "the other pending pods nominated to the node"),
        changes=("node.add", *_WAITING, "unscheduledPod.nominated", "assignedPod.add"),
    ),
    replace(
        _on_node("finished", list_of(FINISHED), "the pods that ended there in the last hour, at most 100"),
        changes=("node.add", "finishedPod.add", "time"),
    ),
    _node("taints", list_of(TAINT), "spec.taints", "node.taints"),
    _node("unschedulable", BOOL, "spec.unschedulable", "node.unschedulable"),
    _node("ready", BOOL, "whether its condition Ready is True", "node.ready"),
    _node("conditions", list_of(CONDITION), "status.conditions", "node.conditions"),
    _node("images", list_of(STRING), "the names of the images on the node", "node.images"),
    _node("usage", USAGE, "what is really used there, as measured", "node.usage"),
    _node("zone", STRING, "label topology.kubernetes.io/zone, '' without", "node.zone"),
    _node("region", STRING, "label topology.kubernetes.io/region, '' without", "node.region"),
    _node("createdAt", TIMESTAMP, "metadata.creationTimestamp"),
)  # fmt: skip

_DOMAIN = _on_node(
    "domain",
    DOMAIN,
    "`domain(key)`: the nodes that share the label's value with the node, itself included",
    "node.delete",
    "node.labels",
)

OBJECTS: Mapping[str, ObjectInfo] = {
    info.name: info
    for info in (
        *SMALL_OBJECTS,
        object_info_of(
            "finishedPod",
            "a pod that ended on a node",
            field_of("owner", optional_of(OWNER), "its controller"),
            field_of("failed", BOOL, "whether it failed"),
            field_of("reason", STRING, "status.reason"),
            field_of("finishedAt", TIMESTAMP, "when it ended"),
        ),
        object_info_of(
            "domain",
            "the nodes that share a label's value, and their pods",
            field_of("pods", list_of(CLUSTER_POD), "the pods on the nodes of the domain"),
            replace(
                field_of("nodes", list_of(NODE), "the nodes of the domain"),
                changes=("node.add", "node.delete", "node.labels"),
            ),
        ),
        object_info_of(
            "pod",
            "the pod being placed",
            *(replace(field, reach=Reach.POD, changes=(f"pod.{field.name}",)) for field in _POD_FIELDS),
            # The queue knows them, not the pod: two equal pods may differ in them.
            *(replace(field, reach=Reach.CLUSTER) for field in _WAITING_FIELDS),
        ),
        object_info_of("clusterPod", "a pod of the cluster", *_POD_FIELDS, *_PLACED_FIELDS),
        replace(object_info_of("node", "a node", *_NODE_FIELDS), methods={"domain": _DOMAIN}),
        object_info_of(
            "podGroup",
            "the PodGroup object of the pod",
            *_POD_GROUP_FIELDS,
        ),
        object_info_of(
            "gang",
            "the gang the pod belongs to",
            field_of("key", STRING, "what its members have in common"),
            field_of("size", INT, "how many members there are"),
            field_of("reserved", INT, "how many hold a place"),
            field_of("bound", INT, "how many are bound"),
            field_of("min", INT, "how many it takes"),
        ),
        object_info_of(
            "history",
            "what pods that were placed asked for, those that are gone included",
            field_of("count", INT, "how many there were"),
            field_of("mean", DEMAND, "the mean of their requests"),
            field_of("stddev", DEMAND, "the standard deviation of their requests"),
            field_of(
                "moments",
                map_of(STRING, DOUBLE),
                'not rounded, in millicores, bytes and counts: `[?"cpu"]` a mean, `[?"cpu,memory"]` a covariance',
            ),
        ),
        object_info_of(
            "demand",
            'amounts by resource; an extended one as `[?"vendor/x"]`, a double',
            field_of("cpu", CPU, "processor time"),
            field_of("memory", MEMORY, "memory"),
            field_of("storage", STORAGE, "ephemeral storage"),
            entries=DOUBLE,
        ),
        object_info_of(
            "cluster",
            "the whole cluster",
            *(
                Attribute(name=name, type=INT, doc=doc, reach=Reach.CLUSTER, changes=changes)
                for name, doc, changes in (
                    ("nodeCount", "how many nodes there are", ("node.add", "node.delete", "time")),
                    ("podCount", "how many pods there are, pending, reserved or bound", (*_PODS, "time")),
                    ("pendingCount", "how many pods wait", (*_PODS, "time")),
                )
            ),
        ),
        object_info_of(
            "policy",
            "the policy itself",
            field_of("name", STRING, "its name"),
            field_of("hash", STRING, "the SHA-256 of its canonical text with imports and parameters"),
        ),
    )
}


def _root(name: str, type_: Type, doc: str, reach: Reach, *changes: str, evictable: bool = False) -> Attribute:
    return Attribute(name=name, type=type_, doc=doc, reach=reach, changes=changes, evictable=evictable)


ROOTS: Mapping[str, Attribute] = {
    root.name: root
    for root in (
        _root("pod", POD, "the pod being placed", Reach.POD),
        _root("node", NODE, "the node under consideration", Reach.NODE_FIXED, "node.add"),
        _root(
            "podGroup", optional_of(POD_GROUP), "its PodGroup, none where there is no such object", Reach.CLUSTER,
            *_GROUPS,
        ),
        _root("gang", optional_of(GANG), "its gang, none where no gang rule applies", Reach.CLUSTER, *_PODS, *_GANG),
        _root("cluster", object_of("cluster"), "the whole cluster", Reach.CLUSTER),
        _root("policy", object_of("policy"), "the policy itself", Reach.CONSTANT),
        _root("now", TIMESTAMP, "the start of the decision, in whole seconds", Reach.CLUSTER, "time"),
        _root("nodes", list_of(NODE), "every node", Reach.CLUSTER, "node.add", "node.delete", evictable=True),
        _root(
            "pods", list_of(CLUSTER_POD), "every pod not finished: pending, reserved or bound", Reach.CLUSTER, *_PODS,
            evictable=True,
        ),
        replace(
            _root("victim", CLUSTER_POD, "a running pod that may make room; in `preempt` only", Reach.NODE_CHANGING),
            of_pods=True,
        ),
    )
}  # fmt: skip

NAMED_GROUPS = ("podGroup(name)",)
"""The path by which `podGroup(name)` reads the PodGroups there are. No field of the schema, nor is the next."""
PLACED = ("history",)
"""The path by which `history(key)` reads the pods that were placed. No field of the schema."""
METHODS: frozenset[str] = frozenset(name for info in OBJECTS.values() for name in info.methods)
"""The names of all methods of objects."""


def object_info(type_: Type) -> ObjectInfo | None:
    """The fields of a type, None if it has none."""
    return OBJECTS.get(type_.name) if type_.kind is Kind.OBJECT else None


@lru_cache(maxsize=1024)
def attribute(path: tuple[str, ...]) -> Attribute | None:
    """What a path names, with the reach, evictability and changes that hold for it; None if it names nothing."""
    known = ROOTS.get(path[0])
    for name in path[1:]:
        info = object_info(known.type) if known else None
        inner = (info.fields.get(name) or info.methods.get(name)) if info else None
        if known is None or inner is None:
            return None
        known = _below(known, inner)
    return known


def _below(outer: Attribute, inner: Attribute) -> Attribute:
    return replace(
        inner,
        reach=max(outer.reach, inner.reach),
        evictable=outer.evictable or inner.evictable,
        changes=inner.changes or outer.changes,
        of_pods=outer.of_pods or inner.of_pods,
    )


def paths() -> Iterator[tuple[tuple[str, ...], Attribute]]:
    """Every path with a value of its own, roots first, depth first."""
    for name in ROOTS:
        yield from _paths_below((name,))


def _paths_below(path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Attribute]]:
    known = attribute(path)
    assert known is not None
    info = object_info(known.type)
    if info is None or path[0] == "victim":
        yield path, known
        return
    for name in info.fields:
        yield from _paths_below((*path, name))
