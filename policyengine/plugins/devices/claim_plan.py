"""DynamicResources between Reserve and Bind: what is written to claims, and whether it has come true.

Source: kube-scheduler's dynamicresources (bindClaim), v1.36: the finalizer first, by an update of its own, then the
allocation together with the pod among the claim's users. Every write names the version it was decided on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from policyengine.cluster.metadata import Wire
from policyengine.cluster.objects import ResourceClaim
from policyengine.cluster.pending_claims import PendingClaim
from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.reservation import ObjectPatch, Plan
from policyengine.framework.status import SUCCESS, Code, Status
from policyengine.plugins.devices.resource_claims import CLAIM, is_reserved_for

if TYPE_CHECKING:
    from policyengine.cluster.snapshot import Snapshot

FINALIZER: Final = "resource.kubernetes.io/delete-protection"


def claims_plan(pod: PodInfo, pending: Sequence[PendingClaim]) -> Plan:
    """What is written for the claims that a reservation took."""
    patches: list[ObjectPatch] = []
    for one in pending:
        claim = one.claim
        if one.allocation is not None and FINALIZER not in claim.metadata.finalizers:
            finalizers = [*claim.metadata.finalizers, FINALIZER]
            patches.append(_patch(claim, {"metadata": {"finalizers": finalizers}}))
        patches.append(_patch(claim, {"status": _status(pod, one)}, "status"))
    return Plan(patches=tuple(patches), state=tuple(one.claim.metadata.key for one in pending))


def judge_claims_plan(pod: PodInfo, plan: Plan, snapshot: Snapshot) -> Status:
    """SUCCESS where all is as it was written; an Error where somebody has changed it since."""
    keys: tuple[str, ...] = plan.state
    for key in keys:
        claim = snapshot.objects(CLAIM).get(key)
        if not isinstance(claim, ResourceClaim):
            return _failed(f"claim {key} got deleted in the meantime")
        if claim.status.allocation is None or not is_reserved_for(claim, pod):
            return _failed(f"claim {key} got deallocated elsewhere in the meantime")
    return SUCCESS


def _status(pod: PodInfo, one: PendingClaim) -> dict[str, object]:
    users = [_json(user) for user in one.claim.status.reserved_for]
    status: dict[str, object] = {"reservedFor": [*users, {"resource": "pods", "name": pod.name, "uid": pod.uid}]}
    if one.allocation is not None:
        status["allocation"] = _json(one.allocation)
    return status


def _json(part: Wire) -> object:
    """As the API has it: lists for tuples."""
    plain: object = msgspec.json.decode(msgspec.json.encode(part))
    return plain


def _patch(claim: ResourceClaim, patch: dict[str, object], subresource: str = "") -> ObjectPatch:
    meta = claim.metadata
    return ObjectPatch(CLAIM, meta.namespace, meta.name, meta.uid, meta.resource_version, patch, subresource)


def _failed(reason: str) -> Status:
    return Status(Code.ERROR, (reason,))
