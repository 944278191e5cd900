"""The feasible nodes in order of preference: the outcome of PreScore, Score and NormalizeScore."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.journal import stable_hash
from policyengine.framework.leaders import MANY, Leaders, Ring
from policyengine.framework.plugin import Scores
from policyengine.framework.status import Rows


@dataclass(slots=True, eq=False)
class Share:
    """One plugin's normalised scores, over the ranked rows or (`by_row`) over the whole node table.

    Never written to; not frozen, because a frozen one takes five times as long to make.
    """

    plugin: str
    weight: int
    scores: Scores
    by_row: bool
    number: int = 0
    """Told apart by it are the shares over the whole table; 0 for others."""
    based_on: int = 0
    """The number of the share from which this one differs in no row but `patched`; 0 when it is based on none."""
    patched: Rows | None = None


@dataclass(slots=True, eq=False)
class Total:
    """The weighted sum of the shares over the whole table, and the best of it while they are kept."""

    values: Scores
    """`int64[nodes]`, never written to."""
    node_position: int
    ranked: Rows | None = None
    """The rows that this total, or the one it follows from, was last asked to rank: where an identical pod ranks the
    same ones, keeping the leaders pays."""
    leaders: Leaders | None = None
    """The leaders of these values; handed on to the total that follows from this one."""


@dataclass(eq=False)
class NodeScores:
    """`rows` and, aligned with them, the total score of each."""

    rows: Rows
    shares: tuple[Share, ...]
    name_hash: NDArray[np.uint64]
    """`uint64[nodes]`"""
    by_row: Total | None
    """The part of the total that is kept over the whole table; None where there is none."""
    rest: Scores | None
    """`int64[rows]`: the part that is not; None where there is none."""
    ring: Callable[[], Ring]

    @cached_property
    def total(self) -> Scores:
        """`int64[rows]`"""
        if self.by_row is None:
            return np.zeros(len(self.rows), dtype=np.int64) if self.rest is None else self.rest
        values = self.by_row.values
        kept = values if len(self.rows) == len(values) else values[self.rows]
        return kept if self.rest is None else kept + self.rest

    @cached_property
    def per_plugin(self) -> dict[str, Scores]:
        """Weighted scores, `int64[rows]`, of the plugins that had something to say, in the profile's order."""
        return {
            share.plugin: (share.scores[self.rows] if share.by_row else share.scores) * share.weight
            for share in self.shares
        }

    def best(self, pod_uid: str) -> int:
        """The row of the best total. Of several the next one on the hash ring after the pod's UID is taken, so
        that neither row order nor an earlier decision shows. ValueError when no row is ranked."""
        if len(self.rows) == 0:
            raise ValueError("no node is ranked, so none is best")
        kept = self.by_row if self.rest is None else None
        if kept is not None and kept.leaders is not None and kept.leaders.rows is self.rows:
            return kept.leaders.after(pod_uid)
        best = int(self.total.max())
        tied = np.flatnonzero(self.total == best)
        if len(self.rows) != len(self.name_hash):
            tied = self.rows[tied]
        if len(tied) == 1:
            return int(tied[0])
        if kept is not None and len(tied) >= MANY:
            if kept.ranked is self.rows:
                kept.leaders = Leaders(self.ring(), self.rows, tied, best, kept.node_position)
            kept.ranked = self.rows
        return _nearest(tied, self.name_hash, pod_uid)


def next_of(tied: NDArray[np.bool_], ring: Ring, pod_uid: str) -> int:
    """Of tied rows, at least one of the whole table (`bool[nodes]`), the one `NodeScores.best` would take."""
    near = ring.stretch(pod_uid)
    found = tied[near]
    step = int(found.argmax()) if len(found) else 0
    if len(found) and found[step]:
        return near.item(step)
    rows = tied.nonzero()[0]
    return rows.item(0) if len(rows) == 1 else _nearest(rows, ring.hashes, pod_uid)


def _nearest(tied: Rows, name_hash: NDArray[np.uint64], pod_uid: str) -> int:
    return tied.item(int((name_hash[tied] - np.uint64(stable_hash(pod_uid))).argmin()))
