"""A world of a seed: users, controllers and other schedulers at work for a minute, and faults of every kind among them.

Then nothing goes wrong any more, time passes, and every invariant has to hold.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from policyengine.simulator.api_server import statuses
from tests.faults.actors import drain, kubelets, meanwhile
from tests.faults.flapping import FIRST_SEED, Flapping
from tests.faults.objects import MAPS, MERGE, NODES, PODS, binding, pod
from tests.faults.restored import Copy, copy_of, others_write, restore
from tests.faults.world import World, play
from tests.faulty_server import effects

BINDINGS = {"verb": "create", "resource": "pods", "subresource": "binding"}
CONDITIONS = {"verb": "patch", "resource": "pods", "subresource": "status"}
WATCHES = {"verb": "watch"}
LISTS = {"verb": "list"}
LEASES = {"resource": "leases", "verb": "update"}
LASTS = 60.0
SETTLES = 420.0
"""Longer than a silent watch, the longest backoff, and what waits for the periodic flush."""

PINS = [
    f'policy "pin" {{\n  scheduler "pinned"\n  filter "there" {{ require node.name == "n{number}" }}\n}}\n'
    for number in range(3)
]
BROKEN = [PINS[0][:40], PINS[0].replace("require", "requires"), "", "{}"]

LAST_WORD = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "last-word"}}

Effects = Callable[[Random], Any]
FAULTS: tuple[tuple[dict[str, Any], Effects], ...] = (
    (WATCHES, lambda random: effects.Cut()),
    (WATCHES, lambda random: effects.Expire()),
    (WATCHES, lambda random: effects.Duplicate()),
    (WATCHES, lambda random: effects.Reorder()),
    (WATCHES, lambda random: effects.Withhold()),
    (WATCHES, lambda random: effects.Coalesce()),
    (WATCHES, lambda random: effects.NoBookmarks()),
    (WATCHES, lambda random: effects.Garble(random.choice((None, b"}{\n", b"\xff\n")))),
    (WATCHES, lambda random: effects.Stall(random.choice((1.0, 30.0, 500.0)))),
    (WATCHES, lambda random: effects.Truncate()),
    (WATCHES, lambda random: effects.Fail(statuses.expired("too old"))),
    (LISTS, lambda random: effects.Stale(random.randint(1, 8))),
    (LISTS, lambda random: effects.Delay(random.choice((1.0, 10.0)))),
    (LISTS, lambda random: effects.Truncate()),
    (BINDINGS, lambda random: effects.Drop(after=random.random() < 0.5)),
    (BINDINGS, lambda random: effects.Delay(random.choice((0.5, 5.0, 40.0)), after=random.random() < 0.5)),
    (BINDINGS, lambda random: effects.Fail(statuses.ApiError(random.choice((403, 404, 409, 422)), "", "no"))),
    (BINDINGS, lambda random: effects.Fail(statuses.internal("etcd is slow"))),
    (BINDINGS, lambda random: effects.Overload(random.choice((1, 5, 20)))),
    (CONDITIONS, lambda random: effects.Delay(random.choice((2.0, 10.0)))),
    (CONDITIONS, lambda random: effects.Drop(after=random.random() < 0.5)),
    (LEASES, lambda random: effects.Fail(statuses.internal("down"))),
    (LEASES, lambda random: effects.Delay(random.choice((3.0, 20.0)), after=random.random() < 0.5)),
    (LEASES, lambda random: effects.Drop(after=random.random() < 0.5)),
    ({}, lambda random: effects.Fail(statuses.ApiError(random.choice((500, 503)), "", "no"))),
    ({}, lambda random: effects.Drop(reached=False)),
)


NEWER, NEWEST, RESTORED = 30_000, 40_000, 50_000
"""From these seeds on worlds have what was thought of later; those before stay what they were."""


class Mixed:
    """What happens in the world of a seed."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.random = Random(world.seed)
        self.made = 0
        self.names: list[str] = []
        self.is_full_of_gangs = RESTORED > world.seed >= NEWEST and world.seed % 2 == 1
        self.copies: list[Copy] = []

    async def play(self) -> None:
        world, random = self.world, self.random
        for number in range(3):
            await world.node(f"n{number}", random.choice(("1", "2", "4")))
            world.knows_policy(PINS[number], {f"n{number}"})
        if random.random() < 0.5:
            await world.config_map("pin", random.choice(PINS))
        for _ in range(4 if self.is_full_of_gangs else 0):
            await self.a_gang("500m")
        for _ in range(random.randint(1, 5)):
            await self.a_pod()
        if world.seed >= NEWEST:
            world.beside(kubelets(world))
        for name in ("scheduler-a", "scheduler-b")[: 1 + world.elects]:
            world.start(name)
        await asyncio.sleep(random.choice((0.0, 0.03, 3.0)))
        while world.clock.monotonic() < LASTS:
            await random.choice(self.steps())()
            await asyncio.sleep(random.choice((0.0, 0.002, 0.1, 1.0, 5.0, 15.0)))
        await self.calm_down()

    def steps(self) -> list[Callable[[], Awaitable[None]]]:
        often = [self.a_pod, self.a_fault, self.a_fault, self.somebody_meanwhile]
        seldom = [self.a_gang, self.less, self.a_node, self.a_policy, self.by_hand, self.history]
        newer = [self.a_late_binding] if self.world.seed >= NEWER else []
        if self.is_full_of_gangs:
            return [self.a_drain, self.a_drain, self.a_fault, self.trouble_with_bindings, self.a_crash]
        if self.world.seed >= RESTORED:
            return [*often, *seldom, self.a_crash, *newer, self.a_copy, self.a_copy, self.a_restored_copy]
        if self.world.seed >= NEWEST:
            gangs = [self.a_gang, self.a_gang, self.a_drain, self.a_drain, self.trouble_with_bindings]
            return [*gangs, *gangs, *often, *seldom, self.a_crash, *newer]
        return [*often, *often, *seldom, self.a_crash, *newer]

    # ---- users and controllers

    async def a_pod(self, cpu: str = "", **more: Any) -> None:
        self.made += 1
        name = f"p{self.made}"
        self.names.append(name)
        more.setdefault("scheduler", self.random.choice(("ours", "ours", "ours", "pinned", "foreign")))
        await self.world.pod(name, cpu or self.random.choice(("250m", "500m", "1", "2")), **more)

    async def a_gang(self, cpu: str = "") -> None:
        least, gang = self.random.randint(2, 3), f"g{self.made}"
        for _ in range(least + self.random.randint(-1, 1)):
            await self.a_pod(cpu, gang=gang, least=least, scheduler="ours")
            await asyncio.sleep(self.random.choice((0.0, 0.0, 2.0)))

    async def a_drain(self) -> None:
        """Now and then what was drained before is free again first."""
        if self.random.random() < 0.7:
            for number in range(3):
                await self.world.patch_node(f"n{number}", {"spec": {"unschedulable": None}})
        self.names += await drain(self.world, f"n{self.random.randrange(3)}")

    async def less(self) -> None:
        if self.names:
            name = self.random.choice(self.names)
            await self.world.delete(name, self.random.choice((0, 0, None)))
            if self.random.random() < 0.4:
                await self.world.pod(name, self.random.choice(("250m", "1")))

    async def a_node(self) -> None:
        world, name = self.world, f"n{self.random.randrange(3)}"
        match self.random.randrange(5):
            case 0:
                await world.call("DELETE", f"{NODES}/{name}")
                await asyncio.sleep(self.random.choice((0.0, 0.5, 20.0)))
                await world.node(name, self.random.choice(("1", "2", "4")))
            case 1:
                await world.patch_node(name, {"spec": {"unschedulable": True}})
            case 2:
                await world.patch_node(name, {"spec": {"unschedulable": None}})
            case 3:
                await world.shrink(name, self.random.choice(("500m", "1", "3")))
            case _:
                taints = [{"key": "away", "effect": "NoSchedule"}] if self.random.random() < 0.5 else None
                await world.patch_node(name, {"spec": {"taints": taints}})

    async def a_policy(self) -> None:
        text = self.random.choice((*PINS, *PINS, *BROKEN))
        await self.world.call("PATCH", f"{MAPS}/pin", {"data": {"a.policy": text}}, MERGE)

    async def by_hand(self) -> None:
        if self.names:
            await self.world.bind(self.random.choice(self.names), f"n{self.random.randrange(3)}")

    # ---- faults

    async def a_fault(self) -> None:
        where, effect = self.random.choice(FAULTS)
        client = self.random.choice(("scheduler", "scheduler", "scheduler-a", "scheduler-b"))
        times = self.random.choice((1, 1, 2, 5, None))
        seconds = self.random.choice((1.0, 10.0)) if times is None else 30.0
        more: dict[str, Any] = {}
        if where in (WATCHES, LISTS):
            more["resource"] = self.random.choice(("pods", "pods", "nodes", "configmaps"))
        if where is WATCHES and self.random.random() < 0.3:
            more["event"] = self.random.choice(("ADDED", "MODIFIED", "DELETED"))
        self.world.faults.add(
            effect(self.random), **where, **more, client=client, times=times, seconds=seconds,
            skip=self.random.choice((0, 0, 1, 2)),
        )  # fmt: skip

    async def trouble_with_bindings(self) -> None:
        """Outcomes of several are unknown, then some are refused."""
        refused = effects.Fail(statuses.ApiError(422, "Invalid", "no"))
        many = self.random.choice((1, 2, 3))
        self.world.faults.add(effects.Drop(), **BINDINGS, client="scheduler", times=many, seconds=30.0)
        self.world.faults.add(refused, **BINDINGS, client="scheduler", times=2, skip=many, seconds=30.0)
        if self.random.random() < 0.5:
            reads = {"verb": "get", "resource": "pods", "client": "scheduler"}
            self.world.faults.add(effects.Delay(5.0), **reads, times=self.random.choice((1, 2)), seconds=30.0)

    async def a_late_binding(self) -> None:
        """A binding whose sender hears that the connection was lost, and that is carried out all the same."""
        self.random.choice(self.world.replicas).wire.late.append(self.random.choice((0.5, 5.0, 30.0, 58.0)))

    async def somebody_meanwhile(self) -> None:
        """Right before or after a binding or a condition is written."""
        if not self.names:
            return
        name, node = self.random.choice(self.names), f"n{self.random.randrange(3)}"
        gone = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        cordon = ("PATCH", f"{NODES}/{node}", {"spec": {"unschedulable": True}})
        delete, create = ("DELETE", f"{PODS}/{name}", gone), ("POST", PODS, pod(name, "1"))
        what = self.random.choice(
            (
                (cordon,),
                (delete,),
                (delete, create),
                (("POST", f"{PODS}/{name}/binding", binding(name, node)),),
                (("PATCH", f"{NODES}/{node}/status", {"status": {"allocatable": {"cpu": "1"}}}),),
                (("PATCH", f"{MAPS}/pin", {"data": {"a.policy": self.random.choice(PINS)}}),),
            )
        )
        where = self.random.choice((BINDINGS, CONDITIONS))
        self.world.faults.add(meanwhile(*what, after=self.random.random() < 0.3), **where, client="scheduler")

    async def history(self) -> None:
        self.world.api.restart(self.random.choice((0.0, 2.0, 20.0)), forget=self.random.random() < 0.5)

    async def a_copy(self) -> None:
        self.copies.append(copy_of(self.world))

    async def a_restored_copy(self) -> None:
        """Pods, leases and policies are what they were, and the server is back at once or after a while. Where it was
        seen to be away it may have come further than what was seen; where there is a lease, watches may stay open."""
        if not self.copies:
            return
        copy, seconds = self.random.choice(self.copies[-3:]), self.random.choice((0.0, 0.5, 3.0, 20.0))
        restore(self.world, copy, seconds, ends_watches=not self.world.elects or self.random.random() < 0.8)
        self.copies = [one for one in self.copies if one.revision <= copy.revision]
        if seconds >= 3 and self.random.random() < 0.3:
            await others_write(self.world, 40)

    async def a_crash(self) -> None:
        """A process ends, is stopped for a while, or is cut off; a new one takes its place."""
        world, random = self.world, self.random
        replica = random.choice(world.replicas)
        match random.randrange(4):
            case 0 if world.elects:
                replica.wire.stopped_before.append(("/binding", random.choice((3.0, 30.0))))
            case 1:
                replica.wire.is_cut = True
                await asyncio.sleep(random.choice((1.0, 12.0)))
                replica.wire.is_cut = False
            case 2:
                replica.clock.wall_offset += random.choice((-3600.0, 30.0, 86_400.0))
            case _:
                await self.replace(replica)

    async def replace(self, replica: Any) -> None:
        await replica.kill()
        self.world.replicas.remove(replica)
        await asyncio.sleep(self.random.choice((0.0, 1.0)))
        name = replica.name.partition(".")[0]
        self.made += 1
        self.world.start(f"{name}.{self.made}")

    # ---- the end

    async def calm_down(self) -> None:
        """Faults are over, those that ended are started again, and what no watch told a list tells."""
        world = self.world
        world.faults.clear()
        for replica in list(world.replicas):
            replica.wire.stopped_before.clear()
            replica.wire.late.clear()
            if replica.task.done() and not replica.why_ended():
                await self.replace(replica)
        await self.a_good_policy()
        await asyncio.sleep(1)
        await world.call(
            "POST", MAPS, LAST_WORD
        )  # newer than anything a watch has seen: all of them have to list again
        world.api.restart()
        await world.settle(SETTLES)

    async def a_good_policy(self) -> None:
        maps = await self.world.call("GET", f"{MAPS}/pin")
        if "data" in maps:
            text = self.random.choice(PINS)
            await self.world.call("PATCH", f"{MAPS}/pin", {"data": {"a.policy": text}}, MERGE)
            self.world.serves["pinned"] = self.world.policies[self.world.hash_of(text)]


def play_seed(seed: int) -> tuple[list[str], World]:
    """The world of a seed, to its end: what the auditor objects to, and the world for its timeline."""

    flaps = seed >= FIRST_SEED

    async def scene(world: World) -> None:
        await (Flapping if flaps else Mixed)(world).play()

    return play(scene, seed=seed, elects=flaps or seed % 3 == 1, validates=not flaps)
