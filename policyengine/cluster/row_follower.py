"""Arrays worked out from a node table, kept up to date row by row.

Rules:
1. A value follows from its row alone: from what the node offers and the sums over the pods on it.
2. What is there after `follow` is what `fill` would make of the table as it is.
3. The arrays are the follower's own: they are written to, and nobody keeps them beyond a decision.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from policyengine.cluster.node_table import NodeTable

MOST: Final = 24
"""Rows that are written one by one; for more of them all are worked out again."""


class RowFollower(ABC):
    """Follows one table (`NodeTable.follower`)."""

    def __init__(self) -> None:
        self._n = self._node_position = self._pod_position = -1

    def follow(self, table: NodeTable) -> None:
        """Bring all rows up to date."""
        node_position, pod_position = table.node_journal.position, table.pod_journal.position
        if pod_position == self._pod_position and node_position == self._node_position:
            return
        rows = self._changed(table)
        if rows is None or len(rows) > MOST:
            self._n = table.n
            self.fill(table)
        else:
            for row in rows:
                self.write(table, row)
        self._node_position, self._pod_position = node_position, pod_position

    def _changed(self, table: NodeTable) -> Sequence[int] | None:
        rows = table.pod_journal.listed_since(self._pod_position)
        if rows is None or table.node_journal.position == self._node_position:
            return rows
        nodes = table.node_journal.listed_since(self._node_position)
        return None if nodes is None or table.n != self._n else sorted({*rows, *nodes})

    def fill_when_nodes_change(self) -> None:
        """Have every row worked out at the next change of a node, however small."""
        self._n = -1

    @abstractmethod
    def fill(self, table: NodeTable) -> None:
        """Work out every row."""

    @abstractmethod
    def write(self, table: NodeTable, row: int) -> None:
        """Work out one row again; the table has as many as when `fill` was asked last."""
