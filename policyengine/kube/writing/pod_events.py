"""What users see of a pod: Events and the PodScheduled condition, as kube-scheduler writes them.

Both wait behind the bindings (`request_queue`).

Events (events.k8s.io/v1; client-go's tools/events): the same event again does not become a second object; the first one
grows a series, which is written when its count reaches a power of two. The last `SERIES` events are remembered for it.
While `LIMIT` writes wait, which they do only if the server fails them, new events are dropped, and a warning says so.
The name of an event Scheduled follows from the pod's UID and its node, so that a successor may write it again.
In a namespace that is being deleted nothing can be created: its events are given up without a word.

Conditions: a patch must not overtake a binding: the API server sets PodScheduled to True with the binding, and a late
False would stay on a pod that runs. So a binding first settles what is on its way for its pod.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from cachetools import LRUCache
from msgspec.structs import replace

from policyengine.clock import Clock, micro_time
from policyengine.cluster.objects import format_time
from policyengine.cluster.pod_objects import Pod
from policyengine.control_characters import escaped
from policyengine.kube.http.client import UNVALIDATED, ApiError, Client
from policyengine.kube.watching.server_versions import ServerHistory
from policyengine.kube.watching.store import Malformed, Store, identity
from policyengine.kube.writing.request_queue import LIMIT, RequestQueue
from policyengine.scheduler.actions import PatchPodCondition, RecordEvent
from policyengine.scheduler.conditions_and_events import cut

SERIES = 8192
NAME_LIMIT = 236
"""Characters of an object's name in an event's, which has at most 253."""
SCHEDULED = "Scheduled"
DECIDED_BY = "policyengine.io/decided-by"
"""The annotation that names the policy: the note is kube-scheduler's, word for word."""
TERMINATING = "NamespaceTerminating"
"""The cause of a refusal to create in a namespace that is being deleted (admission plugin NamespaceLifecycle)."""
_FEW = 1024
CONDITIONS = 65_536
"""Pods whose last condition is remembered."""


@dataclass(slots=True)
class _Series:
    """One event and how often it happened."""

    event: RecordEvent
    namespace: str
    name: str
    at: float
    """Epoch seconds of the first time."""
    count: int = 1
    last: str = ""
    """The time of the last, where there are several."""
    created: bool = False
    is_given_up: bool = False
    """Whether the server will not have it, however often it happens."""


class EventRecorder:
    """Turns `RecordEvent` actions into Event objects and writes them."""

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
        self._series: LRUCache[tuple[str, ...], _Series] = LRUCache(SERIES)
        self._last_stamp = 0
        self._queue = queue
        self._on_problem = on_problem
        self._drops = False

    def record(self, event: RecordEvent) -> None:
        """Write the event soon, or let the one it repeats grow."""
        if self._queue.backlog >= LIMIT:
            if not self._drops:
                self._on_problem(f"events are dropped: {LIMIT} writes wait for the API server")
            self._drops = True
            return
        about = event.uid, event.resource_version, event.node, event.scheduler_name, event.policy
        key = (*about, event.reason, event.action, event.note)
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = self._begin(event)
        else:
            series.count += 1
            series.last = micro_time(self._clock.now())
        if not series.count & (series.count - 1) and not series.is_given_up:
            self._queue.write(f"event of `{series.namespace}/{series.name}`", self._write, series)

    def _begin(self, event: RecordEvent) -> _Series:
        now = self._clock.now()
        if event.reason == SCHEDULED:
            stamp = sha256(f"{event.uid} {event.note}".encode()).hexdigest()[:16]
        else:  # two events of one moment need two names
            self._last_stamp = max(self._last_stamp + 1, int(now * 1e9))
            stamp = f"{self._last_stamp:x}"
        name = f"{event.name[:NAME_LIMIT].rstrip('.-')}.{stamp}"
        return _Series(event, event.namespace or "default", name, now)

    def _body(self, series: _Series) -> dict[str, Any]:
        event = series.event
        body: dict[str, Any] = {
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
                "apiVersion": event.api_version,
                "resourceVersion": event.resource_version,
            },
            "note": cut(escaped(event.note)),
            "type": event.type,
            "deprecatedSource": {},
            "deprecatedFirstTimestamp": None,
            "deprecatedLastTimestamp": None,
        }
        if event.policy:
            body["metadata"]["annotations"] = {DECIDED_BY: event.policy}
        if event.node:
            body["related"] = {"kind": "Node", "apiVersion": "v1", "name": event.node}
        return body | _growth(series) if series.count > 1 else body

    async def _write(self, series: _Series) -> None:
        """Grow the event if it is there, else create it: a new one, or one that the server has dropped meanwhile."""
        path = f"/apis/events.k8s.io/v1/namespaces/{series.namespace}/events"
        if series.created:
            try:
                await self._client.call("PATCH", f"{path}/{series.name}", _growth(series))
                return
            except ApiError as error:
                if error.status != 404:
                    raise
                series.created = False
        try:
            await self._client.call("POST", path, self._body(series), query=UNVALIDATED)
        except ApiError as error:
            if TERMINATING in error.causes:
                series.is_given_up = True
                return
            if error.reason != "AlreadyExists":  # A lost answer: the first try had arrived.
                raise
        series.created = True


def _growth(series: _Series) -> dict[str, object]:
    return {"series": {"count": series.count, "lastObservedTime": series.last}}


@dataclass(slots=True)
class _Told:
    """What was said of one pod."""

    since: str
    """When its condition first became False: the transition time stays while the status does."""
    about: PatchPodCondition
    said: PatchPodCondition | None = None
    """What need not be said again."""


class ConditionWriter:
    """Writes conditions, the latest a pod, and none that says what was said before."""

    def __init__(
        self, client: Client, clock: Clock, queue: RequestQueue, pods: Store[Pod], history: ServerHistory
    ) -> None:
        """`pods`: as the watch tells of them."""
        self._client = client
        self._clock = clock
        self._queue = queue
        self._pods, self._history = pods, history
        self._told: LRUCache[str, _Told] = LRUCache(CONDITIONS)
        self._history.listeners.append(self._told.clear)  # a server that has gone back knows nothing of it

    def write(self, condition: PatchPodCondition) -> None:
        """Write the condition soon."""
        waiting = self._queue.peek(_key(condition.uid))
        if waiting is not None:
            condition = _merged(waiting, condition)
        told = self._told.get(condition.uid)
        if told is None:
            self._forget_the_gone()
            told = self._told[condition.uid] = _Told(format_time(self._clock.now()), condition)
        elif told.said == condition:
            return
        told.about = told.said = condition
        self._queue.write(_key(condition.uid), self._write, condition)

    def settle(self, uid: str) -> Awaitable[object] | None:
        """Let no patch of the pod follow, for it is about to be bound; what ends with the one on its way, if one is."""
        told = self._told.get(uid)
        if told is not None:
            told.said = None
        return self._queue.settle(_key(uid))

    def _forget_the_gone(self) -> None:
        """Now and then: pods that were deleted while they waited would stay until `CONDITIONS` others have come."""
        if len(self._told) >= 2 * len(self._pods) + _FEW:
            for uid, told in list(self._told.items()):
                if self._pods.uid(told.about.namespace, told.about.name) != uid:
                    del self._told[uid]

    async def _write(self, condition: PatchPodCondition) -> None:
        status: dict[str, object] = {}
        if condition.reason:
            told = self._told.get(condition.uid)
            since = format_time(self._clock.now()) if told is None else told.since
            status = conditions(
                "PodScheduled", "False", condition.reason, condition.message, since, condition.observed_generation
            )
        if condition.nominated_node_name is not None:
            status["nominatedNodeName"] = condition.nominated_node_name or None
        known_in, seen = self._pods.generation, self._pods.seen(condition.namespace, condition.name)
        try:
            pod = await self._client.patch_pod_status(condition.namespace, condition.name, status)
        except ApiError as error:
            if error.status != 404:
                raise
        else:
            with suppress(Malformed):
                self._history.compare(f"pod `{condition.namespace}/{condition.name}`", seen, identity(pod), known_in)


def conditions(type_: str, status: str, reason: str, message: str, since: str, generation: int) -> dict[str, object]:
    """A pod's status with this condition; `generation`: the pod's, as it was observed, 0 where it is not known."""
    condition: dict[str, object] = {
        "lastProbeTime": None,
        "lastTransitionTime": since,
        "message": escaped(message),
        "reason": reason,
        "status": status,
        "type": type_,
    }
    if generation:
        condition["observedGeneration"] = generation
    return {"conditions": [condition]}


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
