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

from math import floor, inf

from policyengine.framework.profile import QueueSettings
from policyengine.scheduler.queue.queued_pods import Key, PodHeap, QueuedPod


def lasts(expiry: float, now: float) -> bool:
    """Whether a backoff that ends in the second `expiry` is not over: rule 2."""
    return expiry >= floor(now)


class BackoffQueue:
    """The two backoff heaps: after refusals, and after errors."""

    def __init__(self, settings: QueueSettings) -> None:
        self.settings = settings
        self.refusals = PodHeap()
        """Those that may be taken before their time."""
        self._errors = PodHeap()
        self.earliest = inf
        """No pod's backoff ends before this second; inf if nobody is known to wait."""

    def duration(self, count: int) -> float:
        """Seconds that the count-th wait lasts."""
        initial, longest = self.settings.initial_backoff, self.settings.max_backoff
        # The shift is bounded so that a pod refused for years does not overflow a float.
        return float(min(longest, initial * 2.0 ** min(count - 1, 63))) if count > 0 else 0.0

    def expiry(self, pod: QueuedPod) -> float:
        """The whole second in which the pod's backoff ends; -inf when it has none."""
        count = pod.error_count or pod.unschedulable_count
        waits = self.settings.max_backoff > 0 and count > 0
        end = max(pod.queued_at + self.duration(count), pod.not_before) if waits else pod.not_before
        return float(floor(end)) if end else -inf

    def is_backing_off(self, pod: QueuedPod, now: float) -> bool:
        """Whether the pod still has to wait."""
        return lasts(self.expiry(pod), now)

    def push(self, pod: QueuedPod, order: Key) -> None:
        """Add the pod, or bring its place up to date; `order` is its key in the active queue."""
        self.discard(pod.uid)
        expiry = self.expiry(pod)
        may_be_early = pod.unschedulable_plugins and not pod.not_before
        (self.refusals if may_be_early else self._errors).push(pod, (expiry, order))
        self.earliest = min(self.earliest, expiry)

    def pop_expired(self, now: float) -> QueuedPod | None:
        """Take a pod whose backoff is over; None when there is none left."""
        firsts = [(key[0], heap) for heap in (self.refusals, self._errors) if (key := heap.peek_key()) is not None]
        self.earliest, heap = min(firsts, key=lambda first: first[0], default=(inf, self._errors))
        return heap.pop() if self.earliest < floor(now) else None

    def discard(self, uid: str) -> bool:
        """Remove the pod; False when it is not here."""
        return self.refusals.discard(uid) or self._errors.discard(uid)
