"""Volumes of pods, claims, persistent volumes and the CSI kinds: only the fields that the volume plugins read.

Field documentation: the Kubernetes API reference, core/v1 and storage.k8s.io/v1.
"""

from __future__ import annotations

import msgspec

from policyengine.cluster.node_objects import NodeSelector
from policyengine.cluster.objects import Int64, LabelSelector, ObjectMeta, Quantities, Resources, Wire


class PersistentVolumeClaimVolume(Wire, frozen=True):
    """A volume that is a claim."""

    claim_name: str
    read_only: bool = False


class EphemeralVolume(Wire, frozen=True):
    """A claim made for this pod, named `<pod>-<volume>`; its template is for the claim's controller."""


class GCEPersistentDisk(Wire, frozen=True):
    """An in-tree GCE disk."""

    pd_name: str = ""
    read_only: bool = False


class VolumeByID(Wire, frozen=True):
    """An in-tree EBS, OpenStack or Portworx volume."""

    volume_id: str = msgspec.field(default="", name="volumeID")
    read_only: bool = False


class RBDVolume(Wire, frozen=True):
    """An in-tree Ceph RBD image; one monitor in common means the same cluster."""

    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = ""
    read_only: bool = False


class ISCSIVolume(Wire, frozen=True):
    """An in-tree iSCSI disk; the qualified name tells it apart."""

    iqn: str = ""
    read_only: bool = False


class AzureDisk(Wire, frozen=True):
    """An in-tree Azure disk."""

    disk_uri: str = msgspec.field(default="", name="diskURI")


class ImageVolume(Wire, frozen=True):
    """A volume that is an OCI image."""

    reference: str = ""


class Volume(Wire, frozen=True):
    """A pod's volume, with the sources that matter to scheduling; others leave only the name."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: VolumeByID | None = None
    rbd: RBDVolume | None = None
    iscsi: ISCSIVolume | None = None
    azure_disk: AzureDisk | None = None
    cinder: VolumeByID | None = None
    portworx_volume: VolumeByID | None = None
    image: ImageVolume | None = None


class PersistentVolumeClaimSpec(Wire, frozen=True):
    """`storage_class_name` None means the cluster's default, "" none at all."""

    volume_name: str = ""
    storage_class_name: str | None = None
    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: Resources = Resources()
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(Wire, frozen=True):
    """Pending, Bound or Lost."""

    phase: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: Quantities = msgspec.field(default_factory=dict)


class PersistentVolumeClaim(Wire, frozen=True):
    """A claim."""

    metadata: ObjectMeta
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class ObjectReference(Wire, frozen=True):
    """The claim a volume is bound to."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeNodeAffinity(Wire, frozen=True):
    """Where a volume can be reached from."""

    required: NodeSelector | None = None


class CSIPersistentVolume(Wire, frozen=True):
    """A CSI volume and its handle."""

    driver: str = ""
    volume_handle: str = ""


class PersistentVolumeSpec(Wire, frozen=True):
    """What a volume is, with the sources that count against a limit or a zone."""

    capacity: Quantities = msgspec.field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None
    csi: CSIPersistentVolume | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: VolumeByID | None = None
    azure_disk: AzureDisk | None = None
    cinder: VolumeByID | None = None
    portworx_volume: VolumeByID | None = None


class PersistentVolumeStatus(Wire, frozen=True):
    """Available, Bound, Released or Failed."""

    phase: str = ""


class PersistentVolume(Wire, frozen=True):
    """A volume."""

    metadata: ObjectMeta
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class TopologySelectorTerm(Wire, frozen=True):
    """One of a class's `allowedTopologies`."""

    match_label_expressions: tuple[TopologySelectorLabel, ...] = ()


class TopologySelectorLabel(Wire, frozen=True):
    """The label must have one of the values."""

    key: str
    values: tuple[str, ...] = ()


class StorageClass(Wire, frozen=True):
    """A class of storage."""

    metadata: ObjectMeta
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class VolumeNodeResources(Wire, frozen=True):
    """How many volumes of the driver a node takes."""

    count: Int64 | None = None


class CSINodeDriver(Wire, frozen=True):
    """A driver on a node."""

    name: str = ""
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Wire, frozen=True):
    """The drivers of a node."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(Wire, frozen=True):
    """What CSI drivers say about a node; named as the node."""

    metadata: ObjectMeta
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Wire, frozen=True):
    """What the driver wants of the scheduler."""

    storage_capacity: bool | None = None


class CSIDriver(Wire, frozen=True):
    """A CSI driver."""

    metadata: ObjectMeta
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(Wire, frozen=True):
    """How much of a class is left in a part of the cluster."""

    metadata: ObjectMeta
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: str | Int64 | float | None = None
    maximum_volume_size: str | Int64 | float | None = None


class VolumeAttachmentSource(Wire, frozen=True):
    """What is attached."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Wire, frozen=True):
    """Which volume is attached to which node, and the driver that attaches it."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(Wire, frozen=True):
    """A volume attached to a node."""

    metadata: ObjectMeta
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
