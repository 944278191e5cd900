"""Matches unbound claims with static volumes that a node reaches, or with classes that can provision one there.

Source: component-helpers' storage/volume (FindMatchingVolume) and kube-scheduler's volume binder. Everything that
does not depend on the node is computed once. Volumes that are reached from the same nodes are looked at together, and
nodes that reach the same candidate volumes share one match.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

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
    VolumeNodeAffinity,
)
from policyengine.cluster.view import Snapshot
from policyengine.framework.status import Rows
from policyengine.plugins.selectors.label_selector import PodSelector, Requirement, compile_pod_selector
from policyengine.plugins.selectors.node_selector import Mask, Selector, Term, compile_selector, is_empty
from policyengine.plugins.volumes.volume_claims import VOLUME, class_name
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


class Volume(NamedTuple):
    """A volume, in the order in which those that would do are taken: the smallest, then the first known."""

    size: int
    """In billionths of a byte."""
    place: int
    name: str
    reach: int
    """Index into `Volumes.reaches`."""
    source: PersistentVolume


class Volumes:
    """The volumes that claims may take, of one version of all volumes."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.reaches: list[Selector | None] = []
        """From which nodes volumes are reached. The local volumes of a node share one."""
        self.open: dict[str, list[Volume]] = {}
        """Those meant for nobody, by class."""
        self.meant: dict[tuple[str, str], list[Volume]] = {}
        """Those meant for a claim, by its namespace and name."""
        known: dict[VolumeNodeAffinity | None, int] = {}
        for place, source in enumerate(snapshot.objects(PersistentVolume).values()):
            spec = source.spec
            if source.metadata.deletion_timestamp is not None:
                continue
            if spec.claim_ref is None and source.status.phase != "Available":
                continue
            number = known.setdefault(spec.node_affinity, len(known))
            if number == len(self.reaches):
                self.reaches.append(reach(source))
            volume = Volume(nanos_or_0(spec.capacity.get(_STORAGE)), place, source.metadata.name, number, source)
            if spec.claim_ref is None:
                self.open.setdefault(spec.storage_class_name, []).append(volume)
            else:
                self.meant.setdefault((spec.claim_ref.namespace, spec.claim_ref.name), []).append(volume)


_volumes: WeakKeyDictionary[NodeTable, tuple[int, Volumes]] = WeakKeyDictionary()


def _volumes_of(snapshot: Snapshot) -> Volumes:
    """Those of the snapshot; made anew when a volume has changed."""
    version, known = snapshot.version(VOLUME), _volumes.get(snapshot.nodes)
    if known is None or known[0] != version:
        known = _volumes[snapshot.nodes] = version, Volumes(snapshot)
    return known[1]


Match = tuple[str | None, ...]
"""For each claim the name of the volume it takes; None where it finds none."""
_ByReach = dict[int, list[Volume]]
"""Volumes that would do, by their reach; of each the one to take first in front."""


class StaticMatch:
    """The candidates of each claim, smallest claim first, and from where each volume is reached."""

    def __init__(self, claims: Sequence[PersistentVolumeClaim], snapshot: Snapshot) -> None:
        self.claims = sorted(claims, key=size_of)
        self._volumes = _volumes_of(snapshot)
        self._meant: list[list[Volume]] = []
        """Per claim the volumes meant for it: nothing else will do, wherever they are."""
        self._open: list[_ByReach] = []
        """Per claim those that it may take; claims that ask for the same share them."""
        alike: dict[Hashable, _ByReach] = {}
        for claim in self.claims:
            self._add(claim, alike)
        self._reaches = sorted(
            {number for open_to in self._open for number in open_to}
            | {volume.reach for meant in self._meant for volume in meant}
        )

    def _add(self, claim: PersistentVolumeClaim, alike: dict[Hashable, _ByReach]) -> None:
        wanted, spec = class_name(claim), claim.spec
        selector = compile_pod_selector(spec.selector) if spec.selector is not None else PodSelector()
        if isinstance(selector, str):
            self._meant.append([])
            self._open.append({})
            return
        named = self._volumes.meant.get((claim.metadata.namespace, claim.metadata.name), ())
        self._meant.append(
            [
                one
                for one in named
                if one.source.spec.storage_class_name == wanted
                and is_bound_to(one.source, claim)
                and _is_of_the_kind(claim, one)
            ]
        )
        asked = (
            wanted,
            size_of(claim),
            spec.volume_mode,
            spec.volume_attributes_class_name,
            spec.access_modes,
            selector,
        )
        if asked not in alike:
            alike[asked] = _by_reach(
                one
                for one in self._volumes.open.get(wanted, ())
                if _is_of_the_kind(claim, one)
                and selector.matches(one.source.metadata.labels)
                and set(spec.access_modes) <= set(one.source.spec.access_modes)
            )
        self._open.append(alike[asked])

    def unmatched(self, nodes: NodeTable, rows: Rows) -> NDArray[np.bool_]:
        """Which claims find no volume from each node: `bool[rows, claims]`."""
        matches, which = self.matches(nodes, rows)
        answers = [[volume is None for volume in match] for match in matches]
        table = np.array(answers, dtype=np.bool_).reshape(len(matches), len(self.claims))
        unmatched: NDArray[np.bool_] = table[which]
        return unmatched

    def matches(self, nodes: NodeTable, rows: Rows) -> tuple[list[Match], NDArray[np.int64]]:
        """The different matches there are, and which of them each node has: `int64[rows]`."""
        if not self._reaches:
            return [(None,) * len(self.claims)], np.zeros(len(rows), dtype=np.int64)
        reached = np.empty((len(rows), len(self._reaches)), dtype=np.bool_)
        for place, number in enumerate(self._reaches):
            reached[:, place] = reach_mask(self._volumes.reaches[number], nodes, rows)
        patterns, which = np.unique(reached, axis=0, return_inverse=True)
        numbers = np.array(self._reaches)
        found = [self._match(numbers[pattern].tolist()) for pattern in patterns]
        return found, which.reshape(-1)

    def _match(self, reached: list[int]) -> Match:
        taken: set[str] = set()
        match: list[str | None] = []
        for meant, open_to in zip(self._meant, self._open, strict=True):
            chosen = _choose(meant, open_to, reached, taken)
            match.append(chosen)
            if chosen is not None:
                taken.add(chosen)
        return tuple(match)


def _by_reach(volumes: Iterable[Volume]) -> _ByReach:
    found: _ByReach = {}
    for volume in sorted(volumes, key=lambda one: one[:2]):
        found.setdefault(volume.reach, []).append(volume)
    return found


def _choose(meant: Sequence[Volume], open_to: _ByReach, reached: Sequence[int], taken: set[str]) -> str | None:
    for volume in meant:
        if volume.name not in taken:
            return volume.name if volume.reach in reached else None
    free = (next((one for one in open_to.get(number, ()) if one.name not in taken), None) for number in reached)
    return min((one[:3] for one in free if one is not None), default=(0, 0, None))[2]


def _is_of_the_kind(claim: PersistentVolumeClaim, volume: Volume) -> bool:
    """Whether size, mode and attributes will do."""
    wanted, spec = claim.spec, volume.source.spec
    return (
        volume.size >= size_of(claim)
        and (wanted.volume_mode or _FILESYSTEM) == (spec.volume_mode or _FILESYSTEM)
        and (wanted.volume_attributes_class_name or "") == (spec.volume_attributes_class_name or "")
    )


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
