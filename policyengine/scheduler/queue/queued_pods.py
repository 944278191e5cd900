"""The pending pods of one queue: what it knows of each, the heaps they wait in, and those that are being tried.

The fields of `QueuedPod` are kube-scheduler's `QueuedPodInfo` (framework/types.go, v1.36).

`PodHeap` is a priority queue with removal from the middle. A pod is in the heap at most once. A removed or re-keyed pod
leaves a stale entry behind, which is passed over when it comes up; stale entries never outnumber live ones by more than
`_SLACK`, so that memory stays linear and every operation is O(log n) amortised. Equal keys leave in the order in which
they came.

`InFlightPods` keeps what happens while an attempt runs (backend/queue/active_queue.go). A pod being scheduled is
in no queue, so an event that would have woken it passes it by. Every event is therefore kept for as long as an attempt
that began before it still runs, and is held against the refusal when the attempt fails.

Example: p is popped; a node comes; q is popped; p fails. The node's event is held against p's refusal, and wakes p. It
is then dropped: q began after it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from heapq import heapify, heappop, heappush
from itertools import islice
from math import inf
from typing import Any, NamedTuple

from policyengine.cluster.pod_info import PodInfo
from policyengine.enum_members import direct_members
from policyengine.framework.events import ClusterEvent
from policyengine.scheduler.pod_timeline import RoomMade


@direct_members
class Place(Enum):
    """Where a pending pod is. It is in exactly one place at any time."""

    NOWHERE = "nowhere"
    """Only between two places, inside one call."""
    GATED = "gated"
    """Refused by a PreEnqueue plugin."""
    HELD = "held"
    """A member of a gang that is not complete yet."""
    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    IN_FLIGHT = "in flight"
    """Popped: being evaluated, or waiting at Permit."""


@direct_members
class Strategy(Enum):
    """What an event does to a refused pod (kube-scheduler's queueingStrategy)."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


NO_PLUGINS: frozenset[str] = frozenset()
Key = tuple[Any, ...]


@dataclass(slots=True, eq=False, repr=False)
class QueuedPod:
    """A pending pod in its queue. Times are in seconds on the clock that `handle` is given."""

    pod: PodInfo
    queued_at: float
    """When it entered the queue; refreshed at each failed attempt, but not where the flush had it tried."""
    uid: str = field(init=False)
    refused_at: float = field(init=False)
    """When its last attempt failed; before, when it entered the queue."""
    is_flushed: bool = False
    """Whether only the flush has it tried."""
    since: float = field(init=False)
    """When it entered the queue first."""
    place: Place = Place.NOWHERE
    attempts: int = 0
    unschedulable_count: int = 0
    """Refusals so far; they drive the backoff."""
    error_count: int = 0
    """Consecutive errors; while there are any they drive the backoff instead."""
    unschedulable_plugins: frozenset[str] = NO_PLUGINS
    """Who refused it at the last attempt, those that said Pending included. Empty after an error."""
    pending_plugins: frozenset[str] = NO_PLUGINS
    seen: int = 0
    """The number of the last reservation when plugins were asked about it last, by an attempt, a look or the gate."""
    refused_after: int = 0
    """The number of the last event when it was refused last, be it at the gate."""
    by_candidate: bool = False
    """Whether those who refused it are a candidate's plugins, not the serving policy's."""
    gate_message: str = ""
    """Why it is gated or held, as last told."""
    not_before: float = 0.0
    """The earliest end of its backoff that the API server asked for (Retry-After); 0 if it did not."""
    said: tuple[str, str] | None = None
    """Reason and message of the PodScheduled condition written last, until the watch shows the pod anew."""
    room: RoomMade | None = None
    """The room that was made for it last."""
    woken_by: Happening | None = None
    """The event that woke it alone of several, which wait for what becomes of it; None for any other."""
    buckets: tuple[tuple[str, Hashable], ...] = ()
    """Where `UnschedulableIndex` keeps it: (plugin, signature)."""
    turn: Key = ()
    """Its key in activeQ when it became unschedulable, which stays while it waits; so do the next two."""
    tenant: str = ""
    """By whose share activeQ chooses; empty where it does not go by shares."""
    backs_off_until: float = -inf
    """The whole second in which its backoff ends; -inf when it has none."""
    alike: Hashable = None
    """What it has in common with the refused pods that are alike."""

    def __post_init__(self) -> None:
        self.uid, self.since, self.refused_at = self.pod.uid, self.queued_at, self.queued_at

    def __repr__(self) -> str:
        return f"<{self.pod.namespace}/{self.pod.name} {self.place.value}>"


Entry = tuple[Any, ...]
"""(*key, arrival, number, key, pod): no two numbers are equal, so that nothing beyond them is compared."""
_SLACK = 64


class PodHeap:
    """Pods by key, smallest first."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._live: dict[str, Entry] = {}
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._live)

    def push(self, pod: QueuedPod, key: Key) -> None:
        """Add the pod, or give it a new key: of equal ones it stays before those that came later."""
        self._sequence += 1
        known = self._live.get(pod.uid)
        arrived = self._sequence if known is None else known[-4]
        entry = (*key, arrived, self._sequence, key, pod)
        self._live[pod.uid] = entry
        heappush(self._entries, entry)
        if len(self._entries) > 2 * len(self._live) + _SLACK:
            self._drop_stale()

    def pop(self) -> QueuedPod | None:
        """Remove and return the pod with the smallest key; None when there is none."""
        entries, live = self._entries, self._live
        while entries:
            entry = heappop(entries)
            pod: QueuedPod = entry[-1]
            if live.get(pod.uid) is entry:
                del live[pod.uid]
                return pod
        return None

    def peek(self) -> QueuedPod | None:
        """The pod with the smallest key, which stays; None when the heap is empty."""
        return self._entries[0][-1] if self.peek_key() is not None else None

    def peek_key(self) -> Key | None:
        """The smallest key; None when the heap is empty."""
        entries, live = self._entries, self._live
        while entries:
            entry = entries[0]
            if live.get(entry[-1].uid) is entry:
                key: Key = entry[-2]
                return key
            heappop(entries)
        return None

    def discard(self, uid: str) -> bool:
        """Remove the pod; False when it is not here."""
        if self._live.pop(uid, None) is None:
            return False
        if len(self._entries) > 2 * len(self._live) + _SLACK:
            self._drop_stale()
        return True

    def in_order(self) -> list[QueuedPod]:
        """All of them, the next to be popped first. O(n log n)."""
        return [entry[-1] for entry in sorted(self._live.values())]

    def rank(self, uid: str) -> int | None:
        """How many pods would be popped before this one; None when it is not here. O(n)."""
        mine = self._live.get(uid)
        if mine is None:
            return None
        return sum(entry < mine for entry in self._live.values())

    def _drop_stale(self) -> None:
        self._entries = list(self._live.values())
        heapify(self._entries)


class Happening(NamedTuple):
    """An event with the objects involved, either of which may be None."""

    event: ClusterEvent
    old: Any
    new: Any
    but: str = ""
    """The pod that it does not concern: it gave back what it held itself."""
    undoes: int = 0
    """The number of the reservation that was given back; 0 for any other event."""
    number: int = 0
    """Of the events that refused pods are told of, from 1 on; 0 of one that only an attempt is told of."""

    def concerns(self, pod: QueuedPod, seen: int = 0) -> bool:
        """Whether the pod may have waited for it. Who was refused, or looked at (`seen`), before the reservation was
        made that this undoes was refused without it: kube-scheduler wakes these too, and two pods that a Permit plugin
        refuses then wake each other for ever."""
        return self.but != pod.uid and self.undoes <= max(pod.seen, seen)


class InFlightPods:
    """The pods whose attempt runs, and the events since the oldest of these attempts began."""

    def __init__(self) -> None:
        self._running: OrderedDict[str, tuple[QueuedPod, int]] = OrderedDict()
        """UID -> (pod, the number of the first event that is held against it), in the order in which they began."""
        self._events: deque[Happening] = deque()
        self._base = 0
        """The number of the first event that is kept."""

    def __contains__(self, uid: str) -> bool:
        return uid in self._running

    def start(self, pod: QueuedPod) -> None:
        """An attempt begins. A pod has one attempt at a time."""
        assert pod.uid not in self._running, f"{pod!r} is in flight already"
        self._running[pod.uid] = pod, self._base + len(self._events)

    def record(self, happening: Happening) -> None:
        """Keep an event, if an attempt runs that may want it."""
        if self._running:
            self._events.append(happening)

    def events_since_start(self, uid: str) -> Iterator[Happening]:
        """The events since the pod's attempt began that concern it, in order."""
        pod, first = self._running[uid]
        since = islice(self._events, first - self._base, None)
        return (happening for happening in since if happening.concerns(pod))

    def discard(self, uid: str) -> bool:
        """The attempt is over; False when none runs."""
        if self._running.pop(uid, None) is None:
            return False
        oldest = next(iter(self._running.values()), None)
        first = self._base + len(self._events) if oldest is None else oldest[1]
        while self._base < first:
            self._events.popleft()
            self._base += 1
        return True
