"""Pods per topology domain: the sums that spreading and inter-pod affinity decide by.

A topology key is a node label, and each of its values is a domain. Worked example for the key `zone`; `pods` is the
weight of the pods on a node, and n3 is not eligible:

    node   zone   eligible   pods         domain   sum   nodes
    n0     a      yes        2            a        3     2
    n1     a      yes        1      ->    b        0     1
    n2     b      yes        0
    n3     b      no         4
    n4     -      yes        7
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.node_table import NodeTable
from policyengine.framework.status import Rows
from policyengine.plugins.topology.pod_index import ByKind, PodIndex, PodKind

Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


class DomainCounts:
    """The weights of pods, summed over the eligible nodes of each domain of one topology key."""

    __slots__ = ("_among", "_domains", "_weights", "key", "nodes", "on_node", "sums")

    def __init__(
        self,
        key: str,
        weigh: Callable[[PodKind], int],
        among: Callable[[PodIndex], Iterable[PodKind]],
    ) -> None:
        """`weigh`: the weight of one pod of a kind. `among`: kinds of the index, at least all that weigh something."""
        self.key = key
        self._weights = ByKind(weigh)
        self._among = among
        self.on_node: Int64 = np.zeros(0, dtype=np.int64)
        """The weight of the pods on each node, eligible or not: `int64[nodes]`."""
        self.sums: Int64 = np.zeros(1, dtype=np.int64)
        """By the ids of `label_values(key)`, with a last entry that stays 0. The id of nodes without the label, -1,
        points at it: `int64[values + 1]`."""
        self.nodes: Int64 = np.zeros(0, dtype=np.int64)
        """How many eligible nodes each domain has: `int64[values]`."""
        self._domains: Int64 = np.zeros(0, dtype=np.int64)
        """The domain in which each row counts; the number of domains where it counts in none."""

    def count(self, nodes: NodeTable, index: PodIndex, eligible: Mask | None = None) -> None:
        """Count all nodes anew. `eligible`: `bool[nodes]`; None for all of them."""
        self._weights.trim(index)
        ids = nodes.label_ids(self.key)
        values = len(nodes.label_values(self.key))
        counts = ids >= 0 if eligible is None else eligible & (ids >= 0)
        self._domains = np.where(counts, ids, values)
        self.on_node = index.weights(self._weights, self._among(index), nodes.n)
        self.nodes = np.bincount(self._domains, minlength=values + 1)[:-1]
        self.sums = np.zeros(values + 1, dtype=np.int64)
        np.add.at(self.sums, self._domains, self.on_node)
        self.sums[-1] = 0

    def follow(self, index: PodIndex, rows: Rows) -> dict[int, int]:
        """Count the pods on `rows` again. No Node may have changed since `count`. {domain: its sum before}, of the
        domains of rows where something changed."""
        weights, on_node, sums = self._weights, self.on_node, self.sums
        weights.trim(index)
        before: dict[int, int] = {}
        for row in rows.tolist():
            weight = sum([weights[kind] * count for kind, count in index.on_row(row)])
            change = weight - on_node.item(row)
            if change:
                on_node[row] = weight
                domain = self._domains.item(row)
                if domain < len(sums) - 1:
                    before.setdefault(domain, sums.item(domain))
                    sums[domain] += change
        return before

    def rows_in(self, domains: Sequence[int]) -> Rows:
        """The eligible nodes of some domains, ascending."""
        if len(domains) == 1:
            return np.flatnonzero(self._domains == domains[0])
        return np.flatnonzero(np.isin(self._domains, domains))


def rows_that_differ(before: NDArray[np.generic], after: NDArray[np.generic]) -> Rows | None:
    """The rows in which two columns differ; None, for all rows, where they are of different length."""
    return np.flatnonzero(before != after) if len(before) == len(after) else None
