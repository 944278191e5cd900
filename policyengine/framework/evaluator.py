"""The one evaluator: PreFilter and Filter (`judge`), PreScore, Score and NormalizeScore (`rank`) over all nodes.

`explain`, the tests of a policy, the simulator, the extender and the live scheduler all call it. Every verdict
and raw score is a cached column (`cached_column`); a decision joins columns, it never looks at one node.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from policyengine.framework.cached_column import filter_columns
from policyengine.framework.changes import NO_ROWS, Changes
from policyengine.framework.column import Column
from policyengine.framework.filtering import Diagnosis, Verdict
from policyengine.framework.kept import Kept
from policyengine.framework.leaders import Ring
from policyengine.framework.normal_score import Scorer
from policyengine.framework.plugin import UNCONCERNED, FilterPlugin
from policyengine.framework.profile import Profile
from policyengine.framework.runs import Runs
from policyengine.framework.scoring import NodeScores, Share
from policyengine.framework.status import SUCCESS, Code, Refusal, Rows, Status
from policyengine.framework.totals import Totals, weighted

if TYPE_CHECKING:
    from policyengine.cluster.node_table import NodeTable
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.cluster.snapshot import Snapshot

__all__ = ["Diagnosis", "Evaluator", "NodeScores"]

COLUMNS = 128
"""Signatures kept per plugin and extension point: 10 KB a verdict column, 40 KB a score column at 5,000 nodes."""


@dataclass(slots=True, eq=False)
class _Joined:
    """The feasible rows that followed from exactly these verdicts."""

    verdicts: tuple[Verdict, ...]
    columns: list[Column]
    feasible: Rows


@dataclass(slots=True, eq=False)
class _Asked:
    """What the filters say of one pod: a refusal as a whole, or columns."""

    signatures: list[Hashable]
    """Those of `columns`."""
    columns: list[Column]
    """Of the filters that refuse some row."""
    narrowed: list[tuple[str, frozenset[str]]]
    """(plugin, the only nodes its PreFilter left)."""
    refused: Status | None


class Evaluator:
    """Judges and ranks for one profile. Holds the columns; one per live profile, replaced together with it."""

    def __init__(self, profile: Profile, columns: int = COLUMNS) -> None:
        """`columns` bounds the signatures kept per plugin and extension point."""
        self.profile = profile
        self._size = columns
        self._table: NodeTable | None = None
        self._changes: Changes | None = None
        self._start_over()

    def filter(self, pod: PodInfo, snapshot: Snapshot) -> Diagnosis:
        """Ask every filter about every node. A pod with a malformed spec is refused with what is wrong in it."""
        if pod.shape.problem is not None:
            return Diagnosis(snapshot.nodes.names, NO_ROWS, (), _malformed(pod.shape.problem))
        asked = self._ask(pod, snapshot)
        if asked.refused is not None:
            return Diagnosis(snapshot.nodes.names, NO_ROWS, (), asked.refused)
        if asked.narrowed:
            return self._narrowed(snapshot, asked.columns, asked.narrowed)
        return self._join(snapshot, tuple(asked.signatures), asked.columns)

    def filter_node(self, pod: PodInfo, snapshot: Snapshot, row: int) -> Status:
        """What `judge` says of one row, without putting the answer together for all others."""
        if pod.shape.problem is not None:
            return _malformed(pod.shape.problem)
        asked = self._ask(pod, snapshot)
        if asked.refused is not None:
            return asked.refused
        if asked.narrowed:
            return self._narrowed(snapshot, asked.columns, asked.narrowed).refusal(row)
        for column in asked.columns:
            index = column.values[row]
            if index:
                refusal = column.refusals[index - 1]
                return Status(refusal.code, refusal.reasons_at(row), column.plugin)
        return SUCCESS

    def filters_asked(self, pod: PodInfo, snapshot: Snapshot) -> list[tuple[FilterPlugin, Column]]:
        """The filters that have something to say of the pod, in order, each with its column; those skipped, or
        refusing the pod as a whole, included."""
        changes = self._changes_up_to(snapshot)
        found: list[tuple[FilterPlugin, Column]] = []
        for cache, plugin in zip(self._filters, self.profile.filters, strict=True):
            signature = cache.signature(pod)
            if signature is not UNCONCERNED:
                found.append((plugin, cache.column(signature, pod, changes)))
        return found

    def score(self, pod: PodInfo, snapshot: Snapshot, diagnosis: Diagnosis) -> NodeScores:
        """Score the feasible nodes of `diagnosis`, which must stem from this snapshot as it is now."""
        changes = self._changes_up_to(snapshot)
        feasible = diagnosis.feasible
        shares: list[Share] = []
        signatures: list[Hashable] = []
        if len(feasible):
            for scorer in self._scorers:
                signature = scorer.signature(pod)
                if signature is UNCONCERNED:
                    continue
                share = scorer.share(signature, pod, changes, feasible)
                if share is not None:
                    shares.append(share)
                    signatures.append(signature)
        by_row = [share for share in shares if share.by_row]
        rest = [share for share in shares if not share.by_row] if len(by_row) < len(shares) else ()
        return NodeScores(
            feasible,
            tuple(shares),
            snapshot.nodes.name_hash,
            self._totals.of(tuple(signatures), by_row, changes.node_position) if by_row else None,
            weighted(rest) if rest else None,
            self._the_ring,
        )

    def usage(self) -> Iterator[tuple[str, str, int, int]]:
        """(plugin, `Filter` or `Score`, how often its column was asked for, how often that meant work), of all."""
        for cache in self._filters:
            yield cache.plugin.name, "Filter", cache.asked, cache.computed
        for scorer in self._scorers:
            yield scorer.plugin.name, "Score", scorer.columns.asked, scorer.columns.computed

    def choose(self, pod: PodInfo, snapshot: Snapshot, diagnosis: Diagnosis) -> int:
        """The row of the best node of `diagnosis`, which must stem from this snapshot as it is now and leave some."""
        node_scores = self.score(pod, snapshot, diagnosis)
        if not self.profile.quotas:
            self._runs.begin(pod, self._changes_up_to(snapshot), diagnosis, node_scores)
        return node_scores.best(pod.uid)

    def choose_again(self, pod: PodInfo, snapshot: Snapshot) -> int | None:
        """What `judge` and `choose` would come to for a pod that is much like the last one chosen for; None where that
        cannot be told without them."""
        return self._runs.next(pod, self._changes_up_to(snapshot))

    def _ask(self, pod: PodInfo, snapshot: Snapshot) -> _Asked:
        """Every filter's column, up to the one that refuses the pod for good."""
        changes = self._changes_up_to(snapshot)
        refused = self.profile.quotas.refusal(pod, snapshot) if self.profile.quotas else None
        asked = _Asked([], [], [], refused)
        if refused is not None:
            return asked
        for cache in self._filters:
            signature = cache.signature(pod)
            if signature is UNCONCERNED:
                continue
            column = cache.column(signature, pod, changes)
            status = column.status
            if status.code is Code.SUCCESS:
                if not column.unanimous:
                    asked.signatures.append(signature)
                    asked.columns.append(column)
                if cache.narrowing is not None:
                    names = cache.narrowing.narrow(column.state)
                    if names is not None:
                        asked.narrowed.append((cache.plugin.name, names))
            elif status.code is not Code.SKIP:
                asked.refused = status
                if status.code is not Code.UNSCHEDULABLE:
                    break
        return asked

    def _start_over(self) -> None:
        self._filters = tuple(filter_columns(plugin, self._size) for plugin in self.profile.filters)
        self._scorers = tuple(Scorer(plugin, weight, self._size) for plugin, weight in self.profile.scores)
        self._joined: Kept[_Joined] = Kept(self._size)
        self._totals = Totals(self._size)
        self._ring: Ring | None = None
        self._runs = Runs(self._filters, self._scorers, self._the_ring)

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

    def _join(self, snapshot: Snapshot, signatures: tuple[Hashable, ...], columns: list[Column]) -> Diagnosis:
        n = snapshot.nodes.n
        joined = self._joined.get(signatures)
        if joined is None or not _same(joined.columns, columns) or (not columns and len(joined.feasible) != n):
            feasible = np.flatnonzero(_passing(columns)) if columns else np.arange(n)
            joined = _Joined(_verdicts(columns), columns, feasible)
            self._joined.put(signatures, joined)
        return Diagnosis(snapshot.nodes.names, joined.feasible, joined.verdicts, None)

    def _narrowed(
        self, snapshot: Snapshot, columns: list[Column], narrowed: list[tuple[str, frozenset[str]]]
    ) -> Diagnosis:
        """Judge only the nodes that PreFilter left; kube-scheduler's words for the others."""
        table = snapshot.nodes
        plugins = tuple(sorted({plugin for plugin, _ in narrowed}))
        names = frozenset.intersection(*(names for _, names in narrowed))
        if not names:
            listed = f" {plugins[0]}" if len(plugins) == 1 else f"(s) [{' '.join(plugins)}] simultaneously"
            reason = f"node(s) didn't satisfy plugin{listed}"
            refusal = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,), plugins[0])
            return Diagnosis(table.names, NO_ROWS, (), refusal, plugins)
        left = np.array(sorted(table.row_of[name] for name in names if name in table.row_of), dtype=np.int64)
        outside = np.ones(table.n, dtype=np.int16)
        outside[left] = 0
        reason = f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}]"
        absent = Verdict(plugins[0], outside, (Refusal(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,)),))
        feasible = left[_passing(columns)[left]] if columns else left
        return Diagnosis(table.names, feasible, (absent, *_verdicts(columns)), None, plugins)

    def _the_ring(self) -> Ring:
        """The nodes on the hash ring, ordered again where the nodes changed."""
        assert self._table is not None
        if self._ring is None or not self._ring.is_of(self._table.name_hash):
            self._ring = Ring(self._table.name_hash)
        return self._ring


def _same(a: Sequence[object], b: Sequence[object]) -> bool:
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))


def _passing(columns: list[Column]) -> NDArray[np.bool_]:
    passing: NDArray[np.bool_] = columns[0].values == 0
    for column in columns[1:]:
        passing &= column.values == 0
    return passing


def _verdicts(columns: list[Column]) -> tuple[Verdict, ...]:
    return tuple(Verdict(column.plugin, column.values, column.refusals) for column in columns)


def _malformed(problem: str) -> Status:
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (problem,))
