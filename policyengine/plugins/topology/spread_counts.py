"""The verdict and the raw score of every node by a pod's topology spread constraints, maintained as pods change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.status import Rows
from policyengine.plugins.selectors.label_selector import PodSelector
from policyengine.plugins.selectors.node_selector import required_selectors
from policyengine.plugins.selectors.tolerations import HARD, TaintCounts
from policyengine.plugins.topology.pod_index import DomainCounts, Int64, Mask, PodKind, pod_index, rows_that_differ
from policyengine.plugins.topology.spread_constraint import HOSTNAME, Constraint

_UNLABELLED: Final = 1
_SKEWED: Final = 2
"""Numbers of the plugin's refusals."""


class SpreadCounts:
    """For each constraint the matching pods per domain, on the nodes that its inclusion policies admit."""

    def __init__(self, pod: PodInfo, constraints: Sequence[Constraint], every_key: bool) -> None:
        """`every_key`: only nodes that have the topology keys of all constraints are eligible."""
        self.constraints = tuple(constraints)
        self.every_key = every_key
        self.counts = [_counts(pod.namespace, constraint) for constraint in constraints]
        self._required = required_selectors(pod.shape.spec)
        self._taints = TaintCounts(pod.shape.spec.tolerations, HARD)
        self._node_position = -1

    def count(self, nodes: NodeTable, rows: Rows) -> bool:
        """Count the pods on `rows` again, or everything if a Node has changed: then True."""
        index = pod_index(nodes)
        if self._node_position == nodes.node_journal.position:
            for counts in self.counts:
                counts.follow(index, rows)
            return False
        self._node_position = nodes.node_journal.position
        labelled = np.ones(nodes.n, dtype=np.bool_)
        if self.every_key:
            for constraint in self.constraints:
                labelled &= nodes.label_ids(constraint.key) >= 0
        for constraint, counts in zip(self.constraints, self.counts, strict=True):
            is_counted = nodes.has_label(constraint.key)
            counts.count(nodes, index, labelled & self._admitted(constraint, nodes) if is_counted else None)
        return True

    def scored(self, nodes: NodeTable) -> Sequence[tuple[Constraint, DomainCounts]]:
        """What nodes are scored by. Where none has a key that every node has to have, all score alike for that one:
        a pod may have thousands of them."""
        parts = list(zip(self.constraints, self.counts, strict=True))
        absent = (part for part in parts if self.every_key and not nodes.has_label(part[0].key))
        decisive = next(absent, None)
        return parts if decisive is None else [decisive]

    def _admitted(self, constraint: Constraint, nodes: NodeTable) -> Mask:
        """nodeAffinityPolicy and nodeTaintsPolicy (KEP-3094): `bool[nodes]`."""
        every_row = np.arange(nodes.n)
        admitted: Mask = np.ones(nodes.n, dtype=np.bool_)
        if constraint.honors_affinity:
            for selector in self._required:
                admitted &= selector.mask(nodes, every_row)
        if constraint.honors_taints:
            admitted &= self._taints.at(nodes, every_row) == 0
        return admitted


def _counts(namespace: str, constraint: Constraint) -> DomainCounts:
    selector: PodSelector = constraint.selector

    def weigh(kind: PodKind) -> int:
        """Terminating pods do not count; a selector that restricts nothing selects none."""
        selects = not kind.deleting and kind.namespace == namespace and not selector.empty
        return int(selects and selector.matches(kind.labels))

    return DomainCounts(constraint.key, weigh, lambda index: index.selected_by((selector,)))


class SpreadFilter:
    """The verdict on every node."""

    def __init__(self, counts: SpreadCounts, itself: Sequence[bool]) -> None:
        """`itself`: for each constraint, whether it selects the incoming pod."""
        self._counts = counts
        self._itself = itself
        self.refused: NDArray[np.int16] = np.zeros(0, dtype=np.int16)
        """0, or the number of the refusal: `int16[nodes]`. A new array whenever it changes."""

    def update(self, nodes: NodeTable, rows: Rows) -> Rows | None:
        """Count `rows` again; the rows whose verdict changed, None for all."""
        self._counts.count(nodes, rows)
        before, self.refused = self.refused, self._judged(nodes)
        return rows_that_differ(before, self.refused)

    def _judged(self, nodes: NodeTable) -> NDArray[np.int16]:
        """The first constraint that a node breaks is reported, and for it a missing label first."""
        refused = np.zeros(nodes.n, dtype=np.int16)
        parts = list(zip(self._counts.constraints, self._counts.counts, self._itself, strict=True))
        for constraint, counts, itself in reversed(parts):
            present = counts.sums[:-1][counts.nodes > 0]
            # With too few domains the smallest number counts as 0.
            least = int(present.min()) if len(present) >= max(1, constraint.min_domains) else 0
            by_domain = (counts.sums > constraint.max_skew + least - int(itself)) * np.int16(_SKEWED)
            by_domain[-1] = _UNLABELLED
            mine = by_domain[nodes.label_ids(constraint.key)]
            refused = np.where(mine != 0, mine, refused)
        return refused


class SpreadScore:
    """The raw scores of every node: per constraint the matching pods in its domain, and the id of the domain."""

    def __init__(self, counts: SpreadCounts) -> None:
        self._counts = counts
        self._scored: Sequence[tuple[Constraint, DomainCounts]] = ()
        self._empty: list[int] = []
        """Per constraint the id of the empty label value, which counts like an absent label."""
        self.raw: Int64 = np.zeros((0, 0), dtype=np.int64)
        """`int64[nodes, 2 · constraints]`; the id is -1 for nodes without the label."""

    def update(self, nodes: NodeTable, rows: Rows) -> Rows | None:
        """Count `rows` again; the rows whose raw score changed, None for all."""
        if self._counts.count(nodes, rows):
            self._scored = self._counts.scored(nodes)
            self.raw = np.empty((nodes.n, 2 * len(self._scored)), dtype=np.int64, order="F")
            self._empty = []
            for place, (_, counts) in enumerate(self._scored):
                values = nodes.label_values(counts.key)
                self._empty.append(values.index("") if "" in values else -1)
                self.raw[:, 2 * place] = _pods_in_domain(counts, nodes)
                self.raw[:, 2 * place + 1] = nodes.label_ids(counts.key)
            return None
        differs = np.zeros(nodes.n, dtype=np.bool_)
        for place, (_, counts) in enumerate(self._scored):
            pods = _pods_in_domain(counts, nodes)
            differs |= self.raw[:, 2 * place] != pods
            self.raw[:, 2 * place] = pods
        return np.flatnonzero(differs)

    def domain_count(self, place: int, raw: Int64) -> int:
        """How many domains the nodes make up; for the host name each node is a domain."""
        if self._scored[place][0].key == HOSTNAME:
            return len(raw)
        ids, empty = raw[:, 2 * place + 1], self._empty[place]
        return int(np.count_nonzero(np.bincount((ids if empty < 0 else np.where(ids == empty, -1, ids)) + 1)))

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """What is scored by."""
        return tuple([constraint for constraint, _ in self._scored])

    def lacking(self, raw: Int64) -> Mask | None:
        """The nodes without a key that every node has to have: `bool[rows]`; None where all have them."""
        if not self._counts.every_key or len(raw) == 0 or raw[:, 1::2].min() >= 0:
            return None
        lacking: Mask = np.any(raw[:, 1::2] < 0, axis=1)
        return lacking

    def sums(self, raw: Int64, weights: Sequence[float]) -> Int64:
        """Σ (count·weight + maxSkew - 1) over the constraints, rounded half up: `int64[rows]`."""
        total = np.zeros(len(raw))
        for place, (constraint, weight) in enumerate(zip(self.constraints, weights, strict=True)):
            mine = raw[:, 2 * place] * weight
            mine += float(constraint.max_skew - 1)
            if not self._counts.every_key:
                mine[raw[:, 2 * place + 1] < 0] = 0.0
            total += mine
        whole = np.floor(total)
        whole += total - whole >= 0.5
        return whole.astype(np.int64)


def _pods_in_domain(counts: DomainCounts, nodes: NodeTable) -> Int64:
    """The matching pods in each node's domain, for the host name those on the node, eligible or not: `int64[nodes]`."""
    is_on_node = counts.key == HOSTNAME and nodes.has_label(HOSTNAME)
    return counts.on_node if is_on_node else counts.sums[nodes.label_ids(counts.key)]
