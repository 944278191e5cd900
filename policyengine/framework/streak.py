"""Identical pods one after another: what the last decision found, carried on in the rows that changed since.

Most pods come in runs made from one template, and between two of a run little happens: the pod before took its place, a
watch event or two came. So from the second of a run on only those rows are judged and scored again; the best rows are
kept by `Leaders`. Where pods are counted over domains, or scores are scaled by all feasible nodes, the rows that this
moves are patched too (`carried`). Such a decision costs little that grows with nodes.

Rules:
1. What is answered is what `Evaluator.judge` and `rank` would answer.
2. Where that would take more than a look at the rows where pods came or went, and at those that follow from them
   (another pod, a node or an object that changed, a score that is told which nodes are feasible), nothing is
   answered. The streak is over, and the columns are asked, which have kept what they need to catch up.
3. A streak's arrays are its own: they are written to, and never handed out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from policyengine.framework.cached_column import ColumnCache
from policyengine.framework.carried import CarriedFilter, CarriedScore, Touched
from policyengine.framework.carried_domains import CarriedDomains
from policyengine.framework.changes import Changes
from policyengine.framework.leaders import Leaders, Ring
from policyengine.framework.likeness import Likeness
from policyengine.framework.normal_score import Scorer
from policyengine.framework.plugin import UNCONCERNED, Scores
from policyengine.framework.resting import RestingColumns
from policyengine.framework.row_answers import RowAnswers
from policyengine.framework.scoring import Share
from policyengine.framework.status import Code, Rows

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.framework.filtering import Diagnosis
    from policyengine.framework.scoring import NodeScores

_OUT = int(np.iinfo(np.int64).min)
"""The total of a row that is not feasible."""
MOST = 256
"""Rows that are looked at again; after a larger burst of events the columns do it as fast."""


class Streak:
    """A run of identical pods, one of which was just decided. Made by `begin`."""

    def __init__(self, pod: PodInfo, changes: Changes, ring: Callable[[], Ring]) -> None:
        self._likeness = Likeness(pod)
        self._table = changes.snapshot.nodes
        self._node_position = changes.node_position
        self._pod_position = changes.pod_position
        self._ring = ring
        self._resting = RestingColumns(changes)
        """What has nothing to say of single rows."""
        self._answers = RowAnswers()
        """What looks at nothing beyond a row: it is asked about changed rows alone."""
        self._carried_filters: list[CarriedFilter] = []
        self._carried_scores: list[CarriedScore | CarriedDomains] = []
        """What looks beyond a row."""
        self._rows: Rows = np.arange(changes.n)
        self._fixed: NDArray[np.bool_] = np.ones(changes.n, dtype=np.bool_)
        """The rows that all other filters let pass."""
        self._base: Scores = np.zeros(changes.n, dtype=np.int64)
        """What all scores but those of `_answers` add up to; those of `_carried_scores` move it."""
        self._alone: Scores
        """What the scores of `_answers` add up to."""
        self._admitted: NDArray[np.bool_]
        """The rows that all filters but `_carried_filters` let pass."""
        self._feasible: NDArray[np.bool_]
        self._feasible_rows: Rows
        """The rows that all filters let pass; as numbers kept for `_carried_scores` alone."""
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
        diagnosis: Diagnosis,
        node_scores: NodeScores,
        ring: Callable[[], Ring],
    ) -> Streak | None:
        """The streak of a pod just judged and ranked; None where a plugin's part cannot be carried on."""
        streak = Streak(pod, changes, ring)
        for cache in filters:
            if not streak._join_filter(cache, pod, changes):
                return None
        if not streak._agrees(diagnosis):
            return None
        shares = {share.plugin: share for share in node_scores.shares}
        for scorer in scorers:
            if not streak._join_scorer(scorer, shares.get(scorer.plugin.name), pod, changes):
                return None
        by_row = node_scores.by_row
        streak._alone = np.zeros(changes.n, dtype=np.int64) if by_row is None else by_row.values - streak._base
        streak._total = np.where(streak._feasible, streak._base + streak._alone, _OUT)
        streak._open()
        streak._find_leaders()
        return streak

    def _join_filter(self, cache: ColumnCache, pod: PodInfo, changes: Changes) -> bool:
        signature = cache.signature(pod)
        self._likeness.note(cache, signature)
        if signature is UNCONCERNED:
            return True
        column = cache.column(signature, pod, changes)
        if column.status.code is not Code.SUCCESS:
            self._resting.add(cache, signature, column, changes)
        elif cache.narrowing is not None and cache.narrowing.narrow(column.state) is not None:
            return False
        elif cache.follows_pods and cache.looks_at_rows_alone:
            self._answers.add_filter(cache, column, changes)
        elif cache.follows_pods and not cache.idles(column, changes):
            self._carried_filters.append(CarriedFilter(cache, signature, column))
        else:
            self._resting.add(cache, signature, column, changes)
            self._fixed &= column.values == 0
        return True

    def _join_scorer(self, scorer: Scorer, share: Share | None, pod: PodInfo, changes: Changes) -> bool:
        cache, signature = scorer.columns, scorer.signature(pod)
        self._likeness.note(cache, signature)
        if signature is UNCONCERNED:
            return True
        if scorer.sees_feasible or not (scorer.keeps_scores or share is None):
            return False
        column = cache.column(signature, pod, changes)
        if share is None:
            self._resting.add(cache, signature, column, changes)
        elif cache.follows_pods and cache.looks_at_rows_alone and scorer.is_pointwise:
            self._answers.add_scorer(scorer, column, changes)
        else:
            self._base += share.scores * share.weight
            if not cache.follows_pods:
                self._resting.add(cache, signature, column, changes)
            if cache.follows_pods or not scorer.is_steady(column):
                parts = scorer, signature, column, share.scores, self._feasible_rows
                by_domain = CarriedDomains.of(*parts, self._table) if cache.follows_pods else None
                self._carried_scores.append(by_domain or CarriedScore(*parts))
        return True

    def _agrees(self, diagnosis: Diagnosis) -> bool:
        """Whether the filters alone made the diagnosis, and nobody took nodes out of it."""
        admitted = self._answers.admitted(self._fixed)
        feasible = admitted.copy()
        for part in self._carried_filters:
            feasible &= part.passing
        self._admitted, self._feasible, self._feasible_rows = admitted, feasible, diagnosis.feasible
        return int(np.count_nonzero(feasible)) == len(diagnosis.feasible)

    def _open(self) -> None:
        """Have the arrays at hand element by element as well: that takes a third of the time."""
        if not self._carried_filters and not self._carried_scores:
            self._feasible = self._admitted
        self._fixed_at, self._admitted_at, self._feasible_at = (
            self._fixed.data,
            self._admitted.data,
            self._feasible.data,
        )
        self._base_at, self._alone_at, self._total_at = self._base.data, self._alone.data, self._total.data

    def next(self, pod: PodInfo, changes: Changes) -> int | None:
        """The row for the next pod; None where the streak is over."""
        if changes.node_position != self._node_position or changes.snapshot.nodes is not self._table:
            return None
        if not self._likeness.is_shared_by(pod):
            return None
        since = self._pod_position
        rows = self._table.pod_journal.listed_since(since)
        if rows is None or len(rows) > MOST or not self._resting.stay(pod, changes, rows, since):
            return None
        if not self._catch_up(pod, changes, rows):
            return None
        self._pod_position = changes.pod_position
        self.length += 1
        return self._leaders.after(pod.uid)

    def _catch_up(self, pod: PodInfo, changes: Changes, rows: list[int]) -> bool:
        """Judge and score again what may be different; False where that is not all there is to do."""
        if rows:
            self._look_at(changes, rows)
        if not self._carried_filters and not self._carried_scores:
            return self._put(rows) or self._find_leaders()
        touched = _Dirty(rows)
        for filtering in self._carried_filters:
            if not touched.add(filtering.catch_up(pod, changes, rows, self._pod_position)):
                return False
        is_same_set = not self._judge_again(touched)
        if self._carried_scores and not is_same_set:
            self._feasible_rows = np.flatnonzero(self._feasible)
            if len(self._feasible_rows) == 0:
                return False
        for scoring in self._carried_scores:
            feasible = self._feasible_rows, is_same_set
            if not touched.add(scoring.catch_up(pod, changes, rows, self._pod_position, *feasible, self._base)):
                return False
        return self._add_up(touched) or self._find_leaders()

    def _look_at(self, changes: Changes, rows: list[int]) -> None:
        """Ask those that look at rows alone."""
        fixed, admitted, alone = self._fixed_at, self._admitted_at, self._alone_at
        for row, (passes, score) in zip(rows, self._answers.of(changes, rows), strict=True):
            admitted[row] = passes and fixed[row]
            alone[row] = score

    def _judge_again(self, touched: _Dirty) -> bool:
        """Put the verdicts on the rows together; whether another set of rows is feasible now."""
        parts, feasible, changed = self._carried_filters, self._feasible, False
        for row in touched.few:
            passes = self._admitted_at[row] and False not in [part.passing.item(row) for part in parts]
            if passes != self._feasible_at[row]:
                self._feasible_at[row] = passes
                changed = True
        for rows in touched.many:
            passing = self._admitted[rows]
            for part in parts:
                passing &= part.passing[rows]
            if not np.array_equal(passing, feasible[rows]):
                feasible[rows] = passing
                changed = True
        return changed

    def _add_up(self, touched: _Dirty) -> bool:
        """Put the scores of the rows together; whether any of the best rows is still known."""
        total, base, alone, feasible = self._total, self._base, self._alone, self._feasible
        if touched.count > len(total) // 2:
            np.add(base, alone, out=total)
            total[~feasible] = _OUT
            return False
        for rows in touched.many:
            total[rows] = np.where(feasible[rows], base[rows] + alone[rows], _OUT)
            self._leaders.keep_up_with_many(rows, total)
        return self._put(touched.few)

    def _put(self, rows: Sequence[int]) -> bool:
        """Put the scores of few rows together; whether any of the best rows is still known."""
        total, base, alone, feasible = self._total_at, self._base_at, self._alone_at, self._feasible_at
        leaders = self._leaders
        for row in rows:
            score = total[row] = base[row] + alone[row] if feasible[row] else _OUT
            leaders.put(row, score)
        return leaders.are_known

    def _find_leaders(self) -> bool:
        """Look for the best rows of all; False where none is feasible."""
        best = int(self._total.max())
        tied = np.flatnonzero(self._total == best)
        self._leaders = Leaders(self._ring(), self._rows, tied, best, self._node_position)
        return best != _OUT


class _Dirty:
    """Rows to look at again; one may be among them twice."""

    __slots__ = ("few", "many")

    def __init__(self, rows: list[int]) -> None:
        self.few = rows
        """To be gone through one by one."""
        self.many: list[Rows] = []

    @property
    def count(self) -> int:
        """How many they are, one that is there twice counted twice."""
        return sum([len(rows) for rows in self.many], len(self.few))

    def add(self, rows: Touched | None) -> bool:
        """Look at these too; False where there is no telling."""
        if rows is None:
            return False
        if isinstance(rows, np.ndarray):
            self.many.append(rows)
        elif rows:
            self.few = [*self.few, *rows]
        return True
