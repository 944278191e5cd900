"""Columns made of Node objects when first asked for, and kept up to date row by row from then on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.journal import ABSENT, EncodedColumn, grown
from policyengine.cluster.node_objects import Node, Taint
from policyengine.cluster.offer import capacity_of


class DerivedColumns:
    """Labels, annotations, conditions and taints as ids; capacity as amounts. Rows are those of `objects`."""

    def __init__(self, objects: list[Node]) -> None:
        self._objects = objects
        self._encoded: dict[tuple[str, str], EncodedColumn[str]] = {}
        self._capacity: dict[str, NDArray[np.int64]] = {}
        self.taints: EncodedColumn[tuple[Taint, ...]] = EncodedColumn(self._taints_at, 0)

    def ids(self, what: str, key: str) -> NDArray[np.int32]:
        """Index into `values(what, key)` for each row, -1 absent: `int32[n]`. `what`: label, annotation or
        condition.
        """
        return self._column(what, key).ids[: len(self._objects)]

    def values(self, what: str, key: str) -> list[str]:
        """The values by id."""
        return self._column(what, key).values

    def equals(self, what: str, key: str, value: str) -> NDArray[np.bool_]:
        """Whether the row has just this value: `bool[n]`."""
        found = self._column(what, key).find(value)
        if found == ABSENT:
            return np.zeros(len(self._objects), np.bool_)
        return np.asarray(self.ids(what, key) == found, dtype=np.bool_)

    def decoded(self, what: str, key: str) -> list[str | None]:
        """The column spelt out, None where absent."""
        values = self.values(what, key)
        return [None if found == ABSENT else values[found] for found in self.ids(what, key)]

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

    def rebuild_if_stale(self) -> bool:
        """Number values anew where most are out of use. True where ids have changed their meaning."""
        rows = len(self._objects)
        stale = [column.rebuild_if_stale(rows) for column in self._encoded.values()]
        return self.taints.rebuild_if_stale(rows) or any(stale)

    def _column(self, what: str, key: str) -> EncodedColumn[str]:
        column = self._encoded.get((what, key))
        if column is None:
            read = partial(self._readers[what], self, key)
            column = self._encoded[(what, key)] = EncodedColumn(read, len(self._objects))
        return column

    def _label_at(self, key: str, row: int) -> str | None:
        return self._objects[row].metadata.labels.get(key)

    def _annotation_at(self, key: str, row: int) -> str | None:
        return self._objects[row].metadata.annotations.get(key)

    def _condition_at(self, kind: str, row: int) -> str | None:
        conditions = self._objects[row].status.conditions
        return next((c.status for c in conditions if c.type == kind), None)

    def _taints_at(self, row: int) -> tuple[Taint, ...]:
        return self._objects[row].spec.taints

    _readers: ClassVar[dict[str, Callable[[DerivedColumns, str, int], str | None]]] = {
        "label": _label_at,
        "annotation": _annotation_at,
        "condition": _condition_at,
    }
