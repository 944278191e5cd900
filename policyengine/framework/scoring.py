"""The feasible nodes, what each plugin scores them (PreScore, Score, NormalizeScore), and which of them a pod takes.

Rule: of the nodes with the highest total a pod takes the next one on a ring of hashes, starting at the hash of its UID.
Neither the order of rows nor an earlier decision shows. A `Choice` is that node, with what was weighed at that moment.

Example: nodes a, b and c have the hashes 10, 20 and 30, and the totals 7, 9 and 9. Pods whose UIDs hash to 15 and to 25
take b and c; a pod whose UID hashes to 35 begins the ring anew and takes b.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.journal import stable_hash
from policyengine.framework.filtering import Diagnosis
from policyengine.framework.plugin import Scores
from policyengine.framework.status import Rows

NEAR: Final = 256
"""Nodes on the ring after a pod that are looked at first."""
SHOWN: Final = 3
"""Nodes whose scores a choice keeps: the one taken, and those that came next."""
INFEASIBLE: Final = int(np.iinfo(np.int64).min)
"""The total of a node that is not feasible."""
SCORED: Final = "scored"
ONLY: Final = "only"
NOMINATED: Final = "nominated"
PACKED: Final = "packed"
"""How a node is taken: see `Choice.how`."""
EXTENDERS: Final = "(extenders)"
"""Stands for all extenders where a plugin's name would stand."""


class Choice(NamedTuple):
    """The node that a pod takes, and what was weighed: plain values, which outlive the snapshot."""

    how: str
    """`scored`: a node with the highest total. `only`: the only feasible one, not scored. `nominated`: room was made on
    it for the pod, not scored. `packed`: with its gang, where the least room was left."""
    nodes: int
    """How many nodes there were."""
    feasible: int
    """How many of them were feasible."""
    refused: tuple[tuple[str, int], ...]
    """(plugin, nodes that it refused), of those that refused any. One node may have been refused by several."""
    best: tuple[str, ...]
    """The node taken; then, where it was scored, the next best: of equal ones, any. One that is as good as the node
    taken comes later on the ring."""
    shares: tuple[tuple[str, int], ...] = ()
    """(plugin, weight), of those that had something to say, in the profile's order."""
    scores: tuple[int, ...] = ()
    """Before their weights: of each node of `best` by each of `shares`, node by node."""

    @property
    def node(self) -> str:
        """The node taken."""
        return self.best[0]

    def weighted(self) -> dict[str, dict[str, int]]:
        """Node -> plugin -> weighted score, of `best`, in order; nothing where the node was not scored."""
        each = len(self.shares)
        return {
            node: {
                plugin: score * weight
                for (plugin, weight), score in zip(self.shares, self.scores[at * each : at * each + each], strict=True)
            }
            for at, node in enumerate(self.best if self.how == SCORED else ())
        }


def unscored(how: str, diagnosis: Diagnosis, node: str) -> Choice:
    """A node is taken that was not weighed against others."""
    return Choice(how, diagnosis.nodes, len(diagnosis.feasible), diagnosis.refused, (node,))


def leaders(totals: Scores, chosen: int, feasible: int) -> list[int]:
    """The place that is taken, and those of the next best of the `feasible` ones, to `SHOWN` in all."""
    found, before = [chosen], []
    for _ in range(min(SHOWN, feasible) - 1):
        before.append(totals.item(found[-1]))
        totals[found[-1]] = INFEASIBLE
        found.append(int(totals.argmax()))
    for place, total in zip(found, before, strict=False):
        totals[place] = total
    return found


def nearest(rows: Rows, name_hash: NDArray[np.uint64], pod_uid: str) -> int:
    """Of rows, at least one, the next on the ring after the pod's UID. `name_hash`: `uint64[nodes]`."""
    if len(rows) == 1:
        return rows.item(0)
    return rows.item(int((name_hash[rows] - np.uint64(stable_hash(pod_uid))).argmin()))


class Ring:
    """The nodes of a table in the order of the hashes of their names."""

    def __init__(self, name_hash: NDArray[np.uint64]) -> None:
        self.name_hash = name_hash.copy()
        self.order: Rows = np.argsort(name_hash, kind="stable").astype(np.int64)
        """Place on the ring -> row."""
        self.place: Rows = np.empty(len(self.order), dtype=np.int64)
        """Row -> place on the ring."""
        self.place[self.order] = np.arange(len(self.order))
        self._sorted: list[int] = name_hash[self.order].tolist()

    def is_of(self, name_hash: NDArray[np.uint64]) -> bool:
        """Whether these are the nodes, in these rows."""
        return np.array_equal(self.name_hash, name_hash)

    def start(self, pod_uid: str) -> int:
        """The first place after the pod's UID; that of no node where it is after all of them."""
        return bisect_left(self._sorted, stable_hash(pod_uid))

    def next_best(self, totals: Scores, pod_uid: str) -> int:
        """The next row after the pod's UID of those with the highest total (`int64[nodes]`, at least one)."""
        highest, start = totals.max(), self.start(pod_uid)
        near = self.order[start : start + NEAR]
        found = totals[near] == highest
        step = int(found.argmax()) if len(found) else 0
        if len(found) and found[step]:
            return near.item(step)
        return nearest((totals == highest).nonzero()[0], self.name_hash, pod_uid)


class BestNodes:
    """The nodes with the highest total, kept while single totals change."""

    def __init__(self, ring: Ring, totals: NDArray[np.int64]) -> None:
        self.ring = ring
        self._place_of = ring.place.data
        self._highest = int(totals.max())
        tied = totals == self._highest
        self._marked = bytearray(tied[ring.order].tobytes())
        """1 by place on the ring."""
        self.count = int(np.count_nonzero(tied))
        """How many there are; where none is left, the whole total has to be looked at."""

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


@dataclass(frozen=True, slots=True, eq=False)
class PluginScores:
    """One plugin's normalised scores, 0..100, of the feasible rows."""

    plugin: str
    weight: int
    scores: Scores
    """`int64[rows]`"""


@dataclass(frozen=True, eq=False)
class NodeScores:
    """`rows` and, aligned with them, the scores."""

    rows: Rows
    """Ascending."""
    shares: tuple[PluginScores, ...]
    """Of the plugins that had something to say, in the profile's order."""
    name_hash: NDArray[np.uint64]
    """`uint64[nodes]`"""
    more: Scores | None = None
    """`int64[rows]`: what somebody else adds, weighted."""

    @cached_property
    def total(self) -> Scores:
        """`int64[rows]`"""
        total = np.zeros(len(self.rows), dtype=np.int64) if self.more is None else self.more.copy()
        for share in self.shares:
            total += share.scores * share.weight
        return total

    @property
    def per_plugin(self) -> dict[str, Scores]:
        """Weighted scores, `int64[rows]`, by plugin."""
        return {share.plugin: share.scores * share.weight for share in self.shares}

    def best(self, pod_uid: str) -> int:
        """The row that the pod takes. ValueError when there is none."""
        if len(self.rows) == 0:
            raise ValueError("no node has scores, so none is best")
        return nearest(self.rows[self.total == self.total.max()], self.name_hash, pod_uid)

    def choose(self, row: int, diagnosis: Diagnosis, names: Sequence[str]) -> Choice:
        """The node in `row` and those that come next, of the feasible ones of `diagnosis`, whose scores these are."""
        rows = self.rows
        places = leaders(self.total, int(np.searchsorted(rows, row)), len(rows))
        shares = self.shares if self.more is None else (*self.shares, PluginScores(EXTENDERS, 1, self.more))
        return Choice(
            SCORED,
            diagnosis.nodes,
            len(rows),
            diagnosis.refused,
            tuple([names[rows.item(place)] for place in places]),
            tuple([(share.plugin, share.weight) for share in shares]),
            tuple([share.scores.item(place) for place in places for share in shares]),
        )
