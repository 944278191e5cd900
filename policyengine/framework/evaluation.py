"""The one evaluator: PreFilter and Filter (`judge`), PreScore, Score and NormalizeScore (`rank`) over all nodes.

`explain`, the tests of a policy, the simulator, the extender and the live scheduler all call it. Every verdict
and raw score is a cached column (`cached_column`); a decision joins columns, it never looks at one node.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from policyengine.framework.cached_column import NO_ROWS, Changes, Column, filter_columns
from policyengine.framework.judgement import Judgement, Verdict
from policyengine.framework.normal_score import Scorer
from policyengine.framework.plugin import UNCONCERNED, Scores
from policyengine.framework.profile import Profile
from policyengine.framework.ranking import Ranking, Share
from policyengine.framework.status import Code, Refusal, Rows, Status

if TYPE_CHECKING:
    from policyengine.cluster.columns import NodeTable
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.cluster.snapshot import Snapshot

__all__ = ["Evaluator", "Judgement", "Ranking"]

COLUMNS = 128
"""Signatures kept per plugin and extension point: 10 KB a verdict column, 40 KB a score column at 5,000 nodes."""


@dataclass(slots=True, eq=False)
class _Joined:
    """The feasible rows that followed from exactly these verdicts."""

    verdicts: tuple[Verdict, ...]
    columns: list[Column]
    feasible: Rows


@dataclass(slots=True, eq=False)
class _Summed:
    """The total over the whole table that followed from exactly these shares."""

    shares: tuple[Share, ...]
    total: Scores


class Evaluator:
    """Judges and ranks for one profile. Holds the columns; one per live profile, replaced together with it."""

    def __init__(self, profile: Profile, columns: int = COLUMNS) -> None:
        """`columns` bounds the signatures kept per plugin and extension point."""
        self.profile = profile
        self._size = columns
        self._table: NodeTable | None = None
        self._changes: Changes | None = None
        self._start_over()

    def judge(self, pod: PodInfo, snapshot: Snapshot) -> Judgement:
        """Ask every filter about every node. A pod with a malformed spec is refused with what is wrong in it."""
        if pod.shape.problem is not None:
            refusal = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (pod.shape.problem,))
            return Judgement(snapshot.nodes.names, NO_ROWS, (), refusal)
        changes = self._changes_up_to(snapshot)
        signatures: list[Hashable] = []
        columns: list[Column] = []
        narrowed: list[tuple[str, frozenset[str]]] = []
        refused: Status | None = None
        for cache in self._filters:
            signature = cache.signature(pod)
            if signature is UNCONCERNED:
                continue
            column = cache.column(signature, pod, changes)
            status = column.status
            if status.code is Code.SUCCESS:
                if not column.unanimous:
                    signatures.append(signature)
                    columns.append(column)
                if cache.narrowing is not None:
                    names = cache.narrowing.narrow(column.state)
                    if names is not None:
                        narrowed.append((cache.plugin.name, names))
            elif status.code is not Code.SKIP:
                refused = status
                if status.code is not Code.UNSCHEDULABLE:
                    break
        if refused is not None:
            return Judgement(snapshot.nodes.names, NO_ROWS, (), refused)
        if narrowed:
            return self._narrowed(snapshot, columns, narrowed)
        return self._join(snapshot, tuple(signatures), columns)

    def rank(self, pod: PodInfo, snapshot: Snapshot, judgement: Judgement) -> Ranking:
        """Score the feasible nodes of `judgement`, which must stem from this snapshot as it is now."""
        changes = self._changes_up_to(snapshot)
        feasible = judgement.feasible
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
        total = self._sum(tuple(signatures), shares, feasible, changes.n)
        return Ranking(feasible, total, tuple(shares), snapshot.nodes.name_hash)

    def _start_over(self) -> None:
        self._filters = tuple(filter_columns(plugin, self._size) for plugin in self.profile.filters)
        self._scorers = tuple(Scorer(plugin, weight, self._size) for plugin, weight in self.profile.scores)
        self._joined: LRUCache[Hashable, _Joined] = LRUCache(self._size)
        self._summed: LRUCache[Hashable, _Summed] = LRUCache(self._size)

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

    def _join(self, snapshot: Snapshot, signatures: tuple[Hashable, ...], columns: list[Column]) -> Judgement:
        n = snapshot.nodes.n
        joined = self._joined.get(signatures)
        if joined is None or not _same(joined.columns, columns) or (not columns and len(joined.feasible) != n):
            feasible = np.flatnonzero(_passing(columns)) if columns else np.arange(n)
            joined = self._joined[signatures] = _Joined(_verdicts(columns), columns, feasible)
        return Judgement(snapshot.nodes.names, joined.feasible, joined.verdicts, None)

    def _narrowed(
        self, snapshot: Snapshot, columns: list[Column], narrowed: list[tuple[str, frozenset[str]]]
    ) -> Judgement:
        """Judge only the nodes that PreFilter left; kube-scheduler's words for the others."""
        table = snapshot.nodes
        plugins = tuple(sorted({plugin for plugin, _ in narrowed}))
        names = frozenset.intersection(*(names for _, names in narrowed))
        if not names:
            listed = f" {plugins[0]}" if len(plugins) == 1 else f"(s) [{' '.join(plugins)}] simultaneously"
            reason = f"node(s) didn't satisfy plugin{listed}"
            refusal = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,), plugins[0])
            return Judgement(table.names, NO_ROWS, (), refusal, plugins)
        left = np.array(sorted(table.row_of[name] for name in names if name in table.row_of), dtype=np.int64)
        outside = np.ones(table.n, dtype=np.int16)
        outside[left] = 0
        reason = f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}]"
        absent = Verdict(plugins[0], outside, (Refusal(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,)),))
        feasible = left[_passing(columns)[left]] if columns else left
        return Judgement(table.names, feasible, (absent, *_verdicts(columns)), None, plugins)

    def _sum(self, signatures: tuple[Hashable, ...], shares: list[Share], feasible: Rows, n: int) -> Scores:
        """The weighted sum over the feasible rows. Shares over the whole table are summed there, once for
        all pods that share them."""
        by_row = tuple(share for share in shares if share.by_row)
        total: Scores = np.zeros(len(feasible), dtype=np.int64)
        if by_row:
            summed = self._summed.get(signatures)
            if summed is None or not _same(summed.shares, by_row):
                summed = self._summed[signatures] = _Summed(by_row, _sum_patched(summed, by_row))
            total = summed.total if len(feasible) == n else summed.total[feasible]
        rest = [share for share in shares if not share.by_row]
        return total + _weighted(rest) if rest else total


def _same(a: Sequence[object], b: Sequence[object]) -> bool:
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))


def _passing(columns: list[Column]) -> NDArray[np.bool_]:
    passing: NDArray[np.bool_] = columns[0].values == 0
    for column in columns[1:]:
        passing &= column.values == 0
    return passing


def _verdicts(columns: list[Column]) -> tuple[Verdict, ...]:
    return tuple(Verdict(column.plugin, column.values, column.refusals) for column in columns)


def _sum_patched(before: _Summed | None, shares: tuple[Share, ...]) -> Scores:
    """The total over the whole table, adding up only the rows in which a share differs from those before."""
    rows: Rows | None = None
    if before is None or len(before.shares) != len(shares):
        return _weighted(shares)
    for old, new in zip(before.shares, shares, strict=True):
        if new is old:
            continue
        if new.patched is None or new.plugin != old.plugin or new.based_on != old.number:
            return _weighted(shares)
        if rows is None:
            rows = new.patched
        elif rows is not new.patched:
            rows = np.union1d(rows, new.patched)
    total = before.total.copy()
    total[rows] = sum(share.scores[rows] * share.weight for share in shares)
    return total


def _weighted(shares: Sequence[Share]) -> Scores:
    total = shares[0].scores * shares[0].weight
    for share in shares[1:]:
        total += share.scores * share.weight if share.weight != 1 else share.scores
    return total
