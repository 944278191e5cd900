"""The leaves of the evaluator's graph: one plugin's answers for one pod signature, one value a node.

Rules of this file:
1. After `update` a column is what a column computed afresh at that snapshot would be.
2. `values` are patched in place. Whoever keeps them beyond the decision copies them.
3. What a delta in `log` does not name has the value that it had before.
4. Where a journal cannot say what changed, or a plugin failed half way, the column is computed again in full.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import Snapshot
from policyengine.framework.changes import FEW, NO_ROWS, ChangeLog, Changes, Delta, all_rows, union
from policyengine.framework.plugin import (
    FilterPlugin,
    NarrowingPlugin,
    NormalizedScorePlugin,
    ObjectReader,
    Reads,
    ScorePlugin,
    SingleRowPlugin,
    SituationReader,
    TopologyPlugin,
    extends,
)
from policyengine.framework.status import SKIP, Code, Refusal, Rows, State, Status

Array = NDArray[Any]
Prepare = Callable[[PodInfo, Snapshot], tuple[Status, State]]
Kernel = Callable[[State, Snapshot, Rows], tuple[Array, Sequence[Refusal]]]
_NOTHING: Array = np.zeros(0, dtype=np.int16)


class PluginColumns:
    """All columns of one plugin at one extension point, by pod signature; those asked for longest ago go first."""

    def __init__(
        self, plugin: FilterPlugin | ScorePlugin, prepare: Prepare, kernel: Kernel, size: int, filters: bool
    ) -> None:
        """`filters`: the columns are verdicts, not scores."""
        self.plugin = plugin
        self.filters = filters
        self.name = plugin.name
        self.signature = plugin.signature
        self.prepare = prepare
        self.kernel = kernel
        self.reads = plugin.reads
        self.follows_pods = Reads.PODS in plugin.reads
        self.topology = plugin if extends(plugin, TopologyPlugin) else None
        self.narrowing = plugin if extends(plugin, NarrowingPlugin) else None
        self.normalizing = plugin if extends(plugin, NormalizedScorePlugin) and not filters else None
        self.score_row = plugin.score_row if extends(plugin, SingleRowPlugin) and not filters else None
        self.kinds: tuple[str, ...] = plugin.kinds if extends(plugin, ObjectReader) else ()
        self.situation = plugin.situation if extends(plugin, SituationReader) else None
        self.reads_beside = bool(self.kinds) or self.situation is not None
        self.of: Callable[[Hashable], PluginColumn] = lru_cache(size)(lambda signature: PluginColumn(self))
        """The column of a signature; not up to date."""
        self.asked = 0
        """How often a column was asked for."""
        self.computed = 0
        """How often that meant work."""

    def versions(self, snapshot: Snapshot) -> tuple[int, ...]:
        """Those of the kinds of objects that the plugin reads."""
        return tuple([snapshot.version(kind) for kind in self.kinds])


class PluginColumn:
    """One plugin's answers for one signature."""

    status: Status = SKIP
    """SUCCESS: `values` count. SKIP: the plugin has nothing to say. Otherwise PreFilter's refusal."""
    state: State = None
    values: Array = _NOTHING
    """`int16[nodes]` of a filter (0 passes, else 1 + index into `refusals`), raw scores of a score."""
    refusals: Sequence[Refusal] = ()
    refused = 0
    """How many rows a filter refuses."""
    settled = False
    """A skip or refusal that no change of nodes and pods can turn while the plugin's situation is what it is."""
    node_position = -1
    pod_position = -1
    _situation: Hashable = None
    _versions: tuple[int, ...] = ()
    """What was read beside signature and rows: the plugin's situation, versions of other objects."""
    _object_changes = -1
    _is_whole = False
    """False before the first computation, and after one that failed."""

    def __init__(self, source: PluginColumns) -> None:
        self.source = source
        self.log = ChangeLog()

    @property
    def plugin(self) -> str:
        """The plugin's name."""
        return self.source.name

    def update(self, pod: PodInfo, changes: Changes) -> None:
        """Bring the column up to the snapshot of `changes`. The pod has the column's signature."""
        source = self.source
        source.asked += 1
        if not self._is_whole or (source.reads_beside and not self._holds(pod, changes)):
            self._refresh(pod, changes)
        elif not self.settled and (
            self.node_position != changes.node_position
            or (source.follows_pods and self.pod_position != changes.pod_position)
        ):
            self._follow(pod, changes)

    def _holds(self, pod: PodInfo, changes: Changes) -> bool:
        """Whether what was read beside signature and rows is what it was."""
        situation = self.source.situation
        if situation is not None and situation(pod, changes.snapshot) != self._situation:
            return False
        if self._object_changes != changes.object_changes:
            if self.source.versions(changes.snapshot) != self._versions:
                return False
            self._object_changes = changes.object_changes
        return True

    def _refresh(self, pod: PodInfo, changes: Changes) -> None:
        """PreFilter or PreScore, and all rows."""
        source, snapshot = self.source, changes.snapshot
        self._is_whole = False
        if source.reads_beside:
            self._situation = None if source.situation is None else source.situation(pod, snapshot)
            self._versions, self._object_changes = source.versions(snapshot), changes.object_changes
        status, self.state = source.prepare(pod, snapshot)
        self.status = self._signed(status)
        self.settled = not status.is_success and (source.topology is None or self.state is None)
        if status.is_success:
            self._compute(changes)
        else:
            source.computed += 1
            self._put(_NOTHING, ())
        self._arrived(changes)

    def _follow(self, pod: PodInfo, changes: Changes) -> None:
        """Nodes or pods changed."""
        source = self.source
        if source.topology is not None and self.state is not None:
            self._follow_topology(source.topology, pod, changes)
        elif self.status.code is not Code.SUCCESS:
            self._arrived(changes)  # said before any row was looked at
        else:
            rows: Delta = NO_ROWS
            if source.follows_pods:  # with the node that takes a row what stands in it changes, so both are asked
                rows = changes.since(self.node_position, self.pod_position)
            elif Reads.NODE in source.reads:
                rows = changes.nodes_since(self.node_position)
            if rows is None:
                self._refresh(pod, changes)
            else:
                self._recompute(changes, rows)
                self._arrived(changes)

    def _follow_topology(self, topology: TopologyPlugin, pod: PodInfo, changes: Changes) -> None:
        changed = changes.since(self.node_position, self.pod_position)
        if changed is None:
            self._refresh(pod, changes)
            return
        self._is_whole = False
        status, rows = topology.update(self.state, changes.snapshot, changed)
        if status.code is not self.status.code:
            self._refresh(pod, changes)
            return
        if status.code is Code.SUCCESS:
            self._recompute(changes, rows)
        else:
            self.status = self._signed(status)
        self._arrived(changes)

    def _recompute(self, changes: Changes, rows: Delta) -> None:
        """Ask the plugin about the rows again."""
        n, had = changes.n, len(self.values)
        if had < n:
            rows = union(rows, np.arange(had, n))
        if rows is None or 2 * len(rows) > n:
            self._compute(changes)
        elif had != n:
            self._resize(n)
            self._patch(changes, rows)
            self.log.note(None)
        elif len(rows):
            self._patch(changes, rows)

    def _compute(self, changes: Changes) -> None:
        source = self.source
        source.computed += 1
        values, refusals = source.kernel(self.state, changes.snapshot, all_rows(changes.n))
        self._put(values if values.flags.owndata and values.flags.writeable else values.copy(), refusals)

    def _put(self, values: Array, refusals: Sequence[Refusal]) -> None:
        self.values, self.refusals = values, refusals
        self._count()
        self.log.note(None)

    def _patch(self, changes: Changes, rows: Rows) -> None:
        source, values = self.source, self.values
        source.computed += 1
        if source.score_row is not None and len(rows) <= FEW:
            found = []
            for row in rows.tolist():
                score = source.score_row(self.state, changes.snapshot, row)
                if values.item(row) != score:
                    values[row] = score
                    found.append(row)
            if found:
                self.log.note(rows if len(found) == len(rows) else np.array(found, dtype=np.int64))
            return
        answer, refusals = source.kernel(self.state, changes.snapshot, rows)
        if source.filters and not refusals and not self.refused:
            return  # no row was refused, and none is
        # A patch that refuses no row may come without the table that the other rows point into.
        if len(refusals) > len(self.refusals):
            self.refusals = refusals
        differs = answer != values[rows]
        changed = rows[differs if differs.ndim == 1 else differs.any(axis=1)]
        if len(changed) == 0:
            return
        if source.filters:
            self.refused += int(np.count_nonzero(answer)) - int(np.count_nonzero(values[rows]))
        is_wider = answer.dtype != values.dtype
        if is_wider:
            values = self.values = values.astype(np.result_type(values, answer))
        values[rows] = answer
        self.log.note(None if is_wider else changed)

    def _resize(self, n: int) -> None:
        kept = min(n, len(self.values))
        values = np.zeros((n, *self.values.shape[1:]), dtype=self.values.dtype)
        values[:kept] = self.values[:kept]
        self.values = values
        self._count()

    def _count(self) -> None:
        if self.source.filters:
            self.refused = int(np.count_nonzero(self.values)) if self.refusals else 0

    def _arrived(self, changes: Changes) -> None:
        self.node_position, self.pod_position = changes.node_position, changes.pod_position
        self._is_whole = True

    def _signed(self, status: Status) -> Status:
        return status if status.is_success or status.is_skip else status.by(self.source.name)


def filter_columns(plugin: FilterPlugin, size: int) -> PluginColumns:
    """The columns of a filter, at most `size` of them."""

    def kernel(state: State, snapshot: Snapshot, rows: Rows) -> tuple[Array, Sequence[Refusal]]:
        verdicts = plugin.filter(state, snapshot, rows)
        return verdicts.refused, verdicts.refusals

    return PluginColumns(plugin, plugin.pre_filter, kernel, size, filters=True)


def score_columns(plugin: ScorePlugin, size: int) -> PluginColumns:
    """The columns of a score, before normalisation, at most `size` of them."""

    def kernel(state: State, snapshot: Snapshot, rows: Rows) -> tuple[Array, Sequence[Refusal]]:
        return plugin.score(state, snapshot, rows), ()

    return PluginColumns(plugin, plugin.pre_score, kernel, size, filters=False)
