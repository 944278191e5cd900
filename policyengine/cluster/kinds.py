"""The kinds of objects that scheduling reads: one row each says all that informers, dumps, rights and docs need.

A kind is added by its struct, its row here, its right in `deploy/base/rbac.yaml` and the chart, and its word in
docs/explain.md; tests hold the last two against this table. It is listed and watched once a plugin names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from policyengine.cluster import objects
from policyengine.cluster.events import Resource
from policyengine.cluster.metadata import Wire

T = TypeVar("T", bound=Wire)


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """A kind of object in the API."""

    kind: str
    plural: str
    type: type[T]
    group_path: str = "/api/v1"
    """`/api/v1` for the core group, else `/apis/GROUP/VERSION`."""
    event: Resource | None = None
    """What `ClusterEvent`s call it; None if no plugin waits for its changes."""
    dump_key: str = ""
    """Its list in a dump (`explain --cluster`); empty for one that only a `List` has."""
    patched: str | None = None
    """The subresource that a scheduler patches, "" for the object itself; None if it patches nothing."""
    holds_decisions: bool = False
    """Whether a scheduler's decisions stand in it: a new leader catches up with it before it decides."""
    field_selector: str = ""
    is_optional: bool = False
    """Whether a server may not serve the kind: then there are no such objects, until it does."""

    @property
    def group(self) -> str:
        """The API group, as RBAC names it; empty for the core group."""
        parts = self.group_path.split("/")
        return parts[2] if parts[1] == "apis" else ""

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path of the collection, or of one object in it."""
        parts = [self.group_path]
        if namespace:
            parts += ["namespaces", namespace]
        parts += [self.plural, name, subresource]
        return "/".join(part for part in parts if part)


_APPS, _STORAGE, _DEVICES = "/apis/apps/v1", "/apis/storage.k8s.io/v1", "/apis/resource.k8s.io/v1"

NODES = Kind("Node", "nodes", objects.Node, event=Resource.NODE, dump_key="nodes")
PODS = Kind(
    "Pod",
    "pods",
    objects.Pod,
    event=Resource.POD,
    dump_key="pods",
    patched="status",
    holds_decisions=True,
    field_selector="status.phase!=Succeeded,status.phase!=Failed",
)
"""Finished pods hold nothing, so they are not asked for; a pod that finishes leaves the watch as a deletion."""
NAMESPACES = Kind("Namespace", "namespaces", objects.Namespace, event=Resource.NAMESPACE, dump_key="namespaces")
SERVICES = Kind("Service", "services", objects.Service, event=Resource.SERVICE, dump_key="services")
CONFIG_MAPS = Kind("ConfigMap", "configmaps", objects.ConfigMap)
"""Policies; not part of the cluster that is scheduled."""

_READ: tuple[Kind[Any], ...] = (
    NAMESPACES,
    SERVICES,
    Kind(
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        objects.PersistentVolumeClaim,
        event=Resource.PERSISTENT_VOLUME_CLAIM,
        dump_key="persistentVolumeClaims",
        patched="",
        holds_decisions=True,
    ),
    Kind(
        "PersistentVolume",
        "persistentvolumes",
        objects.PersistentVolume,
        event=Resource.PERSISTENT_VOLUME,
        dump_key="persistentVolumes",
        patched="",
        holds_decisions=True,
    ),
    Kind("StorageClass", "storageclasses", objects.StorageClass, _STORAGE, Resource.STORAGE_CLASS, "storageClasses"),
    Kind("CSINode", "csinodes", objects.CSINode, _STORAGE, Resource.CSI_NODE, "csiNodes"),
    Kind("CSIDriver", "csidrivers", objects.CSIDriver, _STORAGE, Resource.CSI_DRIVER, "csiDrivers"),
    Kind(
        "CSIStorageCapacity",
        "csistoragecapacities",
        objects.CSIStorageCapacity,
        _STORAGE,
        Resource.CSI_STORAGE_CAPACITY,
        "csiStorageCapacities",
    ),
    Kind(
        "VolumeAttachment",
        "volumeattachments",
        objects.VolumeAttachment,
        _STORAGE,
        Resource.VOLUME_ATTACHMENT,
        "volumeAttachments",
    ),
    Kind(
        "ResourceClaim",
        "resourceclaims",
        objects.ResourceClaim,
        _DEVICES,
        Resource.RESOURCE_CLAIM,
        "resourceClaims",
        patched="status",
        holds_decisions=True,
    ),
    Kind("ResourceSlice", "resourceslices", objects.ResourceSlice, _DEVICES, Resource.RESOURCE_SLICE, "resourceSlices"),
    Kind("DeviceClass", "deviceclasses", objects.DeviceClass, _DEVICES, Resource.DEVICE_CLASS, "deviceClasses"),
    Kind(
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        objects.PodDisruptionBudget,
        "/apis/policy/v1",
        dump_key="podDisruptionBudgets",
    ),
    Kind(
        "ReplicationController",
        "replicationcontrollers",
        objects.ReplicationController,
        dump_key="replicationControllers",
    ),
    Kind("ReplicaSet", "replicasets", objects.ReplicaSet, _APPS, dump_key="replicaSets"),
    Kind("StatefulSet", "statefulsets", objects.StatefulSet, _APPS, dump_key="statefulSets"),
    Kind(
        "PodGroup",
        "podgroups",
        objects.PodGroup,
        "/apis/scheduling.x-k8s.io/v1alpha1",
        Resource.POD_GROUP,
        "podGroups",
        patched="status",
        is_optional=True,
    ),
    Kind(
        "NativePodGroup",
        "podgroups",
        objects.NativePodGroup,
        "/apis/scheduling.k8s.io/v1alpha2",
        Resource.POD_GROUP,
        patched="status",
        is_optional=True,
    ),
)
BY_KIND: Mapping[str, Kind[Any]] = {kind.kind: kind for kind in _READ}
"""The kinds that plugins may read, besides nodes and pods."""
_EVERY: tuple[Kind[Any], ...] = (PODS, NODES, *_READ, CONFIG_MAPS)
STRUCTS: Mapping[str, type[Wire]] = {kind.kind: kind.type for kind in _EVERY}
"""The struct of every kind."""


def kind_of(item: Mapping[str, Any]) -> str:
    """An object's kind, by its name here: scheduler-plugins and Kubernetes both have a PodGroup."""
    is_native = item.get("kind") == "PodGroup" and str(item.get("apiVersion")).startswith("scheduling.k8s.io/")
    return "NativePodGroup" if is_native else str(item.get("kind"))
