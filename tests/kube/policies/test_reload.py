"""ConfigMaps come, change, break and go on a whole scheduler: who serves, what their owner is told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from policyengine.kube.policies import compiling
from policyengine.kube.policies.compiling import CompileLimiter
from tests.faults import world as worlds
from tests.faults.objects import MAPS, MERGE
from tests.faults.world import World
from tests.kube.policies.reload_scenes import (
    OPEN,
    PIN,
    change,
    config_map,
    events,
    on_virtual_time,
    played,
    serves,
    status,
    two_nodes,
    written,
)

# ---- serving


@on_virtual_time
async def test_a_good_text_is_accepted_and_a_broken_one_rejected_with_its_place_in_status_and_event(
    world: World,
) -> None:
    await config_map(world, "pin", PIN.format(node="n1"))
    found = await status(world, "pin")
    assert (found["state"], found["line"], found["message"]) == ("accepted", 0, "")
    assert found["hash"] == world.hash_of(PIN.format(node="n1"))
    await change(world, "pin", PIN.format(node="n1").replace("require", "requires"))
    found = await status(world, "pin")
    assert (found["state"], found["line"], found["column"]) == ("rejected", 3, 20)
    assert found["hash"] == world.hash_of(PIN.format(node="n1")), "the last good one serves"
    await asyncio.sleep(100)
    assert [one.verb for one in written(world, "ConfigMap")] == ["create", "patch", "patch", "patch"], "each once"
    (first, second) = await events(world, "pin")
    assert first[:2] == ("Normal", "PolicyAccepted")
    assert second[:2] == ("Warning", "PolicyRejected")
    assert second[2] == f"{found['message']} (line 3, column 20)"
    serves(world, PIN.format(node="n1"))
    await world.pod("p", scheduler="pinned")
    await world.settle(10)
    assert (await world.where())["p"] == "n1"


@on_virtual_time
async def test_a_key_that_is_not_utf8_rejects_all_keys_and_is_named(world: World) -> None:
    await config_map(world, "pin", PIN.format(node="n1"))
    binary = {"binaryData": {"b.policy": "cG9saWN56Q=="}}
    await world.call("PATCH", f"{MAPS}/pin", binary, MERGE)
    await asyncio.sleep(2)
    found = await status(world, "pin")
    assert found["state"] == "rejected"
    assert found["message"] == "`b.policy` stands under `binaryData`, as what is not UTF-8 does: save the file as UTF-8"
    serves(world, PIN.format(node="n1"))
    await world.call("PATCH", f"{MAPS}/pin", {"binaryData": None}, MERGE)
    await asyncio.sleep(2)
    assert (await status(world, "pin"))["state"] == "accepted"


@on_virtual_time
async def test_the_same_mistake_again_is_the_same_event(world: World) -> None:
    good = PIN.format(node="n1")
    await config_map(world, "pin", good, seconds=0)
    await asyncio.sleep(100)
    for _ in range(4):
        await change(world, "pin", good[:30], seconds=0)
        await asyncio.sleep(100)
        await change(world, "pin", good, seconds=0)
        await asyncio.sleep(100)
    found = await events(world, "pin")
    assert [(reason, count) for _, reason, _, count in found] == [("PolicyAccepted", 4), ("PolicyRejected", 4)]


@on_virtual_time
async def test_one_that_is_deleted_while_it_serves_leaves_its_pods_waiting_for_another(world: World) -> None:
    await config_map(world, "pin", PIN.format(node="n1"))
    await world.call("DELETE", f"{MAPS}/pin")
    await asyncio.sleep(2)
    await world.pod("p", scheduler="pinned")
    await asyncio.sleep(5)
    assert (await world.where())["p"] == ""
    await config_map(world, "other", PIN.format(node="n2"), seconds=0)
    serves(world, PIN.format(node="n2"))
    await world.settle(5)
    assert (await world.where())["p"] == "n2"


@on_virtual_time
async def test_of_two_for_one_scheduler_name_the_older_serves_until_it_goes(world: World) -> None:
    await config_map(world, "old", PIN.format(node="n1"))
    await config_map(world, "new", PIN.format(node="n2"))
    found = await status(world, "new")
    assert found["state"] == "rejected"
    assert found["message"] == "scheduler `pinned` is served by the older ConfigMap `kube-system/old`"
    assert [one[1] for one in await events(world, "new")] == ["PolicyRejected"]
    await world.call("DELETE", f"{MAPS}/old")
    await asyncio.sleep(2)
    assert (await status(world, "new"))["state"] == "accepted"


@on_virtual_time
async def test_a_config_map_of_a_mebibyte_is_rejected_or_loaded_and_nothing_else_waits(world: World) -> None:
    room = 1024 * 1024 - 400
    comment = "// " + "x" * (room - len(OPEN) - 3) + "\n"
    await config_map(world, "long", comment + OPEN, seconds=0)
    await config_map(world, "deep", 'policy "p" { scheduler "deep" let a = ' + "(" * room)
    assert (await status(world, "long"))["state"] == "accepted"
    found = await status(world, "deep")
    assert found["state"] == "rejected" and found["line"] == 1
    await world.pod("p", scheduler="pinned")
    await world.settle(5)
    assert (await world.where())["p"]


def test_one_that_flaps_is_compiled_ever_more_seldom_and_the_others_as_they_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled: list[str] = []
    usual = worlds.compile_now

    async def counting(key: str, data: Any, is_tested: bool) -> Any:
        compiled.append(data["a.policy"])
        return await usual(key, data, is_tested)

    monkeypatch.setattr(worlds, "compile_now", counting)

    async def scene(world: World) -> None:
        await two_nodes(world)
        await config_map(world, "pin", PIN.format(node="n1"), seconds=0)
        for number in range(1200):
            await change(world, "pin", PIN.format(node="n1") + f"// {number}\n", seconds=0)
            await asyncio.sleep(0.5)
        assert len(compiled) < 35, "600 s: 3 at once, then after 1, 2, 4, 8, 16 s, then one in 30 s"
        await config_map(world, "other", 'policy "other" { scheduler "other" }', seconds=0)
        await asyncio.sleep(1)
        assert (await status(world, "other"))["state"] == "accepted"
        await asyncio.sleep(40)
        assert compiled[-1].endswith("// 1199\n"), "the newest text is compiled in the end"

    played(scene)


def test_the_pace_of_one_that_was_quiet_starts_over() -> None:
    found = CompileLimiter()
    for at in (0.0, 1.0, 2.0):
        assert found.due("a") <= at
        found.note("a", at)
    assert found.due("a") == 3.0
    found.note("a", 3.0)
    assert found.due("a") == 5.0
    for at in range(10, 60, 10):
        found.note("a", float(at))
    assert found.due("a") == 50.0 + compiling.MOST
    found.note("a", 50.0 + compiling.QUIET)
    assert found.due("a") == 0.0
    found.tidy((), 50.0 + 2 * compiling.QUIET)
    assert found._known == {}
