"""Schema path below `node` -> column of the node table.

A test compares this table with the schema. A column is handed out for the rows of the frame; whole columns alias the
node table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.allocatable import PODS
from policyengine.cluster.node_objects import Node
from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.requests import CPU, EPHEMERAL_STORAGE, MEMORY
from policyengine.compiler.columns import pod_columns
from policyengine.compiler.columns.column import Column, Fault, Mask, faults_where
from policyengine.compiler.columns.frame import Frame, Vector
from policyengine.compiler.columns.logic_kernels import or_value
from policyengine.compiler.columns.object_fields import amount, moment

Path = tuple[str, ...]
MapReader = Callable[[Frame, str], Column]
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
_RESOURCE = {"cpu": CPU, "memory": MEMORY, "storage": EPHEMERAL_STORAGE}


# --- columns ---------------------------------------------------------------------------------------------


def _numbers(read: Callable[[NodeTable], NDArray[np.int64]]) -> Vector:
    return lambda frame: Column(frame.pick(read(frame.nodes)))


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
        known = (_allocatable(frame.nodes, resource) != 0) | (_requested(frame.nodes, resource) != 0)
        present = frame.pick(known)
        return Column(column.values, present=None if present.all() else present)

    return vector


_RESOURCE_COLUMNS: dict[str, Callable[[NodeTable, str], NDArray[np.int64]]] = {
    "allocatable": lambda nodes, resource: _allocatable(nodes, resource),
    "capacity": lambda nodes, resource: nodes.capacity(resource),
    "used": lambda nodes, resource: _requested(nodes, resource),
    # Allocatable is at most 2^62 and requested sums stay below that: the difference fits.
    "free": lambda nodes, resource: _allocatable(nodes, resource) - _requested(nodes, resource),
}


def _allocatable(nodes: NodeTable, resource: str) -> NDArray[np.int64]:
    """What the nodes offer; the table keeps the number of pods apart from the resources."""
    return nodes.allowed_pods if resource == PODS else nodes.allocatable(resource)


def _requested(nodes: NodeTable, resource: str) -> NDArray[np.int64]:
    return nodes.pod_count if resource == PODS else nodes.requested(resource)


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


def _whole(what: str) -> Vector:
    """A list of small things, as often as nodes have different ones."""

    def vector(frame: Frame) -> Column:
        derived = frame.nodes.derived
        return Column(frame.pick(derived.ids(what, "")), dictionary=derived.values(what, ""))

    return vector


def _created_at(frame: Frame) -> Column:
    return Column(np.rint(frame.pick(frame.nodes.created_at) * 1e9).astype(np.int64))


def _taints(frame: Frame) -> Column:
    return Column(frame.pick(frame.nodes.taint_ids), dictionary=frame.nodes.taint_sets)


def label_column(frame: Frame, key: str) -> Column:
    """`node.labels[?key]`: present where the node has the label."""
    return _encoded(frame, "label", key)


def annotation_column(frame: Frame, key: str) -> Column:
    """`node.annotations[?key]`: present where the node has the annotation."""
    return _encoded(frame, "annotation", key)


_EVERYWHERE, _NOWHERE = np.array(True), np.array(False)


def _encoded(frame: Frame, what: str, key: str) -> Column:
    column = frame.nodes.derived.encoded(what, key)
    ids = frame.pick(column.ids[: frame.nodes.n])
    if not column.some_absent:
        return Column(ids, dictionary=column.values or [""])
    if not column.values:
        return Column(ids, present=_NOWHERE, dictionary=[""])
    # An absent row's id, -1, points at the last value: any will do where nothing is held.
    return Column(ids, present=ids >= 0, dictionary=column.values)


def has_label(frame: Frame, key: str) -> Column:
    """`key in node.labels`."""
    return _is_encoded(frame, "label", key)


def has_annotation(frame: Frame, key: str) -> Column:
    """`key in node.annotations`."""
    return _is_encoded(frame, "annotation", key)


def _is_encoded(frame: Frame, what: str, key: str) -> Column:
    present = _encoded(frame, what, key).present
    return Column(_EVERYWHERE if present is None else present)


_USAGE = {
    "cpu": ("policyengine.io/usage-cpu", lambda text: amount(text, milli=True)),
    "memory": ("policyengine.io/usage-memory", lambda text: amount(text, milli=False)),
    "at": ("policyengine.io/usage-at", lambda text: moment(text)),
}
"""A field of `node.usage` -> the annotation it stands in, and how that is read."""


def usage_column(frame: Frame, field: str) -> Column:
    """`node.usage.?cpu`: present where the annotation is there and can be read."""
    annotation, parse = _USAGE[field]
    values, present = frame.nodes.derived.parsed("annotation", annotation, parse)
    return Column(frame.pick(values), present=frame.pick(present))


def _is_present(read: MapReader) -> MapReader:
    """Whether a key of a map, or a field that may be absent, is there."""

    def vector(frame: Frame, name: str) -> Column:
        present = read(frame, name).present
        return Column(np.ones(frame.count, np.bool_) if present is None else present)

    return vector


MAPS: dict[Path, tuple[MapReader, MapReader]] = {
    ("node", "labels"): (label_column, has_label),
    ("node", "annotations"): (annotation_column, has_annotation),
    ("node", "usage"): (usage_column, _is_present(usage_column)),
    **{
        ("victim", name): (read, _is_present(read))
        for name, read in {
            "labels": pod_columns.label_column,
            "annotations": pod_columns.annotation_column,
            "nodeSelector": pod_columns.selector_column,
        }.items()
    },
}
"""A map of the row -> how one key of it is read, and whether it is there."""


def required(column: Column) -> Column:
    """An optional column read without asking: a row fails where it holds nothing."""
    if column.present is None:
        return column
    faults = faults_where(~column.present, Fault.NO_KEY)
    return column.held().with_faults(faults)


_NO_TEXT = Column(np.zeros((), np.int32), dictionary=("",))


def _label_or_empty(key: str) -> Vector:
    return lambda frame: or_value(label_column(frame, key), _NO_TEXT)


NODE_COLUMNS: dict[Path, Vector] = {
    ("name",): _names,
    ("labels",): _per_object(lambda node: node.metadata.labels),
    ("annotations",): _per_object(lambda node: node.metadata.annotations),
    ("podCount",): _numbers(lambda nodes: nodes.pod_count),
    ("unschedulable",): _flags(lambda nodes: nodes.unschedulable),
    ("ready",): _flags(lambda nodes: nodes.ready),
    ("taints",): _taints,
    **{(what,): _whole(what) for what in ("conditions", "images", "finished")},
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
