"""What changed in the cluster, and in arrays derived from it: the one question of the evaluator's graph.

The answer to "what changed since position P" is always a `Delta`: the rows, ascending and without repetition
(`int64[m]`), or None where everything may have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.view import Snapshot
from policyengine.framework.status import Rows

Delta = Rows | None

FEW: Final = 8
"""Up to so many rows are worked through one by one: calling numpy costs more than the arithmetic."""
KEPT: Final = 64
"""Deltas that a log remembers at least; a reader that is further behind computes everything again."""
NO_ROWS: Final[Rows] = np.zeros(0, dtype=np.int64)

T = TypeVar("T", bound=np.generic)


def at(column: NDArray[T], rows: Rows) -> NDArray[T]:
    """`column[rows]`; the column itself, not to be written to, where `rows` are all of them."""
    return column if len(rows) == len(column) else column[rows]


def union(a: Delta, b: Delta) -> Delta:
    """The rows of both."""
    if a is None or b is None:
        return None
    if a is b or len(b) == 0:
        return a
    if len(a) == 0:
        return b
    if len(a) + len(b) <= FEW:
        return np.array(sorted({*a.tolist(), *b.tolist()}), dtype=np.int64)
    either = np.zeros(max(a.item(-1), b.item(-1)) + 1, dtype=np.bool_)
    either[a] = either[b] = True
    return either.nonzero()[0]


@lru_cache(1)
def all_rows(n: int) -> Rows:
    """0 to n - 1; not to be written to."""
    rows: Rows = np.arange(n)
    rows.flags.writeable = False
    return rows


class ChangeLog:
    """The deltas of one derived array, update by update. A reader remembers a position and asks what came since."""

    def __init__(self) -> None:
        self._deltas: list[Delta] = []
        self.position = 1

    def note(self, delta: Delta) -> None:
        """The array changed."""
        if delta is None:
            self._deltas.clear()  # who has not read them is told "everything" in any case
        elif len(self._deltas) > 2 * KEPT:
            del self._deltas[:KEPT]
        self._deltas.append(delta)
        self.position += 1

    def since(self, position: int) -> Delta:
        """What changed since the position."""
        behind = self.position - position
        if behind > len(self._deltas):
            return None
        changed: Delta = NO_ROWS
        for place in range(1, behind + 1):
            changed = union(changed, self._deltas[-place])
            if changed is None:
                return None
        return changed


class Reader:
    """Follows the logs of the arrays that an array is derived from."""

    def __init__(self, logs: Iterable[ChangeLog]) -> None:
        self._logs: Sequence[ChangeLog] = tuple(logs)
        self._seen = [0] * len(self._logs)
        """Positions; 0 is before everything."""

    def changed(self) -> Delta:
        """What changed in any of them since this was asked last; everything, the first time."""
        changed: Delta = NO_ROWS
        seen = self._seen
        for place, log in enumerate(self._logs):
            if log.position != seen[place]:
                changed = union(changed, log.since(seen[place]))
                seen[place] = log.position
        return changed

    def forget(self) -> None:
        """Answer "everything" the next time."""
        self._seen = [0] * len(self._logs)


class Changes:
    """What changed in the cluster up to one snapshot, asked by journal position."""

    __slots__ = ("_asked", "_since", "n", "node_position", "object_changes", "pod_position", "snapshot")

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        nodes = snapshot.nodes
        self.n = nodes.n
        self.node_position = nodes.node_journal.position
        self.pod_position = nodes.pod_journal.position
        self.object_changes = snapshot.object_changes
        self._asked = self.node_position, self.pod_position
        """What `since` was asked last: mostly all columns stand where the last decision left them."""
        self._since: Delta = NO_ROWS

    def is_current(self, snapshot: Snapshot) -> bool:
        """Whether nothing was noted in the journals since, and no other object changed."""
        nodes = snapshot.nodes
        return (
            self.snapshot is snapshot
            and self.n == nodes.n
            and self.node_position == nodes.node_journal.position
            and self.pod_position == nodes.pod_journal.position
            and self.object_changes == snapshot.object_changes
        )

    def nodes_since(self, position: int) -> Delta:
        """Rows whose Node object changed since the position."""
        return self.snapshot.nodes.node_journal.since(position)

    def since(self, node_position: int, pod_position: int) -> Delta:
        """Rows in which a Node object or the pods changed since the two positions."""
        asked = node_position, pod_position
        if asked != self._asked:
            self._since = _either_since(self.snapshot.nodes, node_position, pod_position)
            self._asked = asked
        return self._since


def _either_since(nodes: NodeTable, node_position: int, pod_position: int) -> Delta:
    """Rows in either journal since the positions."""
    in_nodes = nodes.node_journal.listed_since(node_position)
    on_nodes = nodes.pod_journal.listed_since(pod_position)
    if in_nodes is None or on_nodes is None:
        return None
    return np.array(sorted({*in_nodes, *on_nodes}) if in_nodes else on_nodes, dtype=np.int64)


class RowColumn:
    """One value a node that follows from the node's own row, kept for pods of all signatures."""

    def __init__(self, kernel: Callable[[NodeTable, Rows], NDArray[Any]]) -> None:
        """`kernel` works out the values of some rows."""
        self._kernel = kernel
        self._nodes: NodeTable | None = None
        self._positions = (-1, -1)
        self._values: NDArray[Any] = np.zeros(0)

    def values(self, nodes: NodeTable) -> NDArray[Any]:
        """`[nodes]`, up to date; it holds until the next call, and is not to be written to."""
        positions = nodes.node_journal.position, nodes.pod_journal.position
        if nodes is not self._nodes or positions != self._positions:
            changed: Delta = None
            if nodes is self._nodes and len(self._values) == nodes.n:
                changed = _either_since(nodes, *self._positions)
            if changed is None:
                self._values = self._kernel(nodes, all_rows(nodes.n))
            else:
                self._values[changed] = self._kernel(nodes, changed)
            self._nodes, self._positions = nodes, positions
        return self._values
