"""A leader dies between a binding and its event: its successor writes it, and none twice."""

from __future__ import annotations

import asyncio

import pytest

from tests.faults.world import World, play
from tests.faulty_server import effects

EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


@pytest.mark.parametrize("dies", [True, False], ids=["killed", "its events were written"])
def test_every_pod_has_one_event_scheduled(dies: bool) -> None:
    found: list[str] = []

    async def scene(world: World) -> None:
        await world.node("n1", "4")
        leader = world.start("scheduler-a")
        await asyncio.sleep(3)
        world.start("scheduler-b")
        if dies:
            world.faults.add(effects.Delay(1000.0), verb="create", resource="events", client="scheduler-a")
        for name in ("p", "q"):
            await world.pod(name)
        await asyncio.sleep(2)
        await leader.kill()
        world.replicas.remove(leader)
        await asyncio.sleep(60)
        items = (await world.call("GET", EVENTS))["items"]
        found.extend(f"{one['reason']} {one['note']} {one.get('series', '')}" for one in items)
        assert set((await world.where()).values()) == {"n1"}

    objections, _ = play(scene, elects=True)
    assert objections == []
    assert sorted(found) == [f"Scheduled Successfully assigned default/{name} to n1 " for name in ("p", "q")]
