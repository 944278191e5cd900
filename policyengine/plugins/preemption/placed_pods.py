"""The pods of each node as matrices, which preemption compares on thousands of nodes at once.

A row holds its pods from the most to the least important, so the pods below any priority are its tail. Each node table
has one such table. It follows the pod journal, reads a row again when it changed, and is made at the first preemption.
Worked example, priorities of two nodes with three places a row: n0 holds pods of priority 100 and 7, n1 one of 5.

    priority   n0: 100, 7, NOBODY     pods below priority 10   n0: place 1
               n1: 5, NOBODY, NOBODY                           n1: place 0
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.journal import grown
from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_shape import PodShape
from policyengine.plugins.preemption.candidate_node import importance

NOBODY = 1 << 40
"""The priority of places without a pod: above that of every pod."""
_START = 8


class PlacedPods:
    """The pods of every row by importance."""

    def __init__(self) -> None:
        self.pods: list[Sequence[PodInfo]] = []
        """By row, the most important first."""
        self.leaving: dict[int, list[PodInfo]] = {}
        """By row, those that are being deleted; rows without are left out."""
        self._position = -1
        self._count = 0
        self._start_over()

    def follow(self, nodes: NodeTable) -> None:
        """Bring the table up to date."""
        journal = nodes.pod_journal
        if self._position == journal.position:
            return
        changed = journal.since(self._position) if self._position >= 0 else None
        if changed is None or len(self._shapes) > 1024 + 4 * self._count:
            self._start_over()
            changed = np.arange(nodes.n)
        self._position = journal.position
        self._fit_rows(nodes.n)
        for row in changed.tolist():
            self._read(nodes, row)

    @property
    def width(self) -> int:
        """Places a row."""
        return int(self.priority.shape[1])

    def amounts(self, shapes: NDArray[np.int32]) -> dict[str, NDArray[np.int64]]:
        """What pods of these shapes ask for, by resource; each as `shapes` is laid out."""
        return {name: column[shapes] for name, column in self._amounts.items()}

    def _start_over(self) -> None:
        self._position = -1
        self._count = 0
        self._shapes: list[PodShape] = []
        """By number; kept, so that their identities stay theirs."""
        self._number: dict[int, int] = {}
        self._amounts: dict[str, NDArray[np.int64]] = {}
        self.pods.clear()
        self.leaving.clear()
        self.priority: NDArray[np.int64] = np.full((0, _START), NOBODY, dtype=np.int64)
        self.started: NDArray[np.float64] = np.full((0, _START), np.inf)
        """Seconds since the epoch; infinity for a pod that has not started."""
        self.shape: NDArray[np.int32] = np.zeros((0, _START), dtype=np.int32)

    def _fit_rows(self, n: int) -> None:
        while len(self.pods) > n:
            self._count -= len(self.pods.pop())
            self.leaving.pop(len(self.pods), None)
        self.pods.extend(() for _ in range(n - len(self.pods)))
        if n > len(self.priority):
            self._resize(max(2 * len(self.priority), n), self.width)

    def _resize(self, rows: int, width: int) -> None:
        had, places = self.priority.shape
        for name, empty in (("priority", NOBODY), ("started", np.inf), ("shape", 0)):
            before = getattr(self, name)
            matrix = np.full((rows, width), empty, dtype=before.dtype)
            matrix[:had, :places] = before
            setattr(self, name, matrix)

    def _read(self, nodes: NodeTable, row: int) -> None:
        pods = sorted(nodes.pods_on(row).values(), key=importance)
        many = len(pods)
        if many > self.width:
            self._resize(len(self.priority), max(2 * self.width, many))
        self._count += many - len(self.pods[row])
        self.pods[row] = pods
        self.priority[row, many:] = NOBODY
        if many:
            keys = np.array([importance(pod) for pod in pods])
            self.priority[row, :many] = -keys[:, 0]
            self.started[row, :many] = keys[:, 1]
            self.shape[row, :many] = [self._number_of(pod.shape) for pod in pods]
        self.leaving.pop(row, None)
        if leaving := [pod for pod in pods if pod.deleting]:
            self.leaving[row] = leaving

    def _number_of(self, shape: PodShape) -> int:
        number = self._number.get(id(shape))
        if number is None:
            number = self._number[id(shape)] = len(self._shapes)
            self._shapes.append(shape)
            for name, _ in shape.amounts:
                self._amounts.setdefault(name, np.zeros(number + 1, dtype=np.int64))
            for name, column in self._amounts.items():
                if number >= len(column):
                    column = self._amounts[name] = np.asarray(grown(column, number + 1), dtype=np.int64)
                column[number] = shape.requests.get(name)
        return number


_tables: WeakKeyDictionary[NodeTable, PlacedPods] = WeakKeyDictionary()


def placed_pods(nodes: NodeTable) -> PlacedPods:
    """The table's matrices, up to date."""
    placed = _tables.get(nodes)
    if placed is None:
        placed = _tables[nodes] = PlacedPods()
    placed.follow(nodes)
    return placed
