"""Pods that are alike but for what they ask for, one after another: most plugins have nothing new to say of the next.

Where every pod has its own requests no column is asked for twice. Yet all but a few plugins (those that read requests)
say of each such pod what they said of the one before. So from the second of a run on, what they said is kept as one
mask and one sum, and the few are asked about all rows, without keeping their columns.

Rules:
1. What is answered is what `Evaluator.judge` and `rank` would answer.
2. Asked anew are plugins that look at nothing beyond a row and scale each score by itself: those that read the pods on
   nodes, and those whose signature was seen to vary. Others whose signature or column was seen to vary are asked by
   column, as for any decision.
3. Where what is kept does not hold (another signature, a node or an object that changed, a plugin that counts over
   domains and counts differently now, a scale that moved), nothing is answered, and the run is over.
4. A signature that comes again is no longer answered without its column: a dear rule is not worked out over and over.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from policyengine.framework.asked import (
    AskedFilter,
    AskedScore,
    FilterAnew,
    FilterByColumn,
    Mask,
    ScoreAnew,
    ScoreByColumn,
)
from policyengine.framework.cached_column import ColumnCache
from policyengine.framework.changes import Changes
from policyengine.framework.column import Column
from policyengine.framework.leaders import Ring
from policyengine.framework.normal_score import Scorer
from policyengine.framework.plugin import UNCONCERNED, Scores
from policyengine.framework.rows import at
from policyengine.framework.scoring import next_of
from policyengine.framework.status import Code, Rows

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.framework.filtering import Diagnosis
    from policyengine.framework.scoring import NodeScores

SignatureOf = Callable[["PodInfo"], Hashable]

_OUT: Final = int(np.iinfo(np.int64).min)
"""The total of a row that is not feasible."""


class Kin:
    """A run of pods with the same to say for most plugins, one of which was just decided. Made by `begin`."""

    def __init__(self, changes: Changes, ring: Ring, varying: set[str]) -> None:
        self._table = changes.snapshot.nodes
        self._node_position = changes.node_position
        self._ring = ring
        self._varying = varying
        """Names of plugins whose signature or column was seen to differ from pod to pod, shared by all runs."""
        self._kept: dict[SignatureOf, str] = {}
        """The names of the plugins of which it is kept what was said."""
        self._signatures: list[Hashable] = []
        """For which pods that was, concerned or not, in the same order."""
        self._watched: list[tuple[ColumnCache, Hashable, Column]] = []
        """Columns that must stay what they are, though pods or other objects are read for them."""
        self._filters: list[AskedFilter] = []
        self._scores: list[AskedScore] = []
        """What is asked about every pod."""
        self._rows: Rows = np.arange(changes.n)
        self._passing: Mask | None = None
        """The rows that all other filters let pass; None: all of them."""
        self._base: Scores | None = None
        """What all other scores add up to, `int64[nodes]`; None where that is the same for all rows."""
        self._scales: list[tuple[Scorer, Column, Hashable]] = []
        """What the scores in `_base` took from all feasible rows, where that may change with these."""
        self.length = 0
        """Pods chosen for so far."""

    @staticmethod
    def begin(
        filters: Sequence[ColumnCache],
        scorers: Sequence[Scorer],
        pod: PodInfo,
        changes: Changes,
        diagnosis: Diagnosis,
        node_scores: NodeScores,
        ring: Callable[[], Ring],
        varying: set[str],
    ) -> Kin | None:
        """The kin of a pod just judged and ranked; None where a plugin's part cannot be carried on."""
        kin = Kin(changes, ring(), varying)
        for cache in filters:
            if not kin._join_filter(cache, pod, changes):
                return None
        if not kin._agrees(pod, changes, diagnosis):
            return None
        shares = {share.plugin: share for share in node_scores.shares}
        base: Scores = np.zeros(changes.n, dtype=np.int64)
        for scorer in scorers:
            share = shares.get(scorer.plugin.name)
            if kin._join_scorer(scorer, share is None or scorer.keeps_scores):
                continue
            signature = kin._keep(scorer.columns, pod)
            if signature is UNCONCERNED:
                continue
            column = scorer.columns.column(signature, pod, changes)
            kin._watch(scorer.columns, signature, column)
            if share is not None:
                base += share.scores * share.weight
                if not scorer.is_steady(column):
                    kin._scales.append((scorer, column, scorer.scale_of(column, column.values[diagnosis.feasible])))
        kin._base = None if base.min() == base.max() else base
        return kin

    def next(self, pod: PodInfo, changes: Changes) -> int | None:
        """The row for the next pod; None where the run is over, or no row is feasible."""
        if changes.node_position != self._node_position or changes.snapshot.nodes is not self._table:
            return None
        if pod.shape.problem is not None or not self._is_like(pod):
            return None
        for cache, signature, column in self._watched:
            if not cache.stays(column, signature, pod, changes):
                self._varying.add(cache.plugin.name)
                return None
        passing = self._passing_of(pod, changes)
        feasible = self._rows if passing is None else passing.nonzero()[0]
        if not len(feasible) or not self._is_at_scale(feasible):
            return None
        self.length += 1
        return self._best(pod, changes, passing, feasible)

    def _asked_filter(self, cache: ColumnCache) -> AskedFilter | None:
        """The filter where it is asked about every pod; None where what it said is kept."""
        varies = cache.plugin.name in self._varying
        if cache.looks_at_rows_alone and (cache.follows_pods or varies):
            return FilterAnew(cache)
        return FilterByColumn(cache) if varies else None

    def _join_scorer(self, scorer: Scorer, can_be_kept: bool) -> bool:
        """Ask the score about every pod; False where what it said is kept."""
        cache, plugin = scorer.columns, scorer.plugin
        varies = plugin.name in self._varying
        is_local = cache.looks_at_rows_alone and scorer.is_pointwise and scorer.keeps_scores
        asked: AskedScore
        if is_local and (cache.follows_pods or varies):
            asked = ScoreAnew(scorer, self._rows)
        elif varies or scorer.sees_feasible or not can_be_kept:
            asked, is_local = ScoreByColumn(scorer), False
        else:
            return False
        self._scores.append(asked)
        return True

    def _keep(self, cache: ColumnCache, pod: PodInfo) -> Hashable:
        signature = cache.signature(pod)
        if cache.signature not in self._kept:
            self._kept[cache.signature] = cache.plugin.name
            self._signatures.append(signature)
        return signature

    def _watch(self, cache: ColumnCache, signature: Hashable, column: Column) -> None:
        if cache.follows_pods or not cache.looks_at_rows_alone:
            self._watched.append((cache, signature, column))

    def _join_filter(self, cache: ColumnCache, pod: PodInfo, changes: Changes) -> bool:
        asked = self._asked_filter(cache)
        if asked is not None:
            self._filters.append(asked)
            return True
        signature = self._keep(cache, pod)
        if signature is UNCONCERNED:
            return True
        column = cache.column(signature, pod, changes)
        if column.status.code is Code.SUCCESS:
            if cache.narrowing is not None and cache.narrowing.narrow(column.state) is not None:
                return False
            if not column.unanimous:
                self._passing = _both(self._passing, column.values == 0)
        self._watch(cache, signature, column)
        return True

    def _agrees(self, pod: PodInfo, changes: Changes, diagnosis: Diagnosis) -> bool:
        """Whether the filters alone made the diagnosis, and nobody took nodes out of it."""
        passing = self._passing_of(pod, changes)
        count = changes.n if passing is None else int(np.count_nonzero(passing))
        return count == len(diagnosis.feasible)

    def _is_like(self, pod: PodInfo) -> bool:
        """Whether the pod has the signatures that what is kept was said for."""
        signatures = [signature_of(pod) for signature_of in self._kept]
        if signatures == self._signatures:
            return True
        parts = zip(self._kept.values(), self._signatures, signatures, strict=True)
        self._varying.add(next(plugin for plugin, known, mine in parts if mine != known))
        return False

    def _is_at_scale(self, feasible: Rows) -> bool:
        """Whether the scores in `_base` are those of a pod for which just these rows are feasible."""
        return all(
            scorer.scale_of(column, at(column.values, feasible)) == scale for scorer, column, scale in self._scales
        )

    def _passing_of(self, pod: PodInfo, changes: Changes) -> Mask | None:
        """The rows that pass; None: all of them."""
        passing = self._passing
        for one in self._filters:
            mine = one.passing(pod, changes, self._rows)
            if mine is not None:
                passing = _both(passing, mine)
        return passing

    def _best(self, pod: PodInfo, changes: Changes, passing: Mask | None, feasible: Rows) -> int:
        """The best row, by the total of every one."""
        total = self._total_of(self._scores, pod, changes, feasible)
        if total is None:
            total = np.zeros(len(self._rows), dtype=np.int64)
        if passing is not None:
            total = np.where(passing, total, _OUT)
        return next_of(total == total.max(), self._ring, pod.uid)

    def _total_of(self, scores: Sequence[AskedScore], pod: PodInfo, changes: Changes, feasible: Rows) -> Scores | None:
        """What these scores and `_base` add up to, but for what all rows have in common: `int64[nodes]`, not to be
        written to; None where that is all."""
        total = self._base
        for one in scores:
            mine = one.weighted(pod, changes, feasible)
            if mine is not None:
                total = mine if total is None else total + mine
        return total


def _both(a: Mask | None, b: Mask) -> Mask:
    return b if a is None else a & b
