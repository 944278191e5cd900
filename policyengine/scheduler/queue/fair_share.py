"""The active pods of a queue that serves tenants by dominant share (`queue { fair by … }`).

A tenant's share is the largest, over the resources, of what its pods with a node request divided by the nodes'
allocatable, divided by the tenant's weight (dominant resource fairness, Ghodsi et al., NSDI 2011). Pods themselves are
a resource, so that pods that request nothing are not free.

Rules:
1. The tenant with the least share is served first; of equal ones the tenant whose first pod comes first in the queue's
   order; then by name. The order is total and follows from the view and the pods alone.
2. Within a tenant pods come in the queue's order.
3. A share is computed again if the tenant's pods or the nodes' allocatable have changed, before the next pod is taken:
   pushes, pops and removals are O(log n), a change of the nodes' sums O(tenants).

Example: the nodes have 9 cpu and 18 Gi. A's pods request 1 cpu and 4 Gi each, B's 3 cpu and 1 Gi. After one pod each
A's share is 4/18 (memory), B's 3/9 (cpu): A is next. After two of A's, 8/18, it is B's turn.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from math import inf

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.usage_counts import PODS
from policyengine.cluster.view import ClusterView
from policyengine.framework.profile import FairShare, Profile
from policyengine.scheduler.queue.queued_pods import Key, PodHeap, QueuedPod

_SLACK = 64
Turn = tuple[float, Key, str]
"""(share, key of the first pod, tenant): the smallest is served first."""


def active_pods(profile: Profile, view: ClusterView) -> PodHeap | FairPods:
    """An empty queue of active pods, in the profile's order."""
    return PodHeap() if profile.fair is None else FairPods(profile.fair, view)


class FairPods:
    """Active pods by tenant; the tenants by share."""

    def __init__(self, fair: FairShare, view: ClusterView) -> None:
        self._fair = fair
        self._nodes = view.nodes
        self._usage = view.usage_counts(self)
        self._changed = self._usage.changed = set()
        self._offers: dict[str, int] = {}
        """What the nodes have to give, by resource, of those that were asked about."""
        self._position = -1
        """Of the node journal, for which `_offers` holds."""
        self._tenant_of: dict[str, str] = {}
        self._pods: dict[str, PodHeap] = {}
        """Tenant -> its pods; never empty ones."""
        self._shares: dict[str, float] = {}
        """Of tenants whose sums have not moved since."""
        self._turn: dict[str, Turn] = {}
        self._turns: list[Turn] = []
        """A heap. Holds the turns of `_turn`, and stale ones."""

    def groups(self, pod: PodInfo) -> tuple[str, ...]:
        """The tenant whose use the pod counts in."""
        return (self._fair.tenant(pod),)

    def __len__(self) -> int:
        return len(self._tenant_of)

    def push(self, pod: QueuedPod, key: Key) -> None:
        """Add the pod, or give it a new key; a new tenant too, where that has changed."""
        tenant = self._fair.tenant(pod.pod)
        if self._tenant_of.get(pod.uid, tenant) != tenant:
            self.discard(pod.uid)
        self._tenant_of[pod.uid] = tenant
        self._pods.setdefault(tenant, PodHeap()).push(pod, key)
        self._place(tenant)

    def pop(self) -> QueuedPod | None:
        """Remove and return the first pod of the tenant with the least share; None when there is none."""
        tenant = self._first()
        if tenant is None:
            return None
        pod = self._pods[tenant].pop()
        assert pod is not None
        del self._tenant_of[pod.uid]
        self._place(tenant)
        return pod

    def discard(self, uid: str) -> bool:
        """Remove the pod; False when it is not here."""
        tenant = self._tenant_of.pop(uid, None)
        if tenant is None:
            return False
        self._pods[tenant].discard(uid)
        self._place(tenant)
        return True

    def in_order(self) -> list[QueuedPod]:
        """All of them, the next to be popped first if no share changed. O(n log n)."""
        self._refresh()
        return [
            pod for tenant in sorted(self._turn, key=self._turn.__getitem__) for pod in self._pods[tenant].in_order()
        ]

    def shares(self) -> dict[str, float]:
        """The share of each tenant that uses something, or whose pods wait."""
        return {tenant: self.share(tenant) for tenant in sorted({*map(str, self._usage.dump()), *self._pods})}

    def rank(self, uid: str) -> int | None:
        """How many pods would be popped before this one if no share changed; None when it is not here. O(n)."""
        tenant = self._tenant_of.get(uid)
        if tenant is None:
            return None
        self._refresh()
        before = sum(len(self._pods[other]) for other, turn in self._turn.items() if turn < self._turn[tenant])
        return before + (self._pods[tenant].rank(uid) or 0)

    def share(self, tenant: str) -> float:
        """The tenant's dominant share, divided by its weight."""
        used = self._usage.used(tenant)
        parts = [amount / offer for name, amount in used.items() if (offer := self._offer(name))]
        weight = self._fair.weights.get(tenant, 1.0)
        return max(parts, default=0.0) / weight if weight > 0 else inf

    def _offer(self, resource: str) -> int:
        found = self._offers.get(resource)
        if found is None:
            nodes = self._nodes
            column = nodes.allowed_pods if resource == PODS else nodes.allocatable(resource)
            found = self._offers[resource] = int(column.sum())
        return found

    def _first(self) -> str | None:
        """The tenant to be served."""
        self._refresh()
        turns = self._turns
        while turns:
            turn = turns[0]
            if self._turn.get(turn[2]) is turn:
                return turn[2]
            heappop(turns)
        return None

    def _refresh(self) -> None:
        """Bring the shares up to date."""
        position = self._nodes.node_journal.position
        if position != self._position:
            self._position = position
            before, self._offers = self._offers, {}
            if any(self._offer(resource) != amount for resource, amount in before.items()):
                self._changed.update(self._shares)
        while self._changed:
            tenant = self._changed.pop()
            if isinstance(tenant, str) and self._shares.pop(tenant, None) is not None:
                self._place(tenant)

    def _place(self, tenant: str) -> None:
        """Give the tenant its turn, or none where it has no pods left."""
        key = self._pods[tenant].peek_key()
        if key is None:
            del self._pods[tenant]
            self._turn.pop(tenant, None)
            self._shares.pop(tenant, None)
            return
        share = self._shares.get(tenant)
        if share is None:
            share = self._shares[tenant] = self.share(tenant)
        before = self._turn.get(tenant)
        if before is not None and before[1] is key and before[0] == share:
            return
        turn = self._turn[tenant] = (share, key, tenant)
        heappush(self._turns, turn)
        if len(self._turns) > 2 * len(self._turn) + _SLACK:
            self._turns = list(self._turn.values())
            heapify(self._turns)
