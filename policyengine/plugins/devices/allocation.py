"""The allocation of a claim, made of the devices that the search gave it.

Source: dynamic-resource-allocation's structured allocator (Allocate, createNodeSelector), v1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from uuid import UUID

from policyengine.cluster.device_objects import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceConfiguration,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from policyengine.cluster.node_objects import NodeSelector, NodeSelectorTerm
from policyengine.cluster.objects import SelectorRequirement
from policyengine.plugins.devices.device_request import AllocationError, Wanted
from policyengine.plugins.devices.device_search import Given


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
        consumed_capacity=dict(one.consumed) if shared else {},
        binding_conditions=one.source.device.device.binding_conditions,
        binding_failure_conditions=one.source.device.device.binding_failure_conditions,
    )


def _share_id(claim: ResourceClaim, place: int, one: Given) -> str:
    """A UUID of this share and no other: the same decision has the same one."""
    text = "\0".join((claim.metadata.uid, claim.metadata.key, str(place), *one.source.device.id))
    return str(UUID(bytes=blake2b(text.encode(), digest_size=16).digest(), version=4))


def _configuration(claim: ResourceClaim, given: Sequence[Given]) -> Iterable[DeviceConfiguration]:
    """The classes' parameters, each class once, then those of the claim: once for each request that they name."""
    chosen = list(dict.fromkeys(one.wanted for one in given))
    by_class: dict[str, list[Wanted]] = {}
    for wanted in chosen:
        by_class.setdefault(wanted.device_class.metadata.name, []).append(wanted)
    for users in by_class.values():
        for source in users[0].device_class.spec.config:
            names = tuple(wanted.name for wanted in users)
            yield DeviceConfiguration(source="FromClass", requests=names, opaque=source.opaque)
    for own in claim.spec.devices.config:
        concerned = [one for one in chosen if one.request in own.requests or one.name in own.requests]
        for _ in concerned if own.requests else (None,):
            yield DeviceConfiguration(source="FromClaim", requests=own.requests, opaque=own.opaque)


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
