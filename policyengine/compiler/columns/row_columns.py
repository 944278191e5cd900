"""Schema path below `node` or `victim` -> column over the rows of a frame of nodes or of pods.

`victim` is the schema's name for a pod of the cluster: an element of a list of pods is read as one. A test compares
these tables with the schema. A column is handed out for the rows of the frame; whole columns alias the node table and
the pod table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.allocatable import PODS
from policyengine.cluster.node_objects import Node
from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.pod_requests import CPU, EPHEMERAL_STORAGE, MEMORY
from policyengine.compiler.columns.column import INT64_MAX, Column
from policyengine.compiler.columns.frame import Frame, PodFrame, Vector
from policyengine.compiler.columns.kernels import WHOLE
from policyengine.compiler.columns.logic_kernels import or_value
from policyengine.compiler.columns.object_fields import POD_FIELDS, POD_PATHS, Getter, amount, moment
from policyengine.language.schema import attribute
from policyengine.language.types import BOOL, content_of

Path = tuple[str, ...]
MapReader = Callable[[Frame, str], Column]
"""How one key of a map is read: present where the key is there."""
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
_RESOURCE = {"cpu": CPU, "memory": MEMORY, "storage": EPHEMERAL_STORAGE}


def _coded(codes: NDArray[np.int32], values: Sequence[Any]) -> Column:
    """Codes into values, -1 where there is none."""
    absent = codes < 0
    # -1 points at the last value: any will do where nothing is held.
    return Column(codes, present=~absent if absent.any() else None, dictionary=values or [""])


# --- nodes -----------------------------------------------------------------------------------------------


def _numbers(read: Callable[[NodeTable], NDArray[Any]]) -> Vector:
    return lambda frame: Column(frame.pick(read(frame.nodes)))


def _allocatable(nodes: NodeTable, resource: str) -> NDArray[np.int64]:
    """What the nodes offer; the table keeps the number of pods apart from the resources."""
    return nodes.allowed_pods if resource == PODS else nodes.allocatable(resource)


def _requested(nodes: NodeTable, resource: str) -> NDArray[np.int64]:
    return nodes.pod_count if resource == PODS else nodes.requested(resource)


_AMOUNTS: dict[str, Callable[[NodeTable, str], NDArray[np.int64]]] = {
    "allocatable": _allocatable,
    "capacity": lambda nodes, resource: nodes.derived.capacity(resource),
    "used": _requested,
    # Allocatable is at most 2^62 and requested sums stay below that: the difference fits.
    "free": lambda nodes, resource: nodes.allowed_pods - nodes.pod_count if resource == PODS else nodes.free(resource),
}


def _amount_column(kind: str, resource: str) -> Vector:
    return _numbers(lambda nodes: _AMOUNTS[kind](nodes, resource))


def _amount_entry(kind: str) -> MapReader:
    """`node.free[?"vendor/x"]`: present where the node offers some of it or its pods ask for some."""

    def entry(frame: Frame, resource: str) -> Column:
        nodes = frame.nodes
        present = frame.pick((_allocatable(nodes, resource) != 0) | (_requested(nodes, resource) != 0))
        return Column(frame.pick(_AMOUNTS[kind](nodes, resource)), present=None if present.all() else present)

    return entry


def _names(frame: Frame) -> Column:
    return Column(frame.row_numbers().astype(np.int32), dictionary=frame.nodes.names)


def _per_object(read: Callable[[Node], Any]) -> Vector:
    """A field read from each Node object: a dictionary entry a row."""

    def vector(frame: Frame) -> Column:
        objects = [frame.nodes.objects[row] for row in frame.row_numbers().tolist()]
        return Column(np.arange(frame.count, dtype=np.int32), dictionary=[read(node) for node in objects])

    return vector


def _node_texts(what: str) -> MapReader:
    """`node.labels[?key]`, `node.annotations[?key]`."""

    def read(frame: Frame, key: str) -> Column:
        column = frame.nodes.derived.encoded(what, key)
        return _coded(frame.pick(column.ids[: frame.nodes.n]), column.values)

    return read


_node_label = _node_texts("label")
_NO_TEXT = Column(np.zeros((), np.int32), dictionary=("",))


def _label_or_empty(key: str) -> Vector:
    return lambda frame: or_value(_node_label(frame, key), _NO_TEXT)


def _derived(what: str) -> Vector:
    """A list of small things, as often as nodes have different ones."""

    def vector(frame: Frame) -> Column:
        derived = frame.nodes.derived
        return Column(frame.pick(derived.ids(what, "")), dictionary=derived.values(what, ""))

    return vector


NODE_COLUMNS: dict[Path, Vector] = {
    ("name",): _names,
    ("labels",): _per_object(lambda node: node.metadata.labels),
    ("annotations",): _per_object(lambda node: node.metadata.annotations),
    ("podCount",): _numbers(lambda nodes: nodes.pod_count),
    ("unschedulable",): _numbers(lambda nodes: nodes.unschedulable),
    ("ready",): _numbers(lambda nodes: nodes.ready),
    ("createdAt",): _numbers(lambda nodes: np.rint(nodes.created_at * 1e9).astype(np.int64)),
    **{(what,): _derived(what) for what in ("taints", "conditions", "images", "finished")},
    ("zone",): _label_or_empty(ZONE),
    ("region",): _label_or_empty(REGION),
    **{(kind, field): _amount_column(kind, name) for kind in _AMOUNTS for field, name in _RESOURCE.items()},
}


_USAGE: dict[str, tuple[str, Callable[[str], int | None]]] = {
    "cpu": ("policyengine.io/usage-cpu", lambda text: amount(text, milli=True)),
    "memory": ("policyengine.io/usage-memory", lambda text: amount(text, milli=False)),
    "at": ("policyengine.io/usage-at", moment),
}
"""A field of `node.usage` -> the annotation it stands in, and how that is read."""
USAGE_ANNOTATIONS = tuple(annotation for annotation, _ in _USAGE.values())
"""What `node.usage` is read from."""


def _usage(frame: Frame, field: str) -> Column:
    """`node.usage.?cpu`: present where the annotation is there and can be read."""
    values, present = frame.nodes.derived.parsed("annotation", *_USAGE[field])
    return Column(frame.pick(values), present=frame.pick(present))


# --- pods ------------------------------------------------------------------------------------------------


def pod_binding(path: Path) -> Vector:
    """The column of a path below `victim`. KeyError: the schema and the table of fields disagree."""
    known = attribute(("victim", *path))
    if known is None:
        raise KeyError(path)
    read = _getter(path)
    content = content_of(known.type)
    if content == BOOL:
        return lambda frame: _pod_numbers(frame, path, read, np.bool_)
    if content.kind in WHOLE:
        return lambda frame: _pod_numbers(frame, path, _within_64_bits(read), np.int64)
    return lambda frame: _pod_values(frame, path, read)


def _getter(path: Path) -> Getter:
    if path in POD_PATHS:
        return POD_PATHS[path]
    outer, inner = POD_FIELDS[path[0]], path[1]
    return lambda pod: getattr(outer(pod), inner)


def _within_64_bits(read: Getter) -> Getter:
    def limited(pod: Any) -> int | None:
        value = read(pod)
        return None if value is None else max(-INT64_MAX, min(value, INT64_MAX))

    return limited


def _pod_numbers(frame: Frame, name: Path, read: Getter, dtype: type[np.generic]) -> Column:
    assert isinstance(frame, PodFrame)
    column = frame.pods.numbers(name, read, dtype)
    return Column(frame.pick(column.values), present=frame.pick(column.present) if column.some_absent else None)


def _pod_values(frame: Frame, name: Path, read: Getter) -> Column:
    assert isinstance(frame, PodFrame)
    column = frame.pods.encoded(name, read)
    return _coded(frame.pick(column.ids), column.values)


def _pod_texts(name: str) -> MapReader:
    """`p.labels[?key]`, `p.namespaceLabels[?key]`, …"""
    field = POD_FIELDS[name]
    return lambda frame, key: _pod_values(frame, (name, key), lambda pod: field(pod).get(key))


_POD_MAPS = ("labels", "annotations", "namespaceLabels", "namespaceAnnotations", "nodeSelector")


def _request_entry(frame: Frame, resource: str) -> Column:
    """`p.requests[?"vendor/x"]`."""
    name = ("requests", resource)
    return _pod_numbers(frame, name, lambda pod: pod.shape.requests.scalars.get(resource), np.int64)


# --- maps ------------------------------------------------------------------------------------------------


MAPS: dict[Path, MapReader] = {
    ("node", "labels"): _node_label,
    ("node", "annotations"): _node_texts("annotation"),
    ("node", "usage"): _usage,
    **{("node", kind): _amount_entry(kind) for kind in _AMOUNTS},
    **{("victim", name): _pod_texts(name) for name in _POD_MAPS},
    ("victim", "requests"): _request_entry,
}
"""A map of the row -> how one key of it is read."""
