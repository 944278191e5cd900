"""What is counted is what happened: the metrics of whole runs against the API server's log; requests are counted as
client-go counts them."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from policyengine.kube.http.client import Client, ConnectionFailed, Response
from policyengine.kube.scheduling import Scheduler
from policyengine.plugins.registry import default_profile
from policyengine.policy_compiler import compile_policy
from policyengine.scheduler.messages import Tick
from policyengine.scheduler.queue.queueing_hints import UnschedulableIndex
from policyengine.scheduler.state import SchedulerState
from policyengine.server.metrics import observed
from policyengine.server.metrics.observed import ObservedCore, ObservedTransport
from policyengine.server.metrics.readings import read_before_scrape
from policyengine.server.metrics.scheduler_metrics import SchedulerMetrics
from policyengine.server.tracing import PodTraces
from policyengine.simulator.api_server import statuses
from policyengine.simulator.api_server.memory import MemoryTransport
from policyengine.simulator.sandbox import create, node
from tests.faulty_server import effects as fault
from tests.faulty_server.server import FaultyServer
from tests.kube.virtual_time import VirtualClock, run

PODS = "/api/v1/namespaces/default/pods"
POLICY = 'policy "p" {\n  scheduler "default-scheduler"\n  filter "odd" { require pod.name != "never" }\n}\n'


class World:
    def __init__(self, tracer: Any = None) -> None:
        self.tracer = tracer
        self.clock = VirtualClock()
        self.api = FaultyServer(self.clock)
        self.outside = MemoryTransport(self.api, user_agent="test")
        self.registry = SchedulerMetrics()
        self.core: ObservedCore
        self.stop = asyncio.Event()

    async def pod(self, name: str, cpu: str = "100m", **spec: Any) -> None:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        await create(
            self.outside, PODS, {"kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container], **spec}}
        )

    def start(self, policy: str = "") -> "asyncio.Task[None]":
        profile = compile_policy(policy) if policy else default_profile()

        def observed(state: Any) -> ObservedCore:
            traces = None if self.tracer is None else PodTraces(self.tracer, self.clock, state.view)
            self.core = ObservedCore(state, self.registry, traces)
            return self.core

        client = Client(MemoryTransport(self.api, user_agent="scheduler"))
        scheduler = Scheduler(client, self.clock, random.Random(3), [profile], host="test", observed=observed)
        read_before_scrape(self.registry, scheduler, self.clock)
        return asyncio.ensure_future(scheduler.run(self.stop))

    def scrape(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        text = generate_latest(self.registry).decode()  # type: ignore[arg-type]
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float:
        return self.scrape().get((name, frozenset(labels.items())), 0.0)


def scenario(work: Callable[[World], Awaitable[None]], policy: str = "", tracer: Any = None) -> None:
    async def whole() -> None:
        world = World(tracer)
        for name in ("node-1", "node-2"):
            await create(world.outside, "/api/v1/nodes", node(name, "a"))
        task = world.start(policy)
        await work(world)
        world.stop.set()
        await asyncio.wait_for(task, 60)

    run(whole())


def test_every_bound_pod_is_one_scheduled_attempt() -> None:
    async def work(world: World) -> None:
        for number in range(30):
            await world.pod(f"p{number}")
        await asyncio.sleep(5)
        profile = {"profile": "default-scheduler"}
        assert world.value("scheduler_schedule_attempts_total", result="scheduled", **profile) == 30
        assert world.value("scheduler_scheduling_attempt_duration_seconds_count", result="scheduled", **profile) == 30
        assert world.value("scheduler_pod_scheduling_sli_duration_seconds_count", attempts="1") == 30
        assert world.value("scheduler_pod_scheduling_attempts_sum") == 30
        bind = {"extension_point": "Bind", "status": "Success", **profile}
        assert world.value("scheduler_framework_extension_point_duration_seconds_count", **bind) == 30
        assert world.value("scheduler_cache_size", type="pods") == 30
        assert sum(world.registry.incoming.values.values()) == 30

    scenario(work)


def test_a_refused_pod_waits_by_the_name_of_what_refused_it_until_it_is_bound() -> None:
    async def work(world: World) -> None:
        await world.pod("big", cpu="5")
        await asyncio.sleep(5)
        labels = {"plugin": "NodeResourcesFit", "profile": "default-scheduler"}
        assert world.value("scheduler_unschedulable_pods", **labels) == 1
        assert world.value("scheduler_pending_pods", queue="unschedulable") == 1
        assert (
            world.value("scheduler_schedule_attempts_total", result="unschedulable", profile="default-scheduler") == 1
        )
        await create(world.outside, "/api/v1/nodes", node("large", "a", {"cpu": "8", "memory": "16Gi", "pods": "110"}))
        await asyncio.sleep(30)
        assert world.value("scheduler_unschedulable_pods", **labels) == 0
        assert world.value("scheduler_pod_scheduling_sli_duration_seconds_count", attempts="2") == 1
        assert world.core._pods == {}

    scenario(work)


@pytest.mark.parametrize(("missed", "flushed"), [(True, 1), (False, 0)])
def test_a_pod_that_only_time_brought_back_is_counted_when_it_is_bound(
    missed: bool, flushed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missed:
        monkeypatch.setattr(UnschedulableIndex, "woken_by", lambda self, event, old, new, now=0.0: [])

    async def work(world: World) -> None:
        await world.pod("big", cpu="5")
        await asyncio.sleep(5)
        await create(world.outside, "/api/v1/nodes", node("large", "a", {"cpu": "8", "memory": "16Gi", "pods": "110"}))
        await asyncio.sleep(600)
        assert world.value("scheduler_pod_scheduling_attempts_count") == 1
        assert world.value("scheduler_pod_scheduled_after_flush_total") == flushed

    scenario(work)


def test_a_refused_pod_that_is_deleted_waits_no_more() -> None:
    async def work(world: World) -> None:
        await world.pod("big", cpu="5", terminationGracePeriodSeconds=0)
        await asyncio.sleep(5)
        await world.outside.request("DELETE", f"{PODS}/big")
        await asyncio.sleep(5)
        assert world.registry.unschedulable.values == {}
        assert world.core._pods == {} and world.core._posted == {}

    scenario(work)


def test_a_binding_that_fails_is_an_attempt_that_erred() -> None:
    async def work(world: World) -> None:
        world.api.faults.add(fault.Fail(statuses.too_many_requests("busy", 1)), subresource="binding", times=1)
        await world.pod("p")
        await asyncio.sleep(120)
        profile = "default-scheduler"
        assert world.value("scheduler_schedule_attempts_total", result="scheduled", profile=profile) == 1
        assert world.value("scheduler_schedule_attempts_total", result="error", profile=profile) == 1

    scenario(work)


def test_a_policys_rules_are_counted_by_name() -> None:
    async def work(world: World) -> None:
        for number in range(10):
            await world.pod(f"p{number}")
        await asyncio.sleep(5)
        labels = {"policy": "p", "rule": "odd", "extension_point": "Filter"}
        work_done = world.value("policyengine_rule_evaluations_total", **labels)
        assert 1 <= work_done <= 10
        assert world.value("policyengine_cache_hits_total", **labels) >= 1
        infos = [labels for name, labels in world.scrape() if name == "policyengine_policy_info"]
        assert len(infos) == 1 and ("policy", "p") in infos[0]

    scenario(work, POLICY)


def test_a_scheduler_that_stands_still_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    times = iter([0.0, 0.9, 10.0, 11.5])
    monkeypatch.setattr(observed, "perf_counter", lambda: next(times))
    metrics = SchedulerMetrics()
    core = ObservedCore(SchedulerState([default_profile()]), metrics)
    core.handle(Tick(), 0.0)
    assert not caplog.messages
    core.handle(Tick(), 1.0)
    assert caplog.messages == ["the scheduler stood still for 1.5 s over `Tick`: does a plugin wait?"]
    assert b'policyengine_stalls_total{event="Tick"} 1.0' in generate_latest(metrics)  # type: ignore[arg-type]


class Answering:
    """Answers with one status; fails without one."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.headers: dict[str, str] = {}

    async def request(self, method: str, path: str, **how: Any) -> Response:
        if not self.status:
            raise ConnectionFailed("refused", sent=False)
        return self  # type: ignore[return-value]  # as much of an answer as is looked at


async def test_requests_count_by_code_method_and_host_and_watches_are_not_timed() -> None:
    metrics = SchedulerMetrics()
    for status, method, timeout in ((201, "POST", 1.0), (409, "POST", 1.0), (200, "GET", None), (0, "GET", 1.0)):
        transport = ObservedTransport(Answering(status), "https://[::1]:6443/prefix", metrics)  # type: ignore[arg-type]
        try:
            await transport.request(method, "/api/v1/nodes", timeout=timeout)
        except ConnectionFailed:
            assert not status
    host = "[::1]:6443"
    counted = {("201", "POST", host): 1, ("409", "POST", host): 1, ("200", "GET", host): 1, ("<error>", "GET", host): 1}
    assert metrics.rest_requests.values == counted
    assert (metrics.rest_duration.count(("POST", host)), metrics.rest_duration.count(("GET", host))) == (2, 1)
