"""The feasible nodes in order of preference: the outcome of PreScore, Score and NormalizeScore."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.journal import stable_hash
from policyengine.framework.plugin import Scores
from policyengine.framework.status import Rows


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """One plugin's normalised scores, over the ranked rows or (`by_row`) over the whole node table."""

    plugin: str
    weight: int
    scores: Scores
    by_row: bool
    number: int = 0
    """Told apart by it are the shares over the whole table; 0 for others."""
    based_on: int = 0
    """The number of the share from which this one differs in no row but `patched`; 0 when it is based on none."""
    patched: Rows | None = None


@dataclass(eq=False)
class Ranking:
    """`rows` and, aligned with them, the total score of each."""

    rows: Rows
    total: Scores
    shares: tuple[Share, ...]
    name_hash: NDArray[np.uint64]
    """`uint64[nodes]`"""

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
        tied = np.flatnonzero(self.total == self.total.max())
        if len(self.rows) != len(self.name_hash):
            tied = self.rows[tied]
        if len(tied) == 1:
            return int(tied[0])
        return int(tied[np.argmin(self.name_hash[tied] - np.uint64(stable_hash(pod_uid)))])
