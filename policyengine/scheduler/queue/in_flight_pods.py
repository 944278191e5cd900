"""What happened while a pod's attempt was running.

A pod that is being scheduled is in no queue, so an event that would have woken it passes it by. Every event is
therefore kept for as long as an attempt that began before it still runs, and is held against the refusal when
the attempt fails (kube-scheduler's inFlightEvents, backend/queue/active_queue.go, v1.36).

Example: p is popped; a node comes; q is popped; p fails. The node's event is held against p's refusal, and wakes p. It
is then dropped: q began after it.

Rules: attempts are kept in the order in which they began; an event is dropped once no running attempt is older.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from policyengine.framework.events import ClusterEvent
from policyengine.scheduler.queue.queued_pod import QueuedPod


class Happening(NamedTuple):
    """An event with the objects involved, either of which may be None."""

    event: ClusterEvent
    old: Any
    new: Any


class InFlightPods:
    """The pods whose attempt runs, and the events since the oldest of these attempts began."""

    def __init__(self) -> None:
        self._running: OrderedDict[str, tuple[QueuedPod, int]] = OrderedDict()
        """UID -> (pod, the number of the first event that is held against it), in the order in which they began."""
        self._events: deque[Happening] = deque()
        self._base = 0
        """The number of the first event that is kept."""

    def __len__(self) -> int:
        return len(self._running)

    def __contains__(self, uid: str) -> bool:
        return uid in self._running

    def __iter__(self) -> Iterator[QueuedPod]:
        return (pod for pod, _ in self._running.values())

    @property
    def event_count(self) -> int:
        """How many events are kept."""
        return len(self._events)

    def get(self, uid: str) -> QueuedPod | None:
        """The pod, if its attempt runs."""
        running = self._running.get(uid)
        return None if running is None else running[0]

    def start(self, pod: QueuedPod) -> None:
        """An attempt begins. A pod has one attempt at a time."""
        assert pod.uid not in self._running, f"{pod!r} is in flight already"
        self._running[pod.uid] = pod, self._base + len(self._events)

    def record(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Keep an event, if an attempt runs that may want it."""
        if self._running:
            self._events.append(Happening(event, old, new))

    def events_since_start(self, uid: str) -> Iterator[Happening]:
        """The events since the pod's attempt began, in order."""
        return islice(self._events, self._running[uid][1] - self._base, None)

    def done(self, uid: str) -> None:
        """The attempt is over; does nothing when none runs."""
        if self._running.pop(uid, None) is None or not self._events:
            return
        oldest = next(iter(self._running.values()), None)
        first = self._base + len(self._events) if oldest is None else oldest[1]
        while self._base < first:
            self._events.popleft()
            self._base += 1
