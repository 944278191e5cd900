"""How kin ask a plugin about the next pod: about all rows, and without keeping an answer that serves once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from policyengine.framework.cached_column import ColumnCache
from policyengine.framework.changes import Changes
from policyengine.framework.column import Array
from policyengine.framework.normal_score import Scorer
from policyengine.framework.plugin import UNCONCERNED, MaskFilter, Scores, extends
from policyengine.framework.status import SUCCESS, Rows, Status

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo

Mask = NDArray[np.bool_]

REMEMBERED: Final = 4096
"""Signatures of which it is known that they came; beyond it all are forgotten."""


class AskedFilter(Protocol):
    """A filter as kin ask it."""

    def passing(self, pod: PodInfo, changes: Changes, rows: Rows) -> Mask | None:
        """Which rows of the whole table, `rows`, pass; None: all of them. Where a look at rows is not all there is to
        say of the pod, none pass."""


class AskedScore(Protocol):
    """A score as kin ask it."""

    def weighted(self, pod: PodInfo, changes: Changes, feasible: Rows) -> Scores | None:
        """The normalised scores times the weight, `int64[nodes]`, not to be written to, of no meaning in rows that are
        not feasible; None where the plugin is skipped."""


class _Anew:
    """A plugin's answers for pods none of which is expected again."""

    def __init__(self, cache: ColumnCache) -> None:
        self._cache = cache
        self._came: set[int] = set()
        """Hashes of signatures. Two that fall together cost a column that is kept in vain."""

    def _came_before(self, signature: Hashable) -> bool:
        key = hash(signature)
        if key in self._came:
            return True
        if len(self._came) >= REMEMBERED:
            self._came.clear()
        self._came.add(key)
        return False

    def _answer(self, signature: Hashable, pod: PodInfo, changes: Changes, rows: Rows) -> tuple[Status, object, Array]:
        """PreFilter's or PreScore's status, the state, and the values where that is SUCCESS."""
        if self._came_before(signature):
            column = self._cache.column(signature, pod, changes)
            return column.status, column.state, column.values
        return self._cache.once(pod, changes, rows)


class FilterAnew(_Anew):
    """A filter that looks at rows alone."""

    def __init__(self, cache: ColumnCache) -> None:
        super().__init__(cache)
        self._masks = cache.plugin if extends(cache.plugin, MaskFilter) else None

    def passing(self, pod: PodInfo, changes: Changes, rows: Rows) -> Mask | None:
        """See `AskedFilter`."""
        if self._masks is not None:
            status, state = self._cache.prepare(pod, changes)
            if status is SUCCESS or status.is_success:
                return self._masks.passing(state, changes.snapshot)
        else:
            signature = self._cache.signature(pod)
            if signature is UNCONCERNED:
                return None
            status, _, values = self._answer(signature, pod, changes, rows)
            if status.is_success:
                return np.equal(values, 0)
        return None if status.is_skip else np.zeros(len(rows), dtype=np.bool_)


class ScoreAnew(_Anew):
    """A score that looks at rows alone and scales each by itself."""

    def __init__(self, scorer: Scorer, rows: Rows) -> None:
        super().__init__(scorer.columns)
        self._scorer = scorer
        self._rows = rows

    def weighted(self, pod: PodInfo, changes: Changes, feasible: Rows) -> Scores | None:
        """See `AskedScore`."""
        signature = self._cache.signature(pod)
        if signature is UNCONCERNED:
            return None
        status, state, raw = self._answer(signature, pod, changes, self._rows)
        if not status.is_success:
            return None
        scores, weight = self._scorer.scaled(state, raw), self._scorer.weight
        return scores if weight == 1 else scores * weight


class FilterByColumn:
    """A filter that looks beyond rows: its columns are kept, as for any decision."""

    def __init__(self, cache: ColumnCache) -> None:
        self._cache = cache

    def passing(self, pod: PodInfo, changes: Changes, rows: Rows) -> Mask | None:
        """See `AskedFilter`."""
        cache = self._cache
        signature = cache.signature(pod)
        if signature is UNCONCERNED:
            return None
        column = cache.column(signature, pod, changes)
        if column.status.is_skip:
            return None
        is_narrowed = cache.narrowing is not None and cache.narrowing.narrow(column.state) is not None
        if is_narrowed or not column.status.is_success:
            return np.zeros(len(rows), dtype=np.bool_)
        return None if column.unanimous else np.equal(column.values, 0)


class ScoreByColumn:
    """A score that looks beyond rows, or scales by all feasible ones: likewise."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer

    def weighted(self, pod: PodInfo, changes: Changes, feasible: Rows) -> Scores | None:
        """See `AskedScore`."""
        signature = self._scorer.signature(pod)
        share = None if signature is UNCONCERNED else self._scorer.share(signature, pod, changes, feasible)
        if share is None:
            return None
        scores = share.scores * share.weight
        if len(scores) == changes.n:
            return scores
        whole = np.zeros(changes.n, dtype=np.int64)
        whole[feasible] = scores
        return whole
