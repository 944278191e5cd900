"""A score that a streak carries on domain by domain: where all nodes of one get the same, a few numbers say it all.

Rule: as in `carried`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from policyengine.framework.carried import CarriedColumn, Touched
from policyengine.framework.changes import Changes
from policyengine.framework.column import Column
from policyengine.framework.normal_score import Scorer
from policyengine.framework.plugin import ALIKE, Scores
from policyengine.framework.rows import FEW
from policyengine.framework.status import Rows

if TYPE_CHECKING:
    from policyengine.cluster.node_table import NodeTable
    from policyengine.cluster.pod_info import PodInfo

_WORTH: Final = 8
"""Rows a domain, on average, from which it pays to go by domains."""


class CarriedDomains(CarriedColumn):
    """One scorer's weighted scores by the value of a label, part of the streak's sum. Made by `of`."""

    __slots__ = ("_domain_of", "_held", "_key", "_one_of", "_rows", "_scale", "_scorer", "_scores")

    def __init__(self, scorer: Scorer, signature: Hashable, column: Column, key: str, ids: NDArray[np.int32]) -> None:
        super().__init__(scorer.columns, signature, column)
        self._scorer = scorer
        self._key = key
        self._rows: Rows = np.arange(len(ids))
        present, self._domain_of = _numbered(ids)
        self._one_of: Rows = np.zeros(present, dtype=np.int64)
        """By domain, one of its rows."""
        self._one_of[self._domain_of] = self._rows
        self._held: NDArray[np.bool_]
        """By domain, whether one of its rows is feasible."""
        self._scores: Scores
        self._scale: Hashable

    @staticmethod
    def of(
        scorer: Scorer, signature: Hashable, column: Column, scores: Scores, feasible: Rows, nodes: NodeTable
    ) -> CarriedDomains | None:
        """None where more than the value of a label decides, or there are too many values. `scores`: `int64[nodes]`,
        what the scorer makes of all rows."""
        key = None if scorer.domains is None else scorer.domains.deciding_key(column.state)
        if key is None:
            return None
        carried = CarriedDomains(scorer, signature, column, key, nodes.label_ids(key))
        if _WORTH * len(carried._one_of) > nodes.n:
            return None
        carried._hold(feasible)
        carried._scores = scores[carried._one_of] * scorer.weight
        carried._scale = scorer.scale_of(column, column.values[carried._one_of][carried._held])
        return carried

    def catch_up(
        self,
        pod: PodInfo,
        changes: Changes,
        rows: Sequence[int],
        since: int,
        feasible: Rows,
        is_same_set: bool,
        total: Scores,
    ) -> Touched | None:
        """As `CarriedScore.catch_up`."""
        touched = self.follow(pod, changes, rows, since)
        if touched is None or self._scorer.domains is None:
            return None
        if self._scorer.domains.deciding_key(self.column.state) != self._key:
            return None
        if not is_same_set:
            self._hold(feasible)
        elif len(touched) == 0:
            return ()
        raw = self._cache.at(self.column, changes, self._one_of)
        scale = self._scorer.scale_of(self.column, raw[self._held])
        if scale == self._scale == ALIKE:
            return ()
        self._scale = scale
        return self._put(self._scorer.rescaled(self.column, scale, raw) * self._scorer.weight, total)

    def _hold(self, feasible: Rows) -> None:
        held = np.bincount(self._domain_of[feasible], minlength=len(self._one_of))
        self._held = held > 0

    def _put(self, scores: Scores, total: Scores) -> Touched:
        gained, self._scores = scores - self._scores, scores
        moved = np.count_nonzero(gained)
        if moved == 0:
            return ()
        by_row = gained[self._domain_of]
        total += by_row
        if moved == len(gained):
            return self._rows
        changed = np.flatnonzero(by_row)
        return changed.tolist() if len(changed) <= FEW else changed


def _numbered(ids: NDArray[np.int32]) -> tuple[int, Rows]:
    """How many values the ids stand for, -1 among them, and a number from 0 on for each row's."""
    present = np.flatnonzero(np.bincount(ids + 1))
    number: Rows = np.zeros(int(present[-1]) + 1, dtype=np.int64)
    number[present] = np.arange(len(present))
    return len(present), number[ids + 1]
