"""Pods that failed a moment ago wait here before they are tried again.

Rules (kube-scheduler's backend/queue/backoff_queue.go, v1.36):
1. The n-th wait lasts `initial · 2^(n−1)` seconds, at most `max`; n counts refusals, or consecutive errors when
   the last attempt was an error. A `max` of 0 switches backoff off.
2. The end is truncated to whole seconds; a pod still waits during the second in which its backoff ends.
3. Pods that failed by an error have a heap of their own. When there is nothing else to do a pod may be taken
   before its time, but never one of those.
4. Within one second pods leave in the queue's order.

Example, with `initial` 1 and `max` 10: a pod refused at 100.4 s for the third time waits 4 s, until 104.4, truncated to
the second 104; it leaves at 105.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import floor, inf

from policyengine.framework.profile import QueueSettings
from policyengine.scheduler.queue.active_queue import Key, PodHeap
from policyengine.scheduler.queue.queued_pod import Place, QueuedPod

_NEVER_WAITS = -inf


class BackoffQueue:
    """The two backoff heaps: after refusals, and after errors."""

    def __init__(self, settings: QueueSettings) -> None:
        self.settings = settings
        self._refusals = PodHeap()
        self._errors = PodHeap()
        self.earliest = inf
        """No pod's backoff ends before this second; inf where nobody is known to wait."""

    def __len__(self) -> int:
        return len(self._refusals) + len(self._errors)

    def __iter__(self) -> Iterator[QueuedPod]:
        yield from self._refusals
        yield from self._errors

    @property
    def has_early(self) -> bool:
        """Whether `pop_early` has something to give."""
        return len(self._refusals) > 0

    def duration(self, count: int) -> float:
        """Seconds that the count-th wait lasts."""
        initial, longest = self.settings.initial_backoff, self.settings.max_backoff
        if count <= 0:
            return 0.0
        # The shift is bounded so that a pod refused for years does not overflow a float.
        return float(min(longest, initial * 2.0 ** min(count - 1, 63)))

    def expiry(self, pod: QueuedPod) -> float:
        """The whole second in which the pod's backoff ends; -inf when it has none."""
        count = pod.error_count or pod.unschedulable_count
        if self.settings.max_backoff == 0 or count == 0:
            return float(floor(pod.not_before)) if pod.not_before else _NEVER_WAITS
        if pod.expiry is None:
            pod.expiry = float(floor(max(pod.queued_at + self.duration(count), pod.not_before)))
        return pod.expiry

    def is_backing_off(self, pod: QueuedPod, now: float) -> bool:
        """Whether the pod still has to wait."""
        return self.expiry(pod) >= floor(now)

    def push(self, pod: QueuedPod, order: Key) -> None:
        """Add the pod, or bring its place up to date; `order` is its key in the active queue."""
        heap, other = self._errors, self._refusals
        if pod.unschedulable_plugins:
            heap, other = other, heap
        other.discard(pod.uid)
        expiry = self.expiry(pod)
        heap.push(pod, (expiry, order))
        self.earliest = min(self.earliest, expiry)
        pod.place = Place.BACKOFF

    def pop_expired(self, now: float) -> QueuedPod | None:
        """Take a pod whose backoff is over; None when there is none left."""
        for heap in (self._refusals, self._errors):
            key = heap.peek_key()
            if key is not None and key[0] < floor(now):
                return heap.pop()
        self.earliest = min(self._expiries(), default=inf)
        return None

    def pop_early(self) -> QueuedPod | None:
        """Take the pod nearest to the end of its backoff, over or not, errors excepted."""
        return self._refusals.pop()

    def discard(self, uid: str) -> bool:
        """Remove the pod; False when it is not here."""
        return self._refusals.discard(uid) or self._errors.discard(uid)

    def next_expiry(self) -> float:
        """When the next pod stops waiting, in seconds; inf when nobody waits."""
        return min(self._expiries(), default=inf) + 1.0

    def _expiries(self) -> list[float]:
        """Of the first of each heap."""
        return [key[0] for heap in (self._refusals, self._errors) if (key := heap.peek_key()) is not None]
