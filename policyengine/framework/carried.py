"""Verdicts and scores that a streak carries on although other rows, or the set of feasible ones, have a say in them.

A plugin that counts over domains follows the pods that come and go, and names the rows where its answer may be another
now; a score that is scaled is scaled again where its scale moved. What is kept here belongs to one streak.

Rule: after `catch_up`, verdicts and scores are those of the plugin's column. Where it answers None that was not
possible, and the streak is over.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from policyengine.framework.cached_column import ColumnCache
from policyengine.framework.changes import Changes
from policyengine.framework.column import Array, Column
from policyengine.framework.normal_score import Scorer
from policyengine.framework.plugin import ALIKE, Scores
from policyengine.framework.rows import FEW, at
from policyengine.framework.status import Rows

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo

Touched = Sequence[int] | Rows
"""Rows in a list, where they are few, or in an array."""


class CarriedColumn:
    """A column whose state is brought up to date in step with the streak."""

    __slots__ = ("_cache", "_signature", "column")

    def __init__(self, cache: ColumnCache, signature: Hashable, column: Column) -> None:
        self._cache = cache
        self._signature = signature
        self.column = column

    def follow(self, pod: PodInfo, changes: Changes, rows: Sequence[int], since: int) -> Touched | None:
        """The rows in which the answer may be another than at the pod position `since`."""
        return self._cache.follow(self.column, self._signature, pod, changes, rows, since)


class CarriedFilter(CarriedColumn):
    """Which rows a filter lets pass."""

    __slots__ = ("passing",)

    def __init__(self, cache: ColumnCache, signature: Hashable, column: Column) -> None:
        super().__init__(cache, signature, column)
        self.passing: NDArray[np.bool_] = column.values == 0
        """`bool[nodes]`"""

    def catch_up(self, pod: PodInfo, changes: Changes, rows: Sequence[int], since: int) -> Touched | None:
        """The rows whose verdict is another now; `rows` are those where pods came or went."""
        touched = self.follow(pod, changes, rows, since)
        if touched is None or len(touched) == 0:
            return touched
        if isinstance(touched, np.ndarray):
            verdicts = self._cache.at(self.column, changes, touched) == 0
            flipped: Rows = touched[verdicts != self.passing[touched]]
            self.passing[touched] = verdicts
            return flipped
        few: list[int] = []
        for row, passes in zip(touched, self._cache.passes_at(self.column, changes, touched), strict=True):
            if passes != self.passing.item(row):
                self.passing[row] = passes
                few.append(row)
        return few


class CarriedScore(CarriedColumn):
    """One scorer's weighted scores, part of the streak's sum."""

    __slots__ = ("_is_followed", "_raw", "_scale", "_scorer", "_scores")

    def __init__(self, scorer: Scorer, signature: Hashable, column: Column, scores: Scores, feasible: Rows) -> None:
        """`scores`: `int64[nodes]`, what it makes of all rows; they are not written to."""
        super().__init__(scorer.columns, signature, column)
        self._scorer = scorer
        self._is_followed = scorer.columns.follows_pods
        self._raw: Array = column.values.copy(order="K") if self._is_followed else column.values
        self._scores: Scores = scores * scorer.weight
        self._scale = self._scale_of(feasible)

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
        """The rows whose score is another now; the differences are added to `total`. `feasible`: the rows that are
        feasible now, never none; `is_same_set`: they are those of the last time."""
        touched = self.follow(pod, changes, rows, since) if self._is_followed else ()
        if touched is None:
            return None
        if len(touched):
            where = np.asarray(touched, dtype=np.int64)
            self._put(where, self._cache.at(self.column, changes, where))
        elif is_same_set:
            return ()
        scale = self._scale_of(feasible)
        if scale != self._scale:
            self._scale = scale
            where = np.arange(changes.n)
        elif len(touched) == 0 or scale == ALIKE:
            return ()
        return self._rescale(where, total)

    def _put(self, rows: Rows, raw: Array) -> None:
        if raw.dtype != self._raw.dtype:
            self._raw = self._raw.astype(np.result_type(self._raw, raw))
        self._raw[rows] = raw

    def _scale_of(self, feasible: Rows) -> Hashable:
        return self._scorer.scale_of(self.column, at(self._raw, feasible))

    def _rescale(self, rows: Rows, total: Scores) -> Touched:
        """Scale the rows anew, and those that this changes."""
        scores = self._scorer.rescaled(self.column, self._scale, at(self._raw, rows)) * self._scorer.weight
        gained = scores - at(self._scores, rows)
        moved = np.flatnonzero(gained)
        if len(moved) == 0:
            return ()
        if len(rows) == len(total):
            self._scores = scores
            if 2 * len(moved) > len(rows):
                total += gained
                return rows
        else:
            self._scores[rows] = scores
        changed: Rows = rows[moved]
        total[changed] += gained[moved]
        return changed.tolist() if len(changed) <= FEW else changed
