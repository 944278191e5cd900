"""The core and its runner against the embedded API server, in memory and on virtual time."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from policyengine.kube.http.client import Client
from policyengine.kube.scheduling import Scheduler
from policyengine.plugins.registry import default_profile
from policyengine.policy_compiler import compile_policy
from policyengine.simulator.api_server import statuses
from policyengine.simulator.api_server.memory import MemoryTransport
from policyengine.simulator.sandbox import create
from tests.faulty_server import effects as fault
from tests.kube import scenes
from tests.kube.scenes import MERGE, PODS, pod
from tests.scheduler.invariants import validate


class World(scenes.World):
    """An API server and a scheduler."""

    scheduler: Scheduler
    profile = default_profile()

    async def make(self, nodes: int, *pods: dict[str, Any]) -> None:
        await self.nodes(nodes)
        for item in pods:
            await create(self.outside, PODS, item)

    def start(self) -> "asyncio.Task[None]":
        self.scheduler = Scheduler(
            Client(MemoryTransport(self.api, user_agent="scheduler")),
            self.clock,
            random.Random(3),
            [self.profile],
            host="test",
        )
        return asyncio.ensure_future(self.scheduler.run(self.stop))

    def writes(self, subresource: str) -> list[str]:
        return [one.name for one in self.api.writes if one.subresource == subresource]


async def play(work: Callable[[World], Awaitable[None]]) -> None:
    world = World()
    await work(world)
    if hasattr(world, "scheduler"):
        validate(world.scheduler.state)


scene = scenes.scene_of(play)


async def schedule(world: World, seconds: float) -> None:
    """Let the scheduler run for a while, then stop it; it must end."""
    task = world.start()
    await asyncio.sleep(seconds)
    world.stop.set()
    await asyncio.wait_for(task, 60)


@scene
async def test_a_pod_that_ends_wakes_within_a_second_the_pod_whose_rule_reads_it(world: World) -> None:
    world.profile = compile_policy(
        'policy "t" { scheduler "default-scheduler" filter "f" { require node.finished.exists(f, f.failed) } }'
    )
    await world.make(2, pod("ends", nodeName="node-2"), pod("waits"))
    task = world.start()
    await asyncio.sleep(20.3)
    assert await world.nodes_of() == {"ends": "node-2", "waits": ""}
    status = {"status": {"phase": "Failed"}}
    await world.call("PATCH", f"{PODS}/ends/status", status, MERGE)
    await asyncio.sleep(1)
    assert await world.nodes_of() == {"ends": "node-2", "waits": "node-2"}
    world.stop.set()
    await asyncio.wait_for(task, 60)


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
@scene
async def test_whatever_becomes_of_the_binding_requests_every_pod_is_bound_exactly_once(
    world: World, effect: fault.Effect
) -> None:
    await world.make(2, *(pod(f"p{number}") for number in range(10)))
    world.api.faults.add(effect, subresource="binding", times=6)
    await schedule(world, 400)
    assert all((await world.nodes_of()).values())
    assert sorted(world.writes("binding")) == sorted(f"p{number}" for number in range(10))


@scene
async def test_a_stop_waits_for_the_bindings_under_way_and_writes_their_events(world: World) -> None:
    await world.make(1, pod("p"))
    world.api.faults.add(fault.Delay(4.0), subresource="binding")
    task = world.start()
    await asyncio.sleep(2)
    world.stop.set()
    await asyncio.wait_for(task, 20)
    assert (await world.nodes_of()) == {"p": "node-1"}
    events = (await world.call("GET", "/apis/events.k8s.io/v1/namespaces/default/events"))["items"]
    assert [event["reason"] for event in events] == ["Scheduled"]


@scene
async def test_a_server_that_never_answers_does_not_keep_a_stop_waiting(world: World) -> None:
    await world.make(1, pod("p"))
    world.api.faults.add(fault.Delay(10_000.0), subresource="binding", times=None)
    task = world.start()
    await asyncio.sleep(2)
    world.stop.set()
    await asyncio.wait_for(task, 30)
