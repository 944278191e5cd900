"""Which changes may cure a refusal by VolumeBinding (kube-scheduler's queueing hints for it)."""

from __future__ import annotations

from collections.abc import Sequence

from policyengine import quantity
from policyengine.cluster.objects import CSIDriver, CSIStorageCapacity, StorageClass
from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.events import ActionType, ClusterEventWithHint, Resource
from policyengine.plugins.event_hints import on
from policyengine.plugins.volumes.volume_claims import names_claim


def volume_binding_events() -> Sequence[ClusterEventWithHint]:
    """The registrations."""
    add, update = ActionType.ADD, ActionType.UPDATE
    return (
        on(Resource.STORAGE_CLASS, add | update, _class_changed),
        on(Resource.PERSISTENT_VOLUME_CLAIM, add | update, _claim_changed),
        on(Resource.PERSISTENT_VOLUME, add | update),
        on(Resource.NODE, add | ActionType.UPDATE_NODE_LABEL),
        on(Resource.CSI_DRIVER, update, _driver_changed),
        on(Resource.CSI_STORAGE_CAPACITY, add | update, _capacity_changed),
    )


def _class_changed(pod: PodInfo, old: object, new: object) -> bool:
    if not isinstance(old, StorageClass) or not isinstance(new, StorageClass):
        return True
    return old.allowed_topologies != new.allowed_topologies


def _claim_changed(pod: PodInfo, old: object, new: object) -> bool:
    return names_claim(pod, new)


def _driver_changed(pod: PodInfo, old: object, new: object) -> bool:
    """Capacity is no longer tracked. Unlike kube-scheduler, which looks at inline CSI volumes alone, every pod
    with a claim is asked again: its class may be the driver's."""
    if not isinstance(old, CSIDriver) or not isinstance(new, CSIDriver):
        return True
    return bool(old.spec.storage_capacity) and not new.spec.storage_capacity


def _capacity_changed(pod: PodInfo, old: object, new: object) -> bool:
    if not isinstance(old, CSIStorageCapacity) or not isinstance(new, CSIStorageCapacity):
        return True
    before, after = _limit(old), _limit(new)
    return after is not None and (before is None or after > before)


def _limit(capacity: CSIStorageCapacity) -> int | None:
    text = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    if text is None:
        return None
    try:
        return quantity.value(text)
    except quantity.QuantityError:
        return None
