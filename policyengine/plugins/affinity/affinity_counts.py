"""How the pods on the nodes affect one incoming pod: sums per topology domain, kept up to date."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import numpy as np

from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import Snapshot
from policyengine.cluster.workload_objects import Namespace
from policyengine.framework.changes import NO_ROWS, Delta, at, union
from policyengine.framework.status import Rows
from policyengine.plugins.selectors.affinity_term import Term, Terms
from policyengine.plugins.topology.pod_index import ByKind, DomainCounts, Int64, PodIndex, PodKind, pod_index

Effects = Iterable[tuple[str, int]]
"""(topology key, weight): what one pod of a kind adds to its domain of each key."""

_NO_LABELS: Final[Mapping[str, str]] = {}


class Incoming:
    """The pod to be placed, as the terms of others see it, and the namespaces as its own terms see them."""

    def __init__(self, pod: PodInfo, terms: Terms, snapshot: Snapshot) -> None:
        self.terms = terms
        self.labels = pod.labels
        self._namespace = pod.namespace
        self._namespaces = snapshot.objects(Namespace)
        namespace = self._namespaces.get(pod.namespace)
        self._namespace_labels = _NO_LABELS if namespace is None else namespace.metadata.labels

    def is_selected_by(self, term: Term) -> bool:
        """Whether the term of another pod matches this pod. An unknown namespace counts as one without labels."""
        return term.matches(self._namespace, self._namespace_labels, self.labels)

    def selects(self, term: Term, kind: PodKind) -> bool:
        """Whether one of its own terms matches pods of the kind. A namespace selector finds only known namespaces."""
        if kind.namespace in term.namespaces or term.namespace_selector.empty:
            return term.selector.matches(kind.labels)
        namespace = self._namespaces.get(kind.namespace)
        if namespace is None:
            return False
        return term.matches(kind.namespace, namespace.metadata.labels, kind.labels)

    def selects_itself(self, term: Term) -> bool:
        """Whether one of its own terms matches the pod itself, as kube-scheduler asks for the first of a series."""
        known = self._namespace in self._namespaces or term.namespace_selector.empty
        return (self._namespace in term.namespaces or known) and self.is_selected_by(term)


class AffinityCounts:
    """Per topology key the summed effects of the pods on the nodes. Keys are added as their first pods come.

    A key that no node has is left out: one pod may have terms with thousands of those, and all that come after it would
    count them too.
    """

    def __init__(
        self,
        effects: Callable[[PodKind], Effects],
        among: Callable[[PodIndex], Iterable[PodKind]],
        keys: Iterable[str] = (),
        presence: bool = False,
    ) -> None:
        """`among`: kinds of the index, at least all that have an effect. `keys`: those there are from the start.
        `presence`: it only matters which sums are above 0."""

        def summed(kind: PodKind) -> Mapping[str, int]:
            found: dict[str, int] = {}
            for key, weight in effects(kind):
                found[key] = found.get(key, 0) + weight
            return found

        self._effects = ByKind(summed)
        self._among = among
        self._presence = presence
        self._node_position = -1
        self._keys = frozenset(keys)
        self.by_key: dict[str, DomainCounts] = {}

    def _counts(self, key: str) -> DomainCounts:
        return DomainCounts(key, lambda kind: self._effects[kind].get(key, 0), self._among)

    def update(self, nodes: NodeTable, rows: Rows) -> Delta:
        """Count the pods on `rows` again; everything if a Node has changed. The rows in domains whose sum changed."""
        index = pod_index(nodes)
        if not self._keys and not self.by_key and not index.any_terms:
            return NO_ROWS
        self._effects.trim(index)
        anew = self._node_position != nodes.node_journal.position
        self._node_position = nodes.node_journal.position
        kinds = self._among(index) if anew else [kind for row in rows.tolist() for kind, _ in index.on_row(row)]
        met = {key for kind in kinds for key in self._effects[kind] if key not in self.by_key}
        if anew:
            met |= self._keys - self.by_key.keys()
        new_keys = {key for key in met if nodes.has_label(key)}
        changed: Delta = NO_ROWS
        for counts in self.by_key.values():
            if anew:
                counts.count(nodes, index)
            else:
                changed = union(changed, self._follow(counts, index, rows))
        for key in sorted(new_keys):
            self.by_key[key] = self._counts(key)
            self.by_key[key].count(nodes, index)
        return None if anew or new_keys else changed

    def _follow(self, counts: DomainCounts, index: PodIndex, rows: Rows) -> Rows:
        moved: list[int] = []
        for domain, before in counts.follow(index, rows).items():
            after = counts.sums.item(domain)
            if (after > 0) != (before > 0) if self._presence else after != before:
                moved.append(domain)
        return counts.rows_in(moved) if moved else NO_ROWS

    @property
    def any_sum(self) -> bool:
        """Whether a domain of any key has a sum other than 0."""
        return any(counts.sums.any() for counts in self.by_key.values())

    def total(self, nodes: NodeTable, rows: Rows) -> Int64:
        """For each of some nodes the sum over all keys of its domains: `int64[rows]`."""
        total = np.zeros(len(rows), dtype=np.int64)
        for key, counts in self.by_key.items():
            total += counts.sums[at(nodes.label_ids(key), rows)]
        return total
