"""Finds the PersistentVolumeClaims of a pod, and their volumes and storage classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.storage_objects import PersistentVolumeClaim, StorageClass
from policyengine.cluster.view import Snapshot

CLAIM, VOLUME, CLASS = "PersistentVolumeClaim", "PersistentVolume", "StorageClass"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"


@dataclass(frozen=True, slots=True)
class ClaimRef:
    """A claim that a volume of the pod names, or one made for the pod's generic ephemeral volume."""

    name: str
    ephemeral: bool


def claim_refs(pod: PodInfo, with_ephemeral: bool = True) -> Sequence[ClaimRef]:
    """The claims of the pod's volumes, in order."""
    refs: list[ClaimRef] = []
    for volume in pod.shape.spec.volumes:
        if volume.persistent_volume_claim is not None:
            refs.append(ClaimRef(volume.persistent_volume_claim.claim_name, False))
        elif volume.ephemeral is not None and with_ephemeral:
            refs.append(ClaimRef(f"{pod.name}-{volume.name}", True))
    return refs


def names_claim(pod: PodInfo, claim: object, with_ephemeral: bool = True) -> bool:
    """Whether one of the pod's volumes is this claim."""
    if not isinstance(claim, PersistentVolumeClaim) or claim.metadata.namespace != pod.namespace:
        return False
    return any(ref.name == claim.metadata.name for ref in claim_refs(pod, with_ephemeral))


def find_claim(snapshot: Snapshot, namespace: str, name: str) -> PersistentVolumeClaim | None:
    """The claim, if it exists."""
    return snapshot.objects(PersistentVolumeClaim).get(f"{namespace}/{name}")


def class_name(claim: PersistentVolumeClaim) -> str:
    """The class the claim asks for; "" for none."""
    beta = claim.metadata.annotations.get(BETA_CLASS)
    return beta if beta is not None else claim.spec.storage_class_name or ""


def class_of(claim: PersistentVolumeClaim, snapshot: Snapshot) -> StorageClass | None:
    """The class the claim asks for, if it exists."""
    wanted = class_name(claim)
    return snapshot.objects(StorageClass).get(wanted) if wanted else None


def waits_for_consumer(storage: StorageClass) -> bool | str:
    """Whether volumes of the class are bound once a pod wants them; or why that cannot be told."""
    if storage.volume_binding_mode is None:
        return f'VolumeBindingMode not set for StorageClass "{storage.metadata.name}"'
    return storage.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether the volume controller is done with it."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def not_for_pod(pod: PodInfo, claim: PersistentVolumeClaim) -> str | None:
    """Why an ephemeral volume's claim is not the pod's own; None when it is."""
    controller = claim.metadata.controller
    if controller is not None and controller.uid == pod.uid:
        return None
    key = claim.metadata.key
    return f"PVC {key} was not created for pod {pod.key} (pod is not owner)"


def not_found(resource: str, name: str) -> str:
    """The API's words for an absent object: `persistentvolumeclaim "data" not found`."""
    return f'{resource} "{name}" not found'
