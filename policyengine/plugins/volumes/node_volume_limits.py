"""NodeVolumeLimits: how many volumes of a CSI driver a node takes (CSINode's `allocatable.count`).

A volume counts once, whether the pod, other pods on the node, or attachments name it. In-tree volumes count for the
CSI driver that has replaced them (csi-translation-lib; all these migrations are locked on in 1.36).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Final

import numpy as np

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.storage_objects import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    Volume,
    VolumeAttachment,
)
from policyengine.cluster.view import Snapshot
from policyengine.framework.events import ActionType, ClusterEventWithHint, Resource, on
from policyengine.framework.plugin import UNCONCERNED, Reads
from policyengine.framework.status import SKIP, SUCCESS, Code, Refusal, Rows, State, Status, Verdicts
from policyengine.plugins.volumes.volume_claims import (
    CLAIM,
    CLASS,
    VOLUME,
    claim_refs,
    class_of,
    find_claim,
    names_claim,
    not_for_pod,
    not_found,
)

_CSI_NODE, _ATTACHMENT = "CSINode", "VolumeAttachment"
_EXCEEDED: Final = Refusal(Code.UNSCHEDULABLE, ("node(s) exceed max volume count",))

Handle = tuple[str, str]
"""(driver, handle); of a volume still to be made the handle is its claim."""


class _Wanted:
    """The volumes of the pod that count, and those attached to each node."""

    def __init__(self, pod: PodInfo, snapshot: Snapshot) -> None:
        self.problem = _problem(pod, snapshot)
        self.volumes = _volumes(pod, snapshot)
        self.attached: dict[str, set[Handle]] = {}
        for item in snapshot.objects(VolumeAttachment).values():
            if item.spec.attacher:
                name = item.spec.source.persistent_volume_name
                volume = snapshot.objects(PersistentVolume).get(name) if name is not None else None
                if volume is not None and volume.spec.csi is not None:
                    handle = (item.spec.attacher, volume.spec.csi.volume_handle)
                    self.attached.setdefault(item.spec.node_name, set()).add(handle)


class NodeVolumeLimits:
    """Reads the pod's volumes with their claims and classes, the nodes' CSINodes, and the volumes in use there."""

    name = "NodeVolumeLimits"
    reads = Reads.NODE | Reads.PODS
    eased_by_evictions = True
    kinds = (_CSI_NODE, CLAIM, VOLUME, CLASS, _ATTACHMENT)

    def signature(self, pod: PodInfo) -> Hashable:
        """Namespace and volumes; the pod itself where claims are made for it."""
        volumes = pod.shape.spec.volumes
        if not volumes:
            return UNCONCERNED
        own = pod.uid if any(volume.ephemeral is not None for volume in volumes) else ""
        return pod.namespace, volumes, own

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Skipped for a pod without volumes that could count."""
        volumes = pod.shape.spec.volumes
        if not any(csi_of_inline(volume) for volume in volumes) and not claim_refs(pod):
            return SKIP, None
        return SUCCESS, _Wanted(pod, snapshot)

    def filter(self, state: _Wanted, snapshot: Snapshot, rows: Rows) -> Verdicts:
        """Nodes whose limit the new volumes would exceed are refused."""
        if state.problem is not None:
            refusal = Refusal(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (state.problem,))
            return Verdicts(np.ones(len(rows), dtype=np.int16), (refusal,))
        refused = np.zeros(len(rows), dtype=np.int16)
        csi_nodes = snapshot.objects(CSINode)
        for place, row in enumerate(rows.tolist()):
            csi_node = csi_nodes.get(snapshot.nodes.names[row])
            if csi_node is not None and _exceeds(state, csi_node, row, snapshot):
                refused[place] = 1
        return Verdicts(refused, (_EXCEEDED,))

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Limits that rise, pods and attachments that go, claims that come."""
        return (
            on(Resource.CSI_NODE, ActionType.ADD),
            on(Resource.CSI_NODE, ActionType.UPDATE, changed=_limit_rose),
            on(Resource.POD, ActionType.DELETE, _volumes_freed),
            on(Resource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD, lambda pod, _, new: names_claim(pod, new)),
            on(Resource.VOLUME_ATTACHMENT, ActionType.DELETE, _detached),
        )


def _exceeds(wanted: _Wanted, csi_node: CSINode, row: int, snapshot: Snapshot) -> bool:
    limits = _limits(csi_node)
    least = min((limits[driver] for driver, _ in wanted.volumes if driver in limits), default=None)
    if least is None:
        return False
    pods = snapshot.nodes.pods_on(row).values()
    most = len(wanted.volumes) + len(wanted.attached.get(csi_node.metadata.name, ()))
    if most + sum([pod.shape.disks for pod in pods]) <= least:
        return False  # whichever volumes they are
    used: set[Handle] = set()
    for pod in pods:
        if pod.shape.spec.volumes:
            used |= _volumes(pod, snapshot)
    new = Counter(driver for driver, _ in wanted.volumes - used)
    attached = wanted.attached.get(csi_node.metadata.name, set())
    current = Counter(driver for driver, _ in used | attached)
    return any(driver in limits and current[driver] + count > limits[driver] for driver, count in new.items())


def _limits(csi_node: CSINode) -> dict[str, int]:
    return {
        driver.name: driver.allocatable.count
        for driver in csi_node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def _problem(pod: PodInfo, snapshot: Snapshot) -> str | None:
    """Why the pod's own claims cannot be looked up."""
    for ref in claim_refs(pod):
        claim = find_claim(snapshot, pod.namespace, ref.name)
        if claim is None:
            absent = not_found("persistentvolumeclaim", ref.name)
            return f"looking up PVC {pod.namespace}/{ref.name}: {absent}"
        if ref.ephemeral and (foreign := not_for_pod(pod, claim)) is not None:
            return foreign
    return None


def _volumes(pod: PodInfo, snapshot: Snapshot) -> frozenset[Handle]:
    """The volumes of the pod that count. Claims that cannot be found do not."""
    found: set[Handle] = set()
    for ref in claim_refs(pod):
        claim = find_claim(snapshot, pod.namespace, ref.name)
        handle = None if claim is None else _handle(claim, snapshot)
        if handle is not None and all(handle):
            found.add(handle)
    found.update(handle for volume in pod.shape.spec.volumes if (handle := csi_of_inline(volume)) is not None)
    return frozenset(found)


def _handle(claim: PersistentVolumeClaim, snapshot: Snapshot) -> Handle | None:
    volume = snapshot.objects(PersistentVolume).get(claim.spec.volume_name) if claim.spec.volume_name else None
    if volume is not None:
        if volume.spec.csi is not None:
            return volume.spec.csi.driver, volume.spec.csi.volume_handle
        return csi_of_persistent(volume)
    storage = class_of(claim, snapshot)
    if storage is None:
        return None
    return DRIVERS.get(storage.provisioner, storage.provisioner), f"claim {claim.metadata.key}"


def _limit_rose(old: CSINode, new: CSINode) -> bool:
    before = _limits(old)
    return any(limit > before.get(driver, 0) for driver, limit in _limits(new).items())


def _volumes_freed(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
    if old is None or not (old.node_name or old.nominated_node_name):
        return False
    return bool(claim_refs(old)) or any(csi_of_inline(volume) for volume in old.shape.spec.volumes)


def _detached(pod: PodInfo, old: VolumeAttachment, new: None) -> bool:
    if claim_refs(pod, with_ephemeral=False):
        return True
    drivers = {handle[0] for volume in pod.shape.spec.volumes if (handle := csi_of_inline(volume)) is not None}
    return old.spec.attacher in drivers


DRIVERS: Final[Mapping[str, str]] = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
}
"""In-tree provisioner -> CSI driver."""

_ZONES: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
_UNSPECIFIED: Final = "UNSPECIFIED"


def csi_of_inline(volume: Volume) -> tuple[str, str] | None:
    """(driver, handle) of an inline volume; None where it is not one of these."""
    return _csi_of(volume, _UNSPECIFIED)


def csi_of_persistent(volume: PersistentVolume) -> tuple[str, str] | None:
    """(driver, handle) of a persistent volume of these in-tree kinds."""
    zones = next((volume.metadata.labels[key] for key in _ZONES if key in volume.metadata.labels), "")
    return _csi_of(volume.spec, zones or _UNSPECIFIED)


def _csi_of(source: Volume | PersistentVolumeSpec, zone: str) -> Handle | None:
    ebs, gce, azure = source.aws_elastic_block_store, source.gce_persistent_disk, source.azure_disk
    if ebs is not None:
        return DRIVERS["kubernetes.io/aws-ebs"], ebs.volume_id.rsplit("/", 1)[-1]
    if gce is not None:
        region = zone.split("__")[0].rsplit("-", 1)[0]  # of `us-central1-a__us-central1-b`
        place = f"regions/{region}" if "__" in zone else f"zones/{zone}"
        return DRIVERS["kubernetes.io/gce-pd"], f"projects/{_UNSPECIFIED}/{place}/disks/{gce.pd_name}"
    if azure is not None:
        return DRIVERS["kubernetes.io/azure-disk"], azure.disk_uri
    if source.cinder is not None:
        return DRIVERS["kubernetes.io/cinder"], source.cinder.volume_id
    if source.portworx_volume is not None:
        return DRIVERS["kubernetes.io/portworx-volume"], source.portworx_volume.volume_id
    return None
