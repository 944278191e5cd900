"""What `history` learnt outlives the process, in a ConfigMap; what cannot be read is told, and not written over."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from policyengine.kube.demand_memory import PERIOD, DemandMemory, history_store
from policyengine.kube.http.client import Client
from policyengine.kube.scheduling import Scheduler
from policyengine.policy_compiler import compile_policy
from policyengine.simulator.sandbox import create
from tests.kube import scenes
from tests.kube.scenes import PODS, pod
from tests.kube.virtual_time import VirtualClock

CONFIG_MAP = "/api/v1/namespaces/kube-system/configmaps/learnt"
POLICY = """policy "p" {
  scheduler "p"
  score "large" weight 1 = clamp(history("", 0.01).mean.cpu / 100m, 0.0, 100.0)
}"""


def history(until: float = 0.0, **group: Any) -> str:
    known = {
        "label": "",
        "smoothing": 0.01,
        "value": "",
        "count": 3,
        "mean": {"cpu": 9.0},
        "covariance": {"cpu,cpu": 1.0},
    }
    return json.dumps({"version": 1, "groups": [known | group], "until": until, "recent": []})


class World(scenes.World):
    async def begin(self, **data: str) -> None:
        await self.nodes(1)
        body = {"metadata": {"name": "learnt", "namespace": "kube-system"}, "data": data}
        await create(self.outside, CONFIG_MAP.rpartition("/")[0], body)

    async def schedule(self, *pods: str) -> Scheduler:
        """A process that lives until the pods are placed, and ends."""
        client = Client(self.outside)
        store, stop = history_store(client, "kube-system/learnt"), asyncio.Event()
        profile = compile_policy(POLICY)
        scheduler = Scheduler(client, VirtualClock(), random.Random(1), [profile], history=store)
        running = asyncio.ensure_future(scheduler.run(stop))
        for name in pods:
            await create(self.outside, PODS, pod(name, "1", "p"))
        await asyncio.sleep(2 * PERIOD)
        assert all((await self.nodes_of()).values())
        stop.set()
        await running
        return scheduler

    async def saved(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((await self.call("GET", CONFIG_MAP))["data"]["history.json"])
        return found


async def play(work: Callable[[World], Awaitable[None]]) -> None:
    await work(World())


scene = scenes.scene_of(play)


@scene
async def test_pods_that_are_gone_still_count_after_a_restart(world: World) -> None:
    await world.begin()
    await world.schedule("first", "second")
    await world.call("DELETE", f"{PODS}/first")
    after = await world.schedule("third")
    found = after.state.view.demand.of({}, "", 0.01)
    assert (found.count, found.mean.cpu) == (3, 1000)
    assert [group["count"] for group in (await world.saved())["groups"]] == [3]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "it is no history"),
        ('{"version": 1, "groups": 7}', "it is no history"),
        ('{"version": 2, "groups": []}', "it is of version 2, and this policyengine reads version 1"),
        (history(count=-1), "Expected `int` >= 1"),
        (history(mean={"cpu": 1e308}), "Expected `float` <= "),
        (history(covariance={}), "it lacks the covariance of cpu and cpu"),
        (history(until=1e11), "it ends in the future, so that no pod would be added to it"),
    ],
)
@scene
async def test_a_history_that_cannot_be_read_is_told_and_left_as_it_is(
    world: World, caplog: pytest.LogCaptureFixture, text: str, why: str
) -> None:
    await world.begin(**{"history.json": text})
    scheduler = await world.schedule("p")
    assert scheduler.state.view.demand.of({}, "", 0.01).count == 1
    assert (await world.call("GET", CONFIG_MAP))["data"] == {"history.json": text}
    told = [record.getMessage() for record in caplog.records if "history" in record.getMessage()]
    assert len(told) == 1
    assert why in told[0] and "it begins anew, and is not saved" in told[0]


@scene
async def test_without_the_config_map_pods_are_placed_all_the_same(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await world.nodes(1)
    await world.schedule("p")
    assert "create it: kubectl -n kube-system create configmap learnt" in caplog.text


@scene
async def test_what_nobody_asks_for_is_not_written_and_a_follower_writes_nothing(world: World) -> None:
    await world.begin()
    client = Client(world.outside)
    store = history_store(client, "kube-system/learnt")
    assert store is not None
    view = (await world.schedule()).state.view
    view.demand.of({}, "", 0.01)
    follower = DemandMemory(store, view.demand, world.clock, leads=lambda: False)
    await follower.load()
    await follower.save()
    assert not (await world.call("GET", CONFIG_MAP)).get("data")
