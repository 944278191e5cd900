"""A cluster from plain objects: what `explain`, scenarios and tests start from.

Two shapes are read: a Kubernetes `List` (`kubectl get nodes,pods,… -A -o json`), and an object of lists (`nodes`,
`pods`, `pending`, `namespaces`, …). Pods without a node that are not finished are pending, wherever they stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from policyengine.cluster.objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    DeviceClass,
    Namespace,
    NativePodGroup,
    Node,
    ObjectError,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PodGroup,
    ReplicaSet,
    ReplicationController,
    ResourceClaim,
    ResourceSlice,
    Service,
    StatefulSet,
    StorageClass,
    VolumeAttachment,
    decode,
)
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import ClusterView

_KINDS: Final[Mapping[str, type[Any]]] = {
    "Namespace": Namespace,
    "Service": Service,
    "PersistentVolumeClaim": PersistentVolumeClaim,
    "PersistentVolume": PersistentVolume,
    "StorageClass": StorageClass,
    "CSINode": CSINode,
    "CSIDriver": CSIDriver,
    "CSIStorageCapacity": CSIStorageCapacity,
    "VolumeAttachment": VolumeAttachment,
    "ResourceClaim": ResourceClaim,
    "ResourceSlice": ResourceSlice,
    "DeviceClass": DeviceClass,
    "PodDisruptionBudget": PodDisruptionBudget,
    "ReplicationController": ReplicationController,
    "ReplicaSet": ReplicaSet,
    "StatefulSet": StatefulSet,
    "PodGroup": PodGroup,
    "NativePodGroup": NativePodGroup,
}

_FIELDS: Final[Mapping[str, str]] = {
    "nodes": "Node",
    "pods": "Pod",
    "pending": "Pod",
    "namespaces": "Namespace",
    "services": "Service",
    "persistentVolumeClaims": "PersistentVolumeClaim",
    "persistentVolumes": "PersistentVolume",
    "storageClasses": "StorageClass",
    "csiNodes": "CSINode",
    "csiDrivers": "CSIDriver",
    "csiStorageCapacities": "CSIStorageCapacity",
    "volumeAttachments": "VolumeAttachment",
    "resourceClaims": "ResourceClaim",
    "resourceSlices": "ResourceSlice",
    "deviceClasses": "DeviceClass",
    "podDisruptionBudgets": "PodDisruptionBudget",
    "replicationControllers": "ReplicationController",
    "replicaSets": "ReplicaSet",
    "statefulSets": "StatefulSet",
    "podGroups": "PodGroup",
}


class ClusterShapeError(ValueError):
    """The input is no cluster; the message says what was expected."""


@dataclass(slots=True)
class LoadedCluster:
    """A view, and the pods that wait, in the order given."""

    view: ClusterView
    pending: list[PodInfo] = field(default_factory=list)


def load_cluster(cluster: Mapping[str, Any]) -> LoadedCluster:
    """Read the objects into a view. Objects of kinds that scheduling does not read are passed over.

    Raises `ClusterShapeError` for a wrong shape, and `ObjectError` for a malformed object.
    """
    view = ClusterView()
    waiting: list[str] = []
    for kind, item in _objects(cluster):
        if kind == "Node":
            view.add_or_update_node(decode(Node, item))
        elif kind == "Pod":
            change = view.add_or_update_pod(decode(Pod, item))
            if change.new is not None and not change.new.node_name and change.new.uid not in waiting:
                waiting.append(change.new.uid)
        elif kind in _KINDS:
            view.set_object(kind, decode(_KINDS[kind], item))
    return LoadedCluster(view, [view.pods[uid] for uid in waiting if uid in view.pods])


def _objects(cluster: Mapping[str, Any]) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """(kind, object), one after another."""
    if not isinstance(cluster, Mapping):
        raise ClusterShapeError("a cluster is a JSON object: a `List`, or one with `nodes` and `pods`")
    if "items" in cluster:
        for item in _listed(cluster, "items"):
            kind = item.get("kind")
            if not isinstance(kind, str):
                raise ClusterShapeError("an item of the list has no `kind`")
            yield _own_name(kind, item), item
        return
    if not any(name in cluster for name in _FIELDS):
        raise ClusterShapeError(f"none of {', '.join(f'`{name}`' for name in ('nodes', 'pods', 'pending'))} is there")
    for name, kind in _FIELDS.items():
        for item in _listed(cluster, name):
            yield _own_name(kind, item), item


def _own_name(kind: str, item: Mapping[str, Any]) -> str:
    """The kind, by its name here: scheduler-plugins and Kubernetes both have a PodGroup."""
    is_native = kind == "PodGroup" and str(item.get("apiVersion")).startswith("scheduling.k8s.io/")
    return "NativePodGroup" if is_native else kind


def _listed(cluster: Mapping[str, Any], name: str) -> Iterable[Mapping[str, Any]]:
    items = cluster.get(name)
    if items is None:
        return
    if not isinstance(items, list):
        raise ClusterShapeError(f"`{name}` is not a list")
    for item in items:
        if not isinstance(item, Mapping):
            raise ClusterShapeError(f"`{name}` holds something that is not an object")
        yield item


__all__ = ["ClusterShapeError", "LoadedCluster", "ObjectError", "load_cluster"]
