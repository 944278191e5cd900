"""The feasible nodes and what each plugin scores them: the outcome of PreScore, Score and NormalizeScore."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from policyengine.framework.best_nodes import nearest
from policyengine.framework.plugin import Scores
from policyengine.framework.status import Rows


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
        """The row that the pod takes: see `best_nodes`. ValueError when there is none."""
        if len(self.rows) == 0:
            raise ValueError("no node has scores, so none is best")
        return nearest(self.rows[self.total == self.total.max()], self.name_hash, pod_uid)
