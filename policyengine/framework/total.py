"""The inner nodes of the evaluator's graph: which nodes are feasible, what each scores, and the best of them.

    filter columns ─> FeasibleNodes ─┬────────────────────────────┐
                                     ├─> NormalizedScores ─┐      │
    score columns ───────────────────┴─────────────────────┴─> TotalScores ─> BestNodes

Each is brought up to date by asking what changed in the arrays it is derived from, and notes in its own log what that
changed in it. `values` are patched in place; whoever keeps them beyond the decision copies them. Another array, or
another status, is noted as everything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.changes import FEW, ChangeLog, Changes, Reader
from policyengine.framework.plugin import NormalizedScorePlugin, Scores
from policyengine.framework.plugin_column import PluginColumn
from policyengine.framework.scoring import INFEASIBLE, SCORED, SHOWN, BestNodes, Choice, Ring, leaders
from policyengine.framework.status import Code, Rows, Status

Mask = NDArray[np.bool_]


class FeasibleNodes:
    """The nodes that every filter lets pass."""

    def __init__(self, columns: Sequence[PluginColumn]) -> None:
        """`columns`: of the filters that the pod concerns, in the profile's order."""
        self.columns = columns
        self.log = ChangeLog()
        self.refused: Status | None = None
        """The refusal of the pod as a whole; `mask` says nothing then."""
        self.narrowed: list[tuple[str, frozenset[str]]] = []
        """The `narrowings` of the mask."""
        self._left_out: Mask = np.zeros(0, dtype=np.bool_)
        """The nodes that they leave out."""
        self.mask: Mask = np.zeros(0, dtype=np.bool_)
        self.count = 0
        """How many nodes are feasible."""
        self.fails = False
        """Whether a filter answered with an Error for a node that those before it let pass: then the attempt fails,
        whatever other nodes say (`findNodesThatPassFilters`, schedule_one.go, v1.36)."""
        self._rows: Rows | None = None
        self._reader = Reader([column.log for column in columns])
        self._narrowing = [column for column in columns if column.source.narrowing is not None]

    @property
    def rows(self) -> Rows:
        """The feasible rows, ascending; a new array after each change."""
        if self._rows is None:
            self._rows = self.mask.nonzero()[0]
        return self._rows

    def ask(self, pod: PodInfo, changes: Changes) -> bool:
        """Bring the filters' columns up to date, to the one that refuses the pod for good; whether none refuses it."""
        self.refused = None
        for column in self.columns:
            column.update(pod, changes)
            code = column.status.code
            if code is not Code.SUCCESS and code is not Code.SKIP:
                self.refused = column.status
                if code is not Code.UNSCHEDULABLE:
                    break
        return self.refused is None

    def update(self, pod: PodInfo, changes: Changes) -> bool:
        """Bring the mask up to date; whether any node is feasible."""
        if not self.ask(pod, changes):
            return False
        changed = self._reader.changed()
        if changed is None or changes.n != len(self.mask) or self.narrowed:
            self._compute(changes)
        elif len(changed):
            self._patch(changed)
        return self.count > 0 and not self.fails

    def _has_error(self) -> bool:
        """`fails`, by the columns as they are."""
        columns = self.verdicts
        if not any(refusal.code is Code.ERROR for column in columns for refusal in column.refusals):
            return False
        left = ~self._left_out if self.narrowed else np.ones(len(self.mask), dtype=np.bool_)
        for column in columns:
            is_error = np.array([False, *(refusal.code is Code.ERROR for refusal in column.refusals)])
            if (is_error[column.values] & left).any():
                return True
            left &= column.values == 0
        return False

    @property
    def verdicts(self) -> list[PluginColumn]:
        """The columns that refuse a row."""
        return [column for column in self.columns if column.refused and column.status.code is Code.SUCCESS]

    def refusers(self) -> tuple[tuple[str, int], ...]:
        """(plugin, nodes that it refuses), as `Diagnosis.refused` has it."""
        found = tuple([(column.plugin, column.refused) for column in self.verdicts])
        if not self.narrowed:
            return found
        return (min(plugin for plugin, _ in self.narrowed), int(np.count_nonzero(self._left_out))), *found

    def narrowings(self) -> list[tuple[str, frozenset[str]]]:
        """(plugin, the only nodes that its PreFilter left), by the columns as they are."""
        return [
            (column.plugin, names)
            for column in self._narrowing
            if column.source.narrowing is not None
            and column.status.code is Code.SUCCESS
            and (names := column.source.narrowing.narrow(column.state)) is not None
        ]

    def _compute(self, changes: Changes) -> None:
        mask: Mask = np.ones(changes.n, dtype=np.bool_)
        for column in self.verdicts:
            mask &= column.values == 0
        self.narrowed = self.narrowings()
        if self.narrowed:
            table = changes.snapshot.nodes
            left = frozenset.intersection(*(names for _, names in self.narrowed))
            named = np.zeros(changes.n, dtype=np.bool_)
            named[[table.row_of[name] for name in left if name in table.row_of]] = True
            mask &= named
            self._left_out = ~named
        self.mask, self._rows = mask, None
        self.count = int(np.count_nonzero(mask))
        self.fails = self._has_error()
        self.log.note(None)

    def _patch(self, rows: Rows) -> None:
        passes: Mask = np.ones(len(rows), dtype=np.bool_)
        for column in self.verdicts:
            passes &= column.values[rows] == 0
        self.fails = self._has_error()
        before = self.mask[rows]
        changed = rows[passes != before]
        if len(changed):
            self.mask[rows], self._rows = passes, None
            self.count += int(np.count_nonzero(passes)) - int(np.count_nonzero(before))
            self.log.note(changed)


class NormalizedScores:
    """A plugin whose scores follow from the raw scores of all feasible nodes: 0..100 a node, 0 for the infeasible."""

    def __init__(self, column: PluginColumn, plugin: NormalizedScorePlugin, feasible: FeasibleNodes) -> None:
        self.column = column
        self.log = ChangeLog()
        self.values: Scores = np.zeros(0, dtype=np.int64)
        self._plugin = plugin
        self._feasible = feasible
        self._reader = Reader((column.log, feasible.log))

    @property
    def plugin(self) -> str:
        """The plugin's name."""
        return self.column.plugin

    @property
    def status(self) -> Status:
        """SKIP: the plugin has nothing to say."""
        return self.column.status

    def update(self, pod: PodInfo, changes: Changes) -> None:
        """Bring the scores up to date; some node is feasible, and known to be."""
        self.column.update(pod, changes)
        if self.column.status.code is not Code.SUCCESS:
            if len(self.values):
                self.values = self.values[:0]
                self.log.note(None)
            return
        changed = self._reader.changed()
        if changed is not None and len(changed) == 0:
            return
        try:
            self._put(normalized(self._plugin, self.column, self._feasible), changes.n)
        except Exception:
            self._reader.forget()
            raise

    def _put(self, scores: Scores, n: int) -> None:
        values = scores
        if len(scores) != n:
            values = np.zeros(n, dtype=np.int64)
            values[self._feasible.rows] = scores
        if len(self.values) != n:
            self.values = values
            self.log.note(None)
            return
        changed = (values != self.values).nonzero()[0]
        if len(changed):
            self.values[changed] = values[changed]
            self.log.note(changed)


def normalized(plugin: NormalizedScorePlugin, column: PluginColumn, feasible: FeasibleNodes) -> Scores:
    """`int64[feasible]`"""
    raw = column.values
    return plugin.normalize(column.state, raw if feasible.count == len(raw) else raw[feasible.rows])


def _share(column: PluginColumn, feasible: FeasibleNodes) -> PluginColumn | NormalizedScores:
    """Scores of 0..100 a node: what a plugin that does not normalise says, as it is."""
    plugin = column.source.normalizing
    return column if plugin is None else NormalizedScores(column, plugin, feasible)


@lru_cache(256)
def _one_object(shares: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    """The same for equal ones, since every choice keeps one."""
    return shares


class TotalScores:
    """The sum of the weighted scores of each feasible node, for the pods of one signature."""

    def __init__(self, feasible: FeasibleNodes, columns: Sequence[tuple[PluginColumn, int]]) -> None:
        """`columns`: of the scores that the pod concerns, each with its weight."""
        self.feasible = feasible
        self.columns = columns
        self._shares = [(_share(column, feasible), weight) for column, weight in columns]
        self.values: Scores = np.zeros(0, dtype=np.int64)
        """`int64[nodes]`, `INFEASIBLE` for those that are not."""
        self._counted: list[tuple[Scores, int]] = []
        """The scores of the plugins that have something to say, with their weights; patched where they are."""
        self._said: tuple[tuple[str, int], ...] = ()
        """(plugin, weight) of each of them."""
        self._items: list[Callable[[int], int]] = []
        """Row -> score, of each of them."""
        self._reader = Reader([feasible.log, *[scores.log for scores, _ in self._shares]])
        self._best: BestNodes | None = None
        self._is_kept = False
        """Whether these totals were patched: then keeping the best of them pays."""

    def update(self, pod: PodInfo, changes: Changes) -> None:
        """Bring the totals up to date, those of the feasible nodes being known: at least one."""
        for scores, _ in self._shares:
            scores.update(pod, changes)
        changed = self._reader.changed()
        if changed is None or len(self.values) != changes.n or 2 * len(changed) > changes.n:
            self._compute(changes.n)
        elif len(changed):
            self._patch(changed)

    def choose(self, ring: Ring, pod_uid: str, names: Sequence[str]) -> Choice:
        """The node that the pod takes, of several."""
        values, count, best = self.values, self.feasible.count, self._best
        if self._is_kept and (best is None or best.ring is not ring):
            best = self._best = BestNodes(ring, values)
        row = ring.next_best(values, pod_uid) if best is None else best.next(pod_uid)
        many = best is not None and best.count >= SHOWN
        rows = best.with_others(row, SHOWN) if best is not None and many else leaders(values, row, count)
        refused = () if count == len(values) else self.feasible.refusers()
        scores = tuple([item(row) for row in rows for item in self._items])
        return Choice(SCORED, len(values), count, refused, tuple([names[row] for row in rows]), self._said, scores)

    def _compute(self, n: int) -> None:
        speaking = [(scores, weight) for scores, weight in self._shares if scores.status.code is Code.SUCCESS]
        self._counted = [(scores.values, weight) for scores, weight in speaking]
        self._said = _one_object(tuple([(scores.plugin, weight) for scores, weight in speaking]))
        self._items = [values.item for values, _ in self._counted]
        total: Scores = np.zeros(n, dtype=np.int64)
        for values, weight in self._counted:
            total += values * weight if weight != 1 else values
        if self.feasible.count != n:
            total[~self.feasible.mask] = INFEASIBLE
        self.values, self._best, self._is_kept = total, None, False

    def _patch(self, rows: Rows) -> None:
        self._is_kept = True
        counted, mask = self._counted, self.feasible.mask
        if len(rows) > FEW:
            total: Scores = np.zeros(len(rows), dtype=np.int64)
            for values, weight in counted:
                total += values[rows] * weight
            total[~mask[rows]] = INFEASIBLE
            self.values[rows] = total
            self._best = None
            return
        for row in rows.tolist():
            score = INFEASIBLE
            if mask.item(row):
                score = sum([values.item(row) * weight for values, weight in counted])
            self.values[row] = score
            if self._best is not None:
                self._best.put(row, score)
        if self._best is not None and not self._best.count:
            self._best = None
