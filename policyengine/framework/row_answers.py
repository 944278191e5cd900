"""What the filters and scores of a streak that look at nothing beyond a row say of rows where pods came or went."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from policyengine.framework.cached_column import ColumnCache
from policyengine.framework.changes import Changes
from policyengine.framework.column import Column
from policyengine.framework.normal_score import Scorer
from policyengine.framework.rows import FEW


class RowAnswers:
    """Filters and scores, each with the column that it answered with when the streak began. No Node may change."""

    __slots__ = ("_caches", "_filters", "_one_by_one", "_passes", "_points", "_scorers")

    def __init__(self) -> None:
        self._filters: list[tuple[ColumnCache, Column]] = []
        self._scorers: list[tuple[Scorer, Column]] = []
        self._caches: list[ColumnCache] = []
        """Of all of them."""
        self._one_by_one = True
        """Whether all of them can answer for one row by itself."""
        self._passes: list[Callable[[int], bool]] = []
        self._points: list[tuple[int, Callable[[int], int]]] = []
        """(weight, score of a row)."""

    def add_filter(self, cache: ColumnCache, column: Column, changes: Changes) -> None:
        """One more filter."""
        self._filters.append((cache, column))
        self._caches.append(cache)
        passes = cache.row_filter(column, changes)
        if passes is None:
            self._one_by_one = False
        else:
            self._passes.append(passes)

    def add_scorer(self, scorer: Scorer, column: Column, changes: Changes) -> None:
        """One more score, which scales each row by itself."""
        self._scorers.append((scorer, column))
        self._caches.append(scorer.columns)
        points = scorer.row_score(column, changes)
        if points is None:
            self._one_by_one = False
        else:
            self._points.append((scorer.weight, points))

    def admitted(self, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The rows, of some (`bool[nodes]`), that every filter passed when the streak began."""
        left = rows.copy()
        for _, column in self._filters:
            left &= column.values == 0
        return left

    def of(self, changes: Changes, rows: Sequence[int]) -> list[tuple[bool, int]]:
        """Whether each row passes every filter, and the weighted sum of its scores."""
        if self._one_by_one and len(rows) <= FEW:
            for cache in self._caches:
                cache.asked += 1
                cache.computed += 1
            return [self._of(row) for row in rows]
        where = np.array(rows)
        passes = np.ones(len(rows), dtype=np.bool_)
        for cache, column in self._filters:
            passes &= cache.at(column, changes, where) == 0
        scores = np.zeros(len(rows), dtype=np.int64)
        for scorer, column in self._scorers:
            scores += scorer.weight * scorer.scaled_at(column, changes, where)
        return list(zip(passes.tolist(), scores.tolist(), strict=True))

    def _of(self, row: int) -> tuple[bool, int]:
        score = 0
        for weight, points in self._points:
            score += weight * points(row)
        for passes in self._passes:
            if not passes(row):
                return False, score
        return True, score
