"""Claims that a reservation has allocated, or taken a share in, and the API does not show so yet.

As kube-scheduler's in-flight allocations (dra_manager.go, v1.36): from Reserve until the claim is seen allocated and
reserved for the pod, is gone, or the reservation is given up. A change seen in between (a finalizer, say) does not
end it. The devices are taken; other pods that use such a claim wait. All profiles share them, so they belong to the
view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from policyengine.cluster.device_objects import AllocationResult, ResourceClaim


@dataclass(frozen=True, slots=True, eq=False)
class PendingClaim:
    """A claim and the pod it is to be reserved for. `allocation`: what it is given; None where it has that already."""

    claim: ResourceClaim
    allocation: AllocationResult | None
    pod_uid: str


class PendingClaims:
    """By the claim's UID. `changed` is called at every change."""

    __slots__ = ("_by_uid", "_changed")

    def __init__(self, changed: Callable[[], None]) -> None:
        self._by_uid: dict[str, PendingClaim] = {}
        self._changed = changed

    def __len__(self) -> int:
        return len(self._by_uid)

    def __iter__(self) -> Iterator[PendingClaim]:
        return iter(self._by_uid.values())

    def get(self, claim: ResourceClaim) -> PendingClaim | None:
        """What is under way for the claim, if anything is."""
        return self._by_uid.get(claim.metadata.uid)

    def add(self, pending: PendingClaim) -> None:
        """A reservation has taken the claim, which nothing is under way for."""
        self._by_uid[pending.claim.metadata.uid] = pending
        self._changed()

    def of_pod(self, pod_uid: str) -> tuple[PendingClaim, ...]:
        """The claims taken for the pod, in the order taken."""
        return tuple(pending for pending in self._by_uid.values() if pending.pod_uid == pod_uid)

    def release(self, pod_uid: str) -> None:
        """The pod's reservation is given up."""
        for pending in self.of_pod(pod_uid):
            self.drop(pending.claim.metadata.uid)

    def observe(self, claim: ResourceClaim) -> None:
        """The claim was seen: once it is as it was to be, what the API says counts."""
        pending = self.get(claim)
        if pending is None or claim.status.allocation is None:
            return
        if any(consumer.uid == pending.pod_uid for consumer in claim.status.reserved_for):
            self.drop(claim.metadata.uid)

    def drop(self, claim_uid: str) -> None:
        """The claim is not pending any more; no change where it was not."""
        if self._by_uid.pop(claim_uid, None) is not None:
            self._changed()
