"""Devices that have to be made ready before their pod is bound (KEP-5007): attached to the node, say.

A device may name conditions that its driver sets in the claim's status: all binding conditions must be True, and none
of the failure conditions. PreBind waits for that, and no longer than the plugin's `bindingTimeout`, counted from the
allocation. A claim whose devices failed, or were late, is available on no node: it may be deallocated.

Source: kube-scheduler's dynamicresources (isClaimReadyForBinding, isClaimTimeout), v1.36.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from math import floor, inf
from typing import Final

from policyengine.cluster.device_objects import (
    AllocationResult,
    DeviceCondition,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from policyengine.cluster.objects import ObjectError, parse_time
from policyengine.framework.status import SUCCESS, Code, Status

TIMEOUT: Final = 600.0
"""Seconds that devices have to become ready, unless the plugin is told otherwise (DynamicResourcesArgs)."""
LATE: Final = "device binding timeout"
_WAIT: Final = Status(Code.WAIT)


def must_be_ready(allocation: AllocationResult | None) -> bool:
    """Whether a device of the allocation has binding conditions."""
    return allocation is not None and any(result.binding_conditions for result in allocation.devices.results)


def is_unavailable(claim: ResourceClaim, timeout: float, now: float) -> bool:
    """Whether a device of the allocated claim has failed to become ready, or has not in time (seconds)."""
    if not must_be_ready(claim.status.allocation):
        return False
    ready = _readiness(claim)
    return isinstance(ready, str) or (not ready and late_in(claim, timeout, now) <= 0)


def readiness(claims: Iterable[ResourceClaim], timeout: float, now: float) -> Status:
    """Of a pod's allocated claims: SUCCESS once their devices are ready, WAIT before, an Error if that came to
    nothing."""
    for claim in claims:
        ready = _readiness(claim)
        if isinstance(ready, str):
            return Status(Code.ERROR, (ready,))
        if not ready:
            late = f"{LATE}: claim={claim.metadata.name}"
            return Status(Code.ERROR, (late,)) if late_in(claim, timeout, now) <= 0 else _WAIT
    return SUCCESS


def _readiness(claim: ResourceClaim) -> bool | str:
    """Whether all devices are ready; or which condition says that one never will be. The first device that is not ready
    decides, as in kube-scheduler."""
    allocation = claim.status.allocation
    for result in allocation.devices.results if allocation is not None else ():
        if not result.binding_conditions:
            continue
        conditions = _conditions(claim, result)
        for name in result.binding_failure_conditions:
            failed = conditions.get(name)
            if failed is not None and failed.status == "True":
                said = f"reason={failed.reason}, message={json.dumps(failed.message, ensure_ascii=False)}"
                return f"device binding failed: claim={claim.metadata.name}, {said}"
        if any(name not in conditions or conditions[name].status != "True" for name in result.binding_conditions):
            return False
    return True


def _conditions(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> dict[str, DeviceCondition]:
    """Type -> condition of an allocated device; none where its driver has not said anything yet."""
    device = (result.driver, result.pool, result.device)
    said = next((one for one in claim.status.devices if (one.driver, one.pool, one.device) == device), None)
    return {} if said is None else {condition.type: condition for condition in reversed(said.conditions)}


def late_in(claim: ResourceClaim, timeout: float, now: float) -> float:
    """Seconds until the devices are late, in whole seconds of the clock; inf where nobody said when they were given."""
    allocation = claim.status.allocation
    try:
        since = parse_time(allocation.allocation_timestamp) if allocation is not None else None
    except ObjectError:
        since = None
    return inf if since is None else floor(since + timeout) + 1 - floor(now)
