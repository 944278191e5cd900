"""Refused pods of which one stands for all, by who was refused, by whom and why; and which of them is the first.

Rule: the first is whom the queue would try first if all were woken: of the pods that do not back off any more the first
in the queue's order; where all back off, whose backoff ends first.

Two heaps find it without a look at every pod, by the queue's order and, of pods that back off, by the end of their
backoff. A pod moves from the second to the first once its backoff is over. They are made when the first is asked for,
since most pods differ from every other.

Example: a, b and c were refused at 5 s, in the queue's order; a backs off until 15 s, b and c until 8 s. At 7 s the
first is b, whose backoff ends before a's and who comes before c; at 16 s it is a.
"""

from __future__ import annotations

from collections.abc import Callable
from math import floor, inf
from typing import Any

from policyengine.scheduler.queue.queued_pods import PodHeap, QueuedPod


class AlikePods:
    """The pods, which wait."""

    __slots__ = ("_backing_off", "_by_turn", "pods")

    def __init__(self) -> None:
        self.pods: dict[str, QueuedPod] = {}
        """By UID."""
        self._by_turn: PodHeap | None = None
        """By the queue's order; None until the first is asked for."""
        self._backing_off = PodHeap()
        """By (end of the backoff, the queue's order)."""

    def add(self, pod: QueuedPod) -> None:
        """The pod waits."""
        self.pods[pod.uid] = pod
        if self._by_turn is not None:
            self._backing_off.push(pod, (pod.backs_off_until, pod.turn))

    def remove(self, uid: str) -> None:
        """The pod waits no more."""
        del self.pods[uid]
        if self._by_turn is not None and not self._by_turn.discard(uid):
            self._backing_off.discard(uid)

    def any(self) -> QueuedPod:
        """The one that stands for all."""
        return next(iter(self.pods.values()))

    def first(self, now: float, concerns: Callable[[QueuedPod], bool]) -> QueuedPod | None:
        """The first at that moment, in seconds, of those that an event concerns; O(log n) where that is all of them."""
        if len(self.pods) > 1 and concerns(head := self._head(now)):
            return head
        return min(filter(concerns, self.pods.values()), key=lambda pod: turn_at(pod, now), default=None)

    def _head(self, now: float) -> QueuedPod:
        by_turn, backing_off = self._by_turn, self._backing_off
        if by_turn is None:
            by_turn = self._by_turn = PodHeap()
            for pod in self.pods.values():
                backing_off.push(pod, (pod.backs_off_until, pod.turn))
        while (key := backing_off.peek_key()) is not None and key[0] < floor(now):
            over = backing_off.pop()
            assert over is not None
            by_turn.push(over, over.turn)
        head = by_turn.peek() or backing_off.peek()
        assert head is not None, "there is a pod"
        return head


def turn_at(pod: QueuedPod, now: float) -> tuple[Any, ...]:
    """Its place among refused pods if all of them were woken at that moment, in seconds: smallest first."""
    return pod.backs_off_until if pod.backs_off_until >= floor(now) else -inf, pod.turn
