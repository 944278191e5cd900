"""Fault 18, where bindings are verified: others bind to the same node in the same moment."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from policyengine.scheduler.binding import verification
from tests.faults.actors import controllers, kubelets, meanwhile, of_controllers
from tests.faults.defence import fault
from tests.faults.objects import PODS, Json, binding, of_set, pod
from tests.faults.test_bindings import BINDINGS
from tests.faults.world import World, play
from tests.faulty_server import effects

SISTER = 'policy "sister" { scheduler "theirs" }'
SEEDS = 20


def verifying_nothing(patch: Any) -> None:
    patch.setattr(verification, "_verify", lambda *_: None)


def taking_ones_own_for_the_earlier(patch: Any) -> None:
    original = verification.refusal_now

    def refusal_now(core: Any, pod: Any, node: str, runtime: Any, without: list[str]) -> str:
        mild = [uid for uid, one in core.view.pods.items() if verification.GIVES_WAY in one.annotations]
        return original(core, pod, node, runtime, [*without, *mild])

    patch.setattr(verification, "refusal_now", refusal_now)


def a_stranger(name: str, target: str, after: bool = False) -> effects.Meanwhile:
    """Another scheduler, which was not told either, binds a pod of its own right before ours is bound, or after."""
    made = ("POST", PODS, pod(name, scheduler="another"))
    return meanwhile(made, ("POST", f"{PODS}/{name}/binding", binding(name, target)), after=after)


@fault(
    18,
    "I10",
    defence="where bindings are verified the node's pods are read after each, and a pod that does not fit beside a "
    "stranger's is evicted before it starts (`scheduler/binding/verification.py`)",
    taken_out="what was read is not looked at",
    without=verifying_nothing,
    verifies=True,
)
async def test_18_somebody_else_binds_to_the_node_in_the_same_moment(world: World) -> None:
    await world.starts_with(n1="1")
    world.beside(kubelets(world))
    world.faults.add(a_stranger("before", "n1"), **BINDINGS)
    made: dict[str, Json] = {}
    world.beside(controllers(world, made))
    await of_controllers(world, made, of_set("p"), of_set("q"))
    await asyncio.sleep(10)
    world.faults.add(a_stranger("after", "n2", after=True), **BINDINGS)
    await world.node("n2", "1")
    await asyncio.sleep(10)
    await world.node("n3", "2")
    await world.settle(120)


@fault(
    18,
    "I10",
    defence="where both of two schedulers verify, the pod that was bound later gives way, by the order in which both "
    "see them (`scheduler/binding/verification.py`)",
    taken_out="each takes its own pod for the earlier one",
    without=taking_ones_own_for_the_earlier,
    verifies=True,
    sisters=(SISTER,),
)
async def test_18_two_that_verify_bind_to_the_node_in_the_same_moment(world: World) -> None:
    await two_at_once(world)


async def two_at_once(world: World) -> None:
    """Both are told of the node in the same moment, and decide before they are told of each other."""
    world.start("scheduler-a")
    world.start("scheduler-b", SISTER)
    await asyncio.sleep(1)
    world.beside(kubelets(world))
    made: dict[str, Json] = {}
    world.beside(controllers(world, made))
    await of_controllers(world, made, of_set("a"), of_set("b", scheduler="theirs"))
    await asyncio.sleep(5)
    await world.node("n1", "1")
    await asyncio.sleep(10)
    await world.settle(120)


def test_exactly_one_of_two_that_verify_keeps_the_node() -> None:
    async def scene(world: World) -> None:
        await two_at_once(world)
        left.update(await world.where())

    left: dict[str, str] = {}
    objections, world = play(scene, verifies=True, sisters=(SISTER,))
    assert not objections, "\n".join([*objections, world.timeline()])
    assert sorted(left.values()) == ["", "n1"]
    assert sum(name.endswith("-again") for name in left) == 1


@pytest.mark.parametrize("seed", range(SEEDS))
def test_two_that_verify_share_a_nearly_full_pool_with_a_stranger(seed: int) -> None:
    """Whatever comes when, and however long the requests take: no node stays overfull, and nobody waits who fits."""

    async def scene(world: World) -> None:
        random = Random(seed)
        for number in range(4):
            await world.node(f"n{number}", random.choice(("1", "2")))
        world.start("scheduler-a")
        world.start("scheduler-b", SISTER)
        made: dict[str, Json] = {}
        world.beside(kubelets(world))
        world.beside(controllers(world, made))
        await asyncio.sleep(1)
        for turn in range(6):
            if random.random() < 0.5:
                seconds = random.choice((0.1, 1.0))
                world.faults.add(effects.Delay(seconds, after=random.random() < 0.5), **BINDINGS)
            if random.random() < 0.4:
                stranger = a_stranger(f"s{turn}", f"n{random.randrange(4)}", after=random.random() < 0.5)
                world.faults.add(stranger, **BINDINGS)
            cpu = random.choice(("250m", "500m", "1"))
            pods = [of_set(f"p{turn}", cpu), of_set(f"q{turn}", cpu, scheduler="theirs")]
            await of_controllers(world, made, *pods)
            await asyncio.sleep(random.choice((0.0, 0.05, 1.0)))
        await asyncio.sleep(20)
        await world.settle(60)

    objections, world = play(scene, seed=seed, verifies=True, sisters=(SISTER,))
    assert not objections, "\n".join([*objections, world.timeline()])
