"""Events as kube-scheduler writes them (events.k8s.io/v1; client-go's tools/events).

The same event again does not become a second object: the first one grows a series, which is written when its
count reaches a power of two. Which events were written lately is kept for as many as `SERIES` at a time.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import Any

from cachetools import LRUCache

from policyengine.clock import Clock
from policyengine.kube.client import ApiError, Client
from policyengine.kube.outbox import Outbox
from policyengine.scheduler.messages import RecordEvent

SERIES = 8192
NOTE_LIMIT = 1024
"""Bytes of a note the API server accepts (events.k8s.io validation)."""


class _Series:
    """One event and how often it happened."""

    __slots__ = ("body", "count", "created", "last")

    def __init__(self, body: dict[str, Any]) -> None:
        self.body = body
        self.count = 1
        self.created = False
        self.last = ""


class EventRecorder:
    """Turns `RecordEvent` actions into Event objects and writes them, behind the bindings."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        random: Random,
        *,
        host: str = "",
        busy: Callable[[], bool] = lambda: False,
        on_problem: Callable[[str], None] = lambda message: None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._host = host or socket.gethostname()
        self._series: LRUCache[tuple[str, ...], _Series] = LRUCache(SERIES)
        self._last_stamp = 0
        self.outbox: Outbox[_Series] = Outbox(
            "event", self._write, clock, random, workers=16, busy=busy, on_problem=on_problem
        )

    def record(self, event: RecordEvent) -> None:
        """Write the event soon, or let the one it repeats grow."""
        key = (event.uid, event.resource_version, event.reason, event.action, event.note, event.scheduler_name)
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = _Series(self._body(event))
        else:
            series.count += 1
            series.last = micro_time(self._clock.now())
            if series.count & (series.count - 1):
                return
        metadata = series.body["metadata"]
        self.outbox.put(f"{metadata['namespace']}/{metadata['name']}", series)

    def _body(self, event: RecordEvent) -> dict[str, Any]:
        now = self._clock.now()
        # Two events of one moment need two names.
        self._last_stamp = max(self._last_stamp + 1, int(now * 1e9))
        return {
            "kind": "Event",
            "apiVersion": "events.k8s.io/v1",
            "metadata": {"name": f"{event.name}.{self._last_stamp:x}", "namespace": event.namespace or "default"},
            "eventTime": micro_time(now),
            "reportingController": event.scheduler_name,
            "reportingInstance": f"{event.scheduler_name}-{self._host}",
            "action": event.action,
            "reason": event.reason,
            "regarding": {
                "kind": "Pod",
                "namespace": event.namespace,
                "name": event.name,
                "uid": event.uid,
                "apiVersion": "v1",
                "resourceVersion": event.resource_version,
            },
            "note": _cut(event.note),
            "type": event.type,
            "deprecatedSource": {},
            "deprecatedFirstTimestamp": None,
            "deprecatedLastTimestamp": None,
        }

    async def _write(self, series: _Series) -> None:
        """Create the event, or grow the one there is; one that the server dropped meanwhile is created again."""
        metadata = series.body["metadata"]
        growth = {"count": series.count, "lastObservedTime": series.last}
        if series.created:
            try:
                await self._client.patch_event(metadata["namespace"], metadata["name"], {"series": growth})
                return
            except ApiError as error:
                if error.status != 404:
                    raise
        body = series.body | {"series": growth} if series.count > 1 else series.body
        try:
            await self._client.create_event(metadata["namespace"], body)
        except ApiError as error:
            # A lost answer: the first try had arrived.
            if error.reason != "AlreadyExists":
                raise
        series.created = True


def micro_time(seconds: float) -> str:
    """metav1.MicroTime: RFC 3339 in UTC with six decimals."""
    # isoformat takes a third of strftime's time; two of these go into every bound pod.
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def second_time(seconds: float) -> str:
    """metav1.Time: RFC 3339 in UTC, whole seconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _cut(note: str) -> str:
    """A note over the limit ends in ` ...`, as kube-scheduler cuts it."""
    encoded = note.encode()
    if len(encoded) <= NOTE_LIMIT:
        return note
    return encoded[: NOTE_LIMIT - 4].decode("utf-8", "ignore") + " ..."
