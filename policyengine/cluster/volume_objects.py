"""A pod's volumes, with the sources that scheduling reads (core/v1 Volume)."""

from __future__ import annotations

import msgspec

from policyengine.cluster.metadata import Wire


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


class AWSElasticBlockStore(Wire, frozen=True):
    """An in-tree EBS volume."""

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


class CinderVolume(Wire, frozen=True):
    """An in-tree OpenStack volume."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class PortworxVolume(Wire, frozen=True):
    """An in-tree Portworx volume."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class CSIVolume(Wire, frozen=True):
    """An inline CSI volume."""

    driver: str = ""


class ImageVolume(Wire, frozen=True):
    """A volume that is an OCI image."""

    reference: str = ""


class Volume(Wire, frozen=True):
    """A pod's volume, with the sources that matter to scheduling; others leave only the name."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    rbd: RBDVolume | None = None
    iscsi: ISCSIVolume | None = None
    azure_disk: AzureDisk | None = None
    cinder: CinderVolume | None = None
    portworx_volume: PortworxVolume | None = None
    csi: CSIVolume | None = None
    image: ImageVolume | None = None
