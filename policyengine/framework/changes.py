"""What changed in the cluster since a column was worked out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from policyengine.framework.status import Rows

if TYPE_CHECKING:
    from policyengine.cluster.snapshot import Snapshot

NO_ROWS: Rows = np.zeros(0, dtype=np.int64)


class Changes:
    """What changed up to one snapshot, asked by journal position; each answer is worked out once."""

    __slots__ = ("_merged", "_nodes", "_pods", "n", "node_position", "object_changes", "pod_position", "snapshot")

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        nodes = snapshot.nodes
        self.n = nodes.n
        self.node_position = nodes.node_journal.position
        self.pod_position = nodes.pod_journal.position
        self.object_changes = snapshot.object_changes
        self._nodes: dict[int, Rows | None] = {}
        self._pods: dict[int, Rows | None] = {}
        self._merged: dict[tuple[int, int], Rows | None] = {}

    def is_current(self, snapshot: Snapshot) -> bool:
        """Whether nothing was noted in the journals since, and no other object changed."""
        return (
            self.snapshot is snapshot
            and self.n == snapshot.nodes.n
            and self.node_position == snapshot.node_journal.position
            and self.pod_position == snapshot.pod_journal.position
            and self.object_changes == snapshot.object_changes
        )

    def nodes_since(self, position: int) -> Rows | None:
        """Rows whose Node object changed since the position; None when unknown."""
        if position == self.node_position:
            return NO_ROWS
        if position not in self._nodes:
            self._nodes[position] = self._clip(self.snapshot.node_journal.since(position))
        return self._nodes[position]

    def pods_since(self, position: int) -> Rows | None:
        """Rows whose pods changed since the position; None when unknown."""
        if position == self.pod_position:
            return NO_ROWS
        if position not in self._pods:
            self._pods[position] = self._clip(self.snapshot.pod_journal.since(position))
        return self._pods[position]

    def since(self, node_position: int, pod_position: int) -> Rows | None:
        """Rows in which anything changed since the two positions; None when unknown."""
        key = (node_position, pod_position)
        if key not in self._merged:
            self._merged[key] = _union(self.nodes_since(node_position), self.pods_since(pod_position))
        return self._merged[key]

    def _clip(self, rows: Rows | None) -> Rows | None:
        if rows is None or len(rows) == 0 or rows[-1] < self.n:
            return rows
        return rows[rows < self.n]


def _union(a: Rows | None, b: Rows | None) -> Rows | None:
    if a is None or b is None:
        return None
    if len(a) == 0:
        return b
    if len(b) == 0:
        return a
    return np.union1d(a, b)
