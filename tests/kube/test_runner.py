"""The core and its runner against the embedded API server, in memory and on virtual time."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from policyengine.kube.http.client import Client
from policyengine.kube.policies.compiling import compiled
from policyengine.kube.policies.precedence import Compiled
from policyengine.kube.scheduling import Scheduler
from policyengine.plugins.registry import default_profile
from policyengine.simulator.api_server import statuses
from policyengine.simulator.api_server.faults import effects as fault
from policyengine.simulator.api_server.handler import ApiServer
from policyengine.simulator.api_server.memory import MemoryTransport
from policyengine.simulator.sandbox import create, node
from tests.kube.virtual_time import VirtualClock, run

PODS = "/api/v1/namespaces/default/pods"
POLICIES = "/api/v1/namespaces/kube-system/configmaps"
PIN = 'policy "pin" {{\n  scheduler "pinned"\n  filter "pinned" {{ require node.name == "{node}" }}\n}}\n'


def pod(name: str, cpu: str = "100m", scheduler: str = "default-scheduler") -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {"kind": "Pod", "metadata": {"name": name}, "spec": {"schedulerName": scheduler, "containers": [container]}}


class World:
    """An API server and a scheduler on one virtual time."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.api = ApiServer(self.clock)
        self.outside = MemoryTransport(self.api, user_agent="test")
        self.stop = asyncio.Event()
        self.scheduler: Scheduler

    async def make(self, nodes: int, *pods: dict[str, Any]) -> None:
        for number in range(1, nodes + 1):
            await create(self.outside, "/api/v1/nodes", node(f"node-{number}", "a"))
        for item in pods:
            await create(self.outside, PODS, item)

    async def call(self, method: str, path: str, body: Any = None, content: str = "application/json") -> Any:
        raw = None if body is None else json.dumps(body).encode()
        response = await self.outside.request(method, path, body=raw, headers={"Content-Type": content})
        return json.loads(await response.read())

    async def nodes_of(self) -> dict[str, str]:
        items = (await self.call("GET", PODS))["items"]
        return {item["metadata"]["name"]: item["spec"].get("nodeName", "") for item in items}

    def start(self) -> "asyncio.Task[None]":
        async def compile_now(data: Mapping[str, str]) -> Compiled:
            return compiled(data)

        self.scheduler = Scheduler(
            Client(MemoryTransport(self.api, user_agent="scheduler")),
            self.clock,
            random.Random(3),
            [default_profile()],
            compile_files=compile_now,
            host="test",
        )
        return asyncio.ensure_future(self.scheduler.run(self.stop))

    def writes(self, subresource: str) -> list[str]:
        return [one.name for one in self.api.log.writes if one.subresource == subresource]


def scenario(work: Callable[[World], Awaitable[None]]) -> None:
    async def whole() -> None:
        world = World()
        await work(world)
        if hasattr(world, "scheduler"):
            world.scheduler.state.validate()

    run(whole())


async def schedule(world: World, seconds: float) -> None:
    """Let the scheduler run for a while, then stop it; it must end."""
    task = world.start()
    await asyncio.sleep(seconds)
    world.stop.set()
    await asyncio.wait_for(task, 60)


def test_every_pod_is_bound_once_and_said_to_be() -> None:
    async def work(world: World) -> None:
        await world.make(3, *(pod(f"p{number}") for number in range(60)))
        await schedule(world, 5)
        assert all((await world.nodes_of()).values())
        assert max(Counter(world.writes("binding")).values()) == 1
        events = (await world.call("GET", "/apis/events.k8s.io/v1/namespaces/default/events"))["items"]
        assert Counter(event["reason"] for event in events) == {"Scheduled": 60}

    scenario(work)


def test_a_pod_that_does_not_fit_is_told_and_placed_when_a_node_comes() -> None:
    async def work(world: World) -> None:
        await world.make(1, pod("big", cpu="3"), pod("other", cpu="3"))
        task = world.start()
        await asyncio.sleep(5)
        waiting = [item for item in (await world.call("GET", PODS))["items"] if not item["spec"].get("nodeName")]
        assert waiting[0]["status"]["conditions"][0]["message"].startswith(
            "0/1 nodes are available: 1 Insufficient cpu"
        )
        await create(world.outside, "/api/v1/nodes", node("node-2", "a"))
        await asyncio.sleep(20)
        assert sorted((await world.nodes_of()).values()) == ["node-1", "node-2"]
        world.stop.set()
        await task

    scenario(work)


@pytest.mark.parametrize(
    "effect",
    [
        fault.Drop(),
        fault.Drop(after=True),
        fault.Fail(statuses.too_many_requests("busy", 2)),
        fault.Fail(statuses.internal("etcd is slow")),
        fault.Delay(100.0),
        fault.Delay(100.0, after=True),
    ],
    ids=["dropped before", "dropped after", "429", "500", "late", "late after"],
)
def test_whatever_becomes_of_the_binding_requests_every_pod_is_bound_exactly_once(effect: fault.Effect) -> None:
    async def work(world: World) -> None:
        await world.make(2, *(pod(f"p{number}") for number in range(10)))
        world.api.faults.add(effect, subresource="binding", times=6)
        await schedule(world, 400)
        assert all((await world.nodes_of()).values())
        assert sorted(world.writes("binding")) == sorted(f"p{number}" for number in range(10))

    scenario(work)


@pytest.mark.parametrize(
    "effect",
    [fault.Garble(), fault.Garble(b"\xff\xfe\n"), fault.Duplicate(), fault.Reorder(), fault.Expire(), fault.Cut(),
     fault.Stall(1000.0)],
    ids=["truncated", "garbage", "duplicate", "reorder", "410", "cut", "stall"],
)  # fmt: skip
def test_whatever_becomes_of_the_watches_every_pod_is_bound(effect: fault.LineEffect) -> None:
    async def work(world: World) -> None:
        await world.make(2)
        task = world.start()
        await asyncio.sleep(2)
        world.api.faults.add(effect, verb="watch", client="scheduler", times=8)
        for number in range(10):
            await create(world.outside, PODS, pod(f"p{number}"))
            await asyncio.sleep(1)
        # Eight silences of 150 s each are the longest of it.
        await asyncio.sleep(1500)
        assert all((await world.nodes_of()).values())
        assert max(Counter(world.writes("binding")).values()) == 1
        world.stop.set()
        await task

    scenario(work)


def test_a_second_scheduler_that_was_faster_is_believed() -> None:
    async def work(world: World) -> None:
        await world.make(2, pod("p"))
        world.api.faults.add(fault.Delay(5.0), subresource="binding", client="scheduler")
        task = world.start()
        await asyncio.sleep(1)
        for name in ("node-1", "node-2"):
            target = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": name}}
            await world.call("POST", f"{PODS}/p/binding", target)
        await asyncio.sleep(60)
        assert (await world.nodes_of()) == {"p": "node-1"}
        assert world.scheduler.state.place(next(iter(world.scheduler.state.view.pods))) == "bound"
        world.stop.set()
        await task

    scenario(work)


def test_a_stop_waits_for_the_bindings_under_way_and_writes_their_events() -> None:
    async def work(world: World) -> None:
        await world.make(1, pod("p"))
        world.api.faults.add(fault.Delay(4.0), subresource="binding")
        task = world.start()
        await asyncio.sleep(2)
        world.stop.set()
        await asyncio.wait_for(task, 20)
        assert (await world.nodes_of()) == {"p": "node-1"}
        events = (await world.call("GET", "/apis/events.k8s.io/v1/namespaces/default/events"))["items"]
        assert [event["reason"] for event in events] == ["Scheduled"]

    scenario(work)


def test_a_server_that_never_answers_does_not_keep_a_stop_waiting() -> None:
    async def work(world: World) -> None:
        await world.make(1, pod("p"))
        world.api.faults.add(fault.Delay(10_000.0), subresource="binding", times=None)
        task = world.start()
        await asyncio.sleep(2)
        world.stop.set()
        await asyncio.wait_for(task, 30)

    scenario(work)


def policy_map(text: str) -> dict[str, Any]:
    labels = {"policyengine.io/policy": "true"}
    return {"kind": "ConfigMap", "metadata": {"name": "pin", "labels": labels}, "data": {"pin.policy": text}}


async def status(world: World) -> Any:
    annotations = (await world.call("GET", f"{POLICIES}/pin"))["metadata"]["annotations"]
    return json.loads(annotations["policyengine.io/status"])


def test_policies_are_swapped_under_a_running_scheduler() -> None:
    async def work(world: World) -> None:
        await world.make(2)
        await create(world.outside, POLICIES, policy_map(PIN.format(node="node-1")))
        task = world.start()
        await create(world.outside, PODS, pod("a", scheduler="pinned"))
        await asyncio.sleep(3)
        first = await status(world)
        assert (first["state"], first["line"], first["message"]) == ("accepted", 0, "")

        merge = "application/merge-patch+json"
        broken = PIN.format(node="node-2").replace("require", "requires")
        await world.call("PATCH", f"{POLICIES}/pin", {"data": {"pin.policy": broken}}, merge)
        await create(world.outside, PODS, pod("b", scheduler="pinned"))
        await asyncio.sleep(3)
        second = await status(world)
        assert (second["state"], second["line"], second["hash"]) == ("rejected", 3, first["hash"])

        await world.call("PATCH", f"{POLICIES}/pin", {"data": {"pin.policy": PIN.format(node="node-2")}}, merge)
        await asyncio.sleep(3)
        await create(world.outside, PODS, pod("c", scheduler="pinned"))
        await asyncio.sleep(3)
        assert (await world.nodes_of()) == {"a": "node-1", "b": "node-1", "c": "node-2"}
        assert (await status(world))["state"] == "accepted"

        await world.call("DELETE", f"{POLICIES}/pin")
        await asyncio.sleep(3)
        await create(world.outside, PODS, pod("d", scheduler="pinned"))
        await asyncio.sleep(3)
        assert (await world.nodes_of())["d"] == ""
        world.stop.set()
        await task

    scenario(work)


def test_the_keys_of_a_config_map_are_one_policy_with_its_library_its_params_and_its_overlay() -> None:
    async def work(world: World) -> None:
        await world.make(2)
        shared = policy_map(f'import "where"\n{PIN.format(node="x").replace(chr(34) + "x" + chr(34), "where.host")}')
        shared["data"]["where.policy"] = 'library "where" {\n  param host: string = "node-1"\n}\n'
        await create(world.outside, POLICIES, shared)
        task = world.start()
        await asyncio.sleep(3)
        first = await status(world)
        assert first["state"] == "accepted", first

        merge = "application/merge-patch+json"
        await world.call("PATCH", f"{POLICIES}/pin", {"data": {"params.yaml": "# the other\nwhere.host: 2\n"}}, merge)
        await asyncio.sleep(3)
        second = await status(world)
        assert (second["state"], second["line"], second["hash"]) == ("rejected", 2, first["hash"])
        assert second["message"].startswith("`params.yaml`: parameter `where.host`")

        await world.call("PATCH", f"{POLICIES}/pin", {"data": {"params.yaml": "where.host: node-2\n"}}, merge)
        await create(world.outside, PODS, pod("a", scheduler="pinned"))
        await asyncio.sleep(3)
        third = await status(world)
        assert third["state"] == "accepted" and third["hash"] != first["hash"]
        assert (await world.nodes_of()) == {"a": "node-2"}
        world.stop.set()
        await task

    scenario(work)


def test_a_status_is_written_once_and_not_again() -> None:
    async def work(world: World) -> None:
        await create(world.outside, POLICIES, policy_map("nonsense"))
        await schedule(world, 400)
        writes = [one.verb for one in world.api.log.writes if one.kind == "ConfigMap" and one.name == "pin"]
        assert writes == ["create", "patch"]
        assert (await status(world))["state"] == "rejected"

    scenario(work)
