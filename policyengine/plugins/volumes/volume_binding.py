"""VolumeBinding: the node must reach bound volumes, and find or provision a volume for each unbound claim.

Claims of classes that bind at once must be bound before the pod is placed. The others wait for this decision
(WaitForFirstConsumer): a static volume that the node reaches, else provisioning if class, topology and capacity allow
it. PreBind writes the decision (`volume_plan`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from policyengine import quantity
from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.storage_objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
)
from policyengine.cluster.view import Snapshot
from policyengine.framework.events import ActionType, ClusterEventWithHint, Resource, on
from policyengine.framework.plugin import UNCONCERNED, Reads
from policyengine.framework.plugin_entry import schema_of
from policyengine.framework.reservation import NOTHING_TO_DO, Plan
from policyengine.framework.status import SKIP, SUCCESS, Code, Refusal, Rows, State, Status, Verdicts
from policyengine.plugins.resources.scoring_strategy import SHAPE_SCHEMA
from policyengine.plugins.selectors.node_selector import Mask
from policyengine.plugins.volumes.volume_claims import (
    CLAIM,
    CLASS,
    SELECTED_NODE,
    VOLUME,
    claim_refs,
    class_of,
    find_claim,
    is_fully_bound,
    names_claim,
    not_for_pod,
    not_found,
    waits_for_consumer,
)
from policyengine.plugins.volumes.volume_matching import Provision, StaticMatch, reach, reach_mask
from policyengine.plugins.volumes.volume_plan import Bound, check_plan, make_plan

_UNRESOLVABLE: Final = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
_MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
_OUT_OF_REACH, _NO_VOLUME, _NO_SPACE, _NOT_THERE = 1, 2, 4, 8
_TEXTS: Final = {
    _OUT_OF_REACH: "node(s) didn't match PersistentVolume's node affinity",
    _NO_VOLUME: "node(s) didn't find available persistent volumes to bind",
    _NO_SPACE: "node(s) did not have enough free storage",
    _NOT_THERE: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}
_REFUSALS: Final = tuple(
    Refusal(_UNRESOLVABLE, tuple(text for bit, text in _TEXTS.items() if bits & bit)) for bits in range(1, 16)
)

Bits = NDArray[np.int16]
DEFAULT_TIMEOUT: Final = 600
"""Seconds."""


class PodClaims:
    """The pod's claims, sorted by what they need of a node."""

    def __init__(
        self,
        bound: Sequence[PersistentVolumeClaim],
        waiting: Sequence[PersistentVolumeClaim],
        snapshot: Snapshot,
    ) -> None:
        volumes = [snapshot.objects(PersistentVolume).get(claim.spec.volume_name) for claim in bound]
        self.bound = [None if volume is None else (reach(volume),) for volume in volumes]
        """The reach of each bound volume; None for one that is not there."""
        self.provided = [claim for claim in waiting if SELECTED_NODE in claim.metadata.annotations]
        self.selected = [claim.metadata.annotations[SELECTED_NODE] for claim in self.provided]
        self.matched = StaticMatch([one for one in waiting if SELECTED_NODE not in one.metadata.annotations], snapshot)
        self.provisions = {
            claim.metadata.key: Provision(claim, storage, snapshot)
            for claim in waiting
            if (storage := class_of(claim, snapshot)) is not None
        }

    def decided(self, nodes: NodeTable, row: int) -> tuple[list[Bound], list[PersistentVolumeClaim]]:
        """What a node that passed the filter means for the claims: which take a static volume, named, and for which
        a volume is made."""
        matched = self.matched.claims
        found, which = self.matched.matches(nodes, np.array([row]))
        taken: dict[str, Bound] = {}
        made = {claim.metadata.key: claim for claim in self.provided}
        for claim, volume in zip(matched, found[which[0]], strict=True):
            key = claim.metadata.key
            if key in taken or key in made:
                continue  # a pod may mount one claim twice
            if volume is None:
                made[key] = claim
            else:
                taken[key] = (claim, volume)
        return list(taken.values()), list(made.values())


class VolumeBinding:
    """Reads the pod's claims, their volumes and classes, drivers and capacities, and labels and names of nodes."""

    name = "VolumeBinding"
    reads = Reads.NODE
    kinds = (CLAIM, VOLUME, CLASS, "CSIDriver", "CSINode", "CSIStorageCapacity")
    arguments: Final = schema_of(bindTimeoutSeconds={"type": "integer", "minimum": 0}, shape=SHAPE_SCHEMA)

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        """VolumeBindingArgs; `shape` is for `volume_capacity`."""
        self._timeout = float((arguments or {}).get("bindTimeoutSeconds", DEFAULT_TIMEOUT))

    def signature(self, pod: PodInfo) -> Hashable:
        """Namespace and claims; the pod itself where claims are made for it."""
        refs = tuple(claim_refs(pod))
        if not refs:
            return UNCONCERNED
        return pod.namespace, refs, pod.uid if any(ref.ephemeral for ref in refs) else ""

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Skipped without claims. Absent, lost, deleted or unbound immediate claims refuse the pod."""
        claims: list[PersistentVolumeClaim] = []
        for ref in claim_refs(pod):
            found = _usable(pod, ref.name, ref.ephemeral, snapshot)
            if isinstance(found, str):
                return Status(_UNRESOLVABLE, (found,)), None
            claims.append(found)
        if not claims:
            return SKIP, None
        bound = [claim for claim in claims if is_fully_bound(claim)]
        waiting: list[PersistentVolumeClaim] = []
        immediate = False
        for claim in claims:
            if is_fully_bound(claim):
                continue
            storage = class_of(claim, snapshot)
            waits = waits_for_consumer(storage) if storage is not None else False
            if isinstance(waits, str):
                return Status(_UNRESOLVABLE, (waits,)), None
            if waits and not claim.spec.volume_name:
                waiting.append(claim)
            else:
                immediate = True
        if immediate:
            return Status(_UNRESOLVABLE, ("pod has unbound immediate PersistentVolumeClaims",)), None
        return SUCCESS, PodClaims(bound, waiting, snapshot)

    def filter(self, state: PodClaims, snapshot: Snapshot, rows: Rows) -> Verdicts:
        """All that speaks against a node is named."""
        bits = _check_bound(state, snapshot.nodes, rows) | _check_waiting(state, snapshot.nodes, rows)
        return Verdicts(bits, _REFUSALS)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Claims, volumes, classes, drivers and capacities that come or change; nodes that come or move, and their
        drivers."""
        add, update = ActionType.ADD, ActionType.UPDATE
        return (
            on(
                Resource.STORAGE_CLASS,
                add | update,
                changed=lambda old, new: old.allowed_topologies != new.allowed_topologies,
            ),
            on(Resource.PERSISTENT_VOLUME_CLAIM, add | update, lambda pod, _, new: names_claim(pod, new)),
            on(Resource.PERSISTENT_VOLUME, add | update),
            on(Resource.NODE, add | ActionType.UPDATE_NODE_LABEL),
            on(Resource.CSI_NODE, add),
            on(Resource.CSI_NODE, update, changed=_migration_changed),
            on(Resource.CSI_DRIVER, update, changed=_capacity_not_tracked),
            on(Resource.CSI_STORAGE_CAPACITY, add | update, changed=_capacity_grew),
        )

    def plan(self, pod: PodInfo, node_name: str, snapshot: Snapshot) -> tuple[Status, Plan]:
        """Take static volumes, and name the node for volumes to be made. Skipped where all claims are bound."""
        if not pod.shape.spec.volumes:
            return SKIP, NOTHING_TO_DO
        status, claims = self.pre_filter(pod, snapshot)
        if not status.is_success:
            return status, NOTHING_TO_DO
        bound, provided = claims.decided(snapshot.nodes, snapshot.nodes.row_of[node_name])
        if not bound and not provided:
            return SKIP, NOTHING_TO_DO
        return SUCCESS, make_plan(bound, provided, node_name, snapshot, self._timeout)

    def prepared(self, pod: PodInfo, node_name: str, plan: Plan, snapshot: Snapshot) -> Status:
        """Whether the volume controller is done with all claims of the plan."""
        return check_plan(plan, node_name, snapshot)


def _usable(pod: PodInfo, name: str, ephemeral: bool, snapshot: Snapshot) -> PersistentVolumeClaim | str:
    claim = find_claim(snapshot, pod.namespace, name)
    if claim is None:
        if ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        return not_found("persistentvolumeclaim", name)
    if claim.status.phase == "Lost":
        volume = claim.spec.volume_name
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{name}" is being deleted'
    foreign = not_for_pod(pod, claim) if ephemeral else None
    return claim if foreign is None else foreign


def _check_bound(claims: PodClaims, nodes: NodeTable, rows: Rows) -> Bits:
    """The first bound claim that fails on a node decides."""
    bits: Bits = np.zeros(len(rows), dtype=np.int16)
    open_rows: Mask = np.ones(len(rows), dtype=np.bool_)
    for found in claims.bound:
        if found is None:
            bits[open_rows] |= _NOT_THERE
            break
        missed = open_rows & ~reach_mask(*found, nodes, rows)
        bits[missed] |= _OUT_OF_REACH
        open_rows &= ~missed
    return bits


def _check_waiting(claims: PodClaims, nodes: NodeTable, rows: Rows) -> Bits:
    """Claims with a selected node go there; the others find a volume, or a class that makes one."""
    bits: Bits = np.zeros(len(rows), dtype=np.int16)
    elsewhere: Mask = np.zeros(len(rows), dtype=np.bool_)
    for name in claims.selected:
        elsewhere |= rows != nodes.row_of.get(name, -1)
    bits[elsewhere] = _NO_VOLUME
    matched = claims.matched
    unmatched = matched.unmatched(nodes, rows)
    open_rows = ~elsewhere
    for claim in claims.provided:
        open_rows = _provide(claims, claim, open_rows, bits, nodes, rows)
    for place, claim in enumerate(matched.claims):
        needed = open_rows & unmatched[:, place]
        left = _provide(claims, claim, needed, bits, nodes, rows)
        open_rows &= ~needed | left
    return bits


def _provide(
    claims: PodClaims, claim: PersistentVolumeClaim, needed: Mask, bits: Bits, nodes: NodeTable, rows: Rows
) -> Mask:
    """The rows among `needed` where the claim's volume can be made; the others get their reason."""
    provision = claims.provisions.get(claim.metadata.key)
    if provision is None or not provision.possible:
        bits[needed] = _NO_VOLUME
        return np.zeros(len(rows), dtype=np.bool_)
    allowed = provision.allowed(nodes, rows)
    sufficient = provision.sufficient(nodes, rows)
    bits[needed & ~allowed] = _NO_VOLUME
    bits[needed & allowed & ~sufficient] = _NO_SPACE
    made: Mask = needed & allowed & sufficient
    return made


def _migration_changed(old: CSINode, new: CSINode) -> bool:
    """Of which in-tree volumes a CSI driver takes care on the node. All are migrated in 1.36, and so it changes no
    answer; kube-scheduler asks again."""
    return old.metadata.annotations.get(_MIGRATED) != new.metadata.annotations.get(_MIGRATED)


def _capacity_not_tracked(old: CSIDriver, new: CSIDriver) -> bool:
    """Capacity is no longer tracked. kube-scheduler looks at inline CSI volumes alone; here every pod with a claim is
    tried again, since its class may be the driver's."""
    return bool(old.spec.storage_capacity) and not new.spec.storage_capacity


def _capacity_grew(old: CSIStorageCapacity, new: CSIStorageCapacity) -> bool:
    before, after = _limit(old), _limit(new)
    return after is not None and (before is None or after > before)


def _limit(capacity: CSIStorageCapacity) -> int | None:
    text = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    if text is None:
        return None
    try:
        return quantity.value(text)
    except quantity.QuantityError:
        return None
