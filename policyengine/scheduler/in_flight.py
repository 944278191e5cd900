"""What happened while a pod's attempt was running.

A pod that is being scheduled is in no queue, so an event that would have woken it passes it by. Every event is
therefore kept for as long as an attempt that began before it still runs, and is held against the refusal when
the attempt fails (kube-scheduler's inFlightEvents, backend/queue/active_queue.go, v1.36).

Rules: attempts are kept in the order in which they began; an event is dropped once no running attempt is older.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from policyengine.framework.events import ClusterEvent
from policyengine.scheduler.queued_pod import QueuedPod


class Happening(NamedTuple):
    """An event with the objects involved, either of which may be None."""

    event: ClusterEvent
    old: Any
    new: Any


class InFlight:
    """The pods whose attempt runs, and the events since the oldest of these attempts began."""

    __slots__ = ("_base", "_events", "_order", "_pods", "_started")

    def __init__(self) -> None:
        self._pods: dict[str, QueuedPod] = {}
        self._started: dict[str, int] = {}
        self._order: deque[tuple[str, int]] = deque()
        """(UID, start) in order of start; what is not in `_started` any more is passed over."""
        self._events: deque[Happening] = deque()
        self._base = 0

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._pods.values())

    @property
    def event_count(self) -> int:
        """How many events are kept."""
        return len(self._events)

    def get(self, uid: str) -> QueuedPod | None:
        """The pod, if its attempt runs."""
        return self._pods.get(uid)

    def start(self, pod: QueuedPod) -> None:
        """An attempt begins. A pod has one attempt at a time."""
        assert pod.uid not in self._pods, f"{pod!r} is in flight already"
        self._pods[pod.uid] = pod
        start = self._started[pod.uid] = self._base + len(self._events)
        self._order.append((pod.uid, start))

    def record(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Keep an event, if an attempt runs that may want it."""
        if self._pods:
            self._events.append(Happening(event, old, new))

    def events_since_start(self, uid: str) -> Iterator[Happening]:
        """The events since the pod's attempt began, in order."""
        return islice(self._events, self._started[uid] - self._base, None)

    def done(self, uid: str) -> None:
        """The attempt is over; does nothing when none runs."""
        if self._pods.pop(uid, None) is None:
            return
        del self._started[uid]
        order = self._order
        while order and self._started.get(order[0][0]) != order[0][1]:
            order.popleft()
        if not order:
            self._base += len(self._events)
            self._events.clear()
            return
        while self._base < order[0][1]:
            self._events.popleft()
            self._base += 1
