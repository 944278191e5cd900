"""Which kinds of pods stand on which rows: what counting plugins ask instead of looking at every pod.

A *kind* is all a plugin may ask about a standing pod: namespace, labels, whether it is terminating, and its pod
(anti-)affinity. Pods made from one template are of one kind, so a selector is matched once a kind, not once a pod.
One index a node table, shared by all plugins; it follows the pod journal and reads a row again when it changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.status import Rows
from policyengine.plugins.selectors.affinity_term import terms_of
from policyengine.plugins.selectors.pod_selector import PodSelector
from policyengine.plugins.topology.kind_labels import KindLabels

if TYPE_CHECKING:
    from policyengine.cluster.columns import NodeTable

Weigh = Callable[["PodKind"], int]
"""What one standing pod of a kind counts for."""


_Key = tuple[str, int, bool, int]
"""Namespace, identity of the labels, whether it is terminating, identity of the terms."""


class PodKind:
    """What pods of one kind have in common, and how many of them stand on each row."""

    __slots__ = ("deleting", "key", "labels", "namespace", "rows", "terms")

    def __init__(self, pod: PodInfo, key: _Key) -> None:
        self.key = key
        self.namespace = pod.namespace
        self.labels: Mapping[str, str] = pod.labels
        self.deleting = pod.deleting
        self.terms = terms_of(pod)
        """Its own affinity and anti-affinity terms; none of them where one is malformed."""
        self.rows: dict[int, int] = {}


class PodIndex:
    """All kinds of pods on the nodes of one table."""

    def __init__(self) -> None:
        self.kinds: dict[_Key, PodKind] = {}
        self.with_affinity: dict[_Key, PodKind] = {}
        """The kinds with pod (anti-)affinity of their own."""
        self._by_label = KindLabels()
        self._on_row: list[dict[PodKind, int]] = []
        self._position = -1

    def follow(self, nodes: NodeTable) -> None:
        """Bring the index up to date with the table."""
        journal = nodes.pod_journal
        if self._position == journal.position:
            return
        changed = journal.listed_since(self._position) if self._position >= 0 else None
        self._position = journal.position
        if changed is None:
            self.kinds.clear()
            self.with_affinity.clear()
            self._by_label.clear()
            self._on_row = []
            changed = list(range(nodes.n))
        while len(self._on_row) > nodes.n:
            self._replace(len(self._on_row) - 1, {})
            self._on_row.pop()
        if len(self._on_row) < nodes.n:
            self._on_row.extend({} for _ in range(nodes.n - len(self._on_row)))
        for row in changed:
            if nodes.pods_on(row) or self._on_row[row]:
                self._read(nodes, row)

    def on_row(self, row: int) -> Iterable[tuple[PodKind, int]]:
        """(kind, number of its pods) on the row."""
        return self._on_row[row].items()

    def with_affinity_on(self, row: int) -> Iterable[PodKind]:
        """The kinds with pod (anti-)affinity of their own on the row."""
        return [kind for kind in self._on_row[row] if kind.terms.any] if self.with_affinity else ()

    def selected_by(self, selectors: Iterable[PodSelector]) -> Iterable[PodKind]:
        """Kinds, among them all that one of the selectors matches."""
        found: dict[PodKind, None] = {}
        for selector in selectors:
            kinds = self._by_label.selected_by(selector)
            if kinds is None:
                return self.kinds.values()
            found.update(dict.fromkeys(kinds))
        return found

    def meaning(self, labels: Mapping[str, str]) -> Iterable[PodKind]:
        """Kinds, among them all with a term that means a pod with these labels."""
        return self._by_label.meaning(labels) if self.with_affinity else ()

    def weights(self, weigh: Weigh, rows: Rows, among: Iterable[PodKind] | None = None) -> NDArray[np.int64]:
        """The sum over the pods on each row of what they count for: `int64[rows]`. `among` leaves out kinds that
        are known to count for nothing."""
        kinds = self.kinds.values() if among is None else among
        if len(rows) == len(self._on_row):
            total = np.zeros(len(rows), dtype=np.int64)
            for kind in kinds:
                weight = weigh(kind)
                if weight:
                    where = np.fromiter(kind.rows.keys(), dtype=np.int64, count=len(kind.rows))
                    counts = np.fromiter(kind.rows.values(), dtype=np.int64, count=len(kind.rows))
                    total[where] += counts * weight
            return total
        sums = [sum(weigh(kind) * count for kind, count in self.on_row(row)) for row in rows.tolist()]
        return np.array(sums, dtype=np.int64)

    def _read(self, nodes: NodeTable, row: int) -> None:
        present: dict[PodKind, int] = {}
        for pod in nodes.pods_on(row).values():
            terms = terms_of(pod)
            # The kind keeps labels and terms alive, so their identities stay theirs.
            key = (pod.namespace, id(pod.labels), pod.deleting, id(terms))
            kind = self.kinds.get(key)
            if kind is None:
                kind = self.kinds[key] = PodKind(pod, key)
                self._by_label.add(kind)
                if terms.any:
                    self.with_affinity[key] = kind
            present[kind] = present.get(kind, 0) + 1
        self._replace(row, present)

    def _replace(self, row: int, present: dict[PodKind, int]) -> None:
        for kind in self._on_row[row]:
            if kind not in present:
                del kind.rows[row]
                if not kind.rows:
                    del self.kinds[kind.key]
                    self._by_label.remove(kind)
                    self.with_affinity.pop(kind.key, None)
        for kind, count in present.items():
            kind.rows[row] = count
        self._on_row[row] = present


_indices: WeakKeyDictionary[NodeTable, PodIndex] = WeakKeyDictionary()


def pod_index(nodes: NodeTable) -> PodIndex:
    """The table's index, up to date."""
    index = _indices.get(nodes)
    if index is None:
        index = _indices[nodes] = PodIndex()
    index.follow(nodes)
    return index
