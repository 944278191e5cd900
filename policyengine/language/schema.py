"""What a rule can see: the one table of names, types and meanings.

Documentation, completion, hover, the checker and the compiler's bindings come from it. A path (`node.free.memory`)
starts at a root, goes through objects and stops at the first list, map or optional. What holds for the first two
names of a path (reach, evictable, changes) holds for everything below.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from msgspec.structs import replace

from policyengine.language.attributes import SMALL_OBJECTS, Attribute, ObjectInfo, field_of, object_info_of
from policyengine.language.types import DOUBLE, Kind, Reach, Type, object_of

POD = object_of("pod")
CLUSTER_POD = object_of("clusterPod")
NODE = object_of("node")
DOMAIN = object_of("domain")
POD_GROUP = object_of("podGroup")
HISTORY = object_of("history")

QOS_CLASSES = ("BestEffort", "Burstable", "Guaranteed")
"""The values of type qos, lowest first; an int column holds their place in this tuple."""


_ASSIGNED = ("assignedPod.add", "assignedPod.delete")
_WAITING = ("unscheduledPod.add", "unscheduledPod.delete")
_PODS = (*_ASSIGNED, *_WAITING)
_GROUPS = ("podGroup.add", "podGroup.delete", "pod.podGroup")


def _node(name: str, type_: str, doc: str, *changes: str) -> Attribute:
    """A field of the Node object itself."""
    return field_of(name, type_, doc, "node.add", *changes, reach=Reach.NODE_FIXED)


def _of_cluster(name: str, doc: str, *changes: str) -> Attribute:
    """A count of the whole cluster."""
    return field_of(name, "int", doc, *changes, "time", reach=Reach.CLUSTER)


def _on_node(name: str, type_: str, doc: str, *changes: str) -> Attribute:
    """A field that what stands on the node decides."""
    changes = ("node.add", *changes, *_ASSIGNED)
    return field_of(name, type_, doc, *changes, reach=Reach.NODE_CHANGING, evictable=True)


_POD_FIELDS = (
    field_of("name", "string", "metadata.name"),
    field_of("namespace", "string", "metadata.namespace"),
    field_of("uid", "string", "metadata.uid"),
    field_of("labels", "map(string, string)", "metadata.labels"),
    field_of("annotations", "map(string, string)", "metadata.annotations"),
    field_of("namespaceLabels", "map(string, string)", "the labels of its namespace, none where that is not known"),
    field_of(
        "namespaceAnnotations", "map(string, string)", "the annotations of its namespace, none where that is not known"
    ),
    field_of("requests", "resources", "what the pod asks for in all, as the scheduler counts it; 0 when unset"),
    field_of("limits", "limits", "what the pod may use at most; a resource without a limit is absent"),
    field_of("qos", "qos", "BestEffort < Burstable < Guaranteed"),
    field_of("priority", "int", "spec.priority, 0 when unset"),
    field_of("priorityClass", "string", "spec.priorityClassName, '' when unset"),
    field_of("nodeSelector", "map(string, string)", "spec.nodeSelector"),
    field_of("tolerations", "list(toleration)", "spec.tolerations"),
    field_of("containers", "list(container)", "spec.containers"),
    field_of("initContainers", "list(container)", "spec.initContainers"),
    field_of("images", "list(string)", "the images of its containers, init containers and image volumes"),
    field_of("volumes", "list(volume)", "spec.volumes"),
    field_of("owner", "optional(owner)", "the controller that made the pod"),
    field_of("serviceAccount", "string", "spec.serviceAccountName"),
    field_of("createdAt", "timestamp", "metadata.creationTimestamp"),
    field_of("podGroup", "optional(string)", "the name of the pod group it belongs to"),
)

_POD_GROUP_FIELDS = (
    field_of("name", "string", "metadata.name"),
    field_of("minMember", "int", "spec.minMember"),
    field_of("scheduleTimeout", "optional(duration)", "spec.scheduleTimeoutSeconds"),
    field_of("minResources", "limits", "spec.minResources"),
)

_GANG = (
    *(f"{pod}.{field.name}" for pod in ("assignedPod", "unscheduledPod") for field in _POD_FIELDS),
    *(f"podGroup.{field.name}" for field in _POD_GROUP_FIELDS),
    *_GROUPS,
)
"""What a gang rule may read of its pods."""

_WAITING_FIELDS = (
    field_of("queuedAt", "timestamp", "when it entered the queue; refreshed at each refusal"),
    field_of("attempts", "int", "how often it was tried before"),
)

_PLACED_FIELDS = (
    field_of("node", "string", "the name of the node it stands on, '' while pending"),
    field_of("scheduledAt", "optional(timestamp)", "when it was bound"),
    field_of("startedAt", "optional(timestamp)", "status.startTime"),
    field_of("terminating", "bool", "whether it is being deleted"),
    field_of("restarts", "int", "the restarts of its containers, summed"),
)

_NODE_FIELDS = (
    _node("name", "string", "metadata.name"),
    _node("labels", "map(string, string)", "metadata.labels", "node.labels"),
    _node("annotations", "map(string, string)", "metadata.annotations", "node.annotations"),
    _node("capacity", "resources", "status.capacity", "node.capacity"),
    _node("allocatable", "resources", "status.allocatable: what pods may use", "node.allocatable"),
    _on_node("used", "resources", "the requests of the pods on the node, summed", "assignedPod.requests"),
    _on_node(
        "free", "resources", "allocatable less used; may be negative", "node.allocatable", "assignedPod.requests"
    ),
    _on_node("podCount", "int", "how many pods stand on the node"),
    _on_node("pods", "list(clusterPod)", "the pods assigned or assumed there, finished ones not"),
    field_of(
        "nominated", "list(clusterPod)", "the other pending pods nominated to the node",
        "node.add", *_WAITING, "unscheduledPod.nominated", "assignedPod.add",
        reach=Reach.NODE_CHANGING, evictable=True,
    ),
    field_of(
        "finished", "list(finishedPod)", "the pods that ended there in the last hour, at most 100",
        "node.add", "finishedPod.add", "time", reach=Reach.NODE_CHANGING, evictable=True,
    ),
    _node("taints", "list(taint)", "spec.taints", "node.taints"),
    _node("unschedulable", "bool", "spec.unschedulable", "node.unschedulable"),
    _node("ready", "bool", "whether its condition Ready is True", "node.ready"),
    _node("conditions", "list(condition)", "status.conditions", "node.conditions"),
    _node("images", "list(string)", "the names of the images on the node", "node.images"),
    _node("usage", "usage", "what is really used there, as measured", "node.usage"),
    _node("zone", "string", "label topology.kubernetes.io/zone, '' without", "node.zone"),
    _node("region", "string", "label topology.kubernetes.io/region, '' without", "node.region"),
    _node("createdAt", "timestamp", "metadata.creationTimestamp"),
)  # fmt: skip

_DOMAIN = _on_node(
    "domain",
    "domain",
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
            field_of("owner", "optional(owner)", "its controller"),
            field_of("failed", "bool", "whether it failed"),
            field_of("reason", "string", "status.reason"),
            field_of("finishedAt", "timestamp", "when it ended"),
        ),
        object_info_of(
            "domain",
            "the nodes that share a label's value, and their pods",
            field_of("pods", "list(clusterPod)", "the pods on the nodes of the domain"),
            field_of("nodes", "list(node)", "the nodes of the domain", "node.add", "node.delete", "node.labels"),
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
        object_info_of("podGroup", "the PodGroup object of the pod", *_POD_GROUP_FIELDS),
        object_info_of(
            "gang",
            "the gang the pod belongs to",
            field_of("key", "string", "what its members have in common"),
            field_of("size", "int", "how many members there are"),
            field_of("reserved", "int", "how many hold a place"),
            field_of("bound", "int", "how many are bound"),
            field_of("min", "int", "how many it takes"),
        ),
        object_info_of(
            "history",
            "what pods that were placed asked for, those that are gone included",
            field_of("count", "int", "how many there were"),
            field_of("mean", "demand", "the mean of their requests"),
            field_of("stddev", "demand", "the standard deviation of their requests"),
            field_of(
                "moments",
                "map(string, double)",
                'not rounded, in millicores, bytes and counts: `[?"cpu"]` a mean, `[?"cpu,memory"]` a covariance',
            ),
        ),
        object_info_of(
            "demand",
            'amounts by resource; an extended one as `[?"vendor/x"]`, a double',
            field_of("cpu", "cpu", "processor time"),
            field_of("memory", "memory", "memory"),
            field_of("storage", "storage", "ephemeral storage"),
            entries=DOUBLE,
        ),
        object_info_of(
            "cluster",
            "the whole cluster",
            _of_cluster("nodeCount", "how many nodes there are", "node.add", "node.delete"),
            _of_cluster("podCount", "how many pods there are, pending, reserved or bound", *_PODS),
            _of_cluster("pendingCount", "how many pods wait", *_PODS),
        ),
        object_info_of(
            "policy",
            "the policy itself",
            field_of("name", "string", "its name"),
            field_of("hash", "string", "the SHA-256 of its canonical text with imports and parameters"),
        ),
    )
}


ROOTS: Mapping[str, Attribute] = {
    root.name: root
    for root in (
        field_of("pod", "pod", "the pod being placed", reach=Reach.POD),
        field_of("node", "node", "the node under consideration", "node.add", reach=Reach.NODE_FIXED),
        field_of(
            "podGroup", "optional(podGroup)", "its PodGroup, none where there is no such object", *_GROUPS,
            reach=Reach.CLUSTER,
        ),
        field_of(
            "gang", "optional(gang)", "its gang, none where no gang rule applies", *_PODS, *_GANG, reach=Reach.CLUSTER
        ),
        field_of("cluster", "cluster", "the whole cluster", reach=Reach.CLUSTER),
        field_of("policy", "policy", "the policy itself"),
        field_of("now", "timestamp", "the start of the decision, in whole seconds", "time", reach=Reach.CLUSTER),
        field_of(
            "nodes", "list(node)", "every node", "node.add", "node.delete", reach=Reach.CLUSTER, evictable=True
        ),
        field_of(
            "pods", "list(clusterPod)", "every pod not finished: pending, reserved or bound", *_PODS,
            reach=Reach.CLUSTER, evictable=True,
        ),
        replace(
            field_of(
                "victim", "clusterPod", "a running pod that may make room; in `preempt` only",
                reach=Reach.NODE_CHANGING,
            ),
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
