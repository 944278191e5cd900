"""How a pod's spread constraints see the cluster: matching pods per topology domain, maintained row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.rows import FEW
from policyengine.framework.status import Rows
from policyengine.plugins.selectors.node_selector import required_selectors
from policyengine.plugins.selectors.pod_selector import PodSelector
from policyengine.plugins.selectors.tolerations import HARD, TaintTable
from policyengine.plugins.topology.domain_counts import DomainCounts, DomainsMoved, Int64, Moved
from policyengine.plugins.topology.pod_index import PodIndex, PodKind, pod_index
from policyengine.plugins.topology.spread_constraint import Constraint

if TYPE_CHECKING:
    from policyengine.cluster.columns import NodeTable

_MEMO = 4096


class KindMatch:
    """Whether standing pods of a kind count for a constraint; remembered a kind."""

    __slots__ = ("_known", "_namespace", "_selector")

    def __init__(self, namespace: str, selector: PodSelector) -> None:
        self._namespace = namespace
        self._selector = selector
        self._known: dict[PodKind, int] = {}

    def __call__(self, kind: PodKind) -> int:
        """1 where it counts. Terminating pods do not; a selector that restricts nothing counts none."""
        known = self._known.get(kind)
        if known is None:
            if len(self._known) >= _MEMO:
                self._known.clear()
            known = self._known[kind] = self._matches(kind)
        return known

    def _matches(self, kind: PodKind) -> int:
        selector = self._selector
        counts = not kind.deleting and kind.namespace == self._namespace and not selector.empty
        return int(counts and selector.matches(kind.labels))


class SpreadCounts:
    """Per constraint the sums over its domains, of the nodes that its inclusion policies admit."""

    def __init__(self, pod: PodInfo, constraints: Sequence[Constraint], every_key: bool) -> None:
        """`every_key`: only nodes that have the topology keys of all constraints are counted."""
        self.constraints = tuple(constraints)
        self.counts = [DomainCounts(constraint.key) for constraint in constraints]
        self.on_row: list[Int64] = [np.zeros(0, dtype=np.int64) for _ in constraints]
        """Per constraint the matching pods on each row, whatever the policies say: `int64[nodes]`."""
        self._every_key = every_key
        self._matches = [KindMatch(pod.namespace, constraint.selector) for constraint in constraints]
        self._required = required_selectors(pod.shape.spec)
        self._taints = TaintTable(pod.shape.spec.tolerations, HARD)
        self._node_position = -1

    def update(self, nodes: NodeTable, rows: Rows) -> DomainsMoved | None:
        """Count `rows` as they are now; the domains where a sum or the number of nodes changed, None: any may."""
        index = pod_index(nodes)
        if nodes.node_journal.position == self._node_position and len(rows) <= FEW:
            return self.recount(index, rows.tolist())
        self._node_position = nodes.node_journal.position
        return None if self._update_all(nodes, index, rows) else {}

    def recount(self, index: PodIndex, rows: Sequence[int]) -> DomainsMoved:
        """`update` row by row, in Python's integers, where no Node changed: the same nodes count."""
        moved: dict[str, Moved] = {}
        for constraint, counts, matches, on_row in zip(
            self.constraints, self.counts, self._matches, self.on_row, strict=True
        ):
            domains = moved.setdefault(constraint.key, set())
            for row in rows:
                weight = sum([matches(kind) * count for kind, count in index.on_row(row)])
                on_row[row] = weight
                counts.recount_row(row, weight, counts.is_counted(row), domains)
        return {key: domains for key, domains in moved.items() if domains}

    def _update_all(self, nodes: NodeTable, index: PodIndex, rows: Rows) -> bool:
        labelled = np.ones(len(rows), dtype=np.bool_)
        if self._every_key:
            for constraint in self.constraints:
                labelled &= nodes.label_ids(constraint.key)[rows] >= 0
        changed = False
        for place, constraint in enumerate(self.constraints):
            counts = self.counts[place]
            weights = index.weights(self._matches[place], rows, index.selected_by((constraint.selector,)))
            self._note(place, nodes.n, rows, weights)
            before = counts.sums.copy(), counts.members.copy()
            counts.update(nodes, rows, weights, labelled & self._admitted(constraint, nodes, rows))
            after = counts.sums, counts.members
            changed |= not all(np.array_equal(old, new) for old, new in zip(before, after, strict=True))
        return changed

    def _admitted(self, constraint: Constraint, nodes: NodeTable, rows: Rows) -> NDArray[np.bool_]:
        """nodeAffinityPolicy and nodeTaintsPolicy (KEP-3094)."""
        admitted: NDArray[np.bool_] = np.ones(len(rows), dtype=np.bool_)
        if constraint.honors_affinity:
            for selector in self._required:
                admitted &= selector.mask(nodes, rows)
        if constraint.honors_taints:
            admitted &= self._taints.counts(nodes.taint_sets)[nodes.taint_ids[rows]] == 0
        return admitted

    def _note(self, place: int, n: int, rows: Rows, weights: Int64) -> None:
        column = self.on_row[place]
        if len(column) != n:
            resized = np.zeros(n, dtype=np.int64)
            resized[: min(n, len(column))] = column[:n]
            column = self.on_row[place] = resized
        column[rows] = weights
