"""What the passing of time does in one queue: backoffs end, pods that waited too long are flushed, gangs are told how
far they are, rules that read the time are asked again each minute.

Source: flushBackoffQCompleted and flushUnschedulablePodsLeftover (kube-scheduler's
backend/queue/scheduling_queue.go, v1.36).
"""

from __future__ import annotations

from math import floor

from policyengine.framework.events import FLUSH, MINUTE_PASSED
from policyengine.scheduler.gangs.queue_gangs import QueueGangs
from policyengine.scheduler.queue.queued_pod import Place, Strategy
from policyengine.scheduler.queue.sub_queues import Places

FLUSH_LOOK = 30.0
"""Seconds between two looks for pods that waited too long."""


class QueueTimes:
    """When something is due in one queue. `now` is in seconds and must not go back."""

    __slots__ = ("_gangs", "_next_look", "_next_minute", "_places")

    def __init__(self, places: Places, gangs: QueueGangs, now: float) -> None:
        self._places = places
        self._gangs = gangs
        self._next_look = _next_look_after(now)
        self._next_minute = _next_minute_after(now)

    def advance(self, now: float) -> None:
        """Time passed: end backoffs, flush what waited too long, tell gangs how far they are."""
        places, gangs = self._places, self._gangs
        while places.backoff.earliest < now and (queued := places.backoff.pop_expired(now)) is not None:
            places.activate(queued, "BackoffComplete", now)
        if now >= self._next_look:
            self._next_look = _next_look_after(now)
            self._flush(now)
        if gangs.next_recount is not None and now >= gangs.next_recount:
            gangs.tell()
        if now >= self._next_minute:
            self._next_minute = _next_minute_after(now)
            places.move(MINUTE_PASSED, None, None, now)

    def next_due(self) -> float | None:
        """When `advance` has something to do next, in seconds; None when time changes nothing."""
        places = self._places
        oldest = places.unschedulable.peek_key()
        flush = None
        if oldest is not None:
            flush = max(_next_look_after(oldest[0] + places.profile.queue.flush_after), self._next_look)
        minute = self._next_minute if places.asks_for(MINUTE_PASSED) else None
        times = (places.backoff.next_expiry(), flush, self._gangs.next_recount, minute)
        return min((time for time in times if time is not None), default=None)

    def _flush(self, now: float) -> None:
        """The time limit of an unschedulable pod; a gated one is looked at only if its plugin asked for any event
        whatever."""
        places = self._places
        limit, flushed = now - places.profile.queue.flush_after, False
        while (oldest := places.unschedulable.peek()) is not None and oldest.queued_at < limit:
            oldest.was_flushed = flushed = True
            places.wake(oldest, Strategy.AFTER_BACKOFF, FLUSH.label, "", now)
        for queued, strategy, plugin in places.wake_ups.woken_by(FLUSH, None, None):
            if queued.place is Place.GATED and queued.queued_at < limit:
                places.wake(queued, strategy, FLUSH.label, plugin, now)
        if flushed:
            places.in_flight.record(FLUSH, None, None)


def _next_minute_after(time: float) -> float:
    return 60.0 * (time // 60.0 + 1.0)


def _next_look_after(time: float) -> float:
    return (floor(time / FLUSH_LOOK) + 1) * FLUSH_LOOK
