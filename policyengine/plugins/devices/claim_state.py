"""A pod's claims: which they are, their state before nodes are looked at, and the outcome on each node.

Source: dynamic-resource-allocation's resourceclaim package, v1.36. A claim made from a template is found by the
name in the pod's status, and must be the pod's own.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from typing import Final

from policyengine.cluster.device_objects import ResourceClaim
from policyengine.cluster.node_objects import Node
from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import Snapshot
from policyengine.framework.status import SKIP, Code, Rows, Status
from policyengine.plugins.devices.binding_conditions import is_unavailable
from policyengine.plugins.devices.device_request import WantedClaim, wanted_claim
from policyengine.plugins.devices.device_search import Given
from policyengine.plugins.devices.extended_claim import ExtendedResources, asked_by, is_special_of
from policyengine.plugins.devices.outcomes import Devices, Outcome, Outcomes, Verdict
from policyengine.plugins.selectors.node_selector import Selector, compile_selector

CLAIM, SLICE, CLASS = "ResourceClaim", "ResourceSlice", "DeviceClass"
MOST_ALTERNATIVES: Final = 8
"""Alternatives of a request (FirstAvailableDeviceRequestMaxSize); the best one scores this much."""
MOST_CONSUMERS: Final = 256
"""Pods that may use one claim (ResourceClaimReservedForMaxSize)."""


class ClaimsState:
    """The pod's claims: those allocated already, and those to allocate."""

    def __init__(
        self,
        claims: Sequence[ResourceClaim],
        wanted: tuple[WantedClaim, ...],
        extended: ExtendedResources,
        unavailable: tuple[ResourceClaim, ...],
        devices: Devices,
    ) -> None:
        self.claims = tuple(claims)
        self._wanted = wanted
        self._extended = extended
        self.devices = devices
        self.signature: Hashable = None
        """That of the pods whose claims they are."""
        self._outcomes: dict[tuple[WantedClaim, ...], Outcomes] = {}
        self.unavailable = unavailable
        """Allocated claims whose devices failed to become ready, or have not in time: available on no node."""
        self.available_on: tuple[Selector, ...] = tuple(
            compile_selector(allocation.node_selector)
            for claim in claims
            if (allocation := claim.status.allocation) is not None and allocation.node_selector is not None
        )
        """From which nodes the allocated claims can be used."""

    @property
    def allocates(self) -> bool:
        """Whether devices are to be found, on some nodes at least."""
        return bool(self._wanted or self._extended)

    def wanted(self, node: Node) -> tuple[WantedClaim, ...]:
        """The claims to allocate on this node; the special one comes last."""
        special = self._extended.claim(node) if self._extended else None
        return self._wanted if special is None else (*self._wanted, special)

    def outcome(self, node: Node) -> Outcome:
        """What the search for their devices comes to."""
        if self._extended.cannot_fit(node):
            return Outcome(Verdict.CANNOT_FIT)
        return self._outcomes_of(self.wanted(node)).on(node)

    def given(self, node: Node) -> list[list[Given]] | Verdict:
        """Per claim to allocate the devices that it gets on the node, or why it gets none.

        Raises:
            AllocationError: a claim, a class or a slice is wrong.
        """
        return self._outcomes_of(self.wanted(node)).given(node)

    def _outcomes_of(self, wanted: tuple[WantedClaim, ...]) -> Outcomes:
        outcomes = self._outcomes.get(wanted)
        if outcomes is None:
            outcomes = self._outcomes[wanted] = self.devices.asked(wanted)
        return outcomes

    def in_the_way(self, pod: PodInfo, nodes: NodeTable, rows: Rows) -> ResourceClaim | None:
        """An allocated claim that no other pod uses, and without which one of these nodes had been left."""
        self.devices.begin()
        for claim in self.claims:
            allocation = claim.status.allocation
            if allocation is None or any(consumer.uid != pod.uid for consumer in claim.status.reserved_for):
                continue
            elsewhere = rows[:0]
            if claim in self.unavailable:
                elsewhere = rows
            elif allocation.node_selector is not None:
                elsewhere = rows[~compile_selector(allocation.node_selector).mask(nodes, rows)]
            if any(self.outcome(nodes.objects[row]).verdict is Verdict.FOUND for row in elsewhere.tolist()):
                return claim
        return None

    @property
    def has_alternatives(self) -> bool:
        """Whether nodes can differ in how good an alternative they give."""
        return any(request.first_available for claim in self.claims for request in claim.spec.devices.requests)

    def score(self, node: Node) -> int:
        """8 for every request that got its first alternative, 7 for the second, … (KEP-4816)."""
        total = 0
        fresh = iter(self.outcome(node).ways) if self._wanted else iter(())
        for claim in self.claims:
            allocation = claim.status.allocation
            if allocation is not None:
                names = frozenset([result.request for result in allocation.devices.results])
            else:
                names = next(fresh, frozenset())
            for request in claim.spec.devices.requests:
                for place, alternative in enumerate(request.first_available):
                    if f"{request.name}/{alternative.name}" in names:
                        total += MOST_ALTERNATIVES - place
        return total


def claims_state(pod: PodInfo, snapshot: Snapshot, devices: Devices, timeout: float) -> ClaimsState | Status:
    """The state for a pod; SKIP without claims, or why the pod cannot go anywhere now. `timeout`: how many seconds
    allocated devices have to become ready."""
    found = find_claims(pod, snapshot)
    if isinstance(found, str):
        return _refused(found)
    claims = [snapshot.pending_claims.foreseen(claim) for claim in found]
    extended = ExtendedResources(pod, snapshot)
    if not claims and not extended:
        return SKIP
    wanted: list[WantedClaim] = []
    unavailable: list[ResourceClaim] = []
    for claim in claims:
        if claim.status.allocation is not None:
            if not is_reserved_for(claim, pod) and len(claim.status.reserved_for) >= MOST_CONSUMERS:
                return _refused("resourceclaim in use")
            if is_unavailable(claim, timeout, snapshot.now):
                unavailable.append(claim)
            continue
        made = wanted_claim(claim, snapshot)
        if isinstance(made, Status):
            return made
        wanted.append(made)
    return ClaimsState(claims, tuple(wanted), extended, tuple(unavailable), devices)


def _refused(reason: str) -> Status:
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))


def claim_names(pod: PodInfo) -> dict[str, bool] | str:
    """The pod's claims in order -> whether they are made for it, from a template; or why not all of them have a name.
    Entries whose claim was left out on purpose (a null name in the status) are passed over."""
    names: dict[str, bool] = {}
    made_for = {one.name: one for one in reversed(pod.resource_claims)}  # of several of a name the first counts
    for entry in pod.shape.spec.resource_claims:
        if entry.resource_claim_name is not None:
            found: str | None = entry.resource_claim_name
            made = False
        elif entry.resource_claim_template_name is not None:
            status = made_for.get(entry.name)
            if status is None:
                return f'pod "{pod.key}": ResourceClaim not created yet'
            found, made = status.resource_claim_name, True
        else:
            quoted = json.dumps(entry.name)
            return f'pod "{pod.key}", spec.resourceClaim {quoted}: none of the supported fields are set'
        if found is not None:
            names.setdefault(found, made)
    return names


def find_claims(pod: PodInfo, snapshot: Snapshot) -> Sequence[ResourceClaim] | str:
    """The pod's claims; or why one of them cannot be used."""
    names = claim_names(pod)
    if isinstance(names, str):
        return names
    claims: list[ResourceClaim] = []
    for name, made in names.items():
        key = f"{pod.namespace}/{name}"
        claim = snapshot.objects(ResourceClaim).get(key)
        if claim is None:
            return f'could not find ResourceClaim "{key}"'
        if claim.metadata.deletion_timestamp is not None:
            return f'resourceclaim "{name}" is being deleted'
        owner = claim.metadata.controller
        if made and (owner is None or owner.uid != pod.uid):
            return f"ResourceClaim {key} was not created for Pod {pod.key} (Pod is not owner)"
        claims.append(claim)
    return claims


def left_over(pod: PodInfo, snapshot: Snapshot) -> ResourceClaim | None:
    """The special claim that an earlier attempt made for the pod."""
    if not asked_by(pod.shape):
        return None
    return next((one for one in snapshot.objects(ResourceClaim).values() if is_special_of(one, pod)), None)


def names_claim(pod: PodInfo, claim: object) -> bool:
    """Whether the claim is one of the pod's."""
    if not isinstance(claim, ResourceClaim) or claim.metadata.namespace != pod.namespace:
        return False
    names = claim_names(pod)
    return not isinstance(names, str) and claim.metadata.name in names


def is_reserved_for(claim: ResourceClaim, pod: PodInfo) -> bool:
    """Whether the pod is among those that may use the claim."""
    return any(consumer.uid == pod.uid for consumer in claim.status.reserved_for)
