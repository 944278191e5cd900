"""A priority queue of pods with removal from the middle.

Rules: a pod is in the heap at most once; a removed or re-keyed pod leaves a stale entry behind, which is passed
over when it comes up; stale entries never outnumber live ones by more than `_SLACK`, so memory stays linear and
every operation is O(log n) amortised. Equal keys leave in the order in which they came. The keys of one heap are of
one length where they begin alike: an entry is one flat tuple, which compares in half the time of nested ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Any

from policyengine.scheduler.queue.queued_pod import QueuedPod

Key = tuple[Any, ...]
Entry = tuple[Any, ...]
"""(*key, number, key, pod): no two numbers are equal, so that nothing beyond them is compared."""
_SLACK = 64


class PodHeap:
    """Pods by key, smallest first."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._live: dict[str, Entry] = {}
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, uid: str) -> bool:
        return uid in self._live

    def __iter__(self) -> Iterator[QueuedPod]:
        """The pods, in no particular order."""
        return (entry[-1] for entry in self._live.values())

    def push(self, pod: QueuedPod, key: Key) -> None:
        """Add the pod, or give it a new key."""
        self._sequence += 1
        entry = (*key, self._sequence, key, pod)
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

    def rank(self, uid: str) -> int | None:
        """How many pods would be popped before this one; None when it is not here. O(n)."""
        mine = self._live.get(uid)
        if mine is None:
            return None
        return sum(entry < mine for entry in self._live.values())

    def _drop_stale(self) -> None:
        self._entries = list(self._live.values())
        heapify(self._entries)
