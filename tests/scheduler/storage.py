"""Volumes and claims for tests of the core, as the watch shows them."""

from __future__ import annotations

from typing import Any

from policyengine.cluster.objects import decode
from policyengine.cluster.storage_objects import PersistentVolume, PersistentVolumeClaim, StorageClass
from policyengine.cluster.workload_objects import PodDisruptionBudget
from policyengine.scheduler.actions import Action, PatchObject
from policyengine.scheduler.messages import ObjectObserved

Json = dict[str, Any]


def storage_class(name: str, provisioner: str = "kubernetes.io/no-provisioner") -> StorageClass:
    item = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
    return decode(StorageClass, item)


def claim(
    name: str,
    version: int = 1,
    *,
    of: str = "local",
    size: str = "1Gi",
    volume: str = "",
    node: str = "",
    bound: bool = False,
) -> PersistentVolumeClaim:
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if bound else {}
    if node:
        annotations["volume.kubernetes.io/selected-node"] = node
    spec = {"storageClassName": of, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    if volume:
        spec["volumeName"] = volume
    return decode(
        PersistentVolumeClaim,
        {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"uid-{name}",
                "resourceVersion": str(version),
                "annotations": annotations,
            },
            "spec": spec,
            "status": {"phase": "Bound" if bound else "Pending"},
        },
    )


def volume(
    name: str,
    version: int = 1,
    *,
    of: str = "local",
    size: str = "1Gi",
    node: str = "",
    taken_by: str = "",
    with_uid: bool = True,
) -> PersistentVolume:
    spec: Json = {"storageClassName": of, "accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}}
    if node:
        term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    if taken_by:
        uid = {"uid": f"uid-{taken_by}"} if with_uid else {}
        spec["claimRef"] = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": taken_by, **uid}
    return decode(
        PersistentVolume,
        {
            "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version)},
            "spec": spec,
            "status": {"phase": "Available"},
        },
    )


def budget(**labels: str) -> PodDisruptionBudget:
    """One that lets none of the pods with these labels go."""
    meta = {"name": "b", "namespace": "default", "uid": "b", "resourceVersion": "1"}
    spec = {"selector": {"matchLabels": labels}}
    return decode(PodDisruptionBudget, {"metadata": meta, "spec": spec, "status": {"disruptionsAllowed": 0}})


def seen(*items: Any) -> list[ObjectObserved]:
    """The watch shows them."""
    return [ObjectObserved(type(item).__name__, item) for item in items]


def patches(actions: list[Action]) -> list[PatchObject]:
    return [action for action in actions if isinstance(action, PatchObject)]
