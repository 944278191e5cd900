"""Extenders that have a say in preemption, and resources that they account for: over HTTP, from ask to eviction."""

import json
from typing import Any

import pytest

from tests.kube.extenders.extender_world import NODES, World, fails, shape, world
from tests.shared_facts import shared

PREEMPT = {"preemptVerb": "preempt", "nodeCacheCapable": True}
LOW = [f"low-{number}" for number in range(1, 7)]


async def filled(at: World) -> dict[str, str]:
    """Two small pods on each node, of falling priority from node to node, so that node-3's go first; their UIDs."""
    at.expected = set(LOW)
    return {
        name: await at.pod(name, on=NODES[number // 2], priority=30 - 10 * (number // 2), cpu="2")
        for number, name in enumerate(LOW)
    }


def victims_of(body: Any) -> dict[str, Any]:
    found: dict[str, Any] = body["NodeNameToMetaVictims"]
    return found


async def leaving(at: World, *names: str) -> None:
    async def gone() -> bool:
        return await at.leaving() >= set(names)

    await at.until(gone)
    assert await at.leaving() == set(names)


@pytest.mark.parametrize(("file", "cacheable"), [("extender-cap.json", True), ("extender-full.json", False)])
async def test_a_request_has_the_shape_that_kube_scheduler_gives_it(file: str, cacheable: bool) -> None:
    recorded = json.loads(shared(f"recorded/{file}").read_text())
    (wanted,) = [one["request"]["body"] for one in recorded if one["request"]["path"].endswith("/preempt")]

    async with world(lambda verb, body: {}, {**PREEMPT, "nodeCacheCapable": cacheable}) as at:
        uids = await filled(at)
        await at.pod("high", priority=100, cpu="3")
        await at.until_told("high")
        ((_, body),) = at.asked
        assert list(body) == list(wanted)
        filled_key = "NodeNameToMetaVictims" if cacheable else "NodeNameToVictims"
        assert [key for key, value in body.items() if value is None] == [
            key for key, value in wanted.items() if value is None
        ]
        assert list(body[filled_key]) == list(wanted[filled_key]) == list(NODES)
        for node, expected in wanted[filled_key].items():
            ours = body[filled_key][node]
            assert list(ours) == list(expected) and ours["NumPDBViolations"] == 0
            if cacheable:
                assert shape(ours) == shape(expected)
                assert {pod["UID"] for pod in ours["Pods"]} <= set(uids.values())
            else:
                (first, *_), theirs = ours["Pods"], expected["Pods"][0]
                assert first.keys() == theirs.keys()
                assert first["spec"]["nodeName"] == node and "managedFields" not in first["metadata"]


async def test_each_extender_is_asked_about_what_the_one_before_left_the_ignorable_ones_last() -> None:
    def answer(verb: str, body: Any) -> Any:
        nodes = ("node-1", "node-2") if verb == "first" else ("node-2", "node-3")
        return {"NodeNameToMetaVictims": {node: left for node, left in victims_of(body).items() if node in nodes}}

    last = {**PREEMPT, "preemptVerb": "last", "ignorable": True}
    async with world(answer, last, {**PREEMPT, "preemptVerb": "first"}) as at:
        await filled(at)
        await at.pod("high", priority=100, cpu="4")
        await leaving(at, "low-3", "low-4")
        assert [(verb, list(victims_of(body))) for verb, body in at.asked] == [
            ("first", list(NODES)),
            ("last", ["node-1", "node-2"]),
        ]


async def test_an_error_ends_the_preemption_unless_the_extender_is_ignorable() -> None:
    async with world(fails, PREEMPT) as at:
        await filled(at)
        await at.pod("high", priority=100, cpu="4")
        reason, message = await at.until_told("high")
        assert reason == "Unschedulable" and "answers with HTTP status 500" in message
        await leaving(at)
    async with world(fails, {**PREEMPT, "ignorable": True}) as at:
        await filled(at)
        await at.pod("high", priority=100, cpu="4")
        await leaving(at, "low-5", "low-6")


async def test_a_binding_that_an_ignorable_extender_does_not_make_is_made_all_the_same() -> None:
    async with world(fails, {"bindVerb": "bind", "ignorable": True}) as at:
        await at.pod("p")
        assert await at.until_bound("p") in NODES
        assert [one.user_agent for one in at.api.writes if one.subresource == "binding"] == ["scheduler"]
