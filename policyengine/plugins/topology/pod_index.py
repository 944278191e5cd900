"""Which kinds of pods are on which nodes: counting plugins read it instead of every pod.

A *kind* is all that a plugin may ask about a placed pod: namespace, labels, whether it is terminating, and its pod
(anti-)affinity. Pods made from one template are of one kind, so a selector is matched once a kind, not once a pod.
Each node table has one index, shared by all plugins. It follows the pod journal and reads a row again when it changed.

The sums by which spreading and inter-pod affinity decide are counted by domain: a topology key is a node label, and
each of its values is a domain. Worked example for the key `zone`; `pods` is the weight of the pods on a node, and n3 is
not eligible:

    node   zone   eligible   pods         domain   sum   nodes
    n0     a      yes        2            a        3     2
    n1     a      yes        1      ->    b        0     1
    n2     b      yes        0
    n3     b      no         4
    n4     -      yes        7
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.status import Rows
from policyengine.plugins.selectors.affinity_term import Terms, terms_of
from policyengine.plugins.selectors.label_selector import PodSelector, Requirement

_Key = tuple[str, int, bool, int]
"""Namespace, identity of the labels, whether it is terminating, identity of the terms."""
Label = tuple[str, str]
FEW_KINDS, MOST_KINDS = 64, 4096


class PodKind:
    """What pods of one kind have in common, and how many of them are on each row."""

    def __init__(self, pod: PodInfo, key: _Key) -> None:
        self.key = key
        self.namespace = pod.namespace
        self.labels: Mapping[str, str] = pod.labels
        self.deleting = pod.deleting
        self.terms = terms_of(pod)
        """Its own affinity and anti-affinity terms; none of them where one is malformed."""
        self.rows: dict[int, int] = {}


_Kinds = dict[PodKind, None]
"""An ordered set."""
T = TypeVar("T")


class ByKind(dict[PodKind, T]):
    """What a function says of each kind it was asked about. Kinds come and go with their pods, each deletion makes one:
    `trim` bounds what is kept of those that are gone."""

    def __init__(self, of: Callable[[PodKind], T]) -> None:
        self._of = of

    def __missing__(self, kind: PodKind) -> T:
        found = self[kind] = self._of(kind)
        return found

    def trim(self, index: PodIndex) -> None:
        """Forget everything where most of it is about kinds that are gone."""
        if len(self) > min(2 * len(index.kinds) + FEW_KINDS, MOST_KINDS):
            self.clear()


class PodIndex:
    """All kinds of pods on the nodes of one table."""

    def __init__(self) -> None:
        self._position = -1
        self._start_over()

    def _start_over(self) -> None:
        self.kinds: dict[_Key, PodKind] = {}
        self._on_row: list[dict[PodKind, int]] = []
        self._having: dict[Label, _Kinds] = {}
        """The kinds by each of their labels."""
        self._requiring: dict[Label | None, _Kinds] = {}
        """The kinds by a label that a term of theirs requires; None: with a term that requires no exact value."""

    def follow(self, nodes: NodeTable) -> None:
        """Bring the index up to date with the table."""
        journal = nodes.pod_journal
        if self._position == journal.position:
            return
        changed = journal.listed_since(self._position) if self._position >= 0 else None
        self._position = journal.position
        if changed is None:
            self._start_over()
            changed = list(range(nodes.n))
        while len(self._on_row) > nodes.n:
            self._replace(len(self._on_row) - 1, {})
            self._on_row.pop()
        self._on_row.extend({} for _ in range(nodes.n - len(self._on_row)))
        for row in changed:
            if nodes.pods_on(row) or self._on_row[row]:
                self._read(nodes, row)

    def on_row(self, row: int) -> Iterable[tuple[PodKind, int]]:
        """(kind, number of its pods) on the row."""
        return self._on_row[row].items()

    @property
    def any_terms(self) -> bool:
        """Whether a pod on a node has pod (anti-)affinity."""
        return bool(self._requiring)

    def selected_by(self, selectors: Iterable[PodSelector]) -> Iterable[PodKind]:
        """Kinds, among them all that one of the selectors matches."""
        found: _Kinds = {}
        for selector in selectors:
            if selector.nothing:
                continue
            exact = [one for one in selector.requirements if one.operator == "In"]
            if not exact:
                return self.kinds.values()
            groups = ([kinds for label in _labels_of(one) if (kinds := self._having.get(label))] for one in exact)
            for kinds in min(groups, key=lambda group: sum(map(len, group))):
                found.update(kinds)
        return found

    def with_terms_about(self, labels: Mapping[str, str]) -> Iterable[PodKind]:
        """Kinds, among them all with a term that matches a pod with these labels."""
        if not self._requiring:
            return ()
        groups = (self._requiring.get(label) for label in (None, *labels.items()))
        return {kind: None for kinds in groups if kinds for kind in kinds}

    def weights(self, weight_of: ByKind[int], among: Iterable[PodKind], n: int) -> NDArray[np.int64]:
        """The summed weight of the pods of these kinds on each row: `int64[n]`."""
        total = np.zeros(n, dtype=np.int64)
        for kind in among:
            weight = weight_of[kind]
            if weight:
                where = np.fromiter(kind.rows.keys(), dtype=np.int64, count=len(kind.rows))
                counts = np.fromiter(kind.rows.values(), dtype=np.int64, count=len(kind.rows))
                total[where] += counts * weight
        return total

    def _read(self, nodes: NodeTable, row: int) -> None:
        present: dict[PodKind, int] = {}
        for pod in nodes.pods_on(row).values():
            terms = terms_of(pod)
            # The kind keeps labels and terms alive, so that no other object gets their identities.
            key = (pod.namespace, id(pod.labels), pod.deleting, id(terms))
            kind = self.kinds.get(key)
            if kind is None:
                kind = self.kinds[key] = PodKind(pod, key)
                for groups, label in self._groups_of(kind):
                    groups.setdefault(label, {})[kind] = None
            present[kind] = present.get(kind, 0) + 1
        self._replace(row, present)

    def _replace(self, row: int, present: dict[PodKind, int]) -> None:
        for kind in self._on_row[row]:
            if kind not in present:
                del kind.rows[row]
                if not kind.rows:
                    self._forget(kind)
        for kind, count in present.items():
            kind.rows[row] = count
        self._on_row[row] = present

    def _forget(self, kind: PodKind) -> None:
        del self.kinds[kind.key]
        for groups, label in self._groups_of(kind):
            del groups[label][kind]
            if not groups[label]:
                del groups[label]

    def _groups_of(self, kind: PodKind) -> Iterable[tuple[dict[Any, _Kinds], Label | None]]:
        for label in kind.labels.items():
            yield self._having, label
        for required in _required_by(kind.terms):
            yield self._requiring, required


def _required_by(terms: Terms) -> set[Label | None]:
    """For each term labels such that every pod it matches has one of them; None for a term without."""
    every = (*terms.affinity, *terms.anti_affinity, *(one.term for one in terms.preferred))
    required: set[Label | None] = set()
    for selector in {term.selector for term in every if not term.selector.nothing}:
        exact = [one for one in selector.requirements if one.operator == "In"]
        required.update(_labels_of(min(exact, key=lambda one: len(one.values))) if exact else (None,))
    return required


def _labels_of(requirement: Requirement) -> Iterable[Label]:
    return ((requirement.key, value) for value in requirement.values)


_indices: WeakKeyDictionary[NodeTable, PodIndex] = WeakKeyDictionary()


def pod_index(nodes: NodeTable) -> PodIndex:
    """The table's index, up to date."""
    index = _indices.get(nodes)
    if index is None:
        index = _indices[nodes] = PodIndex()
    index.follow(nodes)
    return index


Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


class DomainCounts:
    """The weights of pods, summed over the eligible nodes of each domain of one topology key."""

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
        """The weight of the pods on each node, eligible or not: `int64[nodes]`; empty where no node has the key."""
        self.sums: Int64 = np.zeros(1, dtype=np.int64)
        """By the ids of `label_values(key)`, with a last entry that stays 0. The id of nodes without the label, -1,
        points at it: `int64[values + 1]`."""
        self.nodes: Int64 = np.zeros(0, dtype=np.int64)
        """How many eligible nodes each domain has: `int64[values]`."""
        self._domains: Int64 = np.zeros(0, dtype=np.int64)
        """The domain in which each row counts; the number of domains where it counts in none."""

    def count(self, nodes: NodeTable, index: PodIndex, eligible: Mask | None = None) -> None:
        """Count all nodes anew. `eligible`: `bool[nodes]`; None for all of them."""
        if not nodes.has_label(self.key):  # pods name such keys by the thousand
            self.on_node = self.nodes = self._domains = np.zeros(0, dtype=np.int64)
            self.sums = np.zeros(1, dtype=np.int64)
            return
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
        before: dict[int, int] = {}
        if len(on_node) == 0:
            return before
        weights.trim(index)
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
