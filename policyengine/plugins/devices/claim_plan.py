"""DynamicResources between Reserve and Bind: the patches of the pod's claims, and whether its devices are ready.

Source: kube-scheduler's dynamicresources (bindClaim, PreBind), v1.36: the finalizer first, by an update of its own,
then the allocation together with the pod among the claim's users, which it leaves if it is not bound after all
(Unreserve). Pods that share a claim write to it in any order, whatever else has changed in it: each adds itself, and
the allocation, which the server lets nobody change (`ValidateResourceClaimStatusUpdate`, v1.36), is the same in all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import msgspec
import numpy as np

from policyengine.cluster.device_objects import (
    AllocationResult,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from policyengine.cluster.kinds import PODS
from policyengine.cluster.objects import Wire
from policyengine.cluster.pending_claims import PendingClaim
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import Snapshot
from policyengine.framework.reservation import Announcement, ObjectPatch, Plan
from policyengine.framework.status import Code, Status
from policyengine.plugins.devices.binding_conditions import LATE, late_in, must_be_ready, readiness
from policyengine.plugins.devices.claim_state import CLAIM, is_reserved_for
from policyengine.plugins.devices.device_request import EXACT_COUNT
from policyengine.plugins.devices.extended_claim import ContainerRequest, is_made
from policyengine.plugins.selectors.node_selector import compile_selector

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
_ALLOCATED_AT: Final = ("status", "allocation", "allocationTimestamp")


def claims_plan(
    pod: PodInfo,
    node_name: str,
    claims: Sequence[ResourceClaim],
    pending: Sequence[PendingClaim],
    mappings: Sequence[ContainerRequest],
    timeout: float,
    now: float,
) -> Plan | None:
    """What is written for the claims that a reservation took, and whether devices of any of the pod's claims are waited
    for, at most for `timeout` seconds. `mappings`: of the special claim. None where there is nothing to do."""
    patches: list[ObjectPatch] = []
    for one in pending:
        claim = one.claim
        if not is_made(claim):
            patches += _special_patches(pod, one, mappings)
            continue
        if one.allocation is not None and FINALIZER not in claim.metadata.finalizers:
            patches.append(_addition(claim, {"metadata": {"finalizers": [FINALIZER]}}))
        stamped = () if one.allocation is None else _ALLOCATED_AT
        unused = {"status": {"reservedFor": [{"$patch": "delete", "uid": pod.uid}]}}
        patches.append(replace(_addition(claim, {"status": _status(pod, one)}, "status", stamped), undo=unused))
    unready = [claim for claim in claims if must_be_ready(claim.status.allocation)]
    state = tuple(dict.fromkeys(claim.metadata.key for claim in (*claims, *(one.claim for one in pending))))
    if not unready and not any(must_be_ready(one.allocation) for one in pending):
        return Plan(patches=tuple(patches), state=state) if patches else None
    note = f"waiting for binding conditions for device on node {node_name}"
    return Plan(
        patches=tuple(patches),
        timeout=min([timeout, *(late_in(claim, timeout, now) for claim in unready)]),
        on_timeout=f"{LATE}: context deadline exceeded",
        state=state,
        announcement=Announcement("BindingConditionsPending", note),
    )


def _special_patches(pod: PodInfo, one: PendingClaim, mappings: Sequence[ContainerRequest]) -> Iterable[ObjectPatch]:
    """The special claim is made, allocated, and named in the pod's status."""
    claim, meta = one.claim, one.claim.metadata
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}
    whole: dict[str, object] = {
        "metadata": {
            "name": meta.name,
            "namespace": meta.namespace,
            "annotations": meta.annotations,
            "finalizers": [FINALIZER],
            "ownerReferences": [owner],
        },
        "spec": {"devices": {"requests": [_exactly(request) for request in claim.spec.devices.requests]}},
    }
    yield ObjectPatch(CLAIM, meta.namespace, meta.name, "", "", whole, verb="POST")
    yield ObjectPatch(CLAIM, meta.namespace, meta.name, "", "", {"status": _status(pod, one)}, "status", _ALLOCATED_AT)
    named = [
        {"containerName": one.container, "resourceName": one.resource, "requestName": one.request} for one in mappings
    ]
    status = {"extendedResourceClaimStatus": {"requestMappings": named, "resourceClaimName": meta.name}}
    yield ObjectPatch(PODS.kind, pod.namespace, pod.name, pod.uid, "", {"status": status}, "status")


def _exactly(request: DeviceRequest) -> dict[str, object]:
    exactly = request.exactly or ExactDeviceRequest()
    asked = {"deviceClassName": exactly.device_class_name, "allocationMode": EXACT_COUNT, "count": exactly.count}
    return {"name": request.name, "exactly": asked}


def deallocation(claim: ResourceClaim) -> ObjectPatch:
    """The claim has no devices any more, and no users."""
    meta, nothing = claim.metadata, {"allocation": None, "reservedFor": None, "devices": None}
    version = meta.resource_version
    return ObjectPatch(CLAIM, meta.namespace, meta.name, meta.uid, version, {"status": nothing}, "status")


def removal(claim: ResourceClaim) -> tuple[ObjectPatch, ...]:
    """The claim goes."""
    meta = claim.metadata
    return ObjectPatch(CLAIM, meta.namespace, meta.name, meta.uid, "", {}, verb="POST").undone()


def check_claims_plan(pod: PodInfo, node_name: str, plan: Plan, snapshot: Snapshot, timeout: float) -> Status:
    """SUCCESS where all is as it was written and the devices are ready, WAIT before; an Error where somebody has
    changed it since, or a device cannot become ready."""
    keys: tuple[str, ...] = plan.state
    claims: list[ResourceClaim] = []
    for key in keys:
        claim = snapshot.objects(ResourceClaim).get(key)
        if claim is None:
            return _failed(f"claim {key} got deleted in the meantime")
        allocation = claim.status.allocation
        if allocation is None or not is_reserved_for(claim, pod) or not _is_reached(allocation, node_name, snapshot):
            return _failed(f"claim {key} got deallocated elsewhere in the meantime")
        claims.append(claim)
    return readiness(claims, timeout, snapshot.now)


def _status(pod: PodInfo, one: PendingClaim) -> dict[str, object]:
    status: dict[str, object] = {"reservedFor": [{"resource": "pods", "name": pod.name, "uid": pod.uid}]}
    if one.allocation is not None:
        status["allocation"] = _json(one.allocation)
    return status


def _json(part: Wire) -> object:
    """As the API has it: lists for tuples."""
    plain: object = msgspec.json.decode(msgspec.json.encode(part))
    return plain


def _is_reached(allocation: AllocationResult, node_name: str, snapshot: Snapshot) -> bool:
    selector, row = allocation.node_selector, snapshot.nodes.row_of.get(node_name)
    if selector is None or row is None:
        return True
    return bool(compile_selector(selector).mask(snapshot.nodes, np.array([row])).all())


def _addition(
    claim: ResourceClaim, patch: dict[str, object], subresource: str = "", stamped: tuple[str, ...] = ()
) -> ObjectPatch:
    meta = claim.metadata
    version = meta.resource_version
    return ObjectPatch(CLAIM, meta.namespace, meta.name, meta.uid, version, patch, subresource, stamped, strategic=True)


def _failed(reason: str) -> Status:
    return Status(Code.ERROR, (reason,))
