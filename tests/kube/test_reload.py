"""ConfigMaps come, change, break and go on a whole scheduler: who serves, who is tried, what their owner is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from policyengine.kube import pace
from policyengine.kube.pace import Pace
from policyengine.scheduler.messages import ComparisonRequested
from tests.faults import world as worlds
from tests.faults.auditor import Policy
from tests.faults.world import MAPS, MERGE, World, play

PIN = """policy "pin" {{
  scheduler "pinned"
  filter "there" {{ require node.name == "{node}" }}
}}
"""
OPEN = 'policy "open" { scheduler "pinned" }'
EVENTS = "/apis/events.k8s.io/v1/namespaces/kube-system/events"
SHADOW = {"policyengine.io/mode": "shadow"}
CANARY = {"policyengine.io/mode": "canary", "policyengine.io/canary-percent": "100"}

Scene = Callable[[World], Awaitable[None]]


def on_virtual_time(scene: Scene) -> Callable[[], None]:
    """The scene as a test; the auditor listens."""

    def test() -> None:
        objections, world = play(scene)
        assert not objections, f"{objections}\n{world.story()}"

    test.__name__, test.__doc__ = scene.__name__, scene.__doc__
    return test


async def config_map(world: World, name: str, text: str, annotations: dict[str, str] | None = None) -> None:
    labels = {"policyengine.io/policy": "true"}
    metadata = {"name": name, "labels": labels, "annotations": annotations or {}}
    item = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": {"a.policy": text}}
    await world.call("POST", MAPS, item)


async def change(world: World, name: str, text: str | None = None, **annotations: str | None) -> None:
    body: dict[str, Any] = {} if text is None else {"data": {"a.policy": text}}
    if annotations:
        named = {f"policyengine.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
        body["metadata"] = {"annotations": named}
    await world.call("PATCH", f"{MAPS}/{name}", body, MERGE)


async def status(world: World, name: str) -> dict[str, Any]:
    annotations = (await world.call("GET", f"{MAPS}/{name}"))["metadata"]["annotations"]
    found: dict[str, Any] = json.loads(annotations["policyengine.io/status"])
    return found


async def events(world: World, name: str) -> list[tuple[str, str, str, int]]:
    """(type, reason, note, how often) of the Events about a ConfigMap, oldest first."""
    items = (await world.call("GET", EVENTS))["items"]
    about = [item for item in items if item["regarding"]["name"] == name]
    assert all(item["regarding"]["kind"] == "ConfigMap" for item in about)
    about.sort(key=lambda item: item["eventTime"])
    return [(item["type"], item["reason"], item["note"], (item.get("series") or {}).get("count", 1)) for item in about]


async def two_nodes(world: World) -> None:
    """Two nodes, the policies pinned to one of them known to the auditor, and a scheduler."""
    for name in ("n1", "n2"):
        await world.node(name, "99")
        world.knows_policy(PIN.format(node=name), {name})
    world.start()
    await asyncio.sleep(1)


def serves(world: World, text: str) -> None:
    profile = worlds.profiles_of(text)[0]
    world.serves["pinned"] = world.policies.setdefault(profile.policy_hash, Policy("pinned"))


# ---- serving


@on_virtual_time
async def test_a_good_text_is_accepted_and_a_broken_one_rejected_with_its_place_in_status_and_event(
    world: World,
) -> None:
    await two_nodes(world)
    await config_map(world, "pin", PIN.format(node="n1"))
    await asyncio.sleep(2)
    found = await status(world, "pin")
    assert (found["state"], found["line"], found["message"]) == ("accepted", 0, "")
    assert found["hash"] == world.hash_of(PIN.format(node="n1"))
    await change(world, "pin", PIN.format(node="n1").replace("require", "requires"))
    await asyncio.sleep(2)
    found = await status(world, "pin")
    assert (found["state"], found["line"], found["column"]) == ("rejected", 3, 20)
    assert found["hash"] == world.hash_of(PIN.format(node="n1")), "the last good one serves"
    (first, second) = await events(world, "pin")
    assert first[:2] == ("Normal", "PolicyAccepted")
    assert second[:2] == ("Warning", "PolicyRejected")
    assert second[2] == f"{found['message']} (line 3, column 20)"
    serves(world, PIN.format(node="n1"))
    await world.pod("p", scheduler="pinned")
    await world.settle(10)
    assert (await world.where())["p"] == "n1"


@on_virtual_time
async def test_the_same_mistake_again_is_the_same_event(world: World) -> None:
    await two_nodes(world)
    good = PIN.format(node="n1")
    await config_map(world, "pin", good)
    await asyncio.sleep(100)
    for _ in range(4):
        await change(world, "pin", good[:30])
        await asyncio.sleep(100)
        await change(world, "pin", good)
        await asyncio.sleep(100)
    found = await events(world, "pin")
    assert [(reason, count) for _, reason, _, count in found] == [("PolicyAccepted", 4), ("PolicyRejected", 4)]


@on_virtual_time
async def test_one_that_is_deleted_while_it_serves_leaves_its_pods_waiting_for_another(world: World) -> None:
    await two_nodes(world)
    await config_map(world, "pin", PIN.format(node="n1"))
    await asyncio.sleep(2)
    await world.call("DELETE", f"{MAPS}/pin")
    await asyncio.sleep(2)
    await world.pod("p", scheduler="pinned")
    await asyncio.sleep(5)
    assert (await world.where())["p"] == ""
    await config_map(world, "other", PIN.format(node="n2"))
    serves(world, PIN.format(node="n2"))
    await world.settle(5)
    assert (await world.where())["p"] == "n2"


@on_virtual_time
async def test_of_two_for_one_scheduler_name_the_older_serves_until_it_goes(world: World) -> None:
    await two_nodes(world)
    await config_map(world, "old", PIN.format(node="n1"))
    await asyncio.sleep(2)
    await config_map(world, "new", PIN.format(node="n2"))
    await asyncio.sleep(2)
    found = await status(world, "new")
    assert found["state"] == "rejected"
    assert found["message"] == "scheduler `pinned` is served by the older ConfigMap `kube-system/old`"
    assert [one[1] for one in await events(world, "new")] == ["PolicyRejected"]
    await world.call("DELETE", f"{MAPS}/old")
    await asyncio.sleep(2)
    assert (await status(world, "new"))["state"] == "accepted"


@on_virtual_time
async def test_a_config_map_of_a_mebibyte_is_rejected_or_loaded_and_nothing_else_waits(world: World) -> None:
    await two_nodes(world)
    room = 1024 * 1024 - 400
    comment = "// " + "x" * (room - len(OPEN) - 3) + "\n"
    await config_map(world, "long", comment + OPEN)
    await config_map(world, "deep", 'policy "p" { scheduler "deep" let a = ' + "(" * room)
    await asyncio.sleep(2)
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

    async def counting(data: Any) -> Any:
        compiled.append(data["a.policy"])
        return await usual(data)

    monkeypatch.setattr(worlds, "compile_now", counting)

    async def scene(world: World) -> None:
        await two_nodes(world)
        await config_map(world, "pin", PIN.format(node="n1"))
        for number in range(1200):
            await change(world, "pin", PIN.format(node="n1") + f"// {number}\n")
            await asyncio.sleep(0.5)
        assert len(compiled) < 35, "600 s: 3 at once, then after 1, 2, 4, 8, 16 s, then one in 30 s"
        await config_map(world, "other", 'policy "other" { scheduler "other" }')
        await asyncio.sleep(1)
        assert (await status(world, "other"))["state"] == "accepted"
        await asyncio.sleep(40)
        assert compiled[-1].endswith("// 1199\n"), "the newest text is compiled in the end"

    objections, _ = play(scene)
    assert not objections


def test_the_pace_of_one_that_was_quiet_starts_over() -> None:
    found = Pace()
    for at in (0.0, 1.0, 2.0):
        assert found.due("a") <= at
        found.note("a", at)
    assert found.due("a") == 3.0
    found.note("a", 3.0)
    assert found.due("a") == 5.0
    for at in range(10, 60, 10):
        found.note("a", float(at))
    assert found.due("a") == 50.0 + pace.MOST
    found.note("a", 50.0 + pace.QUIET)
    assert found.due("a") == 0.0
    found.tidy((), 50.0 + 2 * pace.QUIET)
    assert found._known == {}


# ---- shadow


@on_virtual_time
async def test_a_shadow_is_told_how_often_and_where_it_differs(world: World) -> None:
    await two_nodes(world)
    await config_map(world, "pin", PIN.format(node="n1"))
    await asyncio.sleep(2)
    await config_map(world, "next", PIN.format(node="n2"), SHADOW)
    await asyncio.sleep(2)
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
    assert (await status(world, "pin"))["state"] == "accepted", "a shadow is no rival"
    assert "rollout" not in await status(world, "pin")


@on_virtual_time
async def test_the_status_of_a_candidate_is_not_written_at_every_decision(world: World) -> None:
    await two_nodes(world)
    await config_map(world, "pin", PIN.format(node="n1"))
    await config_map(world, "next", PIN.format(node="n2"), SHADOW)
    serves(world, PIN.format(node="n1"))
    await asyncio.sleep(2)
    version = len([one for _, what, one in world.tape if what == "write" and one.kind == "ConfigMap"])
    for number in range(95):
        await world.pod(f"p{number}", "10m", scheduler="pinned")
        await asyncio.sleep(1)
    written = len([one for _, what, one in world.tape if what == "write" and one.kind == "ConfigMap"]) - version
    assert 2 <= written <= 5
    await world.settle(40)


@on_virtual_time
async def test_a_candidate_waits_for_a_policy_that_serves_and_two_candidates_are_one_too_many(world: World) -> None:
    await two_nodes(world)
    await config_map(world, "next", PIN.format(node="n2"), SHADOW)
    await asyncio.sleep(2)
    found = await status(world, "next")
    assert (found["state"], found["message"]) == ("accepted", "waits: no policy serves scheduler `pinned`")
    await world.pod("p", scheduler="pinned")
    await asyncio.sleep(2)
    assert (await world.where())["p"] == ""
    await config_map(world, "pin", PIN.format(node="n1"))
    serves(world, PIN.format(node="n1"))
    await asyncio.sleep(2)
    await config_map(world, "third", OPEN, SHADOW)
    await asyncio.sleep(2)
    found = await status(world, "third")
    assert found["message"] == "scheduler `pinned` has the older candidate `kube-system/next`"
    await world.settle(5)
    assert (await world.where())["p"] == "n1"


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        ({"policyengine.io/mode": "shaddow"}, "did you mean `shadow`?"),
        ({"policyengine.io/mode": "canary"}, "a canary needs `policyengine.io/canary-namespaces` or"),
        (CANARY | {"policyengine.io/budget": "{unschedulabel: 5%}"}, "did you mean `unschedulable`?"),
    ],
)
def test_annotations_that_make_no_sense_reject_the_candidate(annotations: dict[str, str], message: str) -> None:
    async def scene(world: World) -> None:
        await two_nodes(world)
        await config_map(world, "next", OPEN, annotations)
        await asyncio.sleep(2)
        found = await status(world, "next")
        assert found["state"] == "rejected" and message in found["message"]

    assert not play(scene)[0]


@on_virtual_time
async def test_a_mode_that_makes_no_sense_leaves_the_policy_that_serves_in_place(world: World) -> None:
    await two_nodes(world)
    await config_map(world, "pin", PIN.format(node="n1"))
    await asyncio.sleep(2)
    await change(world, "pin", mode="live")
    await asyncio.sleep(2)
    assert (await status(world, "pin"))["state"] == "rejected"
    serves(world, PIN.format(node="n1"))
    await world.pod("p", scheduler="pinned")
    await world.settle(5)
    assert (await world.where())["p"] == "n1"


@on_virtual_time
async def test_a_candidate_is_one_policy(world: World) -> None:
    await two_nodes(world)
    await config_map(world, "next", OPEN + PIN.format(node="n1").replace("pinned", "other"), SHADOW)
    await asyncio.sleep(2)
    message = "a candidate is one policy, and the ConfigMap has 2: `open`, `pin`"
    assert (await status(world, "next"))["message"] == message


# ---- canary


@on_virtual_time
async def test_a_canary_decides_about_its_namespaces_and_is_promoted_by_taking_its_mode_away(world: World) -> None:
    await two_nodes(world)
    await config_map(world, "pin", PIN.format(node="n1"))
    await asyncio.sleep(2)
    selector = {"policyengine.io/canary-namespaces": "kubernetes.io/metadata.name in (default)"}
    await config_map(world, "next", PIN.format(node="n2"), CANARY | selector)
    await asyncio.sleep(2)
    await world.pod("tried", scheduler="pinned")
    await asyncio.sleep(5)
    assert (await world.where())["tried"] == "n2"
    await change(world, "next", canary_namespaces="kubernetes.io/metadata.name notin (default)")
    await asyncio.sleep(2)
    await world.pod("not-tried", scheduler="pinned")
    await asyncio.sleep(5)
    assert (await world.where())["not-tried"] == "n1"
    await world.call("DELETE", f"{MAPS}/pin")
    await change(world, "next", mode=None)
    serves(world, PIN.format(node="n2"))
    await world.pod("promoted", scheduler="pinned")
    await world.settle(10)
    assert (await world.where())["promoted"] == "n2"
    found = await status(world, "next")
    assert (found["state"], found["message"], "rollout" in found) == ("accepted", "", False)


@on_virtual_time
async def test_a_canary_over_its_budget_is_rolled_back_and_stays_so_until_it_is_another(world: World) -> None:
    await two_nodes(world)
    await config_map(world, "pin", PIN.format(node="n1"))
    await asyncio.sleep(2)
    budget = {"policyengine.io/budget": '{"unschedulable": "50%", "least": 3}'}
    world.knows_policy(PIN.format(node="n9"), {"n9"})
    await config_map(world, "next", PIN.format(node="n9"), CANARY | budget)
    await asyncio.sleep(2)
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

    await change(world, "next", PIN.format(node="n2"))
    await asyncio.sleep(5)
    assert (await status(world, "next"))["state"] == "accepted"
    await world.pod("again", scheduler="pinned")
    serves(world, PIN.format(node="n1"))
    await world.settle(10)
    assert (await world.where())["again"] == "n2"


@on_virtual_time
async def test_a_canary_whose_new_text_is_broken_is_tried_no_more(world: World) -> None:
    await two_nodes(world)
    await config_map(world, "pin", PIN.format(node="n1"))
    await asyncio.sleep(2)
    await config_map(world, "next", PIN.format(node="n2"), CANARY)
    await asyncio.sleep(2)
    await change(world, "next", PIN.format(node="n2")[:40])
    await asyncio.sleep(2)
    assert (await status(world, "next"))["state"] == "rejected"
    serves(world, PIN.format(node="n1"))
    await world.pod("p", scheduler="pinned")
    await world.settle(10)
    assert (await world.where())["p"] == "n1"


def test_a_binding_is_on_its_way_before_its_decision_is_compared() -> None:
    at: list[int] = []

    async def scene(world: World) -> None:
        await two_nodes(world)
        await config_map(world, "pin", PIN.format(node="n1"))
        await config_map(world, "next", PIN.format(node="n2"), SHADOW)
        await asyncio.sleep(2)
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

    objections, world = play(scene)
    assert not objections
    sent = [n for n, (_, what, one) in enumerate(world.tape) if what == "sent" and one.path.endswith("/binding")]
    assert len(sent) == len(at) == 5
    assert all(posted < compared for posted, compared in zip(sent, at, strict=True))
    assert all(compared <= posted for compared, posted in zip(at, sent[1:], strict=False)), "before the next decision"
