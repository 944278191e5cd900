"""Nodes and node selectors as the API sends them: only the fields that scheduling, or a policy, reads."""

from __future__ import annotations

import msgspec

from policyengine.cluster.objects import Int64, ObjectMeta, Quantities, SelectorRequirement, Wire


class Taint(Wire, frozen=True):
    """A taint: NoSchedule, PreferNoSchedule or NoExecute."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Wire, frozen=True):
    """`unschedulable` is what `kubectl cordon` sets."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeCondition(Wire, frozen=True):
    """A condition such as Ready or MemoryPressure; heartbeat times are not read."""

    type: str = ""
    status: str = ""
    reason: str = ""


class ContainerImage(Wire, frozen=True):
    """An image on the node, under all its names."""

    names: tuple[str, ...] = ()
    size_bytes: Int64 = 0


class NodeStatus(Wire, frozen=True):
    """The node's capacity and condition."""

    capacity: Quantities = msgspec.field(default_factory=dict)
    allocatable: Quantities | None = None
    conditions: tuple[NodeCondition, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(Wire, frozen=True):
    """A node as decoded."""

    metadata: ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class NodeSelectorTerm(Wire, frozen=True):
    """All requirements must hold; a term without any matches no node."""

    match_expressions: tuple[SelectorRequirement, ...] = ()
    match_fields: tuple[SelectorRequirement, ...] = ()


class NodeSelector(Wire, frozen=True):
    """One of the terms must match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()
