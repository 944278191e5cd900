"""Identical pods one after another: what the last decision found, carried on in the few rows that changed since.

Most pods come in runs made from one template, and between two of a run little happens: the pod before took its place, a
watch event or two came. So from the second of a run on only those rows are judged and scored again, by the plugins that
look at nothing beyond a row; the best rows are kept by `Leaders`. Such a decision costs nothing that grows with nodes.

Rules:
1. What is answered is what `Evaluator.judge` and `rank` would answer.
2. Where that would take more than a look at few rows (another pod, a node or an object that changed, a plugin that
   counts over domains and counts differently now, a scale that may move), nothing is answered. The streak is over, and
   the columns are asked, which have kept what they need to catch up.
3. A streak's arrays are its own: they are written to, and never handed out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from policyengine.framework.cached_column import Column, ColumnCache
from policyengine.framework.changes import Changes
from policyengine.framework.leaders import Leaders, Ring
from policyengine.framework.normal_score import Scorer
from policyengine.framework.plugin import UNCONCERNED, Scores
from policyengine.framework.status import Code

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.framework.judgement import Judgement
    from policyengine.framework.ranking import Ranking

_OUT = int(np.iinfo(np.int64).min)
"""The total of a row that is not feasible."""
MOST = 256
"""Rows that are looked at again; after a larger burst of events the columns do it as fast."""


class Streak:
    """A run of identical pods, one of which was just decided. Made by `begin`."""

    def __init__(self, pod: PodInfo, changes: Changes, ring: Callable[[], Ring]) -> None:
        self._pod = pod
        """The one it began with."""
        self._table = changes.snapshot.nodes
        self._node_position = changes.node_position
        self._pod_position = changes.pod_position
        self._ring = ring
        self._signatures, self._template_signatures = _Signatures(), _Signatures()
        """Together those of every plugin, whether it is concerned or not: another pod may concern others. The latter
        are the same for all pods of one template."""
        self._watched: list[tuple[ColumnCache, Hashable, Column]] = []
        """Columns that must stay what they are, though pods or other objects are read for them."""
        self._filters: list[tuple[ColumnCache, Column]] = []
        self._scorers: list[tuple[Scorer, Column]] = []
        """What is asked about changed rows."""
        self._is_steady = True
        """Whether a row that becomes feasible, or is not any more, leaves the scores of others what they are."""
        self._fixed: NDArray[np.bool_] = np.ones(changes.n, dtype=np.bool_)
        """The rows that all other filters let pass."""
        self._base: Scores = np.zeros(changes.n, dtype=np.int64)
        """What all other scores add up to."""
        self._total: Scores
        self._leaders: Leaders
        self.length = 0
        """Pods chosen for so far."""

    @staticmethod
    def begin(
        filters: Sequence[ColumnCache],
        scorers: Sequence[Scorer],
        pod: PodInfo,
        changes: Changes,
        judgement: Judgement,
        ranking: Ranking,
        ring: Callable[[], Ring],
    ) -> Streak | None:
        """The streak of a pod just judged and ranked; None where a plugin's part cannot be carried on."""
        streak = Streak(pod, changes, ring)
        for cache in filters:
            if not streak._join_filter(cache, pod, changes):
                return None
        shares = {share.plugin: share for share in ranking.shares}
        for scorer in scorers:
            signature = scorer.signature(pod)
            streak._note(scorer.columns, signature)
            if signature is UNCONCERNED:
                continue
            share = shares.get(scorer.plugin.name)
            if scorer.sees_feasible or not (scorer.keeps_scores or share is None):
                return None
            column = scorer.columns.column(signature, pod, changes)
            is_local = scorer.columns.follows_pods and scorer.columns.looks_at_rows_alone
            if share is not None and is_local and scorer.is_pointwise:
                streak._scorers.append((scorer, column))
                continue
            streak._watch(scorer.columns, signature, column)
            if share is not None:
                streak._is_steady &= scorer.is_steady(column)
                streak._base += share.scores * share.weight
        if not streak._agrees(judgement):
            return None
        streak._total = np.full(changes.n, _OUT, dtype=np.int64)
        streak._total[judgement.feasible] = ranking.total
        streak._find_leaders()
        return streak

    def _agrees(self, judgement: Judgement) -> bool:
        """Whether the filters alone made the judgement, and nobody took nodes out of it."""
        passing = self._fixed
        for _, column in self._filters:
            passing = passing & (column.values == 0)
        return int(np.count_nonzero(passing)) == len(judgement.feasible)

    def _join_filter(self, cache: ColumnCache, pod: PodInfo, changes: Changes) -> bool:
        signature = cache.signature(pod)
        self._note(cache, signature)
        if signature is UNCONCERNED:
            return True
        column = cache.column(signature, pod, changes)
        if column.status.code is not Code.SUCCESS:
            self._watch(cache, signature, column)
        elif cache.narrowing is not None and cache.narrowing.narrow(column.state) is not None:
            return False
        elif cache.follows_pods and cache.looks_at_rows_alone:
            self._filters.append((cache, column))
        else:
            self._watch(cache, signature, column)
            self._fixed &= column.values == 0
        return True

    def _note(self, cache: ColumnCache, signature: Hashable) -> None:
        (self._template_signatures if cache.of_template else self._signatures).add(cache.signature, signature)

    def _is_like(self, pod: PodInfo) -> bool:
        """Whether the pod has the signatures of the one before, for every plugin."""
        first = self._pod
        is_of_template = (
            pod.shape is first.shape
            and pod.labels is first.labels
            and pod.namespace is first.namespace
            and pod.owner_references is first.owner_references
        )
        return (is_of_template or self._template_signatures.are_of(pod)) and self._signatures.are_of(pod)

    def _watch(self, cache: ColumnCache, signature: Hashable, column: Column) -> None:
        if cache.follows_pods or not cache.looks_at_rows_alone:
            self._watched.append((cache, signature, column))

    def next(self, pod: PodInfo, changes: Changes) -> int | None:
        """The row for the next pod; None where the streak is over."""
        if changes.node_position != self._node_position or changes.snapshot.nodes is not self._table:
            return None
        if pod.shape.problem is not None or not self._is_like(pod):
            return None
        rows = changes.snapshot.pod_journal.listed_since(self._pod_position)
        if rows is None or len(rows) > MOST:
            return None
        for cache, signature, column in self._watched:
            if not cache.stays(column, signature, pod, changes):
                return None
        if rows and not self._catch_up(changes, rows):
            return None
        self._pod_position = changes.pod_position
        self.length += 1
        return self._leaders.after(pod.uid)

    def _catch_up(self, changes: Changes, rows: Sequence[int]) -> bool:
        """Judge and score the rows again; False where that is not all there is to do."""
        verdicts = [cache.passes_at(column, changes, rows) for cache, column in self._filters]
        scores = [(scorer.weight, scorer.scaled_at(column, changes, rows)) for scorer, column in self._scorers]
        for place, row in enumerate(rows):
            passes = self._fixed.item(row) and False not in [verdict[place] for verdict in verdicts]
            if passes != (self._total.item(row) != _OUT) and not self._is_steady:
                return False
            total = self._base.item(row) + sum([weight * score[place] for weight, score in scores])
            self._total[row] = total if passes else _OUT
        return self._leaders.keep_up(rows, self._total) or self._find_leaders()

    def _find_leaders(self) -> bool:
        """Look for the best rows of all; False where none is feasible."""
        best = int(self._total.max())
        tied = np.flatnonzero(self._total == best)
        self._leaders = Leaders(self._ring(), np.arange(len(self._total)), tied, best, self._node_position)
        return best != _OUT


class _Signatures:
    """How some plugins' signatures of a pod are had, and what they are."""

    __slots__ = ("_of", "_values")

    def __init__(self) -> None:
        self._of: list[Callable[[PodInfo], Hashable]] = []
        self._values: list[Hashable] = []

    def add(self, of: Callable[[PodInfo], Hashable], value: Hashable) -> None:
        """One more plugin."""
        self._of.append(of)
        self._values.append(value)

    def are_of(self, pod: PodInfo) -> bool:
        """Whether the pod has the same."""
        return [of(pod) for of in self._of] == self._values
