"""VolumeRestrictions: disks that two pods cannot share on a node, claims that only one pod may use at all.

GCE disks, iSCSI and RBD conflict unless all mount them read-only, EBS volumes always. A ReadWriteOncePod claim
in use (KEP-2485) refuses every node, as Unschedulable: preempting its user may help.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.storage_objects import Volume
from policyengine.cluster.view import Snapshot
from policyengine.framework.events import ActionType, ClusterEventWithHint, Resource
from policyengine.framework.plugin import UNCONCERNED, Reads
from policyengine.framework.status import SKIP, SUCCESS, Code, Refusal, Rows, State, Status, Verdicts
from policyengine.plugins.event_hints import on
from policyengine.plugins.volumes.volume_claims import CLAIM, claim_refs, find_claim, names_claim, not_found

READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"
_DISK, _CLAIM = 1, 2
_REFUSALS: Final = (
    Refusal(Code.UNSCHEDULABLE, ("node(s) had no available disk",)),
    Refusal(
        Code.UNSCHEDULABLE,
        (
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use "
            "by another pod",
        ),
    ),
)


class _Restricted:
    """The pod's disks, and the rows where its one-pod claims are in use."""

    __slots__ = ("_claims", "_namespace", "disks", "users")

    def __init__(self, pod: PodInfo, claims: frozenset[str]) -> None:
        self.disks = _disks_of(pod)
        self.users: set[int] = set()
        self._claims = claims
        self._namespace = pod.namespace

    def update(self, nodes: NodeTable, rows: Iterable[int]) -> None:
        """Look at `rows` again; rows that have gone use nothing."""
        if not self._claims:
            return
        self.users = {row for row in self.users if row < nodes.n}
        for row in rows:
            if any(self._uses(pod) for pod in nodes.pods_on(row).values()):
                self.users.add(row)
            else:
                self.users.discard(row)

    @property
    def status(self) -> Status:
        """What PreFilter says: skipped while no claim is in use and there is no disk to look for."""
        return SUCCESS if self.disks or self.users else SKIP

    def _uses(self, pod: PodInfo) -> bool:
        if pod.namespace != self._namespace or not pod.shape.spec.volumes:
            return False
        return any(ref.name in self._claims for ref in claim_refs(pod, with_ephemeral=False))


class VolumeRestrictions:
    """Reads the pod's volumes and claims, and the volumes of the pods on the nodes."""

    name = "VolumeRestrictions"
    reads = Reads.PODS
    eased_by_evictions = True
    kinds = (CLAIM,)

    def signature(self, pod: PodInfo) -> Hashable:
        """Namespace and volumes."""
        volumes = pod.shape.spec.volumes
        return (pod.namespace, volumes) if volumes else UNCONCERNED

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Skipped while nothing is shared; an absent claim refuses the pod."""
        exclusive: set[str] = set()
        for ref in claim_refs(pod, with_ephemeral=False):
            claim = find_claim(snapshot, pod.namespace, ref.name)
            if claim is None:
                reason = not_found("persistentvolumeclaim", ref.name)
                return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,)), None
            if READ_WRITE_ONCE_POD in claim.spec.access_modes:
                exclusive.add(ref.name)
        state = _Restricted(pod, frozenset(exclusive))
        if not exclusive and not state.disks:
            return SKIP, None
        state.update(snapshot.nodes, range(snapshot.nodes.n))
        return state.status, state

    def filter(self, state: State, snapshot: Snapshot, rows: Rows) -> Verdicts:
        """A disk in conflict on the node first."""
        restricted: _Restricted = state
        refused = np.full(len(rows), _CLAIM if restricted.users else 0, dtype=np.int16)
        if restricted.disks:
            for place, row in enumerate(rows.tolist()):
                if _in_conflict(restricted.disks, snapshot.nodes.pods_on(row).values()):
                    refused[place] = _DISK
        return Verdicts(refused, _REFUSALS)

    def update(self, state: State, snapshot: Snapshot, changed: Rows) -> tuple[Status, Rows | None]:
        """All rows where a claim came into use or out of it. Skipped while none is and there is no disk to look for."""
        restricted: _Restricted = state
        before = bool(restricted.users)
        restricted.update(snapshot.nodes, changed.tolist())
        return restricted.status, changed if bool(restricted.users) == before else None

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """A user of the volume gone, the claim there, a new node."""
        return (
            on(Resource.POD, ActionType.DELETE, _volume_freed),
            on(Resource.NODE, ActionType.ADD),
            on(Resource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD, lambda pod, _, new: names_claim(pod, new, False)),
        )


_Disks = Mapping[Hashable, Collection[Volume]]
"""Volumes by the disk that they mean: only those of one disk can be in conflict."""


def _disks_of(pod: PodInfo) -> _Disks:
    """Those of the pod, each way to mount a disk once: a pod may have thousands of volumes."""
    found: dict[Hashable, dict[Hashable, Volume]] = {}
    for volume in pod.shape.spec.volumes:
        for disk, way in _meant(volume):
            found.setdefault(disk, {}).setdefault(way, volume)
    return {disk: ways.values() for disk, ways in found.items()}


def _meant(volume: Volume) -> Iterator[tuple[Hashable, Hashable]]:
    """(the disk, the way it is mounted) of a volume of one of these kinds."""
    gce, ebs, image, target = (
        volume.gce_persistent_disk,
        volume.aws_elastic_block_store,
        volume.rbd,
        volume.iscsi,
    )
    if gce is not None:
        yield ("gce", gce.pd_name), gce
    if ebs is not None:
        yield ("ebs", ebs.volume_id), ebs
    if image is not None:
        yield ("rbd", image.pool, image.image), image
    if target is not None:
        yield ("iscsi", target.iqn), target


def _in_conflict(disks: _Disks, pods: Iterable[PodInfo]) -> bool:
    return any(
        _conflict(disk, other)
        for pod in pods
        for other in pod.shape.spec.volumes
        for meant, _ in _meant(other)
        for disk in disks.get(meant, ())
    )


def _conflict(one: Volume, other: Volume) -> bool:
    if one.gce_persistent_disk is not None and other.gce_persistent_disk is not None:
        disk, existing = one.gce_persistent_disk, other.gce_persistent_disk
        if disk.pd_name == existing.pd_name and not (disk.read_only and existing.read_only):
            return True
    ebs, their_ebs = one.aws_elastic_block_store, other.aws_elastic_block_store
    if ebs is not None and their_ebs is not None and ebs.volume_id == their_ebs.volume_id:
        return True
    target, their_target = one.iscsi, other.iscsi
    if target is not None and their_target is not None and target.iqn == their_target.iqn:
        return not (target.read_only and their_target.read_only)
    image, their_image = one.rbd, other.rbd
    if image is None or their_image is None or (image.pool, image.image) != (their_image.pool, their_image.image):
        return False
    shared = not set(image.monitors).isdisjoint(their_image.monitors)
    return shared and not (image.read_only and their_image.read_only)


def _volume_freed(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
    if old is None or old.namespace != pod.namespace:
        return False
    claims = {ref.name for ref in claim_refs(pod, with_ephemeral=False)}
    theirs = {ref.name for ref in claim_refs(old, with_ephemeral=False)}
    return _in_conflict(_disks_of(pod), (old,)) or not claims.isdisjoint(theirs)
