"""Selects victims on many nodes at once, for filters whose verdict follows from sums over the pods of a node.

The steps are those of `victim_selection`, each for all rows together. The profile's own filters evaluate a table whose
sums lack the pods taken off. This holds if no filter reads more of pods than sums (`SumsReader`) and none reads the
pods of other rows (`EvictionBlind` tells). If a filter reads more, the verdicts of the others still rule rows out: a
pod that does not fit with all lesser pods gone does not fit with some of them gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import Snapshot
from policyengine.framework.filtering import Diagnosis, Verdict
from policyengine.framework.plugin import FilterPlugin, Reads, TopologyPlugin, extends
from policyengine.framework.plugin_column import PluginColumn
from policyengine.framework.post_filter import EasedByEvictions, EvictionBlind, SumsReader
from policyengine.framework.status import Code, Rows, State
from policyengine.plugins.preemption.candidate_node import PRIORITY_SHIFT, Candidate, Ints, Ranks
from policyengine.plugins.preemption.placed_pods import PlacedPods
from policyengine.plugins.preemption.victim_selection import DisruptionBudgets, in_eviction_order

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class KnownFilter:
    """A filter whose verdict without some pods can be computed for many rows at once."""

    plugin: FilterPlugin
    column: PluginColumn
    follows_sums: bool
    """False: its verdict stays the same, whichever pods leave."""


def known_filters(asked: Sequence[tuple[FilterPlugin, PluginColumn]]) -> tuple[list[KnownFilter], bool]:
    """The filters asked about a pod up to the first that is not known, and whether all are.

    A node's refusal is worded by the first filter that refuses it, so none behind an unknown one may speak for it.
    """
    known: list[KnownFilter] = []
    for plugin, column in asked:
        is_final = column.settled and column.source.situation is None
        if column.status.is_skip and (is_final or _is_eased(plugin) or _is_blind(plugin, column)):
            continue
        if column.status.code is not Code.SUCCESS:
            return known, False
        if _is_unmoved(plugin, column):
            known.append(KnownFilter(plugin, column, False))
        elif extends(plugin, SumsReader) and plugin.reads_only_sums:
            known.append(KnownFilter(plugin, column, True))
        else:
            return known, False
    return known, True


def _is_unmoved(plugin: FilterPlugin, column: PluginColumn) -> bool:
    if _is_blind(plugin, column) or (not column.refused and _is_eased(plugin)):
        return True
    return Reads.PODS not in plugin.reads and not extends(plugin, TopologyPlugin)


def _is_blind(plugin: FilterPlugin, column: PluginColumn) -> bool:
    return extends(plugin, EvictionBlind) and plugin.is_eviction_blind(column.state)


def _is_eased(plugin: FilterPlugin) -> bool:
    return extends(plugin, EasedByEvictions) and plugin.eased_by_evictions


class Eviction:
    """The rows of one attempt without the pods below a priority, and the verdicts of the known filters on them."""

    def __init__(
        self,
        pod: PodInfo,
        filters: list[KnownFilter],
        snapshot: Snapshot,
        placed: PlacedPods,
        rows: Rows,
        priority: int,
    ) -> None:
        """`rows`: each has at least one pod below the priority."""
        self._filters = filters
        self._placed = placed
        self._table = snapshot.nodes.with_own_sums()
        self._snapshot = snapshot.with_table(self._table)
        # States of their own: those of the columns write the texts of the cluster as it is.
        self._states: Mapping[str, State] = {
            known.plugin.name: known.plugin.pre_filter(pod, self._snapshot)[1]
            for known in filters
            if known.follows_sums
        }
        below: Bools = placed.priority[rows] < priority
        amounts = placed.amounts(placed.shape[rows])
        relief = {name: -(amount * below).sum(axis=1) for name, amount in amounts.items()}
        self._table.shift_sums(rows, relief, -below.sum(axis=1))
        fits = self._passes(rows, filters)
        self.failed: Rows = rows[~fits]
        self.rows: Rows = rows[fits]
        """The rows on which the pod may fit without all pods below the priority."""
        self._potential: Ints = below[fits].sum(axis=1)
        self._first: Ints = np.argmax(below[fits], axis=1)

    def refusals(self) -> list[tuple[str, int]]:
        """(reason, number of nodes) of the rows that failed."""
        verdicts = tuple(self._verdict(known) for known in self._filters)
        return Diagnosis(self._table.names, self.failed[:0], verdicts, None).counts()

    def reprieve(self, budgets: DisruptionBudgets) -> Victims:
        """Put back on each of `rows` the pods that can be; the others are the victims. To be called once."""
        rows, placed = self.rows, self._placed
        following = [known for known in self._filters if known.follows_sums]
        taken = np.zeros((len(rows), placed.width), dtype=np.bool_)
        order, broken = self._order(budgets)
        for turn in range(int(self._potential.max(initial=0))):
            live = np.flatnonzero(turn < self._potential)
            place = order[live, turn]
            shapes = placed.shape[rows[live], place]
            self._shift(rows[live], shapes, 1)
            refused = ~self._passes(rows[live], following)
            self._shift(rows[live][refused], shapes[refused], -1)
            taken[live[refused], place[refused]] = True
        return Victims(placed, rows, taken, broken)

    def _order(self, budgets: DisruptionBudgets) -> tuple[Ints, Bools]:
        """In which order the places of each row are put back, and which of them break a budget."""
        width = self._placed.width
        order: Ints = np.minimum(self._first[:, np.newaxis] + np.arange(width), width - 1)
        broken = np.zeros((len(self.rows), width), dtype=np.bool_)
        if budgets.are_absent:
            return order, broken
        for index, row in enumerate(self.rows.tolist()):
            first, many = int(self._first[index]), int(self._potential[index])
            violated = budgets.violated_by(self._placed.pods[row][first : first + many])
            if any(violated):
                flags = np.array(violated)
                broken[index, first : first + many] = flags
                order[index, :many] = first + np.argsort(~flags, kind="stable")
        return order, broken

    def _shift(self, rows: Rows, shapes: NDArray[np.int32], sign: int) -> None:
        amounts = {name: amount * sign for name, amount in self._placed.amounts(shapes).items()}
        self._table.shift_sums(rows, amounts, np.full(len(rows), sign))

    def _passes(self, rows: Rows, filters: list[KnownFilter]) -> Bools:
        passing = np.ones(len(rows), dtype=np.bool_)
        for known in filters:
            if known.follows_sums:
                passing &= known.plugin.filter(self._states[known.plugin.name], self._snapshot, rows).refused == 0
            elif known.column.refused:
                passing &= known.column.values[rows] == 0
        return passing

    def _verdict(self, known: KnownFilter) -> Verdict:
        """The filter's verdict on the rows that failed, and on no others."""
        column = known.column
        refused = np.zeros(self._table.n, dtype=np.int16)
        if not known.follows_sums:
            refused[self.failed] = column.values[self.failed]
            return Verdict(column.plugin, refused, column.refusals)
        verdicts = known.plugin.filter(self._states[known.plugin.name], self._snapshot, self.failed)
        refused[self.failed] = verdicts.refused
        return Verdict(column.plugin, refused, verdicts.refusals)


class Victims:
    """The victims on each of `rows`. A row without a victim is no candidate and is left out."""

    def __init__(self, placed: PlacedPods, rows: Rows, taken: Bools, broken: Bools) -> None:
        """`taken`, `broken`: by row and place, which pods are victims, and which break a budget by leaving."""
        some = taken.any(axis=1)
        self._placed = placed
        self.rows: Rows = rows[some]
        self._taken = taken[some]
        self._broken = broken[some] & self._taken

    def candidate(self, index: int) -> Candidate:
        """The candidate that `rows[index]` is."""
        pods = self._placed.pods[int(self.rows[index])]
        taken, broken = self._taken[index], self._broken[index]
        first = [pods[place] for place in np.flatnonzero(broken).tolist()]
        others = [pods[place] for place in np.flatnonzero(taken & ~broken).tolist()]
        return Candidate(int(self.rows[index]), in_eviction_order(first, others), len(first))

    def ranks(self) -> Ranks:
        """What the candidates are compared by, aligned with `rows`."""
        taken = self._taken
        priority = self._placed.priority[self.rows]
        highest = priority[np.arange(len(self.rows)), np.argmax(taken, axis=1)]
        foremost = taken & (priority == highest[:, np.newaxis])
        started = np.where(foremost, self._placed.started[self.rows], np.inf)
        return Ranks(
            self._broken.sum(axis=1),
            highest,
            np.where(taken, priority + PRIORITY_SHIFT, 0).sum(axis=1),
            taken.sum(axis=1),
            started.min(axis=1, initial=np.inf),
        )
