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


class Ring:
    """The nodes of a table in the order of the hashes of their names."""

    __slots__ = ("hashes", "order", "place", "sorted_hashes")

    def __init__(self, name_hash: NDArray[np.uint64]) -> None:
        self.hashes = name_hash.copy()
        self.order: Rows = np.argsort(name_hash, kind="stable").astype(np.int64)
        """Place on the ring -> row."""
        self.place: Rows = np.empty(len(self.order), dtype=np.int64)
        self.place[self.order] = np.arange(len(self.order))
        self.sorted_hashes: list[int] = name_hash[self.order].tolist()

    def is_of(self, name_hash: NDArray[np.uint64]) -> bool:
        """Whether these are the nodes, in these rows."""
        return np.array_equal(self.hashes, name_hash)

    def after(self, pod_uid: str, marked: NDArray[np.bool_]) -> int:
        """The row of the node that comes next after the pod's UID, of those marked by place on the ring."""
        start = bisect_left(self.sorted_hashes, stable_hash(pod_uid))
        tail = marked[start:]
        place = start + int(tail.argmax()) if len(tail) else 0
        if not len(tail) or not marked[place]:
            place = int(marked.argmax())
        return self.order.item(place)


class Leaders:
    """The rows of the best total among `rows`."""

    __slots__ = ("_among", "_count", "_ring", "_tied", "best", "node_position", "rows")

    def __init__(self, ring: Ring, rows: Rows, tied: Rows, best: int, node_position: int) -> None:
        """`tied`: the rows among `rows` whose total is `best`."""
        self.rows = rows
        self.best = best
        self.node_position = node_position
        self._ring = ring
        self._tied: NDArray[np.bool_] = np.zeros(len(ring.order), dtype=np.bool_)
        """By place on the ring."""
        self._tied[ring.place[tied]] = True
        self._count = len(tied)
        self._among: NDArray[np.bool_] | None = None
        if len(rows) != len(ring.order):
            self._among = np.zeros(len(ring.order), dtype=np.bool_)
            self._among[rows] = True

    def keep_up(self, changed: Sequence[int], total: Scores) -> bool:
        """Follow a total that changed in few rows; False where no leader is left."""
        for row in changed:
            if self._among is not None and not self._among[row]:
                continue
            place, score = self._ring.place.item(row), total.item(row)
            if score > self.best:
                self.best = score
                self._tied[:] = False
                self._count = 0
            leads = score == self.best
            self._count += int(leads) - int(self._tied[place])
            self._tied[place] = leads
        return self._count > 0

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
        return self._ring.after(pod_uid, self._tied)
