"""ConfigMaps whose proof takes long, is lost or comes too late: who serves meanwhile, and after a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import pytest

from policyengine.kube.policies.config_map import STATUS
from policyengine.kube.policies.precedence import UNPROVED, Compiled, Problem
from policyengine.kube.policies.reload import SETTLING
from tests.faults import world as worlds
from tests.faults.objects import MAPS
from tests.faults.world import World
from tests.kube.policies.reload_scenes import PIN, change, config_map, played, serves, status, two_nodes

SLOW = PIN.format(node="n1") + "// its tests take 30 s\n"
UNTESTED, TESTED = (SLOW, False), (SLOW, True)


class Proofs:
    """Stands in for those that another process makes. The first `lost` of a slow text end without an answer."""

    def __init__(self) -> None:
        self.lost = 0
        self.begun: list[tuple[str, bool]] = []

    async def __call__(self, key: str, data: Mapping[str, str], is_tested: bool) -> Compiled:
        (text,) = data.values()
        self.begun.append((text, is_tested))
        if text.startswith(SLOW):
            if self.lost:
                self.lost -= 1
                return Compiled(problem=Problem("it is tried again", reason=UNPROVED))
            await asyncio.sleep(30 if is_tested else 0.1)
        return worlds.compile_once(tuple(data.items()))


Scene = Callable[[World, Proofs], Awaitable[None]]


def on_virtual_time(scene: Scene) -> Callable[[pytest.MonkeyPatch], None]:
    """The scene as a test, on two nodes and with a scheduler whose proofs are made up."""

    def test(monkeypatch: pytest.MonkeyPatch) -> None:
        proofs = Proofs()
        monkeypatch.setattr(worlds, "compile_now", proofs)

        async def whole(world: World) -> None:
            await two_nodes(world)
            await scene(world, proofs)

        played(whole)

    test.__name__, test.__doc__ = scene.__name__, scene.__doc__
    return test


async def bound(world: World, name: str, seconds: float) -> str:
    """A new pod of the scheduler that policies fight for: where it is after so long."""
    await world.pod(name, scheduler="pinned")
    await asyncio.sleep(seconds)
    return (await world.where())[name]


@on_virtual_time
async def test_one_that_takes_long_holds_up_no_other(world: World, proofs: Proofs) -> None:
    await config_map(world, "a-slow", SLOW.replace("pinned", "slow"), seconds=0)
    await config_map(world, "b-quick", PIN.format(node="n2"), seconds=1)
    assert (await status(world, "b-quick"))["state"] == "accepted"
    serves(world, PIN.format(node="n2"))
    assert await bound(world, "p", 2) == "n2"
    await asyncio.sleep(40)
    assert (await status(world, "a-slow"))["state"] == "accepted"


@on_virtual_time
async def test_one_that_changes_while_it_is_proved_is_proved_again(world: World, proofs: Proofs) -> None:
    await config_map(world, "pin", SLOW)
    await change(world, "pin", SLOW + "// again", seconds=20)
    assert proofs.begun == [TESTED], "not two at once of one ConfigMap"
    await asyncio.sleep(15)
    assert (await status(world, "pin"))["hash"] == world.hash_of(SLOW)
    await asyncio.sleep(30)
    assert (await status(world, "pin"))["hash"] == world.hash_of(SLOW + "// again")
    serves(world, SLOW + "// again")


@on_virtual_time
async def test_one_that_is_deleted_while_it_is_proved_never_serves(world: World, proofs: Proofs) -> None:
    await config_map(world, "pin", SLOW)
    await world.call("DELETE", f"{MAPS}/pin")
    await asyncio.sleep(40)
    assert await bound(world, "p", 5) == ""
    await config_map(world, "pin", SLOW)
    await world.call("DELETE", f"{MAPS}/pin")
    await config_map(world, "pin", PIN.format(node="n2"), seconds=40)
    serves(world, PIN.format(node="n2"))
    await world.settle(60)
    assert (await world.where())["p"] == "n2"
    served = {message.profile.policy_hash for _, message in world.replicas[0].log if hasattr(message, "profile")}
    assert world.hash_of(SLOW) not in served


@on_virtual_time
async def test_one_whose_proof_is_lost_is_proved_again(world: World, proofs: Proofs) -> None:
    proofs.lost = 5
    await config_map(world, "pin", SLOW)
    found = await status(world, "pin")
    assert (found["state"], found["message"]) == ("rejected", "it is tried again")
    await asyncio.sleep(60)
    assert (await status(world, "pin"))["state"] == "accepted"
    assert proofs.begun == [TESTED] * 6
    serves(world, SLOW)


@on_virtual_time
async def test_after_a_restart_what_was_accepted_serves_at_once_and_is_tested_then(
    world: World, proofs: Proofs
) -> None:
    broken = SLOW.replace("pinned", "broken").replace("require", "requires")
    await config_map(world, "broken", broken, seconds=40)
    await config_map(world, "pin", SLOW, seconds=40)
    states = [(await status(world, name))["state"] for name in ("broken", "pin")]
    assert states == ["rejected", "accepted"]
    await world.replicas[0].kill()
    proofs.begun.clear()
    world.start()
    serves(world, SLOW)
    assert await bound(world, "p", 1) == "n1"
    assert proofs.begun == [UNTESTED, TESTED, (broken, True)]
    await asyncio.sleep(60)
    assert [(await status(world, name))["state"] for name in ("broken", "pin")] == states


@on_virtual_time
async def test_after_a_restart_a_text_that_nobody_has_judged_is_not_waited_for_for_long(
    world: World, proofs: Proofs
) -> None:
    await world.replicas[0].kill()
    await config_map(world, "pin", SLOW)
    await config_map(world, "forged", SLOW.replace("pinned", "forged"), {STATUS: '{"state": "accepted"}'}, seconds=0)
    world.start()
    await world.pod("p")
    await asyncio.sleep(SETTLING - 1)
    assert (await world.where())["p"] == "", "it may come in time"
    await asyncio.sleep(2)
    assert (await world.where())["p"]
    assert all(is_tested for _, is_tested in proofs.begun), "a status of other texts is believed nothing"
    await asyncio.sleep(40)
    assert (await status(world, "pin"))["state"] == "accepted"
    serves(world, SLOW)
