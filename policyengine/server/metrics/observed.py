"""The core with a stopwatch beside it: what it is told and says is counted and timed, and stays what it is.

The core has no clock. What happens inside one message it tells its observer in the order in which it happens; the time
between two such lines is measured here. So are the requests of a transport, under client-go's names.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

from policyengine.framework.events import FLUSH
from policyengine.kube.http.client import Response, Transport
from policyengine.scheduler.actions import Action, Bind
from policyengine.scheduler.messages import (
    BindFailed,
    BindSucceeded,
    BindUnknown,
    CyclesRequested,
    Message,
    ProfileRemoved,
    ProfileReplaced,
)
from policyengine.scheduler.state import SchedulerState
from policyengine.server.metrics.scheduler_metrics import SchedulerMetrics
from policyengine.server.tracing import PodTraces

SAMPLED = 16
"""Of so many messages the taking in of one is timed."""
STALL = 1.0
"""Seconds over one message that are told of: whoever waits for something waits elsewhere (docs/python-plugins.md)."""
_logger = logging.getLogger(__name__)
_NOTED = frozenset({BindSucceeded, BindFailed, BindUnknown, ProfileReplaced, ProfileRemoved})
_KNOWN_HASHES = 1024
_MANY_ATTEMPTS = 15
FAILED = "<error>"
"""client-go's code of a request without an answer."""


@dataclass(slots=True)
class _Pod:
    """What is known of a pod that is not bound yet."""

    entered: float
    """When it came into the active queue first, on the core's clock."""
    attempts: int = 0
    flushed: bool = False
    """Whether nothing but time brought this attempt about."""
    profile: str = ""
    began: float = 0.0
    mark: float = 0.0
    waits_since: float | None = None
    refused_by: tuple[str, ...] = ()


class ObservedCore:
    """A `SchedulerState` as the runner drives it, with everything noted in its metrics."""

    def __init__(self, state: SchedulerState, metrics: SchedulerMetrics, traces: PodTraces | None = None) -> None:
        self._state = state
        self._traces = traces
        self._metrics = metrics
        self._pods: dict[str, _Pod] = {}
        self._handled = 0
        self._posted: dict[str, tuple[float, str]] = {}
        """UID -> when its binding was posted, and the profile."""
        self._profiles: dict[str, str] = {}
        """Policy hash -> the scheduler name it serves, or served."""
        self._lines: dict[str, Callable[[str, float, tuple[Any, ...]], None]] = {
            "queued": self._queued,
            "woken": self._woken,
            "attempted": self._attempted,
            "filtered": lambda uid, at, values: self._point(uid, "Filter", values[0]),
            "scored": lambda uid, at, values: self._point(uid, "Score", "Success"),
            "post-filtered": lambda uid, at, values: self._point(
                uid, "PostFilter", "Success" if values[0] else "Unschedulable"
            ),
            "reserved": self._reserved,
            "waiting": self._waiting,
            "refused": self._refused,
            "failed": self._failed,
            "released": self._released,
            "bound": self._bound,
            "observed": self._gone,
            "gone": self._gone,
            "unserved": self._gone,
            "preempting": self._preempting,
            "gives way": lambda uid, at, values: self._metrics.given_way.add(),
        }
        state.observe(self._told if traces is None else self._told_both)
        self.may_bind = state.may_bind
        self.next_wakeup = state.next_wakeup

    # ---- the runner's side

    def handle(self, message: Message, now: float) -> list[Action]:
        """As `SchedulerState.handle`."""
        kind = type(message)
        self._handled += 1
        began = perf_counter()
        actions = self._state.handle(message, now)
        took = perf_counter() - began
        if self._handled % SAMPLED == 0 and kind is not CyclesRequested:
            self._metrics.event_handling.observe((kind.__name__,), took)
        if took >= STALL:
            self._metrics.stalls.add((kind.__name__,))
            _logger.warning("the scheduler stood still for %.1f s over `%s`: does a plugin wait?", took, kind.__name__)
        if kind in _NOTED:
            self._note(message)
        for action in actions:
            if type(action) is Bind:
                self._posted[action.uid] = (perf_counter(), self._profile(action.policy_hash))
                if self._traces is not None:
                    self._traces.begin(action.uid, "bind")
        return actions

    @property
    def ready(self) -> bool:
        """As `SchedulerState.ready`."""
        return self._state.ready

    @property
    def has_decided(self) -> bool:
        """As `SchedulerState.has_decided`."""
        return self._state.has_decided

    def _note(self, message: Message) -> None:
        match message:
            case BindSucceeded(uid=uid):
                self._answered(uid, "Success")
            case BindFailed(uid=uid) | BindUnknown(uid=uid):
                self._answered(uid, "Error")
            case ProfileReplaced():
                self._metrics.reloads.add(("accepted",))
            case ProfileRemoved():
                self._metrics.reloads.add(("removed",))

    def _answered(self, uid: str, status: str) -> None:
        posted = self._posted.pop(uid, None)
        if posted is not None:
            self._metrics.point_duration.observe(("Bind", status, posted[1]), perf_counter() - posted[0])

    # ---- the core's side

    def _told(self, uid: str, at: float, what: str, values: tuple[Any, ...]) -> None:
        line = self._lines.get(what)
        if line is not None:
            line(uid, at, values)

    def _told_both(self, uid: str, at: float, what: str, values: tuple[Any, ...]) -> None:
        assert self._traces is not None
        self._told(uid, at, what, values)
        self._traces.told(uid, at, what, values)

    def _queued(self, uid: str, at: float, values: tuple[Any, ...]) -> None:
        if uid not in self._pods:
            self._pods[uid] = _Pod(at)
        self._metrics.incoming.add((values[0], values[1]))

    def _woken(self, uid: str, at: float, values: tuple[Any, ...]) -> None:
        self._cured(uid)
        if values[1] == FLUSH.label and uid in self._pods:
            self._pods[uid].flushed = True
        self._metrics.incoming.add((values[0], values[1]))

    def _attempted(self, uid: str, at: float, values: tuple[Any, ...]) -> None:
        pod = self._pods.get(uid)
        if pod is None:
            pod = self._pods[uid] = _Pod(at)
        elif pod.refused_by:
            self._cured(uid)
        pod.attempts, pod.profile = values[0], self._profile(values[1])
        pod.began = pod.mark = perf_counter()

    def _point(self, uid: str, point: str, status: str) -> None:
        pod = self._pods.get(uid)
        if pod is not None:
            now = perf_counter()
            self._metrics.point_duration.observe((point, status, pod.profile), now - pod.mark)
            pod.mark = now

    def _reserved(self, uid: str, at: float, values: tuple[Any, ...]) -> None:
        pod = self._pods.get(uid)
        if pod is not None and pod.began:
            self._metrics.algorithm_duration.observe((), perf_counter() - pod.began)

    def _waiting(self, uid: str, at: float, values: tuple[Any, ...]) -> None:
        pod = self._pods.get(uid)
        if pod is not None and pod.waits_since is None:
            pod.waits_since = at

    def _waited(self, pod: _Pod, at: float, result: str) -> None:
        if pod.waits_since is None:
            return
        seconds, pod.waits_since = at - pod.waits_since, None
        self._metrics.permit_wait.observe((result,), seconds)
        status = "Success" if result == "allowed" else "Unschedulable"
        self._metrics.point_duration.observe(("Permit", status, pod.profile), seconds)

    def _refused(self, uid: str, at: float, values: tuple[Any, ...]) -> None:
        pod = self._ended(uid, "unschedulable")
        if pod is not None:
            pod.flushed = False
            pod.refused_by = tuple(values[0])
            for plugin in pod.refused_by:
                self._metrics.unschedulable.add((plugin, pod.profile), 1)
        self._metrics.incoming.add(("unschedulable", "ScheduleAttemptFailure"))

    def _failed(self, uid: str, at: float, values: tuple[Any, ...]) -> None:
        self._ended(uid, "error")
        self._metrics.incoming.add(("backoff", "ScheduleAttemptFailure"))

    def _released(self, uid: str, at: float, values: tuple[Any, ...]) -> None:
        pod = self._pods.get(uid)
        if pod is not None:
            self._waited(pod, at, "rejected")

    def _bound(self, uid: str, at: float, values: tuple[Any, ...]) -> None:
        pod = self._ended(uid, "scheduled")
        if pod is None:
            return
        self._waited(pod, at, "allowed")
        attempts = "15+" if pod.attempts >= _MANY_ATTEMPTS else str(pod.attempts)
        self._metrics.sli_duration.observe((attempts,), max(0.0, at - pod.entered))
        self._metrics.pod_attempts.observe((), pod.attempts)
        if pod.flushed:
            self._metrics.after_flush.add(())
        self._gone(uid, at, values)

    def _ended(self, uid: str, result: str) -> _Pod | None:
        """An attempt ended."""
        pod = self._pods.get(uid)
        if pod is None or not pod.began:
            return None
        labels = (result, pod.profile)
        self._metrics.schedule_attempts.add(labels)
        self._metrics.attempt_duration.observe(labels, perf_counter() - pod.began)
        pod.began = 0.0
        return pod

    def _preempting(self, uid: str, at: float, values: tuple[Any, ...]) -> None:
        self._metrics.preemption_attempts.add(())
        self._metrics.preemption_victims.observe((), len(values[1].split(", ")) if values[1] else 0)

    def _cured(self, uid: str) -> None:
        """What refused the pod does not any more, as far as is known."""
        pod = self._pods.get(uid)
        if pod is not None and pod.refused_by:
            for plugin in pod.refused_by:
                self._metrics.unschedulable.add((plugin, pod.profile), -1)
            pod.refused_by = ()

    def _gone(self, uid: str, at: float, values: tuple[Any, ...]) -> None:
        """The pod waits no more."""
        self._cured(uid)
        self._pods.pop(uid, None)

    def _profile(self, policy_hash: str) -> str:
        name = self._profiles.get(policy_hash)
        if name is None:
            if len(self._profiles) >= _KNOWN_HASHES:
                self._profiles.clear()
            self._profiles.update({one.policy_hash: one.scheduler_name for one in self._state.profiles})
            name = self._profiles.setdefault(policy_hash, "")
        return name


class ObservedTransport:
    """Carries requests to the server of `url`, and counts them. Watches, which have no time-out, are not timed."""

    def __init__(self, transport: Transport, url: str, metrics: SchedulerMetrics) -> None:
        self._transport = transport
        self._host = urlsplit(url).netloc
        self._metrics = metrics

    async def request(self, method: str, path: str, **how: Any) -> Response:
        """As `Transport.request`."""
        began, code = perf_counter(), FAILED
        try:
            response = await self._transport.request(method, path, **how)
            code = str(response.status)
            return response
        finally:
            self._metrics.rest_requests.add((code, method, self._host))
            if how.get("timeout") is not None:
                self._metrics.rest_duration.observe((method, self._host), perf_counter() - began)

    async def close(self) -> None:
        """Close every connection."""
        await self._transport.close()
