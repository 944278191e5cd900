"""How pods that stand somewhere bear on one incoming pod, per topology domain, maintained row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.rows import FEW
from policyengine.framework.status import Rows
from policyengine.plugins.selectors.affinity_term import Term, Terms
from policyengine.plugins.topology.domain_counts import DomainCounts, DomainsMoved, Moved
from policyengine.plugins.topology.pod_index import PodIndex, PodKind

if TYPE_CHECKING:
    from policyengine.cluster.columns import NodeTable
    from policyengine.cluster.snapshot import Snapshot

Effect = tuple[tuple[str, int, int], ...]
"""(topology key, number of matches, weight): what one standing pod of a kind does to its domains."""
EffectOf = Callable[[PodKind], Effect]
Among = Callable[[PodIndex], Iterable[PodKind]]

_NO_LABELS: Final[Mapping[str, str]] = {}
_MEMO: Final = 4096


class Incoming:
    """The pod to be placed, as terms of others see it, and the namespaces as its own terms see them."""

    __slots__ = ("_namespace", "_namespace_labels", "_namespaces", "labels", "terms")

    def __init__(self, pod: PodInfo, terms: Terms, snapshot: Snapshot) -> None:
        self.terms = terms
        self._namespace = pod.namespace
        self.labels = pod.labels
        self._namespaces = snapshot.namespaces
        self._namespace_labels = _labels_of(snapshot, pod.namespace) or _NO_LABELS

    def is_meant_by(self, term: Term) -> bool:
        """Whether a standing pod's term means this pod. An unknown namespace counts as one without labels."""
        return term.matches(self._namespace, self._namespace_labels, self.labels)

    def means(self, term: Term, kind: PodKind) -> bool:
        """Whether one of its own terms means pods of the kind. A namespace selector finds only known namespaces."""
        if kind.namespace in term.namespaces or term.namespace_selector.empty:
            return term.selector.matches(kind.labels)
        namespace = self._namespaces.get(kind.namespace)
        if namespace is None:
            return False
        return term.matches(kind.namespace, namespace.metadata.labels, kind.labels)

    def means_all(self, terms: Iterable[Term], kind: PodKind) -> bool:
        """Whether all of the terms mean the kind."""
        return all(self.means(term, kind) for term in terms)

    def means_itself(self, terms: Iterable[Term]) -> bool:
        """Whether all of its own terms mean the pod itself, as kube-scheduler asks for the first of a series."""
        return all(self._means_itself(term) for term in terms)

    def _means_itself(self, term: Term) -> bool:
        known = self._namespace in self._namespaces or term.namespace_selector.empty
        if self._namespace not in term.namespaces and not known:
            return False
        return self.is_meant_by(term)


def _labels_of(snapshot: Snapshot, namespace: str) -> Mapping[str, str] | None:
    found = snapshot.namespaces.get(namespace)
    return None if found is None else found.metadata.labels


class AffinityCounts:
    """Per topology key the sums of the effects of standing pods. Keys come as pods with terms on them do."""

    __slots__ = ("_among", "_effect_of", "_is_open", "_known", "by_key")

    def __init__(self, effect_of: EffectOf, keys: Iterable[str], among: Among, is_open: bool) -> None:
        """`among` names kinds of an index, among them all that have an effect; `is_open`: on other keys, too."""
        self.by_key: dict[str, DomainCounts] = {key: DomainCounts(key) for key in keys}
        """`sums` of weights; `members` counts the nodes with at least one match."""
        self._effect_of = effect_of
        self._among = among
        self._is_open = is_open
        self._known: dict[PodKind, Effect] = {}

    def update(self, nodes: NodeTable, index: PodIndex, rows: Rows) -> DomainsMoved | None:
        """Count `rows` as they are now; the domains where a sum or a number of matches changed, None: any may."""
        if not self.by_key and not index.with_affinity:
            return {}
        new = self._new_keys(index, rows, nodes.n)
        if not new and len(rows) <= FEW and all(counts.knows(nodes) for counts in self.by_key.values()):
            return self._update_few(nodes, index, rows)
        changed = False
        for key in new:
            self.by_key[key] = DomainCounts(key)
            changed |= self._update_key(key, nodes, index, np.arange(nodes.n))
        for key in self.by_key:
            changed |= self._update_key(key, nodes, index, rows)
        return None if changed else {}

    def _update_few(self, nodes: NodeTable, index: PodIndex, rows: Rows) -> DomainsMoved:
        """The same row by row, in Python's integers."""
        moved: dict[str, Moved] = {key: set() for key in self.by_key}
        for row in rows.tolist():
            for key, (matches, weight) in self._sums(index.on_row(row)).items():
                self.by_key[key].update_row(nodes, row, weight, matches > 0, moved[key])
        return {key: domains for key, domains in moved.items() if domains}

    def recount(self, index: PodIndex, rows: Sequence[int]) -> DomainsMoved | None:
        """`update` where pods came or went on the rows and no Node changed since they were last counted. None: an
        effect on a key that was not met before, which `update` has to count."""
        if not self.by_key and not (self._is_open and index.with_affinity):
            return {}
        moved: dict[str, Moved] = {}
        for row in rows:
            for key, (matches, weight) in self._sums(index.on_row(row)).items():
                counts = self.by_key.get(key)
                if counts is None:
                    return None
                counts.recount_row(row, weight, matches > 0, moved.setdefault(key, set()))
        return {key: domains for key, domains in moved.items() if domains}

    def _sums(self, standing: Iterable[tuple[PodKind, int]]) -> Mapping[str, list[int]]:
        """Topology key -> matches and weight of the pods on one row; every key that is known is among them."""
        sums = {key: [0, 0] for key in self.by_key}
        for kind, count in standing:
            for key, matches, weight in self._effect(kind):
                found = sums.setdefault(key, [0, 0])
                found[0] += matches * count
                found[1] += weight * count
        return sums

    def _update_key(self, key: str, nodes: NodeTable, index: PodIndex, rows: Rows) -> bool:
        among = self._among(index)
        matches = index.weights(lambda kind: self._part(kind, key, 1), rows, among)
        weights = index.weights(lambda kind: self._part(kind, key, 2), rows, among)
        counts = self.by_key[key]
        before = counts.sums.copy(), counts.members.copy()
        counts.update(nodes, rows, weights, matches > 0)
        after = counts.sums, counts.members
        return not all(np.array_equal(old, new) for old, new in zip(before, after, strict=True))

    def _new_keys(self, index: PodIndex, rows: Rows, n: int) -> set[str]:
        """Topology keys of effects on these rows that were not met before."""
        if not index.with_affinity:
            return set()
        if len(rows) == n:
            kinds = set(self._among(index))
        else:
            kinds = {kind for row in rows.tolist() for kind in index.with_affinity_on(row)}
        return {key for kind in kinds for key, _, _ in self._effect(kind)} - self.by_key.keys()

    def _part(self, kind: PodKind, key: str, place: int) -> int:
        return sum(int(effect[place]) for effect in self._effect(kind) if effect[0] == key)

    def _effect(self, kind: PodKind) -> Effect:
        known = self._known.get(kind)
        if known is None:
            if len(self._known) >= _MEMO:
                self._known.clear()
            known = self._known[kind] = self._effect_of(kind)
        return known

    @property
    def any_match(self) -> bool:
        """Whether anything matched on any node that has the topology key."""
        return any(counts.counted for counts in self.by_key.values())

    def tables(self) -> dict[str, NDArray[np.bool_]]:
        """Per key, which domains hold a match: `bool[values + 1]`, the last entry, False, for nodes without it."""
        return {key: np.append(counts.members > 0, False) for key, counts in self.by_key.items()}
