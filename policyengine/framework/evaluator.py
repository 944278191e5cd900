"""The one evaluator: which nodes a pod may go to and which it takes, worked out incrementally.

It keeps a graph of derived columns, one value a node:

    filter column a plugin ─> FeasibleNodes ─┬─────────────> TotalScores ─> BestNodes
    score column a plugin ───────────────────┴─> (normalised) ─┘

Each is kept by *pod signature*, what its plugins read of a pod, and has one operation: bring yourself up to the current
snapshot, and say what that changed since a position, as a few rows or as everything. So a pod like the one before costs
a look at the rows where something happened, and a pod with other requests costs the columns that read requests.

Example: nodes a, b and c offer 4 cpus each. NodeResourcesFit filters, and scores what would be left in percent. Pod 1
asks for 1 cpu: the filter column is [0, 0, 0] (nothing refused), the score column [75, 75, 75]; all tie, the ring says
b. The placement notes row 1 in the table's journal. Pod 2 is like pod 1: both columns hear of row 1 and work it out
again, the filter says 0 as before and reports no row, the score says 50 and reports row 1. So the mask stays, the total
becomes [75, 50, 75], and row 1 leaves the best nodes: a or c is taken. Nothing was added up for a or c.

Rules:
1. Every answer is the one of an evaluator that has seen nothing else.
2. What is handed out (`Diagnosis`, `NodeScores`) is a copy, and keeps its meaning while the graph moves on.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import lru_cache

import numpy as np

from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import Snapshot
from policyengine.framework.changes import NO_ROWS, Changes
from policyengine.framework.filtering import Diagnosis, Verdict
from policyengine.framework.plugin import UNCONCERNED, FilterPlugin
from policyengine.framework.plugin_column import PluginColumn, filter_columns, score_columns
from policyengine.framework.profile import Profile
from policyengine.framework.scoring import ONLY, Choice, NodeScores, PluginScores, Ring
from policyengine.framework.status import SUCCESS, Code, Refusal, Status
from policyengine.framework.total import FeasibleNodes, TotalScores

__all__ = ["Diagnosis", "Evaluator", "NodeScores"]

COLUMNS = 128
"""Signatures kept per plugin and extension point: 10 KB a filter column, 40 KB a score column at 5,000 nodes."""


class Evaluator:
    """Filters and scores for one profile. Holds the columns; one per live profile, replaced together with it."""

    def __init__(self, profile: Profile, columns: int = COLUMNS) -> None:
        """`columns` bounds the signatures kept per plugin and extension point."""
        self.profile = profile
        self._quotas = profile.quotas or None
        self._size = columns
        self._table: NodeTable | None = None
        self._changes: Changes | None = None
        self._start_over()

    def filter(self, pod: PodInfo, snapshot: Snapshot) -> Diagnosis:
        """Ask every filter about every node. A pod with a malformed spec is refused with what is wrong in it."""
        changes, names = self._changes_up_to(snapshot), snapshot.nodes.names
        refused = self._refusal(pod, snapshot)
        if refused is not None:
            return Diagnosis(names, NO_ROWS, (), refused)
        feasible = self._total(pod).feasible
        feasible.update(pod, changes)
        if feasible.refused is not None:
            return Diagnosis(names, NO_ROWS, (), feasible.refused)
        verdicts = tuple(Verdict(column.plugin, column.values.copy(), column.refusals) for column in feasible.verdicts)
        if feasible.narrowed:
            return _narrowed(snapshot, feasible, verdicts)
        return Diagnosis(names, NO_ROWS if feasible.fails else feasible.rows, verdicts, None)

    def filter_node(self, pod: PodInfo, snapshot: Snapshot, row: int) -> Status:
        """What `filter` says of one row, without putting the answer together for all others."""
        refused = self._refusal(pod, snapshot)
        if refused is not None:
            return refused
        feasible = self._total(pod).feasible
        if not feasible.ask(pod, self._changes_up_to(snapshot)):
            assert feasible.refused is not None
            return feasible.refused
        if feasible.narrowings():
            return self.filter(pod, snapshot).refusal(row)
        for column in feasible.verdicts:
            index = column.values[row]
            if index:
                refusal = column.refusals[index - 1]
                return Status(refusal.code, refusal.reasons_at(row), column.plugin)
        return SUCCESS

    def score(self, pod: PodInfo, snapshot: Snapshot, diagnosis: Diagnosis) -> NodeScores:
        """Score the feasible nodes of `diagnosis`, which must stem from this snapshot as it is now."""
        changes, rows = self._changes_up_to(snapshot), diagnosis.feasible
        shares: list[PluginScores] = []
        for column, weight in self._total(pod).columns if len(rows) else ():
            column.update(pod, changes)
            if column.status.code is Code.SUCCESS:
                scores, plugin = column.values[rows], column.source.normalizing
                if plugin is not None:
                    scores = plugin.normalize(column.state, scores)
                shares.append(PluginScores(column.plugin, weight, scores))
        return NodeScores(rows, tuple(shares), snapshot.nodes.name_hash)

    def select_node(self, pod: PodInfo, snapshot: Snapshot) -> Choice | None:
        """The node that the pod takes: of those that `filter` finds feasible the one that `score` finds best. None
        where no node is feasible. A node that is the only one is not scored."""
        if self._refusal(pod, snapshot) is not None:
            return None
        changes, names = self._changes_up_to(snapshot), snapshot.nodes.names
        total = self._total(pod)
        feasible = total.feasible
        if not feasible.update(pod, changes):
            return None
        if feasible.count == 1:
            return Choice(ONLY, changes.n, 1, feasible.refusers(), (names[feasible.rows.item(0)],))
        total.update(pod, changes)
        return total.choose(self._the_ring(), pod.uid, names)

    def select_among(self, pod: PodInfo, snapshot: Snapshot, diagnosis: Diagnosis) -> Choice:
        """The node that the pod takes of the feasible ones of `diagnosis`, which must stem from this snapshot as it is
        now. ValueError where there is none."""
        changes, feasible = self._changes_up_to(snapshot), self._total(pod).feasible
        if feasible.update(pod, changes) and feasible.count == len(diagnosis.feasible):
            choice = self.select_node(pod, snapshot)
            assert choice is not None
            return choice
        scores = self.score(pod, snapshot, diagnosis)
        return scores.choose(scores.best(pod.uid), diagnosis, snapshot.nodes.names)

    def filters_asked(self, pod: PodInfo, snapshot: Snapshot) -> list[tuple[FilterPlugin, PluginColumn]]:
        """The filters that have something to say of the pod, in order, each with its column; those skipped, or
        refusing the pod as a whole, included. The columns hold until the evaluator is asked something else."""
        changes = self._changes_up_to(snapshot)
        found: list[tuple[FilterPlugin, PluginColumn]] = []
        for columns, plugin in zip(self._filters, self.profile.filters, strict=True):
            signature = columns.signature(pod)
            if signature is not UNCONCERNED:
                column = columns.of(signature)
                column.update(pod, changes)
                found.append((plugin, column))
        return found

    def usage(self) -> Iterator[tuple[str, str, int, int]]:
        """(plugin, `Filter` or `Score`, how often its column was asked for, how often that meant work), of all."""
        for columns in self._filters:
            yield columns.name, "Filter", columns.asked, columns.computed
        for columns, _ in self._scorers:
            yield columns.name, "Score", columns.asked, columns.computed

    def _refusal(self, pod: PodInfo, snapshot: Snapshot) -> Status | None:
        """Why no filter needs to be asked."""
        if pod.shape.problem is not None:
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (pod.shape.problem,))
        return None if self._quotas is None else self._quotas.refusal(pod, snapshot)

    def _total(self, pod: PodInfo) -> TotalScores:
        """The part of the graph for the pod's signatures; not up to date."""
        return self._totals(tuple([signature(pod) for signature in self._signatures]))

    def _build(self, signatures: tuple[Hashable, ...]) -> TotalScores:
        """That part of the graph, made of the columns that the pod concerns."""
        filters = [
            columns.of(signatures[place]) for columns, place in self._filters_at if signatures[place] is not UNCONCERNED
        ]
        scores = [
            (columns.of(signatures[place]), weight)
            for columns, weight, place in self._scorers_at
            if signatures[place] is not UNCONCERNED
        ]
        return TotalScores(FeasibleNodes(filters), scores)

    def _start_over(self) -> None:
        size = self._size
        self._filters = tuple(filter_columns(plugin, size) for plugin in self.profile.filters)
        self._scorers = tuple((score_columns(plugin, size), weight) for plugin, weight in self.profile.scores)
        scorers = [columns for columns, _ in self._scorers]
        asked = {id(columns.plugin): columns for columns in (*self._filters, *scorers)}
        places = {plugin: place for place, plugin in enumerate(asked)}
        self._signatures = tuple(columns.signature for columns in asked.values())
        """One a plugin, also of one that filters and scores."""
        self._filters_at = [(columns, places[id(columns.plugin)]) for columns in self._filters]
        self._scorers_at = [(columns, weight, places[id(columns.plugin)]) for columns, weight in self._scorers]
        """Each with the place of its signature."""
        self._totals = lru_cache(size)(self._build)
        self._ring: tuple[int, Ring] | None = None

    def _changes_up_to(self, snapshot: Snapshot) -> Changes:
        if snapshot.nodes is not self._table:
            # Another cluster: journal positions and interned ids of the one before mean nothing in it.
            if self._table is not None:
                self._start_over()
            self._table = snapshot.nodes
        changes = self._changes
        if changes is None or not changes.is_current(snapshot):
            changes = self._changes = Changes(snapshot)
        return changes

    def _the_ring(self) -> Ring:
        """The nodes on the hash ring, ordered again where the nodes changed."""
        assert self._table is not None
        position, name_hash = self._table.node_journal.position, self._table.name_hash
        known = self._ring
        if known is None or known[0] != position:
            ring = known[1] if known is not None and known[1].is_of(name_hash) else Ring(name_hash)
            self._ring = known = position, ring
        return known[1]


def _narrowed(snapshot: Snapshot, feasible: FeasibleNodes, verdicts: tuple[Verdict, ...]) -> Diagnosis:
    """Only the nodes that PreFilter left were asked about; kube-scheduler's words for the others."""
    table = snapshot.nodes
    plugins = tuple(sorted({plugin for plugin, _ in feasible.narrowed}))
    names = frozenset.intersection(*(names for _, names in feasible.narrowed))
    if not names:
        listed = f" {plugins[0]}" if len(plugins) == 1 else f"(s) [{' '.join(plugins)}] simultaneously"
        reason = f"node(s) didn't satisfy plugin{listed}"
        refusal = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,), plugins[0])
        return Diagnosis(table.names, NO_ROWS, (), refusal, plugins)
    outside = np.ones(table.n, dtype=np.int16)
    outside[[table.row_of[name] for name in names if name in table.row_of]] = 0
    reason = f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}]"
    absent = Verdict(plugins[0], outside, (Refusal(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,)),))
    return Diagnosis(table.names, NO_ROWS if feasible.fails else feasible.rows, (absent, *verdicts), None, plugins)
