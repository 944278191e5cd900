"""Events as kube-scheduler writes them (events.k8s.io/v1; client-go's tools/events).

Events wait behind the bindings (`request_queue`). The same event again does not become a second object: the first one
grows a series, which is written when its count reaches a power of two. The last `SERIES` events are remembered for it.
While `LIMIT` writes wait, which they do only if the server fails them, new events are dropped, and a warning says so.
"""

from __future__ import annotations

import socket
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from cachetools import LRUCache
from msgspec.structs import replace

from policyengine.clock import Clock, micro_time
from policyengine.kube.http.client import ApiError, Client
from policyengine.kube.writing.request_queue import LIMIT, RequestQueue
from policyengine.scheduler.actions import PatchPodCondition, RecordEvent

SERIES = 8192
NOTE_LIMIT = 1024
"""Bytes of a note the API server accepts (events.k8s.io validation)."""


class _Series:
    """One event and how often it happened."""

    __slots__ = ("at", "count", "created", "event", "last", "name")

    def __init__(self, event: RecordEvent, stamp: int, at: float) -> None:
        self.event = event
        self.name = f"{event.name}.{stamp:x}"
        self.at = at
        """Epoch seconds of the first time."""
        self.count = 1
        self.created = False
        self.last = ""

    @property
    def namespace(self) -> str:
        """Where the event lies."""
        return self.event.namespace or "default"


class EventRecorder:
    """Turns `RecordEvent` actions into Event objects and writes them, behind the bindings."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        queue: RequestQueue,
        *,
        host: str = "",
        on_problem: Callable[[str], None] = lambda message: None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._host = host or socket.gethostname()
        self._series: OrderedDict[tuple[str, ...], _Series] = OrderedDict()
        """Those used last stand last. (In a plain dict, whose first entries are gone, the first is searched for.)"""
        self._last_stamp = 0
        self._queue = queue
        self._on_problem = on_problem
        self.dropped = 0
        """Events that were dropped so far."""

    def record(self, event: RecordEvent) -> None:
        """Write the event soon, or let the one it repeats grow."""
        if self._queue.backlog >= LIMIT:
            if not self.dropped:
                self._on_problem(f"events are dropped: {LIMIT} writes wait for the API server")
            self.dropped += 1
            return
        about = event.uid, event.resource_version, event.node, event.scheduler_name
        key = (*about, event.reason, event.action, event.note)
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = self._begin(event)
        else:
            self._series.move_to_end(key)
            series.count += 1
            series.last = micro_time(self._clock.now())
        if not series.count & (series.count - 1):
            self._queue.write(f"event of `{series.namespace}/{series.name}`", self._write, series)

    def _begin(self, event: RecordEvent) -> _Series:
        if len(self._series) >= SERIES:
            self._series.popitem(last=False)
        now = self._clock.now()
        # Two events of one moment need two names.
        self._last_stamp = max(self._last_stamp + 1, int(now * 1e9))
        return _Series(event, self._last_stamp, now)

    def _body(self, series: _Series) -> dict[str, Any]:
        event = series.event
        body = {
            "kind": "Event",
            "apiVersion": "events.k8s.io/v1",
            "metadata": {"name": series.name, "namespace": series.namespace},
            "eventTime": micro_time(series.at),
            "reportingController": event.scheduler_name,
            "reportingInstance": f"{event.scheduler_name}-{self._host}",
            "action": event.action,
            "reason": event.reason,
            "regarding": {
                "kind": event.kind,
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
        if event.node:
            body["related"] = {"kind": "Node", "apiVersion": "v1", "name": event.node}
        return body | {"series": _growth(series)} if series.count > 1 else body

    async def _write(self, series: _Series) -> None:
        """Grow the event if it is there, else create it: a new one, or one that the server has dropped meanwhile."""
        if series.created:
            try:
                await self._client.patch_event(series.namespace, series.name, {"series": _growth(series)})
                return
            except ApiError as error:
                if error.status != 404:
                    raise
                series.created = False
        try:
            await self._client.create_event(series.namespace, self._body(series))
        except ApiError as error:
            if error.reason != "AlreadyExists":  # A lost answer: the first try had arrived.
                raise
        series.created = True


def _growth(series: _Series) -> dict[str, object]:
    return {"count": series.count, "lastObservedTime": series.last}


def second_time(seconds: float) -> str:
    """metav1.Time: RFC 3339 in UTC, whole seconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _cut(note: str) -> str:
    """A note over the limit ends in ` ...`, as kube-scheduler cuts it."""
    encoded = note.encode()
    if len(encoded) <= NOTE_LIMIT:
        return note
    return encoded[: NOTE_LIMIT - 4].decode("utf-8", "ignore") + " ..."


_REMEMBERED = 65_536


class ConditionWriter:
    """Writes conditions, the latest a pod, and none that says what was said before."""

    def __init__(self, client: Client, clock: Clock, queue: RequestQueue) -> None:
        self._client = client
        self._clock = clock
        self._queue = queue
        self._since: LRUCache[str, str] = LRUCache(_REMEMBERED)
        """UID -> when its condition first became False: the transition time stays while the status does."""
        self._said: LRUCache[str, PatchPodCondition] = LRUCache(_REMEMBERED)

    def write(self, condition: PatchPodCondition) -> None:
        """Write the condition soon."""
        waiting = self._queue.peek(_key(condition.uid))
        if waiting is not None:
            condition = _merged(waiting, condition)
        if self._said.get(condition.uid) == condition:
            return
        self._said[condition.uid] = condition
        self._since.setdefault(condition.uid, second_time(self._clock.now()))
        self._queue.write(_key(condition.uid), self._write, condition)

    def settle(self, uid: str) -> Awaitable[object] | None:
        """Let no patch of the pod follow, for it is about to be bound; what ends with the one on its way, if one is."""
        self._said.pop(uid, None)
        return self._queue.settle(_key(uid))

    async def _write(self, condition: PatchPodCondition) -> None:
        status: dict[str, object] = {"conditions": [self._entry(condition)]} if condition.reason else {}
        if condition.nominated_node_name is not None:
            status["nominatedNodeName"] = condition.nominated_node_name or None
        try:
            await self._client.patch_pod_status(condition.namespace, condition.name, status)
        except ApiError as error:
            if error.status != 404:
                raise

    def _entry(self, condition: PatchPodCondition) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "lastProbeTime": None,
            "lastTransitionTime": self._since.get(condition.uid) or second_time(self._clock.now()),
            "message": condition.message,
            "reason": condition.reason,
            "status": "False",
            "type": "PodScheduled",
        }
        if condition.observed_generation:
            entry["observedGeneration"] = condition.observed_generation
        return entry


def _key(uid: str) -> str:
    return f"condition of `{uid}`"


def _merged(waiting: PatchPodCondition, newer: PatchPodCondition) -> PatchPodCondition:
    """What is to be written where a patch was not sent before the next one came: what the newer leaves alone is the
    older's."""
    if newer.nominated_node_name is None:
        newer = replace(newer, nominated_node_name=waiting.nominated_node_name)
    if not newer.reason:
        return replace(waiting, nominated_node_name=newer.nominated_node_name)
    return newer
