"""Matches unbound claims with static volumes that a node reaches, or with classes that can provision one there.

Source: component-helpers' storage/volume (FindMatchingVolume) and kube-scheduler's volume binder. Everything that
does not depend on the node is computed once. Nodes that reach the same candidate volumes share one match.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.node_objects import NodeSelector, NodeSelectorTerm
from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.storage_objects import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    TopologySelectorTerm,
)
from policyengine.cluster.view import Snapshot
from policyengine.framework.status import Rows
from policyengine.plugins.selectors.label_selector import PodSelector, Requirement, compile_pod_selector
from policyengine.plugins.selectors.node_selector import Mask, Selector, Term, compile_selector, is_empty
from policyengine.plugins.volumes.volume_claims import class_name
from policyengine.quantity import nanos_or_0

_STORAGE: Final = "storage"
_NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
_FILESYSTEM: Final = "Filesystem"


def reach(volume: PersistentVolume) -> Selector | None:
    """From which nodes the volume is reached, by their labels; None means from all."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return None
    by_labels = NodeSelector(
        node_selector_terms=tuple(
            NodeSelectorTerm(match_expressions=term.match_expressions) for term in affinity.required.node_selector_terms
        )
    )
    selector = compile_selector(by_labels)
    # Matching here knows labels only: a term of fields alone is met by every node.
    fields_only = any(
        not is_empty(term) and not term.match_expressions for term in affinity.required.node_selector_terms
    )
    return Selector((*selector.terms, Term((), ()))) if fields_only else selector


def reach_mask(selector: Selector | None, nodes: NodeTable, rows: Rows) -> Mask:
    """`bool[rows]`"""
    return np.ones(len(rows), dtype=np.bool_) if selector is None else selector.mask(nodes, rows)


def storage_of(resources: Mapping[str, str | int | float]) -> int:
    """The storage in a resource list, in bytes, rounded up; 0 when unset or malformed."""
    return bytes_of(resources.get(_STORAGE))


def size_of(claim: PersistentVolumeClaim) -> int:
    """The storage asked for, in billionths of a byte; 0 when unset or malformed."""
    return nanos_or_0(claim.spec.resources.requests.get(_STORAGE))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A volume that could serve a claim from a node that reaches it."""

    name: str
    size: int
    prebound: bool
    """Already meant for the claim: nothing else will do, wherever it is."""


Match = tuple[str | None, ...]
"""For each claim the name of the volume it takes; None where it finds none."""


class StaticMatch:
    """The candidates of each claim, smallest claim first, and from where each volume is reached."""

    def __init__(self, claims: Sequence[PersistentVolumeClaim], snapshot: Snapshot) -> None:
        self.claims = sorted(claims, key=size_of)
        self._reach: dict[str, Selector | None] = {}
        self._candidates = [self._candidates_of(claim, snapshot) for claim in self.claims]

    def unmatched(self, nodes: NodeTable, rows: Rows) -> NDArray[np.bool_]:
        """Which claims find no volume from each node: `bool[rows, claims]`."""
        matches, which = self.matches(nodes, rows)
        answers = [[volume is None for volume in match] for match in matches]
        table = np.array(answers, dtype=np.bool_).reshape(len(matches), len(self.claims))
        unmatched: NDArray[np.bool_] = table[which]
        return unmatched

    def matches(self, nodes: NodeTable, rows: Rows) -> tuple[list[Match], NDArray[np.int64]]:
        """The different matches there are, and which of them each node has: `int64[rows]`."""
        if not self._reach:
            return [(None,) * len(self.claims)], np.zeros(len(rows), dtype=np.int64)
        names = list(self._reach)
        reached = np.empty((len(rows), len(names)), dtype=np.bool_)
        for place, name in enumerate(names):
            reached[:, place] = reach_mask(self._reach[name], nodes, rows)
        patterns, which = np.unique(reached, axis=0, return_inverse=True)
        found = [self._match({n for n, here in zip(names, pattern, strict=True) if here}) for pattern in patterns]
        return found, which.reshape(-1)

    def _match(self, reached: set[str]) -> Match:
        taken: set[str] = set()
        match: list[str | None] = []
        for candidates in self._candidates:
            chosen = _choose(candidates, reached, taken)
            match.append(chosen)
            if chosen is not None:
                taken.add(chosen)
        return tuple(match)

    def _candidates_of(self, claim: PersistentVolumeClaim, snapshot: Snapshot) -> list[Candidate]:
        wanted = class_name(claim)
        selector = compile_pod_selector(claim.spec.selector) if claim.spec.selector is not None else PodSelector()
        found: list[Candidate] = []
        for volume in snapshot.objects(PersistentVolume).values():
            candidate = _candidate(claim, volume, selector) if volume.spec.storage_class_name == wanted else None
            if candidate is not None:
                found.append(candidate)
                self._reach[candidate.name] = reach(volume)
        return found


def _choose(candidates: Sequence[Candidate], reached: set[str], taken: set[str]) -> str | None:
    free = [candidate for candidate in candidates if candidate.name not in taken]
    for candidate in free:
        if candidate.prebound:
            return candidate.name if candidate.name in reached else None
    open_to = [candidate for candidate in free if candidate.name in reached]
    return min(open_to, key=lambda candidate: candidate.size).name if open_to else None


def _candidate(claim: PersistentVolumeClaim, volume: PersistentVolume, selector: PodSelector | str) -> Candidate | None:
    meant = is_bound_to(volume, claim)
    size = nanos_or_0(volume.spec.capacity.get(_STORAGE))
    fits = (
        (volume.spec.claim_ref is None or meant)
        and size >= size_of(claim)
        and (claim.spec.volume_mode or _FILESYSTEM) == (volume.spec.volume_mode or _FILESYSTEM)
        and (claim.spec.volume_attributes_class_name or "") == (volume.spec.volume_attributes_class_name or "")
        and volume.metadata.deletion_timestamp is None
    )
    if not fits or isinstance(selector, str):
        return None
    if meant:
        return Candidate(volume.metadata.name, size, True)
    open_to_all = (
        volume.status.phase == "Available"
        and selector.matches(volume.metadata.labels)
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    )
    return Candidate(volume.metadata.name, size, False) if open_to_all else None


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is meant for the claim, by its name and, where one is said, its UID."""
    bound = volume.spec.claim_ref
    if bound is None or (bound.namespace, bound.name) != (claim.metadata.namespace, claim.metadata.name):
        return False
    return not bound.uid or bound.uid == claim.metadata.uid


class Provision:
    """Whether a class can make a claim's volume for a node: its allowed topologies, and the capacity reported."""

    def __init__(self, claim: PersistentVolumeClaim, storage: StorageClass, snapshot: Snapshot) -> None:
        self.possible = storage.provisioner not in ("", _NO_PROVISIONER)
        self._topologies = _topologies(storage.allowed_topologies)
        self._capacity_by_topology = _capacity_by_topology(claim, storage, snapshot)
        terms = None if self._capacity_by_topology is None else tuple(term for term, _ in self._capacity_by_topology)
        self._capacities = None if terms is None else Selector(terms)

    def allowed(self, nodes: NodeTable, rows: Rows) -> Mask:
        """Nodes within the class's topologies: `bool[rows]`."""
        return reach_mask(self._topologies, nodes, rows)

    def sufficient(self, nodes: NodeTable, rows: Rows) -> Mask:
        """Nodes with access to enough capacity: `bool[rows]`; all where the driver does not report it."""
        return reach_mask(self._capacities, nodes, rows)

    def capacity(self, nodes: NodeTable, rows: Rows) -> NDArray[np.int64]:
        """What is left for the volume at each node, in bytes: `int64[rows]`; -1 where that is not reported."""
        found = np.full(len(rows), -1, dtype=np.int64)
        for term, left in self._capacity_by_topology or ():
            here = (found < 0) & Selector((term,)).mask(nodes, rows)
            found[here] = left
        return found


def _topologies(terms: Sequence[TopologySelectorTerm]) -> Selector | None:
    if not terms:
        return None
    compiled = [
        Term([Requirement(one.key, "In", frozenset(one.values)) for one in term.match_label_expressions], ())
        for term in terms
        if term.match_label_expressions
    ]
    return Selector(tuple(compiled))


def _capacity_by_topology(
    claim: PersistentVolumeClaim, storage: StorageClass, snapshot: Snapshot
) -> list[tuple[Term, int]] | None:
    """KEP-1472: (nodes, bytes left) of each CSIStorageCapacity of the class that is large enough; None where the
    driver does not report."""
    driver = snapshot.objects(CSIDriver).get(storage.provisioner)
    if driver is None or not driver.spec.storage_capacity:
        return None
    if _STORAGE not in claim.spec.resources.requests:
        return None
    offers: list[tuple[Term, int]] = []
    for item in snapshot.objects(CSIStorageCapacity).values():
        if item.storage_class_name != storage.metadata.name:
            continue
        limit = item.capacity if item.maximum_volume_size is None else item.maximum_volume_size
        if limit is not None and item.node_topology is not None and nanos_or_0(limit) >= size_of(claim):
            selector = compile_pod_selector(item.node_topology)
            if isinstance(selector, PodSelector):
                offers.append((Term(selector.requirements, ()), bytes_of(item.capacity)))
    return offers


def bytes_of(text: str | int | float | None) -> int:
    """A quantity of storage in bytes, rounded up; 0 when unset or malformed."""
    return -(-nanos_or_0(text) // 10**9)
