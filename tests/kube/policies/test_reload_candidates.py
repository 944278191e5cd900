"""ConfigMaps tried beside the policy that serves, on a whole scheduler: as a shadow, as a canary, rolled back."""

from __future__ import annotations

import asyncio
from typing import Any

from policyengine.scheduler.messages import ComparisonRequested
from tests.faults.objects import MAPS
from tests.faults.world import World
from tests.kube.policies.reload_scenes import (
    CANARY,
    OPEN,
    PIN,
    SHADOW,
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

# ---- shadow


@on_virtual_time
async def test_a_shadow_is_told_how_often_and_where_it_differs(world: World) -> None:
    await config_map(world, "pin", PIN.format(node="n1"))
    await config_map(world, "next", PIN.format(node="n2"), SHADOW)
    found = await status(world, "next")
    assert (found["state"], found["message"]) == ("accepted", "shadow beside policy `pin` of scheduler `pinned`")
    for number in range(8):
        await world.pod(f"p{number}", scheduler="pinned")
    serves(world, PIN.format(node="n1"))
    await world.settle(40)
    assert set((await world.where()).values()) == {"n1"}, "a shadow places nobody"
    found = (await status(world, "next"))["rollout"]
    assert (found["compared"], found["agreement"], found["otherNode"], found["rules"]) == (8, 0.0, 8, {"there": 8})
    assert len(found["samples"]) == 5
    assert found["samples"][0]["live"] == "n1" and found["samples"][0]["candidate"] == "n2"
    assert (await status(world, "pin"))["state"] == "accepted", "a shadow takes no scheduler name"
    assert "rollout" not in await status(world, "pin")


@on_virtual_time
async def test_the_status_of_a_candidate_is_not_written_at_every_decision(world: World) -> None:
    await config_map(world, "pin", PIN.format(node="n1"), seconds=0)
    await config_map(world, "next", PIN.format(node="n2"), SHADOW, seconds=0)
    serves(world, PIN.format(node="n1"))
    await asyncio.sleep(2)
    before = len(written(world, "ConfigMap"))
    for number in range(65):
        await world.pod(f"p{number}", "10m", scheduler="pinned")
        await asyncio.sleep(1)
    assert 1 <= len(written(world, "ConfigMap")) - before <= 5
    await world.settle(40)


@on_virtual_time
async def test_a_candidate_waits_for_a_policy_that_serves_and_two_candidates_are_one_too_many(world: World) -> None:
    await config_map(world, "next", PIN.format(node="n2"), SHADOW)
    found = await status(world, "next")
    assert (found["state"], found["message"]) == ("accepted", "waits: no policy serves scheduler `pinned`")
    await world.pod("p", scheduler="pinned")
    await asyncio.sleep(2)
    assert (await world.where())["p"] == ""
    await config_map(world, "pin", PIN.format(node="n1"), seconds=0)
    serves(world, PIN.format(node="n1"))
    await asyncio.sleep(2)
    await config_map(world, "third", OPEN, SHADOW)
    found = await status(world, "third")
    assert found["message"] == "scheduler `pinned` has the older candidate `kube-system/next`"
    await world.settle(5)
    assert (await world.where())["p"] == "n1"


@on_virtual_time
async def test_a_mode_that_makes_no_sense_leaves_the_policy_that_serves_in_place(world: World) -> None:
    await config_map(world, "pin", PIN.format(node="n1"))
    await change(world, "pin", mode="live")
    assert (await status(world, "pin"))["state"] == "rejected"
    serves(world, PIN.format(node="n1"))
    await world.pod("p", scheduler="pinned")
    await world.settle(5)
    assert (await world.where())["p"] == "n1"


@on_virtual_time
async def test_a_candidate_is_one_policy(world: World) -> None:
    await config_map(world, "next", OPEN + PIN.format(node="n1").replace("pinned", "other"), SHADOW)
    message = "a candidate is one policy, and the ConfigMap has 2: `open`, `pin`"
    assert (await status(world, "next"))["message"] == message


# ---- canary


@on_virtual_time
async def test_a_canary_decides_about_its_namespaces_and_is_promoted_by_taking_its_mode_away(world: World) -> None:
    await config_map(world, "pin", PIN.format(node="n1"))
    selector = {"policyengine.io/canary-namespaces": "kubernetes.io/metadata.name in (default)"}
    await config_map(world, "next", PIN.format(node="n2"), CANARY | selector)
    await world.pod("tried", scheduler="pinned")
    await asyncio.sleep(5)
    assert (await world.where())["tried"] == "n2"
    await change(world, "next", canary_namespaces="kubernetes.io/metadata.name notin (default)")
    await world.pod("not-tried", scheduler="pinned")
    await asyncio.sleep(5)
    assert (await world.where())["not-tried"] == "n1"
    await world.call("DELETE", f"{MAPS}/pin")
    await change(world, "next", mode=None, seconds=0)
    serves(world, PIN.format(node="n2"))
    await world.pod("promoted", scheduler="pinned")
    await world.settle(10)
    assert (await world.where())["promoted"] == "n2"
    found = await status(world, "next")
    assert (found["state"], found["message"], "rollout" in found) == ("accepted", "", False)


@on_virtual_time
async def test_a_canary_over_its_budget_is_rolled_back_and_stays_so_until_it_is_another(world: World) -> None:
    await config_map(world, "pin", PIN.format(node="n1"))
    budget = {"policyengine.io/budget": '{"unschedulable": "50%", "least": 3}'}
    world.knows_policy(PIN.format(node="n9"), {"n9"})
    await config_map(world, "next", PIN.format(node="n9"), CANARY | budget)
    for number in range(6):
        await world.pod(f"p{number}", scheduler="pinned")
    await asyncio.sleep(15)
    assert set((await world.where()).values()) == {"n1"}, "the pods it refused are placed by the policy that serves"
    why = "100.0% of the pods that it decided about are refused, more than 50.0%"
    found = await status(world, "next")
    assert (found["state"], found["message"]) == ("suspended", why)
    assert found["rollout"]["refused"] == 3
    assert [one[:3] for one in await events(world, "next")][-1] == ("Warning", "PolicySuspended", why)
    assert world.replicas[0].scheduler.reloader.suspended == 1

    await world.replicas[0].kill()
    replica = world.start("scheduler-b")
    await asyncio.sleep(5)
    assert replica.state.rollouts["pinned"].suspended == why, "another process knows by the status"
    assert (await status(world, "next")) == found
    assert len(await events(world, "next")) == 2, "nothing is said again"

    await change(world, "next", PIN.format(node="n2"), seconds=0)
    await asyncio.sleep(5)
    assert (await status(world, "next"))["state"] == "accepted"
    await world.pod("again", scheduler="pinned")
    serves(world, PIN.format(node="n1"))
    await world.settle(10)
    assert (await world.where())["again"] == "n2"


@on_virtual_time
async def test_a_canary_whose_new_text_is_broken_is_tried_no_more(world: World) -> None:
    await config_map(world, "pin", PIN.format(node="n1"))
    await config_map(world, "next", PIN.format(node="n2"), CANARY)
    await change(world, "next", PIN.format(node="n2")[:40])
    assert (await status(world, "next"))["state"] == "rejected"
    serves(world, PIN.format(node="n1"))
    await world.pod("p", scheduler="pinned")
    await world.settle(10)
    assert (await world.where())["p"] == "n1"


def test_a_binding_is_on_its_way_before_its_decision_is_compared() -> None:
    at: list[int] = []

    async def scene(world: World) -> None:
        await two_nodes(world)
        await config_map(world, "pin", PIN.format(node="n1"), seconds=0)
        await config_map(world, "next", PIN.format(node="n2"), SHADOW)
        state = world.replicas[0].state
        inner = state.handle

        def noting(message: Any, now: float) -> Any:
            if isinstance(message, ComparisonRequested):
                at.append(len(world.tape))
            return inner(message, now)

        state.handle = noting  # type: ignore[method-assign]
        for number in range(5):
            await world.pod(f"p{number}", scheduler="pinned")
        serves(world, PIN.format(node="n1"))
        await world.settle(10)

    world = played(scene)
    sent = [n for n, (_, what, one) in enumerate(world.tape) if what == "sent" and one.path.endswith("/binding")]
    assert len(sent) == len(at) == 5
    assert all(posted < compared for posted, compared in zip(sent, at, strict=True))
    assert all(compared <= posted for compared, posted in zip(at, sent[1:], strict=False)), "before the next decision"
