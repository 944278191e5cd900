"""In-tree volumes that CSI drivers have taken over: which driver counts them, under which handle.

Source: csi-translation-lib. All these migrations are locked on in 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from policyengine.cluster.objects import PersistentVolume, Volume

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


def _csi_of(source: Volume | object, zone: str) -> tuple[str, str] | None:
    ebs = getattr(source, "aws_elastic_block_store", None)
    if ebs is not None:
        return "ebs.csi.aws.com", ebs.volume_id.rsplit("/", 1)[-1]
    gce = getattr(source, "gce_persistent_disk", None)
    if gce is not None:
        place = f"regions/{_region(zone)}" if "__" in zone else f"zones/{zone}"
        return "pd.csi.storage.gke.io", f"projects/{_UNSPECIFIED}/{place}/disks/{gce.pd_name}"
    azure = getattr(source, "azure_disk", None)
    if azure is not None:
        return "disk.csi.azure.com", azure.disk_uri
    cinder = getattr(source, "cinder", None)
    if cinder is not None:
        return "cinder.csi.openstack.org", cinder.volume_id
    portworx = getattr(source, "portworx_volume", None)
    if portworx is not None:
        return "pxd.portworx.com", portworx.volume_id
    return None


def _region(zones: str) -> str:
    """The region of GCE zones `us-central1-a__us-central1-b`."""
    return zones.split("__")[0].rsplit("-", 1)[0]
