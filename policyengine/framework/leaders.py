"""The best rows of a total, kept while the total is patched row by row, and which of them is next on the ring.

Rule: what is answered is what looking at the whole total would answer. Where that cannot be kept up (the node table
changed, all leaders fell behind), the leaders are dropped, and found anew when asked for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.journal import stable_hash
from policyengine.framework.plugin import Scores
from policyengine.framework.status import Rows

MANY = 16
"""Fewer leaders are found faster than kept."""
NEAR = 256
"""Nodes on the ring after a pod that are looked at first."""


class Ring:
    """The nodes of a table in the order of the hashes of their names."""

    __slots__ = ("hashes", "order", "place", "place_at", "row_at", "sorted_hashes")

    def __init__(self, name_hash: NDArray[np.uint64]) -> None:
        self.hashes = name_hash.copy()
        self.order: Rows = np.argsort(name_hash, kind="stable").astype(np.int64)
        """Place on the ring -> row."""
        self.place: Rows = np.empty(len(self.order), dtype=np.int64)
        """Row -> place on the ring."""
        self.place[self.order] = np.arange(len(self.order))
        self.row_at, self.place_at = self.order.data, self.place.data
        """The same two, for one at a time: read in half the time."""
        self.sorted_hashes: list[int] = name_hash[self.order].tolist()

    def is_of(self, name_hash: NDArray[np.uint64]) -> bool:
        """Whether these are the nodes, in these rows."""
        return np.array_equal(self.hashes, name_hash)

    def start(self, pod_uid: str) -> int:
        """The first place after the pod's UID; that of no node where it is after all of them."""
        return bisect_left(self.sorted_hashes, stable_hash(pod_uid))

    def stretch(self, pod_uid: str) -> Rows:
        """The rows of the next nodes after the pod's UID, in their order; fewer where the ring begins anew, or none."""
        start = self.start(pod_uid)
        return self.order[start : start + NEAR]

    def after(self, pod_uid: str, marked: bytes | bytearray) -> int:
        """The row of the node that comes next after the pod's UID, of those marked with a 1 by place on the ring."""
        place = marked.find(1, self.start(pod_uid))
        return self.row_at[place if place >= 0 else marked.find(1)]


class Leaders:
    """The rows of the best total among `rows`."""

    __slots__ = ("_among", "_count", "_marked", "_ring", "_tied", "best", "node_position", "rows")

    def __init__(self, ring: Ring, rows: Rows, tied: Rows, best: int, node_position: int) -> None:
        """`tied`: the rows among `rows` whose total is `best`."""
        self.rows = rows
        self.best = best
        self.node_position = node_position
        self._ring = ring
        self._marked = bytearray(len(ring.order))
        """1 by place on the ring."""
        self._tied: NDArray[np.bool_] = np.frombuffer(self._marked, dtype=np.bool_)
        """The same memory, for many at a time."""
        self._tied[ring.place[tied]] = True
        self._count = len(tied)
        self._among: NDArray[np.bool_] | None = None
        if len(rows) != len(ring.order):
            self._among = np.zeros(len(ring.order), dtype=np.bool_)
            self._among[rows] = True

    def keep_up(self, changed: Sequence[int], total: Scores) -> bool:
        """Follow a total that changed in few rows; False where no leader is left."""
        for row in changed:
            if self._among is None or self._among[row]:
                self.put(row, total.item(row))
        return self._count > 0

    @property
    def are_known(self) -> bool:
        """Whether any is left."""
        return self._count > 0

    def put(self, row: int, score: int) -> None:
        """Follow a total that is `score` in a row among `rows` now."""
        if score > self.best:
            self.best = score
            self._tied[:] = False
            self._count = 0
        place, leads = self._ring.place_at[row], score == self.best
        if leads != self._marked[place]:
            self._marked[place] = leads
            self._count += 1 if leads else -1

    def keep_up_with_many(self, changed: Rows, total: Scores) -> bool:
        """The same for more rows than are worth going through; some may be given twice."""
        if self._among is not None:
            changed = changed[self._among[changed]]
        if len(changed):
            scores = total[changed]
            best = int(scores.max())
            if best > self.best:
                self.best = best
                self._tied[:] = False
            self._tied[self._ring.place[changed]] = scores == self.best
            self._count = int(np.count_nonzero(self._tied))
        return self._count > 0

    def after(self, pod_uid: str) -> int:
        """The row of the leader that comes next on the ring after the pod's UID."""
        return self._ring.after(pod_uid, self._marked)
