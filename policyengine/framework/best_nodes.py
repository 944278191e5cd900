"""The best nodes of a total, and which of them a pod takes.

Rule: of the nodes with the highest total a pod takes the next one on a ring of hashes, starting at the hash of its UID.
Neither the order of rows nor an earlier decision shows.

Example: nodes a, b and c have the hashes 10, 20 and 30, and the totals 7, 9 and 9. Pods whose UIDs hash to 15 and to 25
take b and c; a pod whose UID hashes to 35 begins the ring anew and takes b.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.journal import stable_hash
from policyengine.framework.status import Rows

NEAR: Final = 256
"""Nodes on the ring after a pod that are looked at first."""


class Ring:
    """The nodes of a table in the order of the hashes of their names."""

    __slots__ = ("_hashes", "_sorted", "order", "place")

    def __init__(self, name_hash: NDArray[np.uint64]) -> None:
        self._hashes = name_hash.copy()
        self.order: Rows = np.argsort(name_hash, kind="stable").astype(np.int64)
        """Place on the ring -> row."""
        self.place: Rows = np.empty(len(self.order), dtype=np.int64)
        """Row -> place on the ring."""
        self.place[self.order] = np.arange(len(self.order))
        self._sorted: list[int] = name_hash[self.order].tolist()

    def is_of(self, name_hash: NDArray[np.uint64]) -> bool:
        """Whether these are the nodes, in these rows."""
        return np.array_equal(self._hashes, name_hash)

    def start(self, pod_uid: str) -> int:
        """The first place after the pod's UID; that of no node where it is after all of them."""
        return bisect_left(self._sorted, stable_hash(pod_uid))

    def next_best(self, totals: NDArray[np.int64], pod_uid: str) -> int:
        """The next row after the pod's UID of those with the highest total (`int64[nodes]`, at least one)."""
        highest, start = totals.max(), self.start(pod_uid)
        near = self.order[start : start + NEAR]
        found = totals[near] == highest
        step = int(found.argmax()) if len(found) else 0
        if len(found) and found[step]:
            return near.item(step)
        rows = (totals == highest).nonzero()[0]
        return rows.item(0) if len(rows) == 1 else nearest(rows, self._hashes, pod_uid)


def nearest(rows: Rows, name_hash: NDArray[np.uint64], pod_uid: str) -> int:
    """Of rows, at least one, the next on the ring after the pod's UID. `name_hash`: `uint64[nodes]`."""
    return rows.item(int((name_hash[rows] - np.uint64(stable_hash(pod_uid))).argmin()))


class BestNodes:
    """The nodes with the highest total, kept while single totals change."""

    __slots__ = ("_highest", "_marked", "_place_of", "count", "ring")

    def __init__(self, ring: Ring, totals: NDArray[np.int64]) -> None:
        self.ring = ring
        self._place_of = ring.place.data
        self._highest = int(totals.max())
        tied = totals == self._highest
        self._marked = bytearray(tied[ring.order].tobytes())
        """1 by place on the ring."""
        self.count = int(np.count_nonzero(tied))
        """How many there are."""

    def put(self, row: int, total: int) -> None:
        """The total of one row."""
        if total > self._highest:
            self._highest = total
            self._marked = bytearray(len(self._marked))
            self.count = 0
        place, is_best = self._place_of[row], total == self._highest
        if is_best != self._marked[place]:
            self._marked[place] = is_best
            self.count += 1 if is_best else -1

    @property
    def are_known(self) -> bool:
        """Whether any is left; else the whole total has to be looked at."""
        return self.count > 0

    def next(self, pod_uid: str) -> int:
        """The row of the next one after the pod's UID."""
        place = self._marked.find(1, self.ring.start(pod_uid))
        return self.ring.order.item(place if place >= 0 else self._marked.find(1))

    def with_others(self, row: int, most: int) -> list[int]:
        """The row of one of them, then others, `most` in all, of at least as many: always the first ones on the ring,
        whose scores are read fast since they were read before."""
        found, place, find, row_at = [row], -1, self._marked.find, self.ring.order.item
        while len(found) < most:
            place = find(1, place + 1)
            other = row_at(place)
            if other != row:
                found.append(other)
        return found
