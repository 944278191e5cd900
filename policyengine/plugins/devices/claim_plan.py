"""DynamicResources between Reserve and Bind: the allocation of a claim, its patches, and whether they have been seen.

Source: kube-scheduler's dynamicresources (bindClaim), v1.36: the finalizer first, by an update of its own, then the
allocation together with the pod among the claim's users. Every write names the version it was decided on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final
from uuid import UUID

import msgspec

from policyengine import quantity
from policyengine.cluster.device_objects import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from policyengine.cluster.node_objects import NodeSelector, NodeSelectorTerm
from policyengine.cluster.object_store import PendingClaim
from policyengine.cluster.objects import SelectorRequirement, Wire
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import Snapshot
from policyengine.framework.reservation import ObjectPatch, Plan
from policyengine.framework.status import SUCCESS, Code, Status
from policyengine.plugins.devices.claim_state import CLAIM, is_reserved_for
from policyengine.plugins.devices.device_request import AllocationError, Wanted
from policyengine.plugins.devices.device_search import Given

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


def check_claims_plan(pod: PodInfo, plan: Plan, snapshot: Snapshot) -> Status:
    """SUCCESS where all is as it was written; an Error where somebody has changed it since."""
    keys: tuple[str, ...] = plan.state
    for key in keys:
        claim = snapshot.objects(ResourceClaim).get(key)
        if claim is None:
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


_NANO: Final = 10**9


def allocation_result(claim: ResourceClaim, given: Sequence[Given], node_name: str) -> AllocationResult:
    """The allocation of the claim for a pod on the node.

    Raises:
        AllocationError: a slice's node selector has several terms.
    """
    results = tuple(_result(claim, place, one) for place, one in enumerate(given))
    devices = DeviceAllocationResult(results=results, config=tuple(_configuration(claim, given)))
    return AllocationResult(devices=devices, node_selector=_node_selector(given, node_name))


def _result(claim: ResourceClaim, place: int, one: Given) -> DeviceRequestAllocationResult:
    driver, pool, device = one.source.device.id
    shared = one.source.device.device.allow_multiple_allocations
    return DeviceRequestAllocationResult(
        request=one.wanted.name,
        driver=driver,
        pool=pool,
        device=device,
        admin_access=one.wanted.admin_access,
        tolerations=one.wanted.source.tolerations,
        share_id=_share_id(claim, place, one) if shared else None,
        consumed_capacity={name: _written(nanos) for name, nanos in one.consumed.items()} if shared else {},
    )


def _share_id(claim: ResourceClaim, place: int, one: Given) -> str:
    """A UUID of this share and no other: the same decision has the same one."""
    text = "\0".join((claim.metadata.uid, claim.metadata.key, str(place), *one.source.device.id))
    return str(UUID(bytes=blake2b(text.encode(), digest_size=16).digest(), version=4))


def _written(nanos: int) -> str:
    whole, rest = divmod(nanos, _NANO)
    return f"{nanos}n" if rest else quantity.format_bytes(whole)


def _configuration(claim: ResourceClaim, given: Sequence[Given]) -> Iterable[DeviceAllocationConfiguration]:
    """The classes' parameters, each class once, then those of the claim that concern what was chosen."""
    chosen = list(dict.fromkeys(one.wanted for one in given))
    by_class: dict[str, list[Wanted]] = {}
    for wanted in chosen:
        by_class.setdefault(wanted.device_class.metadata.name, []).append(wanted)
    for users in by_class.values():
        for source in users[0].device_class.spec.config:
            names = tuple(wanted.name for wanted in users)
            yield DeviceAllocationConfiguration(source="FromClass", requests=names, opaque=source.opaque)
    names_chosen = {name for wanted in chosen for name in (wanted.request, wanted.name)}
    for own in claim.spec.devices.config:
        if not own.requests or not names_chosen.isdisjoint(own.requests):
            yield DeviceAllocationConfiguration(source="FromClaim", requests=own.requests, opaque=own.opaque)


def _node_selector(given: Sequence[Given], node_name: str) -> NodeSelector | None:
    """From which nodes all the devices are reached; None means from all."""
    labels: list[SelectorRequirement] = []
    fields: list[SelectorRequirement] = []
    for one in given:
        device = one.source.device.device
        reach = device if one.source.slice.spec.per_device_node_selection else one.source.slice.spec
        if reach.node_name or device.binds_to_node:
            only = SelectorRequirement(key="metadata.name", operator="In", values=(node_name,))
            return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(only,)),))
        terms = reach.node_selector.node_selector_terms if reach.node_selector is not None else ()
        if len(terms) > 1:
            raise AllocationError(f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms")
        for term in terms:
            labels += [each for each in term.match_expressions if each not in labels]
            fields += [each for each in term.match_fields if each not in fields]
    if not labels and not fields:
        return None
    whole = NodeSelectorTerm(match_expressions=tuple(labels), match_fields=tuple(fields))
    return NodeSelector(node_selector_terms=(whole,))
