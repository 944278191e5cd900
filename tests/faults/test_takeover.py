"""What a standby has to know before it decides: what its predecessor decided last."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from policyengine.kube.leader import LeaseSettings
from policyengine.kube.watching.reflector import Reflector
from tests.faults.world import World, play
from tests.faulty_server import effects


async def a_leader_dies_while_the_standby_s_watch_is_silent(world: World) -> None:
    """The standby knows both pods as pending; of the one that was bound it has not been told."""
    await world.node("n1", "500m")
    leader = world.start("scheduler-a")
    await asyncio.sleep(3)
    world.start("scheduler-b")
    await world.pod("large")
    await asyncio.sleep(3)
    silent = {"verb": "watch", "resource": "pods", "client": "scheduler-b", "event": "MODIFIED"}
    world.faults.add(effects.Stall(500.0), **silent)
    await world.pod("small", "500m")
    await asyncio.sleep(3)
    await leader.kill()
    world.replicas.remove(leader)
    await world.shrink("n1", "1")
    await asyncio.sleep(60)
    await world.settle()


def test_a_new_leader_knows_what_its_predecessor_bound() -> None:
    objections, world = play(a_leader_dies_while_the_standby_s_watch_is_silent, elects=True)
    assert not objections, "\n".join([*objections, world.timeline()])


def test_without_catching_up_the_node_is_filled_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(self: Reflector[Any]) -> None: ...

    monkeypatch.setattr(Reflector, "catch_up", at_once)
    objections, _ = play(a_leader_dies_while_the_standby_s_watch_is_silent, elects=True)
    assert any(one.startswith("I2") for one in objections)


@pytest.mark.parametrize("seed", range(8))
def test_a_leader_that_dies_is_followed_within_the_lease_and_two_seconds(seed: int) -> None:
    took: list[float] = []

    async def dies(world: World) -> None:
        await world.node("n1", "1")
        leader = world.start("scheduler-a")
        await asyncio.sleep(3)
        world.start("scheduler-b")
        await asyncio.sleep(4 + Random(seed).random() * 4)
        await leader.kill()
        world.replicas.remove(leader)
        died = world.clock.monotonic()
        await world.pod("p")
        await asyncio.sleep(30)
        bound = next(at for at, what, write in world.tape if what == "write" and write.subresource == "binding")
        took.append(bound - died)

    objections, _ = play(dies, seed=seed, elects=True)
    assert not objections
    assert took[0] < LeaseSettings().lease_duration + 2
