"""The small things of the schema, which pods and nodes are made of: amounts, containers, tolerations, taints."""

from __future__ import annotations

from policyengine.language.attribute import ObjectInfo, field_of, object_info_of
from policyengine.language.types import CPU, INT, MEMORY, STORAGE, STRING, TIMESTAMP, list_of, object_of, optional_of

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
