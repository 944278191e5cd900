"""Columns made of Node objects when first asked for, and kept up to date row by row from then on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.allocatable import capacity_of
from policyengine.cluster.finished import FinishedPods
from policyengine.cluster.journal import EncodedColumn, grown
from policyengine.cluster.node_objects import Node, Taint

Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]


class ParsedValues:
    """The numbers that an encoded column's texts stand for, by id; only texts that came since are read."""

    __slots__ = ("_numbers", "_parse", "_present", "_texts")

    def __init__(self, parse: Callable[[str], int | None]) -> None:
        """`parse` answers None for a text that is no number."""
        self._parse = parse
        self._texts: list[str] = []
        self._numbers: Int64 = np.zeros(1, np.int64)
        self._present: Bool = np.zeros(1, np.bool_)

    def of(self, texts: list[str], ids: NDArray[np.int32]) -> tuple[Int64, Bool]:
        """The numbers of rows, and where there are any; `texts` by id."""
        if texts is not self._texts:
            self._texts = texts
            self._numbers, self._present = np.zeros(1, np.int64), np.zeros(1, np.bool_)
        known = len(self._numbers) - 1
        if known < len(texts):
            read = [self._parse(text) for text in texts[known:]]
            # The last entry is what the id of an absent text, -1, points at.
            self._numbers = np.concatenate((self._numbers[:-1], [number or 0 for number in read], [0]), dtype=np.int64)
            self._present = np.concatenate((self._present[:-1], [number is not None for number in read], [False]))
        return self._numbers[ids], self._present[ids]


class DerivedColumns:
    """Labels, annotations, conditions and taints as ids; capacity as amounts. Rows are those of `objects`."""

    def __init__(self, objects: list[Node]) -> None:
        self._objects = objects
        self.finished = FinishedPods()
        """The pods that ended on nodes, those that are not known included."""
        self._encoded: dict[tuple[str, str], EncodedColumn[Any]] = {}
        self._parsed: dict[tuple[str, str], ParsedValues] = {}
        self._capacity: dict[str, NDArray[np.int64]] = {}
        self.taints: EncodedColumn[tuple[Taint, ...]] = EncodedColumn(lambda row: objects[row].spec.taints, 0)

    def ids(self, what: str, key: str) -> NDArray[np.int32]:
        """Index into `values(what, key)` for each row, -1 absent: `int32[n]`. `what`: label, annotation or
        condition by a key; with the key "": `conditions`, `images` (names) or `finished`, whole as a tuple.
        """
        return self.encoded(what, key).ids[: len(self._objects)]

    def encoded(self, what: str, key: str) -> EncodedColumn[Any]:
        """The column of `ids` and `values`."""
        column = self._encoded.get((what, key))
        if column is None:
            read = partial(_READERS[what], self, key)
            column = self._encoded[what, key] = EncodedColumn(lambda row: read(self._objects[row]), len(self._objects))
        return column

    def values(self, what: str, key: str) -> list[Any]:
        """The values by id."""
        return self.encoded(what, key).values

    def parsed(self, what: str, key: str, parse: Callable[[str], int | None]) -> tuple[Int64, Bool]:
        """Numbers that stand in texts, and where there are any: `int64[n]`, `bool[n]`. Each text is read once.

        `parse` must be the same for the same `what` and `key`.
        """
        known = self._parsed.setdefault((what, key), ParsedValues(parse))
        return known.of(self.values(what, key), self.ids(what, key))

    def decoded(self, what: str, key: str) -> list[str | None]:
        """The column spelt out, None where absent."""
        return [self.encoded(what, key).value(row) for row in range(len(self._objects))]

    def capacity(self, resource: str) -> NDArray[np.int64]:
        """Millicores for cpu, else whole units, 0 where absent: `int64[n]`."""
        column = self._capacity.get(resource)
        if column is None:
            amounts = [capacity_of(node).get(resource, 0) for node in self._objects]
            column = self._capacity[resource] = np.array(amounts, dtype=np.int64)
        return column[: len(self._objects)]

    def kept(self) -> tuple[list[tuple[str, str]], list[str]]:
        """What was asked for so far: (what, key) of the encoded columns, resources of the capacities."""
        return list(self._encoded), list(self._capacity)

    def refresh(self, row: int) -> None:
        """The Node object of a row is another."""
        self.taints.refresh(row)
        for column in self._encoded.values():
            column.refresh(row)
        if self._capacity:
            capacity = capacity_of(self._objects[row])
            for name, amounts in self._capacity.items():
                if row >= len(amounts):
                    amounts = self._capacity[name] = np.asarray(grown(amounts, row + 1), dtype=np.int64)
                amounts[row] = capacity.get(name, 0)

    def refresh_finished(self, row: int) -> None:
        """Other pods than before have ended on a node."""
        column = self._encoded.get(("finished", ""))
        if column is not None:
            column.refresh(row)

    def rebuild_if_stale(self) -> bool:
        """Number values anew where most are out of use. True where ids have changed their meaning."""
        rows = len(self._objects)
        stale = [column.rebuild_if_stale(rows) for column in self._encoded.values()]
        return self.taints.rebuild_if_stale(rows) or any(stale)


def _condition(columns: DerivedColumns, kind: str, node: Node) -> str | None:
    return next((one.status for one in node.status.conditions if one.type == kind), None)


_READERS: Final[Mapping[str, Callable[[DerivedColumns, str, Node], Any]]] = {
    "label": lambda columns, key, node: node.metadata.labels.get(key),
    "annotation": lambda columns, key, node: node.metadata.annotations.get(key),
    "condition": _condition,
    "conditions": lambda columns, key, node: node.status.conditions,
    "images": lambda columns, key, node: tuple(name for image in node.status.images for name in image.names),
    "finished": lambda columns, key, node: columns.finished.on(node.metadata.name),
}
