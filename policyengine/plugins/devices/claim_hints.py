"""Which changes may cure a refusal by DynamicResources (kube-scheduler's queueing hints for it).

Hints see the event alone: that another claim of the pod is still missing shows only when the pod is tried again.
"""

from __future__ import annotations

from collections.abc import Sequence

from policyengine.cluster.objects import ResourceClaim
from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.events import ActionType, ClusterEventWithHint, Resource
from policyengine.plugins.devices.resource_claims import claim_names, names_claim
from policyengine.plugins.event_hints import on


def dynamic_resources_events() -> Sequence[ClusterEventWithHint]:
    """The registrations."""
    add, update = ActionType.ADD, ActionType.UPDATE
    node = add | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE
    generated = ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM
    return (
        on(Resource.NODE, node),
        on(Resource.RESOURCE_CLAIM, add | update, _claim_changed),
        on(Resource.POD, generated, _claims_generated),
        on(Resource.DEVICE_CLASS, add | update),
        on(Resource.RESOURCE_SLICE, add | update),
    )


def _claim_changed(pod: PodInfo, old: object, new: object) -> bool:
    """A claim that lost its allocation frees devices for anybody; else only the pod's own claims matter, and of
    them only their status."""
    if not isinstance(new, ResourceClaim) or isinstance(claim_names(pod), str):
        return False
    was = old if isinstance(old, ResourceClaim) else None
    if was is not None and was.status.allocation is not None and new.status.allocation is None:
        return True
    return not (not names_claim(pod, new) or (was is not None and was.status == new.status))


def _claims_generated(pod: PodInfo, old: object, new: PodInfo | None) -> bool:
    return not (new is None or new.uid != pod.uid or isinstance(claim_names(new), str))
