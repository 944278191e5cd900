"""The claims behind a pod's `resourceClaims`, and why they may not be there yet.

Source: dynamic-resource-allocation's resourceclaim package, v1.36. A claim made from a template is found by the
name in the pod's status, and must be the pod's own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from policyengine.cluster.device_objects import ResourceClaim
from policyengine.cluster.pod_info import PodInfo

if TYPE_CHECKING:
    from policyengine.cluster.view import Snapshot

CLAIM, SLICE, CLASS = "ResourceClaim", "ResourceSlice", "DeviceClass"
_TRUE: Final = "True"


@dataclass(frozen=True, slots=True)
class ClaimName:
    """A claim that the pod names; `made` for the pod, from a template."""

    name: str
    made: bool


def claim_names(pod: PodInfo) -> Sequence[ClaimName] | str:
    """The pod's claims in order, each once; or why not all of them have a name. Entries whose claim was left out on
    purpose (a null name in the status) are passed over."""
    names: dict[str, ClaimName] = {}
    for entry in pod.shape.spec.resource_claims:
        if entry.resource_claim_name is not None:
            found: str | None = entry.resource_claim_name
            made = False
        elif entry.resource_claim_template_name is not None:
            status = next((one for one in pod.resource_claims if one.name == entry.name), None)
            if status is None:
                return f'pod "{pod.key}": ResourceClaim not created yet'
            found, made = status.resource_claim_name, True
        else:
            quoted = json.dumps(entry.name)
            return f'pod "{pod.key}", spec.resourceClaim {quoted}: none of the supported fields are set'
        if found is not None:
            names.setdefault(found, ClaimName(found, made))
    return tuple(names.values())


def find_claims(pod: PodInfo, snapshot: Snapshot) -> Sequence[ResourceClaim] | str:
    """The pod's claims; or why one of them cannot be used."""
    names = claim_names(pod)
    if isinstance(names, str):
        return names
    claims: list[ResourceClaim] = []
    for entry in names:
        key = f"{pod.namespace}/{entry.name}"
        claim = snapshot.objects(ResourceClaim).get(key)
        if claim is None:
            return f'could not find ResourceClaim "{key}"'
        if claim.metadata.deletion_timestamp is not None:
            return f'resourceclaim "{entry.name}" is being deleted'
        owner = claim.metadata.controller
        if entry.made and (owner is None or owner.uid != pod.uid):
            return f"ResourceClaim {key} was not created for Pod {pod.key} (Pod is not owner)"
        claims.append(claim)
    return claims


def names_claim(pod: PodInfo, claim: object) -> bool:
    """Whether the claim is one of the pod's."""
    if not isinstance(claim, ResourceClaim) or claim.metadata.namespace != pod.namespace:
        return False
    names = claim_names(pod)
    return not isinstance(names, str) and any(entry.name == claim.metadata.name for entry in names)


def is_reserved_for(claim: ResourceClaim, pod: PodInfo) -> bool:
    """Whether the pod is among those that may use the claim."""
    return any(consumer.uid == pod.uid for consumer in claim.status.reserved_for)


def awaits_binding(claim: ResourceClaim) -> bool:
    """Whether a device of the allocated claim has binding conditions that do not all hold yet (KEP-5007)."""
    allocation = claim.status.allocation
    if allocation is None:
        return False
    for result in allocation.devices.results:
        if not result.binding_conditions:
            continue
        holding = _conditions(claim, result.driver, result.pool, result.device)
        if not holding.issuperset(result.binding_conditions) or holding & set(result.binding_failure_conditions):
            return True
    return False


def _conditions(claim: ResourceClaim, driver: str, pool: str, device: str) -> frozenset[str]:
    """The conditions that hold for an allocated device."""
    for entry in claim.status.devices:
        if (entry.get("driver"), entry.get("pool"), entry.get("device")) == (driver, pool, device):
            conditions = entry.get("conditions")
            listed = conditions if isinstance(conditions, list) else []
            return frozenset(str(one.get("type")) for one in listed if one.get("status") == _TRUE)
    return frozenset()
