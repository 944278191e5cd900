"""Members of a policy at work: the whole scheduler against the embedded API server, on virtual time."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Any

import pytest

from policyengine.framework.profile import Profile
from policyengine.policy_compiler import compile_policy
from tests.kube.scenes import scene_of
from tests.kube.writing.test_victims import World, play


def policy(members: str) -> Profile:
    return compile_policy(f'policy "t" {{ scheduler "default-scheduler"\n{members}\n}}')


def scene(profile: Profile) -> Any:
    """As `scene_of`, with a scheduler of this profile."""
    return scene_of(partial(play, profile=profile))


def team(name: str) -> dict[str, Any]:
    """Fields of a pod that belongs to a team, told apart by its service account."""
    return {"serviceAccountName": name}


async def node_of(world: World, name: str) -> str:
    found = await world.get(name)
    return str(found["spec"].get("nodeName", ""))


@scene(policy('permit "slow" { delay: 30s }'))
async def test_a_delayed_pod_is_bound_when_its_delay_is_over(world: World) -> None:
    await world.pod("p", "1", seconds=29.0)
    assert await node_of(world, "p") == ""
    await asyncio.sleep(2.0)
    assert await node_of(world, "p") != ""


@scene(policy('permit "open" { until: "open" in node.labels  timeout: 1min }'))
async def test_a_pod_permitted_by_nobody_is_told_so_at_the_timeout(world: World) -> None:
    await world.pod("p", "1", seconds=62.0)
    (condition,) = (await world.get("p"))["status"]["conditions"]
    reason = "1 rejected due to timeout after waiting 60s at plugin open"
    assert (condition["reason"], reason in condition["message"]) == ("Unschedulable", True)


ANNOTATED = """
score "last" weight 100 = clamp(trailingInt(node.name).orValue(0) * 10, 0, 100)
bind { annotations: {"example.com/placed": "on {node.name}, {node.free.cpu} left"} }
"""


@scene(policy(ANNOTATED))
async def test_annotations_of_the_binding_are_on_the_bound_pod(world: World) -> None:
    await world.pod("p", "500m")
    pod = await world.get("p")
    assert pod["spec"]["nodeName"] == "node-2"
    assert pod["metadata"]["annotations"] == {"example.com/placed": "on node-2, 1500m left"}


LOGGING = policy('on postBind log "is there"')


@scene(LOGGING)
async def test_lines_of_a_policy_are_logged_with_pod_node_and_hash(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="policyengine"):
        await world.pod("p", "1")
    (line,) = [record for record in caplog.records if "is there" in record.getMessage()]
    assert line.getMessage() == "postBind: is there"
    told = vars(line)
    assert (told["pod"], told["hash"]) == ("default/p", LOGGING.policy_hash[:12])
    assert told["node"].startswith("node-")


QUOTAS = """
quota "a" when pod.serviceAccount == "a" { guarantee: {cpu: 2} limit: {cpu: 3} borrow: true }
quota "b" when pod.serviceAccount == "b" { guarantee: {cpu: 2} borrow: true }
"""


@scene(policy(QUOTAS))
async def test_a_quota_refuses_what_exceeds_it_and_lets_it_in_when_a_pod_goes(world: World) -> None:
    await world.pod("p1", "2", **team("a"))
    await world.pod("p2", "2", **team("a"))
    (condition,) = (await world.get("p2"))["status"]["conditions"]
    assert "quota a: 2 of 3 cpu are in use, the pod asks for 2" in condition["message"]
    await world.delete("p1")
    await asyncio.sleep(12.0)
    assert await node_of(world, "p2") != ""


@scene(policy(QUOTAS))
async def test_a_quota_short_of_its_guarantee_reclaims_what_others_borrowed(world: World) -> None:
    for number in range(4):
        await world.pod(f"b{number}", "1", priority=100, **team("b"))
    await world.pod("a1", "1", seconds=15.0, **team("a"))
    assert await node_of(world, "a1") != ""
    left = [await world.get(f"b{number}") for number in range(4)]
    assert sum("spec" in pod for pod in left) == 3
    await world.pod("a2", "2", seconds=15.0, **team("a"))
    # Two cores are owed, one is in use: the rest of the request is not.
    assert await node_of(world, "a2") == ""


@scene(policy("queue { fair by pod.serviceAccount }"))
async def test_tenants_are_served_by_share(world: World) -> None:
    await world.pod("old", "1", **team("a"))
    for name in ("a1", "a2"):
        await world.pod(name, "1500m", **team("a"))
    for name in ("b1", "b2"):
        await world.pod(name, "1500m", **team("b"))
    placed = {name for name in ("a1", "a2", "b1", "b2") if await node_of(world, name)}
    assert placed == {"a1"}
    await asyncio.sleep(12.0)
    # There is room for one more, and nobody's backoff lasts any more.
    await world.node("node-3")
    await asyncio.sleep(1.0)
    assert [await node_of(world, name) for name in ("a2", "b1", "b2")] == ["", "node-3", ""]


@scene(policy('preempt { victims: victim.serviceAccount == "batch" }'))
async def test_only_whom_the_policy_lets_go_is_preempted(world: World) -> None:
    for name in ("x1", "x2"):
        await world.pod(name, "2", **team("batch" if name == "x2" else "service"))
    await world.pod("urgent", "2", priority=10, seconds=15.0)
    assert await node_of(world, "urgent") != ""
    assert [("spec" in await world.get(name)) for name in ("x1", "x2")] == [True, False]
