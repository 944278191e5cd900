"""Traces of pods: an attempt each, with spans for what took its time; sent to a collector, or not at all."""

import asyncio
import gzip
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import pairwise
from random import Random

import pytest
from aiohttp import web

from policyengine.clock import SystemClock
from policyengine.cluster.view import ClusterView
from policyengine.kube.config.configuration import load
from policyengine.kube.http.client import Client
from policyengine.kube.policies.compiling import compile_at_once
from policyengine.plugins.registry import default_profile
from policyengine.server.live import Connection, live
from policyengine.server.metrics.scheduler_metrics import SchedulerMetrics
from policyengine.server.tracing import PodTraces, TracingUnusable, exporting
from policyengine.simulator.api_server.handler import ApiServer
from policyengine.simulator.api_server.http_requests import ADMIN
from policyengine.simulator.api_server.memory import MemoryTransport
from policyengine.simulator.sandbox import create, node
from tests.kube.virtual_time import VirtualClock, run
from tests.server.annotator.test_prometheus import site
from tests.server.metrics.test_observed import POLICY, World, scenario

sdk = pytest.importorskip(
    "opentelemetry.sdk.trace", reason="there is no OpenTelemetry (policyengine-scheduler[tracing])"
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest  # noqa: E402
from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: E402
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: E402

Times = list[tuple[str, float, float]]


def traced(exporter: InMemorySpanExporter) -> sdk.Tracer:
    provider = sdk.TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider.get_tracer("test")


def attempts(exporter: InMemorySpanExporter) -> Iterator[tuple[dict[str, object], Times]]:
    """The attributes of each attempt, and its spans with their times in seconds since its beginning."""
    spans = exporter.get_finished_spans()
    for root in (one for one in spans if one.parent is None):
        assert root.name == "schedule"
        within = [one for one in spans if one.parent is not None and one.parent.span_id == root.context.span_id]
        assert all(one.context.trace_id == root.context.trace_id for one in within)
        assert within[0].start_time == root.start_time and within[-1].end_time == root.end_time
        assert all(one.end_time == next_.start_time for one, next_ in pairwise(within))
        times = [((one.start_time - root.start_time) / 1e9, (one.end_time - root.start_time) / 1e9) for one in within]
        yield dict(root.attributes), [(one.name, *pair) for one, pair in zip(within, times, strict=True)]


def test_a_bound_pod_is_queued_decided_permitted_and_bound_and_a_refused_one_ends_decided() -> None:
    exporter = InMemorySpanExporter()

    async def work(world: World) -> None:
        await world.pod("a")
        await world.pod("never")
        await world.pod("later", cpu="1000")
        await world.clock.sleep(5)

    scenario(work, POLICY, traced(exporter))
    found = {told["k8s.pod.name"]: (told, [name for name, *_ in spans]) for told, spans in attempts(exporter)}
    told, spans = found["a"]
    assert spans == ["queue", "decide", "permit", "bind"]
    assert told["result"] == "bound" and told["k8s.namespace.name"] == "default" and told["policyengine.attempt"] == 1
    assert str(told["k8s.node.name"]).startswith("node-") and len(str(told["policyengine.policy.hash"])) == 64
    told, spans = found["never"]
    assert spans == ["queue", "decide"] and told["result"] == "refused" and told["policyengine.refused_by"] == "odd"
    assert told["policyengine.policy.hash"] == found["a"][0]["policyengine.policy.hash"]
    assert "Insufficient cpu" in str(found["later"][0]["policyengine.message"])


def test_the_times_are_those_of_the_lines_and_a_move_between_queues_begins_nothing() -> None:
    exporter, clock = InMemorySpanExporter(), VirtualClock()

    async def lines() -> None:
        traces = PodTraces(traced(exporter), clock, ClusterView())
        for what, values, seconds in (
            ("reads", (), 1),
            ("queued", ("active", "PodAdd"), 2),
            ("woken", ("backoff", "x", ""), 1),
            ("attempted", (3, "h"), 4),
            ("filtered", ("Success",), 0),
            ("reserved", ("n", "h"), 8),
            ("released", ("n", "no"), 16),
            ("gone", ("deleted",), 0),
            ("woken", ("active", "x", ""), 2),
            ("gone", ("deleted",), 0),
        ):
            traces.told("u", clock.now(), what, values)
            await clock.sleep(seconds)
        assert not traces._open

    run(lines())
    (told, first), (_, second) = attempts(exporter)
    assert first == [("queue", 0, 3), ("decide", 3, 7), ("permit", 7, 15)] and second == [("queue", 0, 2)]
    assert (told["result"], told["policyengine.message"], told["k8s.node.name"]) == ("released", "no", "n")


@asynccontextmanager
async def collector() -> AsyncIterator[tuple[str, list[ExportTraceServiceRequest]]]:
    """The URL of a collector, and what it was sent."""
    received: list[ExportTraceServiceRequest] = []

    async def take(request: web.Request) -> web.Response:
        body = await request.read()
        packed = request.headers.get("Content-Encoding") == "gzip"
        received.append(ExportTraceServiceRequest.FromString(gzip.decompress(body) if packed else body))
        return web.Response()

    async with site("/v1/traces", take) as port:
        yield f"http://127.0.0.1:{port}", received


def names_of(received: list[ExportTraceServiceRequest]) -> list[str]:
    scopes = [scope for sent in received for scope in sent.resource_spans[0].scope_spans]
    return [one.name for scope in scopes for one in scope.spans]


async def test_a_collector_is_sent_the_share_that_is_asked_for() -> None:
    async with collector() as (url, received):
        async with exporting(url, 250_000, "me") as tracer:
            traces = PodTraces(tracer, SystemClock(), ClusterView())
            for number in range(400):
                traces.told(str(number), 0.0, "attempted", (1, "h"))
                traces.told(str(number), 0.0, "refused", (frozenset({"f"}), "h", "no"))
        names = names_of(received)
        assert len(names) == 2 * names.count("schedule") and 50 < names.count("schedule") < 150
        who = {one.key: one.value.string_value for one in received[0].resource_spans[0].resource.attributes}
        assert (who["service.name"], who["service.instance.id"]) == ("policyengine", "me")


async def test_a_scheduler_sends_its_traces_where_its_configuration_says() -> None:
    clock, stop = SystemClock(), asyncio.Event()
    transport = MemoryTransport(ApiServer(clock), user=ADMIN)
    await create(transport, "/api/v1/nodes", node("node-1", "a"))
    pod = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await create(transport, "/api/v1/namespaces/default/pods", pod)
    client, metrics = Client(transport), SchedulerMetrics()
    async with collector() as (url, received):
        given = load(None, {"tracing": {"endpoint": url}, "endpoints": {"address": ""}})
        connection = Connection(client, client, None, metrics)
        how = (connection, given, clock, Random(1), [default_profile()], compile_at_once)
        async with live(*how) as scheduler, asyncio.timeout(30):
            running = asyncio.create_task(scheduler.run(stop))
            while not metrics.pod_attempts.count():  # noqa: ASYNC110  (it tells nobody)
                await asyncio.sleep(0.05)
            stop.set()
            await running
        assert sorted(names_of(received)) == ["bind", "decide", "permit", "queue", "schedule"]


async def test_a_collector_that_is_away_or_silent_keeps_nobody_waiting() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    for port in (1, server.sockets[0].getsockname()[1]):
        async with exporting(f"http://127.0.0.1:{port}", 1_000_000, "me") as tracer:
            traces = PodTraces(tracer, SystemClock(), ClusterView())
            began = time.monotonic()
            for number in range(5000):
                traces.told(str(number), 0.0, "attempted", (1, "h"))
                traces.told(str(number), 0.0, "failed", ("h", "no"))
            ended = time.monotonic()
        assert ended - began < 10 and time.monotonic() - ended < 3
    server.close()


def test_without_an_endpoint_nothing_of_opentelemetry_is_loaded() -> None:
    code = "import sys, policyengine.server.live; print([one for one in sys.modules if 'opentelemetry' in one])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


async def test_without_the_extra_the_start_ends_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(TracingUnusable, match=r"pip install policyengine-scheduler\[tracing\]"):
        async with exporting("http://127.0.0.1:4318", 1, "me"):
            pass
