"""What the schema is made of: things with fields, and what is known of each field; and its small things, which pods and
nodes are made of: amounts, containers, tolerations, taints.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from policyengine.language.types import (
    CPU,
    INT,
    MEMORY,
    STORAGE,
    STRING,
    TIMESTAMP,
    Reach,
    Shape,
    Type,
    list_of,
    object_of,
    optional_of,
)


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


def field_of(name: str, type_: Type, doc: str, *, optional: bool = False) -> Attribute:
    """A field of an object that stands for itself: what it changes with is said where the object is used."""
    return Attribute(name=name, type=type_, doc=doc, optional=optional)


def object_info_of(name: str, doc: str, *fields: Attribute, entries: Type | None = None) -> ObjectInfo:
    """An object of the schema, its fields in the order they are shown."""
    return ObjectInfo(name, doc, {field.name: field for field in fields}, entries)


RESOURCES = object_of("resources")
LIMITS = object_of("limits")
PORT = object_of("port")
CONTAINER = object_of("container")
TOLERATION = object_of("toleration")
TAINT = object_of("taint")
CONDITION = object_of("condition")
VOLUME = object_of("volume")
OWNER = object_of("owner")
USAGE = object_of("usage")

SMALL_OBJECTS: tuple[ObjectInfo, ...] = (
    object_info_of(
        "resources",
        'amounts by resource, 0 when unset; an extended one as `[?"vendor/x"]`, a count',
        field_of("cpu", CPU, "processor time"),
        field_of("memory", MEMORY, "memory"),
        field_of("storage", STORAGE, "ephemeral storage"),
        entries=INT,
    ),
    object_info_of(
        "limits",
        'amounts by resource; an unset one is absent; an extended one as `[?"vendor/x"]`, a count',
        field_of("cpu", CPU, "processor time", optional=True),
        field_of("memory", MEMORY, "memory", optional=True),
        field_of("storage", STORAGE, "ephemeral storage", optional=True),
        entries=INT,
    ),
    object_info_of(
        "port",
        "a port of a container",
        field_of("name", STRING, "its name, '' without"),
        field_of("containerPort", INT, "the port in the container"),
        field_of("hostPort", INT, "the port on the node, 0 without"),
        field_of("hostIP", STRING, "the address on the node, '' for all"),
        field_of("protocol", STRING, "TCP, UDP or SCTP"),
    ),
    object_info_of(
        "container",
        "a container of a pod",
        field_of("name", STRING, "its name"),
        field_of("image", STRING, "its image"),
        field_of("requests", LIMITS, "resources.requests; an unset one is absent"),
        field_of("limits", LIMITS, "resources.limits; an unset one is absent"),
        field_of("ports", list_of(PORT), "its ports"),
    ),
    object_info_of(
        "toleration",
        "a toleration of a pod",
        field_of("key", STRING, "the taint's key, '' for every key"),
        field_of("operator", STRING, "Equal, Exists, Gt or Lt"),
        field_of("value", STRING, "the taint's value"),
        field_of("effect", STRING, "the taint's effect, '' for every effect"),
    ),
    object_info_of(
        "taint",
        "a taint of a node",
        field_of("key", STRING, "its key"),
        field_of("value", STRING, "its value, '' without"),
        field_of("effect", STRING, "NoSchedule, PreferNoSchedule or NoExecute"),
    ),
    object_info_of(
        "condition",
        "a condition of a node",
        field_of("type", STRING, "Ready, MemoryPressure, …"),
        field_of("status", STRING, "True, False or Unknown"),
        field_of("reason", STRING, "a word for machines"),
    ),
    object_info_of(
        "volume",
        "a volume of a pod",
        field_of("name", STRING, "its name"),
        field_of("claim", optional_of(STRING), "the persistent volume claim it uses"),
    ),
    object_info_of(
        "owner",
        "the controller of a pod",
        field_of("kind", STRING, "ReplicaSet, Job, …"),
        field_of("name", STRING, "its name"),
        field_of("uid", STRING, "its uid"),
    ),
    object_info_of(
        "usage",
        "a node's measured use",
        field_of("cpu", CPU, "processor time", optional=True),
        field_of("memory", MEMORY, "memory", optional=True),
        field_of("at", TIMESTAMP, "when it was measured", optional=True),
    ),
)
