"""Where each kind of object lives in the API, and the type it decodes to.

Only kinds that some part of the scheduler reads are listed; each costs a list and a watch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from policyengine.cluster import objects
from policyengine.cluster.metadata import Wire

T = TypeVar("T", bound=Wire)


@dataclass(frozen=True, slots=True)
class Resource(Generic[T]):
    """A kind of object in the API."""

    kind: str
    plural: str
    type: type[T]
    group_path: str = "/api/v1"
    """`/api/v1` for the core group, else `/apis/GROUP/VERSION`."""
    field_selector: str = ""
    is_optional: bool = False
    """Whether a server may not serve the kind: then there are no such objects, until it does."""

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path of the collection, or of one object in it."""
        parts = [self.group_path]
        if namespace:
            parts += ["namespaces", namespace]
        parts += [self.plural, name, subresource]
        return "/".join(part for part in parts if part)


NODES = Resource("Node", "nodes", objects.Node)
PODS = Resource("Pod", "pods", objects.Pod, field_selector="status.phase!=Succeeded,status.phase!=Failed")
"""Finished pods hold nothing, so they are not asked for; a pod that finishes leaves the watch as a deletion."""
NAMESPACES = Resource("Namespace", "namespaces", objects.Namespace)
SERVICES = Resource("Service", "services", objects.Service)
CONFIG_MAPS = Resource("ConfigMap", "configmaps", objects.ConfigMap)
_STORAGE = "/apis/storage.k8s.io/v1"
_DEVICES = "/apis/resource.k8s.io/v1"
BY_KIND: Mapping[str, Resource[Any]] = {
    resource.kind: resource
    for resource in (
        NAMESPACES,
        SERVICES,
        Resource("ReplicationController", "replicationcontrollers", objects.ReplicationController),
        Resource("ReplicaSet", "replicasets", objects.ReplicaSet, "/apis/apps/v1"),
        Resource("StatefulSet", "statefulsets", objects.StatefulSet, "/apis/apps/v1"),
        Resource("PodDisruptionBudget", "poddisruptionbudgets", objects.PodDisruptionBudget, "/apis/policy/v1"),
        Resource("PersistentVolume", "persistentvolumes", objects.PersistentVolume),
        Resource("PersistentVolumeClaim", "persistentvolumeclaims", objects.PersistentVolumeClaim),
        Resource("StorageClass", "storageclasses", objects.StorageClass, _STORAGE),
        Resource("CSINode", "csinodes", objects.CSINode, _STORAGE),
        Resource("CSIDriver", "csidrivers", objects.CSIDriver, _STORAGE),
        Resource("CSIStorageCapacity", "csistoragecapacities", objects.CSIStorageCapacity, _STORAGE),
        Resource("VolumeAttachment", "volumeattachments", objects.VolumeAttachment, _STORAGE),
        Resource("DeviceClass", "deviceclasses", objects.DeviceClass, _DEVICES),
        Resource("ResourceClaim", "resourceclaims", objects.ResourceClaim, _DEVICES),
        Resource("ResourceSlice", "resourceslices", objects.ResourceSlice, _DEVICES),
        Resource("PodGroup", "podgroups", objects.PodGroup, "/apis/scheduling.x-k8s.io/v1alpha1", is_optional=True),
        Resource(
            "NativePodGroup",
            "podgroups",
            objects.NativePodGroup,
            "/apis/scheduling.k8s.io/v1alpha2",
            is_optional=True,
        ),
    )
}
"""The kinds that plugins may read, besides nodes and pods."""
WRITTEN = frozenset({"Pod", "PersistentVolume", "PersistentVolumeClaim", "ResourceClaim"})
"""The kinds in which a scheduler's decisions stand."""
EVENTS_PATH = "/apis/events.k8s.io/v1"
LEASES_PATH = "/apis/coordination.k8s.io/v1"
