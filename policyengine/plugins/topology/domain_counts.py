"""Sums over topology domains, maintained row by row: what spreading and inter-pod affinity count with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from policyengine.framework.rows import FEW
from policyengine.framework.status import Rows

if TYPE_CHECKING:
    from policyengine.cluster.columns import NodeTable

Int64 = NDArray[np.int64]
T = TypeVar("T", bound=np.generic)


Moved = set[int]
"""Ids of the domains whose sum or number of members may have changed."""
DomainsMoved = Mapping[str, Moved]
"""Topology key -> the domains in which something changed; keys without any are left out."""


def rows_in(moved: DomainsMoved, nodes: NodeTable, changed: Rows) -> Rows | None:
    """The rows that changed, and those in a domain that moved; None where these are many domains."""
    if not moved:
        return changed
    if sum(map(len, moved.values())) > FEW:
        return None
    touched = np.zeros(nodes.n, dtype=np.bool_)
    for key, domains in moved.items():
        ids = nodes.label_ids(key)
        for domain in domains:
            touched |= ids == domain
    touched[changed] = True
    return np.flatnonzero(touched)


class DomainCounts:
    """For each value of a topology key: how many counted nodes have it, and the sum of their weights.

    `sums` and `members` are `int64[values]`, indexed by the ids of `nodes.label_values(key)`. A row without the
    label, or not eligible, counts nowhere. `update` is exact: what a row was counted as is remembered.
    """

    __slots__ = ("_eligible", "_ids", "_weights", "counted", "key", "members", "padded_sums", "sums")

    def __init__(self, key: str) -> None:
        self.key = key
        self.padded_sums: Int64 = np.zeros(1, dtype=np.int64)
        """`sums`, and a 0 that the id of nodes without the label, -1, points at: `int64[values + 1]`."""
        self.sums: Int64 = self.padded_sums[:-1]
        self.members: Int64 = np.zeros(0, dtype=np.int64)
        self.counted = 0
        """How many nodes count somewhere."""
        self._ids: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self._weights: Int64 = np.zeros(0, dtype=np.int64)
        self._eligible: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)

    def update(self, nodes: NodeTable, rows: Rows, weights: Int64, eligible: NDArray[np.bool_]) -> None:
        """Count `rows` as they are now; rows that have gone from the end of the table are counted out.

        `weights` and `eligible` are aligned with `rows`, which must hold every row that is new.
        """
        before, now = len(self._ids), nodes.n
        known = rows[rows < before]
        self._count(known if now >= before else np.union1d(known, np.arange(now, before)), -1)
        if now != before:
            self._ids = _resized(self._ids, now)
            self._weights = _resized(self._weights, now)
            self._eligible = _resized(self._eligible, now)
        values = len(nodes.label_values(self.key))
        if values > len(self.sums):
            self.padded_sums = _resized(self.sums, values + 1)
            self.sums = self.padded_sums[:-1]
            self.members = _resized(self.members, values)
        ids = nodes.label_ids(self.key)[rows]
        self._ids[rows] = ids
        self._weights[rows] = weights
        self._eligible[rows] = eligible & (ids >= 0)
        self._count(rows, 1)
        self.counted = int(np.count_nonzero(self._eligible))

    def knows(self, nodes: NodeTable) -> bool:
        """Whether rows may be counted one by one: none came or went, and no domain is new."""
        return len(self._ids) == nodes.n and len(self.sums) == len(nodes.label_values(self.key))

    def is_counted(self, row: int) -> bool:
        """Whether the row counted somewhere when it was last counted."""
        return self._eligible.item(row)

    def update_row(self, nodes: NodeTable, row: int, weight: int, eligible: bool, moved: Moved) -> None:
        """Count one row as it is now, where `knows` holds; domains that change for it are added to `moved`."""
        domain = nodes.label_ids(self.key).item(row)
        if domain != self._ids.item(row):
            self.recount_row(row, 0, False, moved)
            self._ids[row] = domain
        self.recount_row(row, weight, eligible, moved)

    def recount_row(self, row: int, weight: int, eligible: bool, moved: Moved) -> None:
        """The same where the row's Node did not change since it was last counted."""
        domain, counted, weighed = self._ids.item(row), self._eligible.item(row), self._weights.item(row)
        counts = eligible and domain >= 0
        if counts == counted and weight == weighed:
            return
        if counts or counted:
            sums, gained = self.sums, (weight if counts else 0) - (weighed if counted else 0)
            sums[domain] = sums.item(domain) + gained
            moved.add(domain)
        self._weights[row] = weight
        if counts != counted:
            self.members[domain] += int(counts) - int(counted)
            self.counted += int(counts) - int(counted)
            self._eligible[row] = counts

    def _count(self, rows: Rows, sign: int) -> None:
        counted = rows[self._eligible[rows]]
        ids = self._ids[counted]
        np.add.at(self.sums, ids, self._weights[counted] * sign)
        np.add.at(self.members, ids, sign)


def _resized(column: NDArray[T], size: int) -> NDArray[T]:
    larger = np.zeros(size, dtype=column.dtype)
    kept = min(size, len(column))
    larger[:kept] = column[:kept]
    return larger
