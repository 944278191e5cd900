"""One plugin's normalised scores for a decision, rescaling only what changed since the last one like it.

Rule: the scores handed out equal `normalize(raw scores of the feasible rows)`, whatever was kept.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from policyengine.framework.cached_column import score_columns
from policyengine.framework.changes import Changes
from policyengine.framework.column import Array, Column
from policyengine.framework.kept import Kept
from policyengine.framework.plugin import (
    DomainScorePlugin,
    FeasibleScorePlugin,
    RowScore,
    ScaledScorePlugin,
    ScorePlugin,
    Scores,
    extends,
)
from policyengine.framework.scoring import Share
from policyengine.framework.status import Code, Rows, State

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo


@dataclass(slots=True, eq=False)
class _Normal:
    """The share that followed from one raw column, seen from one feasible set, at one scale."""

    column: Column
    feasible: Rows
    scale: Hashable
    share: Share


class Scorer:
    """A score plugin with its weight and its columns."""

    def __init__(self, plugin: ScorePlugin, weight: int, size: int) -> None:
        self.plugin = plugin
        self.weight = weight
        self.signature = plugin.signature
        self._per_feasible_set = plugin if extends(plugin, FeasibleScorePlugin) else None
        self._by_row = plugin if extends(plugin, RowScore) else None
        self._scaled = plugin if extends(plugin, ScaledScorePlugin) else None
        self.domains = plugin if extends(plugin, DomainScorePlugin) else None
        self.columns = score_columns(plugin, size)
        self._normal: Kept[_Normal] = Kept(size)
        self._numbers = count(1)

    @property
    def sees_feasible(self) -> bool:
        """Whether the plugin is told which nodes are feasible; nothing of it is kept."""
        return self._per_feasible_set is not None

    @property
    def keeps_scores(self) -> bool:
        """Whether the scores of a decision are kept over the whole table, and scaled row by row."""
        return self._scaled is not None and not self.sees_feasible

    @property
    def is_pointwise(self) -> bool:
        """Whether each score is scaled by itself."""
        return self._scaled is not None and self._scaled.pointwise

    def is_steady(self, column: Column) -> bool:
        """Whether scaled scores stay what they are when a row becomes feasible, or is not any more."""
        raw = column.values
        return self.is_pointwise or not len(raw) or bool(raw.min() == raw.max())

    def scaled_at(self, column: Column, changes: Changes, rows: Rows) -> Scores:
        """The scores of a few rows, of a plugin that scales each by itself."""
        return self.scaled(column.state, self.columns.at(column, changes, rows))

    def row_score(self, column: Column, changes: Changes) -> Callable[[int], int] | None:
        """Says of a row what the plugin scores it, until a Node changes; None where it cannot."""
        return None if self._by_row is None else self._by_row.row_score(column.state, changes.snapshot)

    def scale_of(self, column: Column, raw: Array) -> Hashable:
        """What scaling takes from the raw scores of all feasible rows; None where each is scaled by itself."""
        assert self._scaled is not None
        return None if self._scaled.pointwise else self._scaled.scale(column.state, raw)

    def rescaled(self, column: Column, scale: Hashable, raw: Array) -> Scores:
        """Raw scores to 0..100, at such a scale."""
        assert self._scaled is not None
        return self._scaled.rescale(column.state, scale, raw)

    def scaled(self, state: State, raw: NDArray[np.generic]) -> Scores:
        """The scores of raw ones, of a plugin that scales each by itself."""
        assert self._scaled is not None
        return self._scaled.rescale(state, None, raw)

    def share(self, signature: Hashable, pod: PodInfo, changes: Changes, feasible: Rows) -> Share | None:
        """The normalised scores of the feasible rows, never none of them; None when the plugin is skipped."""
        if self._per_feasible_set is not None:
            return self._computed(self._per_feasible_set, pod, changes, feasible)
        column = self.columns.column(signature, pod, changes)
        if column.status.code is not Code.SUCCESS:
            return None
        if self._scaled is not None:
            return self._rescaled(self._scaled, signature, column, feasible)
        raw = column.values if len(feasible) == changes.n else column.values[feasible]
        return Share(self.plugin.name, self.weight, self.plugin.normalize(column.state, raw), False)

    def _computed(self, plugin: FeasibleScorePlugin, pod: PodInfo, changes: Changes, feasible: Rows) -> Share | None:
        status, state = plugin.pre_score_feasible(pod, changes.snapshot, feasible)
        if not status.is_success:
            return None
        raw = plugin.score(state, changes.snapshot, feasible)
        return Share(plugin.name, self.weight, plugin.normalize(state, raw), False)

    def _rescaled(self, plugin: ScaledScorePlugin, signature: Hashable, column: Column, feasible: Rows) -> Share:
        known = self._normal.get(signature)
        if known is not None and known.column is column and (known.feasible is feasible or plugin.pointwise):
            return known.share
        raw, scale = column.values, None
        if plugin.pointwise:
            if known is not None and known.share.scores is known.column.values:
                return self._as_it_is(plugin, signature, column, feasible, known)
        else:
            scale = plugin.scale(column.state, raw if len(feasible) == len(raw) else raw[feasible])
        if known is None or known.scale != scale:
            share = self._share(plugin.rescale(column.state, scale, raw))
        elif known.column is column:
            share = known.share
        elif column.based_on == known.column.version:
            scores = known.share.scores.copy()
            scores[column.patched] = plugin.rescale(column.state, scale, raw[column.patched])
            share = self._share(scores, known.share.number, column.patched)
        else:
            share = self._share(plugin.rescale(column.state, scale, raw))
        self._normal.put(signature, _Normal(column, feasible, scale, share))
        return share

    def _as_it_is(
        self, plugin: ScaledScorePlugin, signature: Hashable, column: Column, feasible: Rows, known: _Normal
    ) -> Share:
        """A pointwise score that was handed back unchanged, most likely will be again: nothing is copied then."""
        scores = plugin.rescale(column.state, None, column.values)
        patched = scores is column.values and column.based_on == known.column.version
        share = self._share(scores, known.share.number, column.patched) if patched else self._share(scores)
        self._normal.put(signature, _Normal(column, feasible, None, share))
        return share

    def _share(self, scores: Scores, based_on: int = 0, patched: Rows | None = None) -> Share:
        return Share(self.plugin.name, self.weight, scores, True, next(self._numbers), based_on, patched)
