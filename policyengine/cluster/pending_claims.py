"""Claims that reservations have allocated, or taken a share in, and that the API does not show so yet.

As kube-scheduler's in-flight allocations (dra_manager.go, v1.36): from Reserve until the claim is seen allocated and
reserved for the pod, is gone, or the reservation is given up. A change seen in between (a finalizer, say) does not end
it. All profiles share them.

The devices are taken, and the claim is to others as it will be: a pod that names it too, of the same gang for one,
goes where they are reached, and writes the same allocation. kube-scheduler lets only pods of one PodGroup's cycle do
that; others wait there until the allocation is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from policyengine.cluster.device_objects import AllocationResult, ResourceClaim, ResourceClaimConsumerReference


@dataclass(frozen=True, slots=True, eq=False)
class PendingClaim:
    """A claim and the pod it is to be reserved for. `allocation`: what it is given; None where it has that already."""

    claim: ResourceClaim
    allocation: AllocationResult | None
    pod_uid: str


class PendingClaims:
    """What is under way, by claim and pod."""

    def __init__(self, changed: Callable[[], None]) -> None:
        """`changed` is called at every change."""
        self._by_claim: dict[str, dict[str, PendingClaim]] = {}
        """Claim UID -> pod UID -> what is under way. A claim that is only to be made has its key for a UID."""
        self._written: dict[str, float] = {}
        self._changed = changed

    def __iter__(self) -> Iterator[PendingClaim]:
        for sharing in self._by_claim.values():
            yield from sharing.values()

    def allocations(self) -> tuple[AllocationResult, ...]:
        """What is given to claims that the API does not show allocated yet: once a claim, however many share it."""
        each = (next(iter(sharing.values())).allocation for sharing in self._by_claim.values())
        return tuple(allocation for allocation in each if allocation is not None)

    def foreseen(self, claim: ResourceClaim) -> ResourceClaim:
        """The claim as it will be once all that is under way is written."""
        sharing = self._sharing(claim)
        if not sharing:
            return claim
        status, users = claim.status, {one.uid for one in claim.status.reserved_for}
        coming = [ResourceClaimConsumerReference(resource="pods", uid=uid) for uid in sharing if uid not in users]
        given = status.allocation or next(iter(sharing.values())).allocation
        return replace(claim, status=replace(status, allocation=given, reserved_for=(*status.reserved_for, *coming)))

    def add(self, claim: ResourceClaim, allocation: AllocationResult | None, pod_uid: str) -> None:
        """A reservation has taken the claim: with this allocation; None: with the one it has, or is being given."""
        sharing = self._by_claim.setdefault(claim.metadata.uid, {})
        if allocation is None and sharing:
            allocation = next(iter(sharing.values())).allocation
        sharing[pod_uid] = PendingClaim(claim, allocation, pod_uid)
        self._changed()

    def of_pod(self, pod_uid: str) -> tuple[PendingClaim, ...]:
        """The claims taken for the pod, in the order taken."""
        return tuple(pending for pending in self if pending.pod_uid == pod_uid)

    def release(self, pod_uid: str) -> None:
        """The pod's reservation is given up."""
        for pending in self.of_pod(pod_uid):
            self._end(pending)

    def observe(self, claim: ResourceClaim) -> None:
        """The claim was seen: as soon as it is as it was to be, what the API says counts."""
        if claim.status.allocation is None:
            return
        users = {one.uid for one in claim.status.reserved_for}
        for pending in tuple(self._sharing(claim).values()):
            if pending.pod_uid in users:
                self._end(pending)
            elif pending.allocation is not None:
                shared = PendingClaim(pending.claim, None, pending.pod_uid)
                self._by_claim[pending.claim.metadata.uid][pending.pod_uid] = shared
                self._changed()

    def drop(self, claim_uid: str) -> None:
        """The claim is gone; no change where it was not pending."""
        self._written.pop(claim_uid, None)
        if self._by_claim.pop(claim_uid, None) is not None:
            self._changed()

    def written_at(self, claim_uid: str, now: float) -> float:
        """When the claim's allocation was first sent to be written: now, if it is sent for the first time. In seconds.

        All pods that share the claim have to say the same: the server lets nobody change an allocation.
        """
        return self._written.setdefault(claim_uid, now) if claim_uid in self._by_claim else now

    def _sharing(self, claim: ResourceClaim) -> dict[str, PendingClaim]:
        meta = claim.metadata
        return self._by_claim.get(meta.uid) or self._by_claim.get(meta.key) or {}

    def _end(self, pending: PendingClaim) -> None:
        uid = pending.claim.metadata.uid
        sharing = self._by_claim[uid]
        del sharing[pending.pod_uid]
        if sharing:
            self._changed()
        else:
            self.drop(uid)
