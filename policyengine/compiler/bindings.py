"""Schema path -> value of the pod, or column of the node table: the one place that knows where each field stands.

Every path the schema calls available is here (a test compares the two). A column is handed out for the rows of
the frame; whole columns alias the node table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.journal import Rows
from policyengine.cluster.node_objects import Node
from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.requests import CPU, EPHEMERAL_STORAGE, MEMORY
from policyengine.compiler.column import INT64_MAX, Column, Fault, Mask, faults_where
from policyengine.compiler.frame import Decision, Frame, Scalar, Scope, Vector
from policyengine.compiler.object_fields import POD_PATHS, nanoseconds
from policyengine.language.values import EvaluationError

Path = tuple[str, ...]
MapReader = Callable[[Frame, str], Column]
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
_RESOURCE = {"cpu": CPU, "memory": MEMORY, "storage": EPHEMERAL_STORAGE}


# --- single values ---------------------------------------------------------------------------------------


def scalar_binding(path: Path, scope: Scope) -> Scalar:
    """How a path without a node is read. KeyError: the schema and this table disagree."""
    if path[0] == "pod" and path[1:] in POD_PATHS:
        getter = POD_PATHS[path[1:]]
        return lambda decision: getter(decision.pod)
    if path[0] == "policy":
        text = scope.policy[path[1]]
        return lambda decision: text
    return _SCALARS[path]


def _queued_at(decision: Decision) -> int:
    if decision.queued_at is None:
        raise EvaluationError("`pod.queuedAt` is known to the queue only")
    return nanoseconds(decision.queued_at) or 0


_SCALARS: dict[Path, Scalar] = {
    ("pod", "queuedAt"): _queued_at,
    ("now",): lambda decision: _now(decision),
    ("cluster", "nodeCount"): lambda decision: _snapshot(decision).nodes.n,
    ("cluster", "podCount"): lambda decision: _snapshot(decision).pod_count,
    ("cluster", "pendingCount"): lambda decision: _snapshot(decision).pending_count,
}


def _now(decision: Decision) -> int:
    return int(_snapshot(decision).now) * 10**9


def _snapshot(decision: Decision) -> Any:
    if decision.snapshot is None:
        raise EvaluationError("the cluster is not known here")
    return decision.snapshot


# --- columns ---------------------------------------------------------------------------------------------


class Bound:
    """The largest absolute value of one column of the node table, kept from decision to decision.

    It may be too large, never too small: a row that changed can only raise it, so that only the rows in the
    journals are looked at.
    """

    __slots__ = ("_bound", "_node_position", "_nodes", "_pod_position")

    def __init__(self) -> None:
        self._nodes: Callable[[], NodeTable | None] = lambda: None
        self._bound = self._node_position = self._pod_position = 0

    def of(self, nodes: NodeTable, values: NDArray[np.int64]) -> int:
        """The bound of the column, `values` being all of it."""
        node_position, pod_position = nodes.node_journal.position, nodes.pod_journal.position
        if self._nodes() is not nodes:
            self._nodes, self._bound = ref(nodes), _largest(values)
        elif node_position != self._node_position or pod_position != self._pod_position:
            changed = nodes.node_journal.since(self._node_position), nodes.pod_journal.since(self._pod_position)
            self._bound = self._raised(changed, values)
        self._node_position, self._pod_position = node_position, pod_position
        return self._bound

    def _raised(self, changed: tuple[Rows | None, Rows | None], values: NDArray[np.int64]) -> int:
        if changed[0] is None or changed[1] is None:
            return _largest(values)
        return max(self._bound, _largest(values[changed[0]]), _largest(values[changed[1]]))


def _largest(values: NDArray[np.int64]) -> int:
    return max(int(values.max()), -int(values.min())) if len(values) else 0


def _numbers(read: Callable[[NodeTable], NDArray[np.int64]]) -> Vector:
    bound = Bound()

    def vector(frame: Frame) -> Column:
        values = read(frame.nodes)
        return Column(frame.pick(values), bound=bound.of(frame.nodes, values))

    return vector


def resource_column(kind: str, resource: str) -> Vector:
    """`node.allocatable`, `.used`, `.free` or `.capacity` of one resource by its Kubernetes name, int64."""
    read = _RESOURCE_COLUMNS[kind]
    return _numbers(lambda nodes: read(nodes, resource))


@lru_cache(maxsize=256)
def entry_column(kind: str, resource: str) -> Vector:
    """`node.free[?"vendor/x"]`: present where the node offers some of it or its pods ask for some."""
    amounts = resource_column(kind, resource)

    def vector(frame: Frame) -> Column:
        column = amounts(frame)
        known = (frame.nodes.allocatable(resource) != 0) | (frame.nodes.requested(resource) != 0)
        present = frame.pick(known)
        return Column(column.values, present=None if present.all() else present, bound=column.bound)

    return vector


_RESOURCE_COLUMNS: dict[str, Callable[[NodeTable, str], NDArray[np.int64]]] = {
    "allocatable": lambda nodes, resource: nodes.allocatable(resource),
    "capacity": lambda nodes, resource: nodes.capacity(resource),
    "used": lambda nodes, resource: nodes.requested(resource),
    # Allocatable is at most 2^62 and requested sums stay below that: the difference fits.
    "free": lambda nodes, resource: nodes.allocatable(resource) - nodes.requested(resource),
}


def _flags(read: Callable[[NodeTable], Mask]) -> Vector:
    return lambda frame: Column(frame.pick(read(frame.nodes)))


def _names(frame: Frame) -> Column:
    return Column(frame.row_numbers().astype(np.int32), dictionary=frame.nodes.names)


def _per_object(read: Callable[[Node], Any]) -> Vector:
    """A field read from each Node object: a dictionary entry a row."""

    def vector(frame: Frame) -> Column:
        objects: Sequence[Node] = frame.nodes.objects
        if frame.rows is not None:
            objects = [objects[row] for row in frame.rows]
        return Column(np.arange(frame.count, dtype=np.int32), dictionary=[read(node) for node in objects])

    return vector


def _created_at(frame: Frame) -> Column:
    return Column(np.rint(frame.pick(frame.nodes.created_at) * 1e9).astype(np.int64), bound=INT64_MAX)


def _taints(frame: Frame) -> Column:
    return Column(frame.pick(frame.nodes.taint_ids), dictionary=frame.nodes.taint_sets)


def label_column(frame: Frame, key: str) -> Column:
    """`node.labels[?key]`: present where the node has the label."""
    return _encoded(frame.pick(frame.nodes.label_ids(key)), frame.nodes.label_values(key) or [""])


def annotation_column(frame: Frame, key: str) -> Column:
    """`node.annotations[?key]`: present where the node has the annotation."""
    return _encoded(frame.pick(frame.nodes.annotation_ids(key)), frame.nodes.annotation_values(key) or [""])


def _encoded(ids: NDArray[np.int32], values: Sequence[str]) -> Column:
    absent = ids < 0
    if not absent.any():
        return Column(ids, dictionary=values)
    return Column(np.where(absent, np.int32(0), ids), present=~absent, dictionary=values)


def has_label(frame: Frame, key: str) -> Column:
    """`key in node.labels`."""
    return Column(frame.pick(frame.nodes.label_ids(key)) >= 0)


def has_annotation(frame: Frame, key: str) -> Column:
    """`key in node.annotations`."""
    return Column(frame.pick(frame.nodes.annotation_ids(key)) >= 0)


MAPS: dict[str, tuple[MapReader, MapReader]] = {
    "labels": (label_column, has_label),
    "annotations": (annotation_column, has_annotation),
}
"""A node's map -> how one key of it is read, and whether it is there."""


def required(column: Column) -> Column:
    """An optional column read without asking: a row fails where it holds nothing."""
    if column.present is None:
        return column
    faults = faults_where(~column.present, Fault.NO_KEY)
    return Column(column.values, column.faults, None, column.dictionary, column.bound).with_faults(faults)


def _label_or_empty(key: str) -> Vector:
    def vector(frame: Frame) -> Column:
        column = label_column(frame, key)
        if column.present is None:
            return column
        values: Sequence[Any] = column.dictionary or ()
        dictionary = values if "" in values else [*values, ""]
        empty = np.int32(dictionary.index(""))
        return Column(np.where(column.present, column.values, empty), dictionary=dictionary)

    return vector


NODE_COLUMNS: dict[Path, Vector] = {
    ("name",): _names,
    ("labels",): _per_object(lambda node: node.metadata.labels),
    ("annotations",): _per_object(lambda node: node.metadata.annotations),
    ("podCount",): _numbers(lambda nodes: nodes.pod_count),
    ("unschedulable",): _flags(lambda nodes: nodes.unschedulable),
    ("ready",): _flags(lambda nodes: nodes.ready),
    ("taints",): _taints,
    ("conditions",): _per_object(lambda node: node.status.conditions),
    ("images",): _per_object(lambda node: tuple(name for image in node.status.images for name in image.names)),
    ("zone",): _label_or_empty(ZONE),
    ("region",): _label_or_empty(REGION),
    ("createdAt",): _created_at,
    **{
        (kind, field): resource_column(kind, resource)
        for kind in _RESOURCE_COLUMNS
        for field, resource in _RESOURCE.items()
    },
}


def node_binding(path: Path) -> Vector:
    """The column of a path below `node`. KeyError: the schema and this table disagree."""
    return NODE_COLUMNS[path]
