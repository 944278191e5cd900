"""Tries one preemption attempt on every node where it may help: DryRunPreemption.

`victim_arithmetic` tries all rows at once where it can. The other rows are tried one by one: nodes to which other pods
are nominated or on which gangs run; pods with affinity, ports or volumes; rules that read more of pods than their sums;
and every row if quotas or a `preempt` apply. They are tried in ring order from the pod until enough candidates are
known, one of them without a broken budget.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.journal import stable_hash
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import ClusterView
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.filtering import Diagnosis
from policyengine.framework.nominated import nominees
from policyengine.framework.status import Code, Rows
from policyengine.plugins.preemption.candidate_node import Candidate, Ranks, concatenated, ranks_of
from policyengine.plugins.preemption.placed_pods import NOBODY, PlacedPods, placed_pods
from policyengine.plugins.preemption.preemptible import Preemptible
from policyengine.plugins.preemption.victim_arithmetic import Eviction, Victims, known_filters
from policyengine.plugins.preemption.victim_selection import NO_VICTIMS, DisruptionBudgets, select_victims

STUCK = "node(s) had victims that should have terminated long ago"


class DryRun:
    """The candidates of one attempt, and why other nodes are none. Valid until the view changes."""

    def __init__(
        self,
        pod: PodInfo,
        diagnosis: Diagnosis,
        evaluator: Evaluator,
        view: ClusterView,
        enough: int,
        overdue: float,
    ) -> None:
        """`enough`: candidates after which nodes need not be tried out one by one any more. `overdue`: a pod that
        should have been gone before, in seconds since the epoch, makes no room."""
        self._pod = pod
        self._view = view
        self._evaluator = evaluator
        self._overdue = overdue
        self._preemptible = Preemptible(pod, evaluator.profile, view)
        self._below = NOBODY if self._preemptible.of_any_priority else pod.priority
        """Pods of this priority or a higher one are no victims."""
        self._counts: Counter[str] = Counter()
        self._found: list[Candidate] = []
        """Those tried out one by one."""
        placed = placed_pods(view.nodes)
        rows = self._with_victims(diagnosis.rows_with(Code.UNSCHEDULABLE), placed)
        self._victims = _no_victims(placed)
        if len(rows):
            budgets = DisruptionBudgets(view.snapshot())
            self._victims, single = self._at_once(rows, placed, budgets)
            self._one_by_one(single, budgets, enough)

    def best(self) -> Candidate | None:
        """The candidate to be taken; None where there is none."""
        many = len(self._victims.rows)
        if not many and not self._found:
            return None
        rows = np.concatenate((self._victims.rows, _rows_of(self._found)))
        ranks = concatenated(self._victims.ranks(), ranks_of(self._found))
        chosen = _best(rows, ranks, self._distance)
        best = self._victims.candidate(chosen) if chosen < many else self._found[chosen - many]
        return replace(best, why=ranks.why())

    def all(self) -> list[Candidate]:
        """Every candidate known."""
        return [*map(self._victims.candidate, range(len(self._victims.rows))), *self._found]

    def some(self, enough: int) -> list[Candidate]:
        """As many candidates as are enough, those without a broken budget first, in ring order from the pod."""
        found = self.all()
        distances = self._distance(_rows_of(found)).tolist()
        order = sorted(range(len(found)), key=lambda at: (found[at].violations > 0, distances[at]))
        return [found[at] for at in order[:enough]]

    def refusals(self) -> list[tuple[str, int]]:
        """(reason, number of nodes) of the nodes that might have been candidates and are not."""
        return list(self._counts.items())

    def _with_victims(self, rows: Rows, placed: PlacedPods) -> Rows:
        """The rows with a pod whose priority is low enough for a victim."""
        some = placed.priority[rows].min(axis=1, initial=self._below) < self._below
        self._count(NO_VICTIMS.reasons, int((~some).sum()))
        with_some: Rows = rows[some]
        return with_some

    def _at_once(self, rows: Rows, placed: PlacedPods, budgets: DisruptionBudgets) -> tuple[Victims, Rows]:
        """The victims that arithmetic selects, and the rows that it cannot evaluate."""
        snapshot = self._view.snapshot()
        alone = np.isin(rows, [*self._contested(), *self._stuck(placed), *self._preemptible.rows_of_gangs()])
        known, are_all = known_filters(self._evaluator.filters_asked(self._pod, snapshot))
        eviction = Eviction(self._pod, known, snapshot, placed, rows[~alone], self._below)
        for reason, count in eviction.refusals():
            self._counts[reason] += count
        if are_all and self._preemptible.by_priority_alone:
            return eviction.reprieve(budgets), rows[alone]
        return _no_victims(placed), np.concatenate((eviction.rows, rows[alone]))

    def _one_by_one(self, rows: Rows, budgets: DisruptionBudgets, enough: int) -> None:
        found = len(self._victims.rows)
        clean = bool((self._victims.ranks().violations == 0).any())
        for row in rows[np.argsort(self._distance(rows), kind="stable")].tolist():
            if clean and found >= enough:
                return
            answer = select_victims(self._evaluator, self._view, self._pod, row, budgets, self._preemptible)
            if not isinstance(answer, Candidate):
                self._count(answer.reasons, 1)
            elif any(victim.deleting and victim.deletion_due < self._overdue for victim in answer.victims):
                self._count((STUCK,), 1)
            else:
                self._found.append(answer)
                found += 1
                clean |= answer.violations == 0

    def _contested(self) -> list[int]:
        """Rows to which pods are nominated that this one has to yield to."""
        view, row_of = self._view, self._view.nodes.row_of
        return [
            row_of[name]
            for name in view.nominated
            if name in row_of and nominees(self._evaluator, view, name, self._pod)
        ]

    def _stuck(self, placed: PlacedPods) -> list[int]:
        """Rows with a pod that should have been gone."""
        leaving = placed.leaving.items()
        return [row for row, pods in leaving if any(pod.deletion_due < self._overdue for pod in pods)]

    def _distance(self, rows: Rows) -> NDArray[np.uint64]:
        return _distance(self._pod, self._view, rows)

    def _count(self, reasons: tuple[str, ...], nodes: int) -> None:
        for reason in reasons if nodes else ():
            self._counts[reason] += nodes


def best_of(pod: PodInfo, candidates: list[Candidate], view: ClusterView) -> Candidate:
    """The best of at least one candidate."""
    ranks = ranks_of(candidates)
    best = candidates[_best(_rows_of(candidates), ranks, lambda rows: _distance(pod, view, rows))]
    return replace(best, why=ranks.why())


def _best(rows: Rows, ranks: Ranks, distance: Callable[[Rows], NDArray[np.uint64]]) -> int:
    """The place of the best: of equals the next one on the ring."""
    tied = ranks.best()
    return int(tied[np.argmin(distance(rows[tied]))])


def _distance(pod: PodInfo, view: ClusterView, rows: Rows) -> NDArray[np.uint64]:
    """How far each node comes after the pod on the ring of hashes."""
    return view.nodes.name_hash[rows] - np.uint64(stable_hash(pod.uid))


def _no_victims(placed: PlacedPods) -> Victims:
    none = np.zeros((0, placed.width), dtype=np.bool_)
    return Victims(placed, np.zeros(0, dtype=np.int64), none, none)


def _rows_of(candidates: list[Candidate]) -> Rows:
    return np.array([one.row for one in candidates], dtype=np.int64)
