"""Columns of verdicts and raw scores, kept per pod signature and patched where the cluster changed.

Rules of this file:
1. A column answers for the snapshot it was last asked with, exactly as a column computed afresh would.
2. The arrays of a column are never written to once handed out; a patch makes a new array. So a `Diagnosis` keeps
   its meaning while later cycles move on.
3. Where a journal cannot say what changed, the column is computed again in full.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from policyengine.framework.changes import NO_ROWS, Changes
from policyengine.framework.column import Array, Column
from policyengine.framework.kept import Kept
from policyengine.framework.plugin import (
    DomainPlugin,
    FilterPlugin,
    IdlePlugin,
    NarrowingPlugin,
    ObjectReader,
    Plugin,
    Reads,
    RowFilter,
    ScorePlugin,
    SituationReader,
    TemplateReader,
    TopologyPlugin,
    extends,
)
from policyengine.framework.rows import FEW
from policyengine.framework.status import Code, Refusal, Rows, State, Status

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.cluster.snapshot import Snapshot

Prepare = Callable[["PodInfo", "Snapshot"], tuple[Status, State]]
Compute = Callable[[State, "Snapshot", Rows], tuple[Array, Sequence[Refusal]]]


class ColumnCache:
    """All columns of one plugin at one extension point, by signature."""

    def __init__(
        self, plugin: FilterPlugin | ScorePlugin, prepare: Prepare, compute: Compute, size: int, judges: bool
    ) -> None:
        """`judges`: the columns are verdicts, not scores."""
        self.plugin = plugin
        self._judges = judges
        self.signature = plugin.signature
        self.of_template = extends(plugin, TemplateReader) and plugin.of_template
        """Whether all pods of one template have one signature here."""
        self._prepare = prepare
        self._compute = compute
        self._reads = plugin.reads
        self._follows_pods = Reads.PODS in plugin.reads
        self._topology: TopologyPlugin | None = plugin if extends(plugin, TopologyPlugin) else None
        self._domains: DomainPlugin | None = plugin if extends(plugin, DomainPlugin) else None
        self._idle: IdlePlugin | None = plugin if extends(plugin, IdlePlugin) else None
        self._kinds: tuple[str, ...] = _kinds(plugin)
        self._situation = plugin.situation if extends(plugin, SituationReader) else None
        self._reads_beside = bool(self._kinds) or self._situation is not None
        self._row_filter: RowFilter | None = plugin if extends(plugin, RowFilter) else None
        self.narrowing: NarrowingPlugin | None = plugin if extends(plugin, NarrowingPlugin) else None
        self._columns: Kept[Column] = Kept(size)
        self._versions = count()
        self.asked = 0
        """How often a column was asked for."""
        self.computed = 0
        """How often one was worked out for it, whole or patched."""

    def column(self, signature: Hashable, pod: PodInfo, changes: Changes) -> Column:
        """The plugin's column for the pod, whose signature it is, at the snapshot of `changes`."""
        self.asked += 1
        column = self._columns.get(signature)
        if column is None or (self._reads_beside and not self._holds(column, pod, changes)):
            column = self._fresh(pod, changes)
            self._columns.put(signature, column)
            return column
        if column.settled or (
            not column.behind
            and column.node_position == changes.node_position
            and (column.pod_position == changes.pod_position or not self._follows_pods)
        ):
            return column
        if self._situation is not None and self._is_said(column):
            return column  # another situation would have been asked about anew
        updated = self._updated(column, pod, changes)
        if updated is not column:
            self._columns.put(signature, updated)
        return updated

    @property
    def looks_at_rows_alone(self) -> bool:
        """Whether an answer for a row follows from the pod, the node and the pods on it."""
        return self._topology is None and not self._reads_beside and self.narrowing is None

    @property
    def counts(self) -> bool:
        """Whether a row's answer depends on other rows, by a state that is maintained."""
        return self._topology is not None

    @property
    def follows_pods(self) -> bool:
        """Whether the pods on the nodes are read."""
        return self._follows_pods

    def stays(self, column: Column, signature: Hashable, pod: PodInfo, changes: Changes) -> bool:
        """Whether the column is what `column` would answer now, having been that before."""
        if self._rests(column, changes) and (not self._reads_beside or self._holds(column, pod, changes)):
            self.asked += 1
            return True
        return self.column(signature, pod, changes) is column

    def follow(
        self, column: Column, signature: Hashable, pod: PodInfo, changes: Changes, rows: Sequence[int], since: int
    ) -> Sequence[int] | Rows | None:
        """The rows in which the answer may be another than at the pod position `since`, only pods on `rows` having
        come or gone; a list of few, or an array. The values of the column are left `behind`. None where `column` was
        not what `column()` answered then, or is not to be patched now."""
        if self._reads_beside and not self._holds(column, pod, changes):
            return None
        topology = self._topology
        if topology is None:
            return rows
        is_there = column.pod_position == since and column.node_position == changes.node_position
        if not is_there or self._columns.get(signature) is not column:
            return None
        self.asked += 1
        column.pod_position = changes.pod_position
        if self._idle is not None and self._idle.is_idle(column.state, changes.snapshot):
            return ()
        touched = self._touched_by_pods(topology, column.state, changes, rows)
        stands = topology.standing(column.state).code is column.status.code
        if len(touched) or not stands:
            self.computed += 1
            column.behind = True
        return touched if stands else None

    def _touched_by_pods(
        self, topology: TopologyPlugin, state: State, changes: Changes, rows: Sequence[int]
    ) -> Sequence[int] | Rows:
        touched: Sequence[int] | Rows | None
        if self._domains is not None:
            touched = self._domains.touched_by_pods(state, changes.snapshot, rows)
        else:
            touched = topology.touched(state, changes.snapshot, np.array(rows, dtype=np.int64))
        return np.arange(changes.n) if touched is None else touched

    def idles(self, column: Column, changes: Changes) -> bool:
        """Whether, as long as neither a node nor another object changes, the column is what it was, whatever pods came
        or went; it is up to date then. Its state must not be a refusal or skip that is settled."""
        if self._idle is None or not self._idle.is_idle(column.state, changes.snapshot):
            return False
        self.asked += 1
        column.pod_position = changes.pod_position
        return True

    def stays_by_itself(self, column: Column) -> bool:
        """Whether the column stays what it is for as long as no node and no other object changes."""
        return self._situation is None and (column.settled or not self._follows_pods)

    def _rests(self, column: Column, changes: Changes) -> bool:
        """Whether no node changed, and pods that come and go change nothing."""
        if column.settled:
            return True
        if column.node_position != changes.node_position:
            return False
        if self._idle is not None:
            return self._idle.is_idle(column.state, changes.snapshot)
        return self._topology is None and not self._follows_pods

    def passes_at(self, column: Column, changes: Changes, rows: Sequence[int]) -> Sequence[bool]:
        """Whether a few rows pass a filter, as `at` would say."""
        return (self.at(column, changes, np.array(rows)) == 0).tolist()  # type: ignore[no-any-return]

    def row_filter(self, column: Column, changes: Changes) -> Callable[[int], bool] | None:
        """Says of a row whether it passes, until a Node changes; None where the plugin cannot."""
        return None if self._row_filter is None else self._row_filter.row_filter(column.state, changes.snapshot)

    def note_work(self) -> None:
        """Count an answer that was worked out beside the columns."""
        self.asked += 1
        self.computed += 1

    def at(self, column: Column, changes: Changes, rows: Rows) -> Array:
        """The column's values in a few rows, as they are at the snapshot of `changes`; the column stays what it is."""
        self.note_work()
        return self._compute(column.state, changes.snapshot, rows)[0]

    def prepare(self, pod: PodInfo, changes: Changes) -> tuple[Status, State]:
        """What PreFilter or PreScore says of the pod, and the state to ask with; no column is kept."""
        self.note_work()
        return self._prepare(pod, changes.snapshot)

    def once(self, pod: PodInfo, changes: Changes, rows: Rows) -> tuple[Status, State, Array]:
        """Status, state and, where that is SUCCESS, the values of all `rows`, as `column` would have them; no column
        is kept."""
        status, state = self.prepare(pod, changes)
        return status, state, self._compute(state, changes.snapshot, rows)[0] if status.is_success else NO_ROWS

    def _is_said(self, column: Column) -> bool:
        """Whether the plugin said all it has to say before it was asked about rows."""
        return not column.status.is_success and (self._topology is None or column.state is None)

    def _holds(self, column: Column, pod: PodInfo, changes: Changes) -> bool:
        """Whether what was read beside signature and rows is what it was."""
        if self._situation is None and column.object_changes == changes.object_changes:
            return True
        if column.objects != self._objects(pod, changes.snapshot):
            return False
        column.object_changes = changes.object_changes
        return True

    def _objects(self, pod: PodInfo, snapshot: Snapshot) -> Hashable:
        versions = tuple(snapshot.version(kind) for kind in self._kinds)
        return versions if self._situation is None else (versions, self._situation(pod, snapshot))

    def _fresh(self, pod: PodInfo, changes: Changes) -> Column:
        self.computed += 1
        snapshot = changes.snapshot
        status, state = self._prepare(pod, snapshot)
        values: Array = np.zeros(0, dtype=np.int16)
        refusals: Sequence[Refusal] = ()
        if status.is_success:
            values, refusals = self._compute(state, snapshot, np.arange(changes.n))
        column = Column(
            plugin=self.plugin.name,
            status=self._signed(status),
            state=state,
            values=values,
            refusals=refusals,
            version=next(self._versions),
            based_on=-1,
            patched=NO_ROWS,
            unanimous=self._judges and not values.any(),
            node_position=changes.node_position,
            pod_position=changes.pod_position,
            objects=self._objects(pod, snapshot),
            object_changes=changes.object_changes,
            settled=False,
        )
        column.settled = self._situation is None and self._is_said(column)
        return column

    def _signed(self, status: Status) -> Status:
        return status if status.is_success or status.is_skip else status.by(self.plugin.name)

    def _updated(self, column: Column, pod: PodInfo, changes: Changes) -> Column:
        if self._topology is not None:
            return self._updated_topology(self._topology, column, pod, changes)
        return self._patched(column, pod, changes, self._changed_rows(column, changes))

    def _changed_rows(self, column: Column, changes: Changes) -> Rows | None:
        if self._reads is Reads.NODE:
            return changes.nodes_since(column.node_position)
        if self._reads is Reads.NOTHING:
            return NO_ROWS
        # What stands in a row changes with the node that takes the row, so PODS alone is asked of both.
        return changes.since(column.node_position, column.pod_position)

    def _updated_topology(self, topology: TopologyPlugin, column: Column, pod: PodInfo, changes: Changes) -> Column:
        changed = changes.since(column.node_position, column.pod_position)
        if changed is None:
            return self._fresh(pod, changes)
        rows = topology.touched(column.state, changes.snapshot, changed)
        standing = topology.standing(column.state)
        if standing.code is not column.status.code:
            return self._fresh(pod, changes)
        if standing.code is not Code.SUCCESS:
            column.status = self._signed(standing)
            return self._moved(column, changes)
        if rows is None or column.behind:
            return self._recomputed(column, changes)
        if not len(rows) and len(column.values) == changes.n:
            return self._moved(column, changes)
        return self._patched(column, pod, changes, rows)

    def _patched(self, column: Column, pod: PodInfo, changes: Changes, rows: Rows | None) -> Column:
        if rows is None:
            return self._fresh(pod, changes)
        n, had = changes.n, len(column.values)
        if had == n and len(rows) <= FEW:
            return self._patched_few(column, changes, rows) if len(rows) else self._moved(column, changes)
        if had < n:
            rows = np.union1d(rows, np.arange(had, n))
        if 2 * len(rows) > n:
            return self._recomputed(column, changes)
        answer, refusals = self._compute(column.state, changes.snapshot, rows)
        values = np.empty((n, *answer.shape[1:]), dtype=np.result_type(column.values, answer))
        values[: min(had, n)] = column.values[:n]
        values[rows] = answer
        # A patch that refuses no row may come without the table that the other rows point into.
        table = refusals if len(refusals) >= len(column.refusals) else column.refusals
        return self._replaced(column, changes, values, table, rows)

    def _patched_few(self, column: Column, changes: Changes, rows: Rows) -> Column:
        """A patch that leaves every row what it was leaves the column what it was."""
        answer, refusals = self._compute(column.state, changes.snapshot, rows)
        before, table = column.values, column.refusals
        if answer.dtype != before.dtype:
            values = before.astype(np.result_type(before, answer))
        elif len(refusals) <= len(table) and before[rows].tolist() == answer.tolist():
            return self._moved(column, changes)
        else:
            values = before.copy()
        values[rows] = answer
        return self._replaced(column, changes, values, refusals if len(refusals) >= len(table) else table, rows)

    def _recomputed(self, column: Column, changes: Changes) -> Column:
        values, refusals = self._compute(column.state, changes.snapshot, np.arange(changes.n))
        return self._replaced(column, changes, values, refusals, None)

    def _replaced(
        self, column: Column, changes: Changes, values: Array, refusals: Sequence[Refusal], rows: Rows | None
    ) -> Column:
        self.computed += 1
        return Column(
            plugin=column.plugin,
            status=column.status,
            state=column.state,
            values=values,
            refusals=refusals,
            version=next(self._versions),
            based_on=-1 if rows is None or len(values) != len(column.values) else column.version,
            patched=NO_ROWS if rows is None else rows,
            unanimous=self._judges and not values.any(),
            node_position=changes.node_position,
            pod_position=changes.pod_position,
            objects=column.objects,
            object_changes=column.object_changes,
            settled=False,
        )

    @staticmethod
    def _moved(column: Column, changes: Changes) -> Column:
        column.node_position = changes.node_position
        column.pod_position = changes.pod_position
        column.behind = False
        return column


def _kinds(plugin: Plugin) -> tuple[str, ...]:
    return plugin.kinds if extends(plugin, ObjectReader) else ()


def filter_columns(plugin: FilterPlugin, size: int) -> ColumnCache:
    """The verdict columns of a filter, at most `size` signatures of them."""

    def compute(state: State, snapshot: Snapshot, rows: Rows) -> tuple[Array, Sequence[Refusal]]:
        verdicts = plugin.filter(state, snapshot, rows)
        return verdicts.refused, verdicts.refusals

    return ColumnCache(plugin, plugin.pre_filter, compute, size, judges=True)


def score_columns(plugin: ScorePlugin, size: int) -> ColumnCache:
    """The raw score columns of a score, at most `size` signatures of them."""

    def compute(state: State, snapshot: Snapshot, rows: Rows) -> tuple[Array, Sequence[Refusal]]:
        return plugin.score(state, snapshot, rows), ()

    return ColumnCache(plugin, plugin.pre_score, compute, size, judges=False)
