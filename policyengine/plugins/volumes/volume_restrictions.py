"""VolumeRestrictions: disks that two pods cannot share on a node, claims that only one pod may use at all.

GCE disks, iSCSI and RBD conflict unless all mount them read-only, EBS volumes always. A ReadWriteOncePod claim
in use (KEP-2485) refuses every node, as Unschedulable: preempting its user may help.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.storage_objects import Volume
from policyengine.cluster.view import Snapshot
from policyengine.framework.events import ActionType, ClusterEventWithHint, Resource, on
from policyengine.framework.plugin import UNCONCERNED, Reads
from policyengine.framework.status import SKIP, SUCCESS, Code, Refusal, Rows, State, Status, Verdicts
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

    def filter(self, state: _Restricted, snapshot: Snapshot, rows: Rows) -> Verdicts:
        """A disk in conflict on the node first."""
        refused = np.full(len(rows), _CLAIM if state.users else 0, dtype=np.int16)
        if state.disks:
            for place, row in enumerate(rows.tolist()):
                if _in_conflict(state.disks, snapshot.nodes.pods_on(row).values()):
                    refused[place] = _DISK
        return Verdicts(refused, _REFUSALS)

    def update(self, state: _Restricted, snapshot: Snapshot, changed: Rows) -> tuple[Status, Rows | None]:
        """All rows where a claim came into use or out of it. Skipped while none is and there is no disk to look for."""
        before = bool(state.users)
        state.update(snapshot.nodes, changed.tolist())
        return state.status, changed if bool(state.users) == before else None

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """A user of the volume gone, the claim there, a new node."""
        return (
            on(Resource.POD, ActionType.DELETE, _volume_freed),
            on(Resource.NODE, ActionType.ADD),
            on(Resource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD, lambda pod, _, new: names_claim(pod, new, False)),
        )


_Disks = Mapping[Hashable, bool]
"""What names a disk -> whether a volume of a pod writes to it."""


def _disks_of(pod: PodInfo) -> _Disks:
    found: dict[Hashable, bool] = {}
    for volume in pod.shape.spec.volumes:
        for disk, is_written in _meant(volume):
            found[disk] = found.get(disk, False) or is_written
    return found


def _meant(volume: Volume) -> Iterator[tuple[Hashable, bool]]:
    """(what names its disk, whether it writes to it) of a volume of one of these kinds. An image of RBD is the same one
    where it is reached by the same monitor. A volume of EBS counts as written to however it is mounted
    (`isVolumeConflict`, plugins/volumerestrictions/volume_restrictions.go, v1.36)."""
    gce, ebs = volume.gce_persistent_disk, volume.aws_elastic_block_store
    image, target = volume.rbd, volume.iscsi
    if gce is not None:
        yield ("gce", gce.pd_name), not gce.read_only
    if ebs is not None:
        yield ("ebs", ebs.volume_id), True
    if image is not None:
        for monitor in image.monitors:
            yield ("rbd", image.pool, image.image, monitor), not image.read_only
    if target is not None:
        yield ("iscsi", target.iqn), not target.read_only


def _in_conflict(disks: _Disks, pods: Iterable[PodInfo]) -> bool:
    """Whether one of the pods uses one of the disks, and not both only read it. Each volume is looked at once, whatever
    a pod has of them."""
    return any(
        disk in disks and (is_written or disks[disk])
        for pod in pods
        for volume in pod.shape.spec.volumes
        for disk, is_written in _meant(volume)
    )


def _volume_freed(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
    if old is None or old.namespace != pod.namespace:
        return False
    claims = {ref.name for ref in claim_refs(pod, with_ephemeral=False)}
    theirs = {ref.name for ref in claim_refs(old, with_ephemeral=False)}
    return _in_conflict(_disks_of(pod), (old,)) or not claims.isdisjoint(theirs)
