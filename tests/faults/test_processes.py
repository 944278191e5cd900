"""Faults 19 to 22: crashes, leases, clocks, pauses."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

from policyengine.kube.leader import LeaderElector
from policyengine.kube.leaders_transport import LeadersTransport
from policyengine.kube.runner import Runner
from policyengine.scheduler.messages import CacheSynced
from policyengine.simulator.api_server import statuses
from tests.faults.defence import fault
from tests.faults.test_bindings import BINDINGS
from tests.faults.test_clusters import STATUS
from tests.faults.world import World
from tests.faulty_server import effects


def beginning_at_once(patch: Any) -> None:
    async def announce(self: Any, ready: Any) -> None:
        await self.informers.nodes.synced.wait()
        self.messages.put(CacheSynced())

    patch.setattr(Runner, "_announce", announce)


@fault(
    19,
    "I2",
    defence="nothing is decided before every list is in, whole: what a predecessor did is known from the API "
    "(`kube/runner.py`)",
    taken_out="cycles begin with what is there",
    without=beginning_at_once,
)
async def test_19_a_crash_before_and_during_and_after_a_binding(world: World) -> None:
    await world.node("n1", "1")
    world.page = 1
    for number, effect in enumerate((effects.Delay(5.0), effects.Delay(5.0, after=True), None)):
        if effect is not None:
            world.faults.add(effect, **BINDINGS)
        await world.pod("z")
        replica = world.start(f"scheduler-{number}")
        await asyncio.sleep(2)
        await replica.kill()
        world.replicas.remove(replica)
        await world.pod("a")
        world.faults.add(effects.Delay(5.0), verb="list", resource="pods", client="scheduler", skip=1)
        successor = world.start(f"scheduler-after-{number}")
        await asyncio.sleep(20)
        await successor.kill()
        world.replicas.remove(successor)
        await world.delete("a")
        await world.delete("z")
    await world.pod("last")
    world.start()
    await world.settle()


def acting_without_end(patch: Any) -> None:
    patch.setattr(LeaderElector, "holds", lambda self: self._leads)
    patch.setattr(LeaderElector, "_lose", lambda self, why: None)


async def two(world: World) -> None:
    world.start("scheduler-a")
    await asyncio.sleep(3)
    world.start("scheduler-b")
    await asyncio.sleep(3)


@fault(
    20,
    "I5",
    defence="the lease counts until its renew deadline, is asked before every request that changes something, and lost "
    "it ends the process (`kube/leader.py`)",
    taken_out="who once led goes on",
    without=acting_without_end,
    elects=True,
)
async def test_20_the_lease_is_lost_while_a_binding_waits(world: World) -> None:
    await two(world)
    world.faults.add(effects.Delay(30.0), **{**STATUS, "client": "scheduler-a"})
    await world.pod("p")
    await asyncio.sleep(2)
    down = statuses.internal("down")
    world.faults.add(effects.Fail(down), resource="leases", client="scheduler-a", times=None, verb="update")
    await world.node("n1", "1")
    await asyncio.sleep(60)
    await world.settle()


def believing_clocks(patch: Any) -> None:
    def expires_at(self: Any) -> float:
        spec = self._lease.get("spec") or {}
        renewed = datetime.fromisoformat(spec["renewTime"]).timestamp() if spec.get("renewTime") else 0.0
        return float(self._clock.monotonic() + renewed + self.settings.lease_duration - self._clock.now())

    patch.setattr(LeaderElector, "_expires_at", expires_at)


@fault(
    21,
    "I5",
    defence="a lease lasts as long as it is seen to change, on the monotonic clock (`kube/leader.py`)",
    taken_out="the lease's renewTime is held against the own wall clock",
    without=believing_clocks,
    elects=True,
)
async def test_21_clocks_that_are_wrong_and_that_are_set(world: World) -> None:
    first = world.start("scheduler-a")
    await asyncio.sleep(3)
    second = world.start("scheduler-b")
    second.clock.wall_offset += 3_600
    await world.node("n1", "9")
    for number in range(8):
        await world.pod(f"p{number}")
        await asyncio.sleep(1)
    first.clock.wall_offset -= 86_400
    world.api.clock.offset = 600
    await asyncio.sleep(60)
    await world.settle()


def asking_at_the_decision_only(patch: Any) -> None:
    patch.setattr(LeadersTransport, "_check", lambda self: None)


@fault(
    22,
    "I5",
    defence="the lease is asked for once more when nothing but the sending is left (`kube/leaders_transport.py`)",
    taken_out="it is asked for at the decision only",
    without=asking_at_the_decision_only,
    elects=True,
)
async def test_22_a_process_that_stands_still_longer_than_the_lease(world: World) -> None:
    await two(world)
    await world.node("n1", "2")
    leader = next(replica for replica in world.replicas if replica.leads)
    leader.wire.stopped_before.append(("/binding", 60.0))
    await world.pod("p")
    await asyncio.sleep(60)
    await world.pod("q")
    await world.settle()
