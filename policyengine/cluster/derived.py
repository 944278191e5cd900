"""Columns made of Node objects when first asked for, and kept up to date row by row from then on.

Pods name labels that no node has, as many as they like, and not the same ones for long. These share one column, without
values; what is kept follows from what nodes have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.allocatable import capacity_of
from policyengine.cluster.finished import FinishedPods
from policyengine.cluster.journal import EncodedColumn, ValueTable
from policyengine.cluster.node_objects import Node

Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]


class DerivedColumns:
    """Labels, annotations, conditions, taints and capacity as ids. Rows are those of `objects`."""

    def __init__(self, objects: list[Node]) -> None:
        self._objects = objects
        self.finished = FinishedPods()
        """The pods that ended on nodes, those that are not known included."""
        self._encoded: dict[tuple[str, str], EncodedColumn[Any]] = {}
        self._nothing: EncodedColumn[Any] = EncodedColumn(lambda row: None, 0)
        """The column of every key that no node has had."""
        self._nothing.some_absent = True
        self._had: Final[Mapping[str, set[str]]] = {what: set() for what in _BY_KEY}
        """The keys that nodes have, or had."""
        self._parsed: dict[tuple[str, str], tuple[ValueTable, ValueTable]] = {}

    def ids(self, what: str, key: str) -> NDArray[np.int32]:
        """Index into `values(what, key)` for each row, -1 absent: `int32[n]`. `what`: label, annotation, condition or
        capacity by a key; with the key "": `taints`, `conditions`, `images` (names) or `finished`, whole as a tuple.
        """
        return self.encoded(what, key).ids[: len(self._objects)]

    def encoded(self, what: str, key: str) -> EncodedColumn[Any]:
        """The column of `ids` and `values`, until a Node changes."""
        column = self._encoded.get((what, key))
        if column is None:
            if key and not self.has(what, key):
                return self._nothing
            read = partial(_READERS[what], self, key)
            column = self._encoded[what, key] = EncodedColumn(lambda row: read(self._objects[row]), len(self._objects))
        return column

    def has(self, what: str, key: str) -> bool:
        """Whether a node has the key, or had it."""
        return key in self._had[what]

    def values(self, what: str, key: str) -> list[Any]:
        """The values by id."""
        return self.encoded(what, key).values

    def parsed(self, what: str, key: str, parse: Callable[[Any], int | None]) -> tuple[Int64, Bool]:
        """Numbers that stand in the values, and where there are any: `int64[n]`, `bool[n]`. Each value is read once.

        `parse` must be the same for the same `what` and `key`.
        """
        if self.encoded(what, key) is self._nothing:
            return np.zeros(len(self._objects), np.int64), np.zeros(len(self._objects), np.bool_)
        known = self._parsed.get((what, key))
        if known is None:
            numbers = ValueTable(lambda text: parse(text) or 0, np.int64)
            known = self._parsed[what, key] = numbers, ValueTable(lambda text: parse(text) is not None, np.bool_)
        numbers, present = known
        ids, values = self.ids(what, key), self.values(what, key)
        return numbers.at(ids, values), present.at(ids, values)

    def capacity(self, resource: str) -> Int64:
        """Millicores for cpu, else whole units, 0 where absent: `int64[n]`."""
        return self.parsed("capacity", resource, int)[0]

    def refresh(self, row: int) -> None:
        """The Node object of a row is another."""
        node, had = self._objects[row], self._had
        had["label"].update(node.metadata.labels)
        had["annotation"].update(node.metadata.annotations)
        had["condition"].update([one.type for one in node.status.conditions])
        had["capacity"].update(node.status.capacity)
        if row >= len(self._nothing.ids):
            self._nothing.refresh(row)
        for column in self._encoded.values():
            column.refresh(row)

    def refresh_finished(self, row: int) -> None:
        """Other pods than before have ended on a node."""
        column = self._encoded.get(("finished", ""))
        if column is not None:
            column.refresh(row)

    def rebuild_if_stale(self) -> bool:
        """Number values anew where most are out of use. True where ids have changed their meaning."""
        stale = [column.rebuild_if_stale(len(self._objects)) for column in self._encoded.values()]
        return any(stale)


def _condition(columns: DerivedColumns, kind: str, node: Node) -> str | None:
    return next((one.status for one in node.status.conditions if one.type == kind), None)


_BY_KEY: Final = ("label", "annotation", "condition", "capacity")
_READERS: Final[Mapping[str, Callable[[DerivedColumns, str, Node], Any]]] = {
    "label": lambda columns, key, node: node.metadata.labels.get(key),
    "annotation": lambda columns, key, node: node.metadata.annotations.get(key),
    "condition": _condition,
    "capacity": lambda columns, resource, node: capacity_of(node).get(resource),
    "taints": lambda columns, key, node: node.spec.taints,
    "conditions": lambda columns, key, node: node.status.conditions,
    "images": lambda columns, key, node: tuple(name for image in node.status.images for name in image.names),
    "finished": lambda columns, key, node: columns.finished.on(node.metadata.name),
}
