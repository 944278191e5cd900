"""What the schema is made of: things with fields, and what is known of each field; and its small things, which pods and
nodes are made of: amounts, containers, tolerations, taints.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from policyengine.language.types import INT, QOS, Reach, Shape, Type, object_of, types_in


class Attribute(Struct, frozen=True, kw_only=True):
    """A field of an object, or a root.

    changes: what may alter it, as `<thing>.add`, `<thing>.delete` or `<thing>.<field>`; the compiler maps them to
    cluster events. evictable: whether evicting a pod may alter it. optional: it may be absent, so it is read as
    `.?name` or behind `has`. of_pods: it is read of each pod of a list.
    """

    name: str
    type: Type
    doc: str
    optional: bool = False
    reach: Reach = Reach.CONSTANT
    evictable: bool = False
    changes: tuple[str, ...] = ()
    of_pods: bool = False

    @property
    def shape(self) -> Shape:
        """POD for what there is one of a pod of the cluster, NODE for what there is one of a node, else SCALAR."""
        if self.of_pods:
            return Shape.POD
        return Shape.NODE if self.reach in (Reach.NODE_FIXED, Reach.NODE_CHANGING) else Shape.SCALAR


class ObjectInfo(Struct, frozen=True):
    """A thing with fields. `entries`: the type of `thing[?"vendor/x"]`, None where it takes no key. `methods`: what
    takes an argument (`node.domain(key)`), with the type of its result."""

    name: str
    doc: str
    fields: Mapping[str, Attribute]
    entries: Type | None = None
    methods: Mapping[str, Attribute] = field(default_factory=dict)


def field_of(
    name: str,
    type_: str,
    doc: str,
    *changes: str,
    optional: bool = False,
    reach: Reach = Reach.CONSTANT,
    evictable: bool = False,
) -> Attribute:
    """A field of an object, or a root, its type as a user reads it.

    What the fields of a small object change with is said where the object is used.
    """
    (found,) = types_in(type_, {"qos": QOS})
    return Attribute(
        name=name, type=found, doc=doc, optional=optional, reach=reach, evictable=evictable, changes=changes
    )


def object_info_of(name: str, doc: str, *fields: Attribute, entries: Type | None = None) -> ObjectInfo:
    """An object of the schema, its fields in the order they are shown."""
    return ObjectInfo(name, doc, {field.name: field for field in fields}, entries)


CONTAINER = object_of("container")

SMALL_OBJECTS: tuple[ObjectInfo, ...] = (
    object_info_of(
        "resources",
        'amounts by resource, 0 when unset; an extended one as `[?"vendor/x"]`, a count',
        field_of("cpu", "cpu", "processor time"),
        field_of("memory", "memory", "memory"),
        field_of("storage", "storage", "ephemeral storage"),
        entries=INT,
    ),
    object_info_of(
        "limits",
        'amounts by resource; an unset one is absent; an extended one as `[?"vendor/x"]`, a count',
        field_of("cpu", "cpu", "processor time", optional=True),
        field_of("memory", "memory", "memory", optional=True),
        field_of("storage", "storage", "ephemeral storage", optional=True),
        entries=INT,
    ),
    object_info_of(
        "port",
        "a port of a container",
        field_of("name", "string", "its name, '' without"),
        field_of("containerPort", "int", "the port in the container"),
        field_of("hostPort", "int", "the port on the node, 0 without"),
        field_of("hostIP", "string", "the address on the node, '' for all"),
        field_of("protocol", "string", "TCP, UDP or SCTP"),
    ),
    object_info_of(
        "container",
        "a container of a pod",
        field_of("name", "string", "its name"),
        field_of("image", "string", "its image"),
        field_of("requests", "limits", "resources.requests; an unset one is absent"),
        field_of("limits", "limits", "resources.limits; an unset one is absent"),
        field_of("ports", "list(port)", "its ports"),
    ),
    object_info_of(
        "toleration",
        "a toleration of a pod",
        field_of("key", "string", "the taint's key, '' for every key"),
        field_of("operator", "string", "Equal, Exists, Gt or Lt"),
        field_of("value", "string", "the taint's value"),
        field_of("effect", "string", "the taint's effect, '' for every effect"),
    ),
    object_info_of(
        "taint",
        "a taint of a node",
        field_of("key", "string", "its key"),
        field_of("value", "string", "its value, '' without"),
        field_of("effect", "string", "NoSchedule, PreferNoSchedule or NoExecute"),
    ),
    object_info_of(
        "condition",
        "a condition of a node",
        field_of("type", "string", "Ready, MemoryPressure, …"),
        field_of("status", "string", "True, False or Unknown"),
        field_of("reason", "string", "a word for machines"),
    ),
    object_info_of(
        "volume",
        "a volume of a pod",
        field_of("name", "string", "its name"),
        field_of("claim", "optional(string)", "the persistent volume claim it uses"),
    ),
    object_info_of(
        "owner",
        "the controller of a pod",
        field_of("kind", "string", "ReplicaSet, Job, …"),
        field_of("name", "string", "its name"),
        field_of("uid", "string", "its uid"),
    ),
    object_info_of(
        "usage",
        "a node's measured use",
        field_of("cpu", "cpu", "processor time", optional=True),
        field_of("memory", "memory", "memory", optional=True),
        field_of("at", "timestamp", "when it was measured", optional=True),
    ),
)
