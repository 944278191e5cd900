"""Refused pods of which one stands for all, since they were refused alike; and which of them may come first.

Rules:
1. If all of them were woken, the one that is tried first is the first in the queue's order of those whose backoff is
   over by then. So a pod cannot be it that comes after another both in the queue's order and by the end of its backoff.
2. A heap finds the first of those that do not back off. Those that do are looked at one by one: that lasts seconds.

Example: a, b and c were refused at 5 s and come in that order; a backs off until 15 s, b until 8 s, c until 9 s. At
7 s the first may be a or b, which comes before c by both. At 16 s it is a.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Any

from policyengine.scheduler.queue.backoff import lasts
from policyengine.scheduler.queue.queued_pods import Happening, PodHeap, QueuedPod


class AlikePods:
    """The pods, which wait."""

    __slots__ = ("_backing_off", "_ready", "_since", "pods", "seen")

    def __init__(self, seen: int = 0) -> None:
        self.pods: dict[str, QueuedPod] = {}
        """By UID."""
        self.seen = seen
        """The number of the last reservation when they were looked at last, and left waiting."""
        self._since = inf
        """None was refused last before the event of this number."""
        self._backing_off: dict[str, QueuedPod] | None = None
        """Those not yet found to back off no more, by UID; None until the first is asked for, since most pods differ
        from every other."""
        self._ready = PodHeap()
        """The others, in the queue's order."""

    def add(self, pod: QueuedPod) -> None:
        """The pod waits."""
        self.pods[pod.uid] = pod
        self._since = min(self._since, pod.refused_after)
        if self._backing_off is not None:
            self._backing_off[pod.uid] = pod

    def remove(self, uid: str) -> None:
        """The pod waits no more."""
        pod = self.pods.pop(uid)
        pod.seen = max(pod.seen, self.seen)
        if self._backing_off is not None and self._backing_off.pop(uid, None) is None:
            self._ready.discard(uid)

    def any(self) -> QueuedPod:
        """The one that stands for all."""
        return next(iter(self.pods.values()))

    def helped_by(self, happening: Happening) -> list[QueuedPod]:
        """Those that an event concerns and that have not been tried since."""
        if self._since >= happening.number:
            return []
        return [pod for pod in self.pods.values() if self._is_helped(pod, happening)]

    def firsts(self, happening: Happening, now: float) -> list[QueuedPod]:
        """Those of them that may come first, at a moment in seconds."""
        if self._since >= happening.number:
            return []
        if self._backing_off is None:
            self._backing_off = dict(self.pods)
        for pod in [pod for pod in self._backing_off.values() if not lasts(pod.backs_off_until, now)]:
            del self._backing_off[pod.uid]
            self._ready.push(pod, pod.turn)
        head = self._ready.peek()
        if head is not None and not self._is_helped(head, happening):
            return in_front(self.helped_by(happening), now)
        waiting = [pod for pod in self._backing_off.values() if self._is_helped(pod, happening)]
        return in_front(waiting if head is None else [head, *waiting], now)

    def _is_helped(self, pod: QueuedPod, happening: Happening) -> bool:
        return pod.refused_after < happening.number and happening.concerns(pod, self.seen)


def in_front(pods: Iterable[QueuedPod], now: float) -> list[QueuedPod]:
    """Rule 1."""
    found: list[QueuedPod] = []
    for pod in sorted(pods, key=lambda pod: _turn_at(pod, now)):
        if not found or pod.turn < found[-1].turn:
            found.append(pod)
    return found


def _turn_at(pod: QueuedPod, now: float) -> tuple[Any, ...]:
    return pod.backs_off_until if lasts(pod.backs_off_until, now) else -inf, pod.turn
