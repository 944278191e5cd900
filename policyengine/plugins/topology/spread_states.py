"""What PodTopologySpread keeps for pods of one signature: the verdict on each domain, and what its scores add up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from policyengine.plugins.topology.domain_counts import DomainsMoved, Moved
from policyengine.plugins.topology.spread_constraint import HOSTNAME, Constraint
from policyengine.plugins.topology.spread_counts import SpreadCounts

if TYPE_CHECKING:
    from policyengine.cluster.columns import NodeTable

_UNLABELLED: Final = 1
_SKEWED: Final = 2
"""Numbers of the plugin's refusals."""


class SpreadVerdicts:
    """The counts, whether the pod matches itself, and the verdict on each domain."""

    __slots__ = ("_least", "counts", "itself", "tables")

    def __init__(self, counts: SpreadCounts, itself: Sequence[bool]) -> None:
        self.counts = counts
        self.itself = itself
        self.tables: list[NDArray[np.int16]] = []
        self._least: list[int] = []

    def judge(self) -> None:
        """Judge every domain. The last entry of a table is for nodes without the label."""
        places = range(len(self.counts.constraints))
        self._least = [self._least_of(place) for place in places]
        self.tables = [self._table(place) for place in places]

    def judge_moved(self, moved: DomainsMoved | None) -> DomainsMoved | None:
        """Judge the domains that moved, and all others where the smallest number did; those whose verdict is
        different from before, None: any may be."""
        if moved is None:
            before = self.tables
            self.judge()
            return {} if all(map(np.array_equal, before, self.tables)) else None
        flipped: dict[str, Moved] = {}
        for place, constraint in enumerate(self.counts.constraints):
            domains = moved.get(constraint.key)
            if domains:
                flips = self._judge_place(place, domains)
                if flips:
                    flipped.setdefault(constraint.key, set()).update(flips)
        return flipped

    def _judge_place(self, place: int, moved: Moved) -> Moved:
        least, table = self._least_of(place), self.tables[place]
        if least != self._least[place]:
            self._least[place] = least
            self.tables[place] = self._table(place)
            return set(np.flatnonzero(table != self.tables[place]).tolist())
        sums, most = self.counts.counts[place].sums, self._most(place)
        flips = {domain for domain in moved if (sums.item(domain) > most) != (table.item(domain) == _SKEWED)}
        for domain in flips:
            table[domain] = _SKEWED if sums.item(domain) > most else 0
        return flips

    def _least_of(self, place: int) -> int:
        """The smallest number of any domain; 0 while there are too few domains."""
        counts = self.counts.counts[place]
        present = counts.sums[counts.members > 0]
        return int(present.min()) if len(present) >= max(1, self.counts.constraints[place].min_domains) else 0

    def _most(self, place: int) -> int:
        """How many may stand in a domain before the pod comes."""
        return self.counts.constraints[place].max_skew + self._least[place] - int(self.itself[place])

    def _table(self, place: int) -> NDArray[np.int16]:
        sums = self.counts.counts[place].sums
        table = np.full(len(sums) + 1, _UNLABELLED, dtype=np.int16)
        table[:-1] = (sums > self._most(place)) * np.int16(_SKEWED)
        return table


class SpreadSums:
    """The counts; per constraint the id of the empty label value, which counts like an absent label."""

    __slots__ = ("counts", "empty", "every_key")

    def __init__(self, counts: SpreadCounts, every_key: bool) -> None:
        self.counts = counts
        self.every_key = every_key
        self.empty: list[int] = []

    def look(self, nodes: NodeTable) -> None:
        """Find the ids of empty values."""
        self.empty = []
        for constraint in self.counts.constraints:
            values = nodes.label_values(constraint.key)
            self.empty.append(values.index("") if "" in values else -1)

    def lacking(self, raw: NDArray[np.int64]) -> NDArray[np.bool_] | None:
        """Where a key is missing that every node has to have: `bool[rows]`, None for nowhere."""
        if not self.every_key or len(raw) == 0 or raw[:, 1::2].min() >= 0:
            return None
        lacking: NDArray[np.bool_] = np.any(raw[:, 1::2] < 0, axis=1)
        return lacking

    def sums(self, raw: NDArray[np.int64], weights: Sequence[float]) -> NDArray[np.int64]:
        """Σ (count·weight + maxSkew - 1) over the constraints, rounded half up: `int64[rows]`."""
        total = np.zeros(len(raw))
        for place, (constraint, weight) in enumerate(zip(self.counts.constraints, weights, strict=True)):
            mine = raw[:, 2 * place] * weight
            mine += float(constraint.max_skew - 1)
            if not self.every_key:
                mine[raw[:, 2 * place + 1] < 0] = 0.0
            total += mine
        whole = np.floor(total)
        total -= whole
        whole += total >= 0.5
        return whole.astype(np.int64)


def domain_count(constraint: Constraint, ids: NDArray[np.int64], empty: int) -> int:
    """How many domains the nodes make up; each node is one of its own for the host name."""
    if constraint.key == HOSTNAME:
        return len(ids)
    return int(np.count_nonzero(np.bincount((ids if empty < 0 else np.where(ids == empty, -1, ids)) + 1)))
