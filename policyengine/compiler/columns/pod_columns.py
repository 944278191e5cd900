"""Fields of a pod of the cluster -> columns of the pod table: what `p.priority` is for all elements of a list at once.

The root is `victim`, the schema's name for a pod of the cluster: an element of a list is read as one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from policyengine.compiler.columns.column import INT64_MAX, Column
from policyengine.compiler.columns.frame import Frame, PodFrame, Vector
from policyengine.compiler.columns.object_fields import POD_FIELDS, POD_PATHS, Getter
from policyengine.language.schema import attribute
from policyengine.language.types import BOOL, QUANTITIES, Kind

Path = tuple[str, ...]
_WHOLE = QUANTITIES | {Kind.INT, Kind.DURATION, Kind.TIMESTAMP}


def pod_binding(path: Path) -> Vector:
    """The column of a path below `victim`. KeyError: the schema and the table of fields disagree."""
    known = attribute(("victim", *path))
    if known is None:
        raise KeyError(path)
    read = _getter(path)
    content = known.type.args[0] if known.type.kind is Kind.OPTIONAL else known.type
    if content == BOOL:
        return lambda frame: _numbers(frame, path, read, np.bool_)
    if content.kind in _WHOLE:
        return lambda frame: _numbers(frame, path, _within_64_bits(read), np.int64)
    return lambda frame: _encoded(frame, path, read)


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


def _pods(frame: Frame) -> PodFrame:
    assert isinstance(frame, PodFrame)
    return frame


def _numbers(frame: Frame, name: Any, read: Getter, dtype: type[np.generic]) -> Column:
    column = _pods(frame).pods.numbers(name, read, dtype)
    present = frame.pick(column.present) if column.some_absent else None
    return Column(frame.pick(column.values), present=present)


def _encoded(frame: Frame, name: Any, read: Getter) -> Column:
    column = _pods(frame).pods.encoded(name, read)
    codes = frame.pick(column.codes)
    absent = codes < 0
    # An absent row's code, -1, points at the last value: any will do where nothing is held.
    return Column(codes, present=~absent if absent.any() else None, dictionary=column.values or [""])


def label_column(frame: Frame, key: str) -> Column:
    """`p.labels[?key]`."""
    return _encoded(frame, ("labels", key), lambda pod: pod.labels.get(key))


def annotation_column(frame: Frame, key: str) -> Column:
    """`p.annotations[?key]`."""
    return _encoded(frame, ("annotations", key), lambda pod: pod.annotations.get(key))


def selector_column(frame: Frame, key: str) -> Column:
    """`p.nodeSelector[?key]`."""
    return _encoded(frame, ("nodeSelector", key), lambda pod: pod.shape.spec.node_selector.get(key))


def request_column(frame: Frame, resource: str) -> Column:
    """`p.requests[?"vendor/x"]`."""
    return _numbers(frame, ("requests", resource), lambda pod: pod.shape.requests.scalars.get(resource), np.int64)
