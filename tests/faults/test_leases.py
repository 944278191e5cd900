"""Faults 20 and 31: a Lease that says what its holder does not: a stranger touched it, or the server went back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from policyengine.kube.leader import LeaderElector
from tests.faults.defence import fault
from tests.faults.objects import MERGE
from tests.faults.restored import copy_of, restore
from tests.faults.test_processes import two
from tests.faults.world import World
from tests.faulty_server import effects

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/policyengine"


def taking_what_is_free(patch: pytest.MonkeyPatch) -> None:
    original = LeaderElector._is_anothers

    def is_anothers(self: Any) -> bool:
        self._not_before = 0.0
        return original(self)

    patch.setattr(LeaderElector, "_is_anothers", is_anothers)


@fault(
    31,
    "I5",
    defence="a Lease that went back counts as held for as long as one lasts, be it free in the copy (`kube/leader.py`)",
    taken_out="a standby takes it while the leader still acts",
    without=taking_what_is_free,
    elects=True,
)
async def test_31_the_lease_is_free_in_the_copy(world: World) -> None:
    await world.node("n1", "9")
    first = world.start("scheduler-a")
    await asyncio.sleep(3)
    first.stop.set()
    await asyncio.sleep(1)
    copy = copy_of(world)
    world.start("scheduler-b")
    await asyncio.sleep(3)
    world.start("scheduler-c")
    world.replicas.remove(first)
    await asyncio.sleep(3)
    leases = {"resource": "leases", "client": "scheduler-b"}
    world.faults.add(effects.Delay(4.0), **leases, times=2)
    restore(world, copy)
    for number in range(8):
        await world.pod(f"p{number}")
        await asyncio.sleep(1)
    await world.settle(60)


async def touched(world: World, method: str, body: Any = None) -> None:
    """Somebody writes the lease while its holder, which hears of it late, acts."""
    await world.node("n1", "9")
    await two(world)
    world.faults.add(effects.Delay(4.0), resource="leases", client="scheduler-a", times=1)
    await asyncio.sleep(2)
    await world.call(method, LEASE, body, MERGE)
    for number in range(8):
        await world.pod(f"p{number}")
        await asyncio.sleep(1)
    await world.settle(60)


NOT_GIVEN_BACK: dict[str, Any] = {
    "defence": "a Lease that is free, and was not given back, counts as held for as long as one lasts; "
    "who leads writes it anew (`kube/leader.py`)",
    "taken_out": "a standby takes it while the leader still acts",
    "without": taking_what_is_free,
    "elects": True,
}


@fault(20, "I5", **NOT_GIVEN_BACK)
async def test_20_a_lease_that_somebody_empties(world: World) -> None:
    await touched(world, "PATCH", {"spec": {"holderIdentity": ""}})


@fault(20, "I5", **NOT_GIVEN_BACK)
async def test_20_a_lease_that_somebody_deletes(world: World) -> None:
    await touched(world, "DELETE")


def believing_the_name(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LeaderElector, "_is_ours", lambda self: self.holder == self.identity)


@fault(
    20,
    "I5",
    defence="a Lease that names a replica which has not asked for that term is another's (`kube/leader.py`)",
    taken_out="whoever it names leads",
    without=believing_the_name,
    elects=True,
)
async def test_20_a_lease_that_somebody_writes_a_standby_s_name_into(world: World) -> None:
    await touched(world, "PATCH", {"spec": {"holderIdentity": "scheduler-b"}})
