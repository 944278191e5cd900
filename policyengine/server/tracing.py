"""OpenTelemetry traces of a pod's way to its node, made from what the core reports and exported over OTLP.

Rules:
1. A trace is one attempt: `schedule`, and within it what took its time: `queue` (in the queue until its turn), `decide`
   (filters, scores and extenders), `permit` (reserved, until the binding is sent), `bind` (until it is answered).
2. The spans are made when the attempt has ended. Until then a pod costs a few numbers, and without an endpoint nothing.
3. An exporter's thread sends them. Where the collector is slow or away they are dropped; no pod waits for it.

A pod that is bound at once:

    schedule  09:00:00.000 … 00.034   result=bound, k8s.pod.name, k8s.node.name, policyengine.policy.hash, …
      queue     00.000 … 00.012
      decide    00.012 … 00.013
      permit    00.013 … 00.013
      bind      00.013 … 00.034
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

from policyengine.clock import Clock
from policyengine.cluster.view import ClusterView
from policyengine.version import __version__

SHUTDOWN = 1.0
"""Seconds that the last spans are given at the end."""
_BEGINS = {"queued": "queue", "woken": "queue", "attempted": "decide", "reserved": "permit"}
"""A line of the core -> the span that begins with it."""
_ENDS = frozenset({"bound", "refused", "failed", "released", "observed", "gone", "unserved"})
_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "attempted": ("policyengine.attempt", "policyengine.policy.hash"),
    "reserved": ("k8s.node.name",),
    "refused": ("policyengine.refused_by", "policyengine.policy.hash", "policyengine.message"),
    "failed": ("policyengine.policy.hash", "policyengine.message"),
    "released": ("k8s.node.name", "policyengine.message"),
}
"""What the values of a line are called in a span."""


class TracingUnusable(Exception):
    """Traces were asked for and cannot be made; one sentence that says what to do."""


@dataclass(slots=True)
class _Attempt:
    """What is known of an attempt that has not ended: when each of its spans began, in nanoseconds since the epoch."""

    began: list[tuple[str, int]] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)


class PodTraces:
    """Makes spans of what the core tells of its pods."""

    def __init__(self, tracer: Any, clock: Clock, view: ClusterView) -> None:
        """`tracer`: OpenTelemetry's; `view` knows the pods' names."""
        self._tracer = tracer
        self._clock = clock
        self._view = view
        self._open: dict[str, _Attempt] = {}

    def told(self, uid: str, at: float, what: str, values: tuple[Any, ...]) -> None:
        """Take in a line of the core, an `Observer`."""
        if what in _BEGINS:
            self.begin(uid, _BEGINS[what])
        attempt = self._open.get(uid)
        if attempt is None:
            return
        for name, value in zip(_ATTRIBUTES.get(what, ()), values, strict=False):
            attempt.attributes[name] = value if isinstance(value, str | int) else ", ".join(sorted(map(str, value)))
        if what in _ENDS:
            del self._open[uid]
            self._export(uid, what, attempt)

    def begin(self, uid: str, name: str) -> None:
        """A span begins, and the one before it ends."""
        attempt = self._open.setdefault(uid, _Attempt())
        if name == "queue" and attempt.began:
            return  # it moved from one queue to another
        attempt.began.append((name, self._now()))

    def _now(self) -> int:
        return int(self._clock.now() * 1e9)

    def _export(self, uid: str, result: str, attempt: _Attempt) -> None:
        from opentelemetry.trace import set_span_in_context

        now = self._now()
        root = self._tracer.start_span("schedule", start_time=attempt.began[0][1])
        if root.is_recording():
            root.set_attributes({"k8s.pod.uid": uid, "result": result, **attempt.attributes})
            if (pod := self._view.pods.get(uid)) is not None:
                namespace, _, name = pod.key.partition("/")
                root.set_attributes({"k8s.namespace.name": namespace, "k8s.pod.name": name})
            within = set_span_in_context(root)
            ends = [began for _, began in attempt.began[1:]] + [now]
            for (name, began), ended in zip(attempt.began, ends, strict=True):
                self._tracer.start_span(name, within, start_time=began).end(ended)
        root.end(now)


@asynccontextmanager
async def exporting(endpoint: str, rate: int, host: str) -> AsyncIterator[Any]:
    """A tracer whose spans are sent to an OTLP/HTTP endpoint, for as long as the block runs: `rate` of a million
    attempts. Raises `TracingUnusable`."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.sampling import TraceIdRatioBased
    except ImportError:
        told = (
            "traces need OpenTelemetry: `pip install policyengine-scheduler[tracing]`, or leave `tracing.endpoint` out"
        )
        raise TracingUnusable(told) from None
    if urlsplit(endpoint).path in ("", "/"):
        endpoint = f"{endpoint.rstrip('/')}/v1/traces"
    names = {"service.name": "policyengine", "service.version": __version__, "service.instance.id": host}
    sampler = TraceIdRatioBased(rate / 1e6)
    provider = TracerProvider(sampler=sampler, resource=Resource.create(names), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    try:
        yield provider.get_tracer("policyengine", __version__)
    finally:
        ending = Thread(target=provider.shutdown, daemon=True)
        ending.start()
        await asyncio.to_thread(ending.join, SHUTDOWN)
