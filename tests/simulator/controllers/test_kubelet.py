import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from policyengine.simulator.api_server import MemoryTransport
from policyengine.simulator.controllers.kubelet import RUN_FOR, Kubelet, run_seconds
from tests.simulator.api_server.server_bench import NODES, PODS, Bench, binding, node, pod


@pytest_asyncio.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    kubelet = Kubelet(MemoryTransport(made.api, user_agent="kubelet"), made.clock)
    task = asyncio.create_task(kubelet.run())
    await made.clock.settle()
    yield made
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def bound(bench: Bench, name: str, **more: Any) -> None:
    await bench.create(PODS, pod(name, **more))
    await bench.create(f"{PODS}/{name}/binding", binding(name, "n1"))
    await bench.clock.settle()


async def phase(bench: Bench, name: str) -> str:
    answer = await bench.ask("GET", f"{PODS}/{name}")
    return str(answer.body["status"]["phase"]) if answer.status == 200 else "gone"


async def test_a_bound_pod_runs_and_is_ready_with_an_address(bench: Bench) -> None:
    await bench.create(NODES, node("n1"))
    await bound(bench, "p")
    status = (await bench.ask("GET", f"{PODS}/p")).body["status"]
    assert status["phase"] == "Running"
    assert status["podIP"] == status["podIPs"][0]["ip"] == "10.64.0.1"
    assert status["startTime"] == "2026-01-01T00:00:00Z"
    held = {c["type"]: c["status"] for c in status["conditions"]}
    assert held == {
        "PodScheduled": "True",
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "True",
        "ContainersReady": "True",
    }


async def test_a_pending_pod_is_left_alone(bench: Bench) -> None:
    await bench.create(NODES, node("n1"))
    await bench.create(PODS, pod("p"))
    await bench.clock.advance(60)
    assert await phase(bench, "p") == "Pending"


async def test_a_pod_on_a_node_that_is_not_there_waits_for_it(bench: Bench) -> None:
    await bound(bench, "p")
    await bench.clock.advance(60)
    assert await phase(bench, "p") == "Pending"
    await bench.create(NODES, node("n1"))
    await bench.clock.settle()
    assert await phase(bench, "p") == "Running"


async def test_a_pod_ends_well_after_the_time_its_annotation_says(bench: Bench) -> None:
    await bench.create(NODES, node("n1"))
    await bound(bench, "p", annotations={RUN_FOR: "30s"})
    await bench.clock.advance(29)
    assert await phase(bench, "p") == "Running"
    await bench.clock.advance(2)
    assert await phase(bench, "p") == "Succeeded"


async def test_a_deleted_pod_is_gone_once_its_grace_is_over(bench: Bench) -> None:
    await bench.create(NODES, node("n1"))
    await bound(bench, "p")
    assert (await bench.ask("DELETE", f"{PODS}/p")).body["metadata"]["deletionGracePeriodSeconds"] == 30
    await bench.clock.advance(29)
    assert await phase(bench, "p") == "Running"
    await bench.clock.advance(2)
    assert await phase(bench, "p") == "gone"


async def test_a_pod_made_anew_under_the_same_name_is_not_ended_with_the_old_one(bench: Bench) -> None:
    await bench.create(NODES, node("n1"))
    await bound(bench, "p", annotations={RUN_FOR: "10s"})
    await bench.ask("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})
    await bound(bench, "p")
    await bench.clock.advance(60)
    assert await phase(bench, "p") == "Running"


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30.0), ("1m30s", 90.0), ("250ms", 0.25), ("soon", None)])
def test_an_annotation_that_is_no_duration_lets_a_pod_run_for_ever(text: str, seconds: float | None) -> None:
    assert run_seconds({"metadata": {"annotations": {RUN_FOR: text}}}) == seconds


async def test_a_node_that_says_nothing_of_itself_is_made_ready() -> None:
    bench = Bench()
    task = asyncio.create_task(Kubelet(MemoryTransport(bench.api), bench.clock, makes_ready=True).run())
    await bench.create(NODES, {"metadata": {"name": "late"}, "status": {"capacity": {"nvidia.com/gpu": "8"}}})
    down = {"type": "Ready", "status": "False"}
    await bench.create(NODES, {**node("down"), "status": {**node("down")["status"], "conditions": [down]}})
    await bench.clock.advance(2)
    late, ill = [(await bench.ask("GET", f"{NODES}/{name}")).body["status"] for name in ("late", "down")]
    assert late["allocatable"] == {
        "cpu": "4",
        "memory": "16Gi",
        "ephemeral-storage": "100Gi",
        "pods": "110",
        "nvidia.com/gpu": "8",
    }
    assert [one["status"] for one in late["conditions"]] == ["True"]
    assert [one["status"] for one in ill["conditions"]] == ["False"]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
