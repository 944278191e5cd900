"""A high-priority pod preempts: the whole scheduler against the embedded API server, call by call as recorded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from policyengine.cluster import kinds
from policyengine.cluster.workload_objects import PodDisruptionBudget
from policyengine.kube.http.client import Client, Response
from policyengine.kube.scheduling import Scheduler
from policyengine.kube.watching.server_versions import ServerHistory
from policyengine.kube.watching.store import Store
from policyengine.kube.writing.pod_events import ConditionWriter
from policyengine.kube.writing.request_queue import RequestQueue
from policyengine.plugins.registry import default_profile
from policyengine.scheduler.actions import PatchPodCondition
from policyengine.simulator.api_server import statuses
from policyengine.simulator.api_server.handler import ApiServer
from policyengine.simulator.api_server.memory import MemoryTransport
from policyengine.simulator.sandbox import create
from tests.faulty_server import effects as fault
from tests.kube import scenes
from tests.kube.scenes import PODS, pod
from tests.scheduler.invariants import validate
from tests.shared_facts import shared

VERBS = {"POST": "create", "PATCH": "patch", "DELETE": "delete"}
Json = dict[str, Any]


class Watched(MemoryTransport):
    """Notes what is written, in the order in which it is sent."""

    def __init__(self, api: ApiServer) -> None:
        super().__init__(api, user_agent="scheduler")
        self.calls: list[Json] = []

    async def request(self, method: str, path: str, **more: Any) -> Response:
        if method in VERBS:
            body = json.loads(more["body"]) if more.get("body") else None
            self.calls.append({"verb": VERBS[method], "uri": path, "request": body})
        return await super().request(method, path, **more)


class World(scenes.World):
    """Two nodes of two cores, and a scheduler."""

    def __init__(self) -> None:
        # Pods say their priority themselves, without a class.
        super().__init__(disabled_admission=("Priority",))
        self.watched = Watched(self.api)
        self.scheduler = Scheduler(Client(self.watched), self.clock, Random(3), [default_profile()], host="test")

    async def node(self, name: str) -> None:
        amounts = {"cpu": "2", "memory": "4Gi", "pods": "110"}
        item = {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": amounts, "capacity": amounts}}
        await create(self.outside, "/api/v1/nodes", item)

    async def pod(self, name: str, cpu: str, priority: int = 0, seconds: float = 0.2, **spec: Any) -> None:
        """Create a pod, which goes at once when it is deleted, and let the scheduler look at it."""
        item = pod(name, cpu, **{"priority": priority, "terminationGracePeriodSeconds": 0} | spec)
        await create(self.outside, PODS, item)
        await asyncio.sleep(seconds)

    async def get(self, name: str) -> Json:
        found: Json = await self.call("GET", f"{PODS}/{name}")
        return found

    def facts(self, *names: str) -> list[tuple[str, ...]]:
        return [found for call in self.watched.calls if (found := _facts(call)) and (not names or found[0] in names)]


async def play(work: Callable[[World], Awaitable[None]]) -> None:
    world = World()
    for name in ("node-1", "node-2"):
        await world.node(name)
    task = asyncio.ensure_future(world.scheduler.run(world.stop))
    await asyncio.sleep(1)
    await work(world)
    validate(world.scheduler.state)
    world.stop.set()
    await asyncio.wait_for(task, 60)


scene = scenes.scene_of(play)


def _facts(call: Mapping[str, Any]) -> tuple[str, ...]:
    """(pod, what is done to it, and every text in it that does not differ from run to run); () for other calls."""
    body = call["request"] or {}
    if "/events" in call["uri"]:
        about = body.get("regarding")
        if about is None:
            return ()
        note = body["note"]
        if body["reason"] == "Preempted":
            note = " ".join("UID" if "-" in word and len(word) == 36 else word for word in note.split())
        return (about["name"], "event", body["type"], body["reason"], body["action"], note, body["reportingController"])
    if "/pods/" not in call["uri"]:
        return ()
    name, _, subresource = call["uri"].split("?")[0].partition("/pods/")[2].partition("/")
    if subresource == "binding":
        return (name, "binding", body["target"]["name"])
    if subresource == "status":
        (told,) = body["status"]["conditions"]
        text = told["message"]
        fields = (told["type"], told["status"], told["reason"], text, str(told["observedGeneration"]))
        return (name, "status", *fields, str(body["status"].get("nominatedNodeName")))
    return (name, call["verb"])


def _recorded() -> list[tuple[str, ...]]:
    calls = json.loads(shared("recorded/scheduler-calls.json").read_text())
    kept = [call for call in calls if call["verb"] in VERBS.values() and "lease" not in json.dumps(call["uri"])]
    return [found for call in kept if (found := _facts(call))]


@scene
async def test_every_write_of_the_recording_is_made_and_in_its_order_for_each_pod(world: World) -> None:
    await world.pod("small", "1200m")
    await world.pod("big", "64")
    placed = (await world.get("small"))["spec"]["nodeName"]
    await world.pod("fill1", "1500m")
    await world.pod("fill2", "1500m")
    await world.pod("gated", "1", schedulingGates=[{"name": "example.com/wait"}])
    await world.pod("high", "1800m", priority=1000, seconds=2.0)
    theirs = [tuple(text.replace("node-1", placed) for text in one) for one in _recorded()]
    for name in ("small", "fill2", "high"):
        assert world.facts(name) == [one for one in theirs if one[0] == name], name
    first, *_, again = [one for one in theirs if one[0] == "big"]
    assert world.facts("big") == [one for one in theirs if one[0] == "big"][:-1]
    assert again[:2] == first[:2] == ("big", "event")  # in vain: what the victim leaves is no room for it
    order = [one[:2] for one in world.facts("small", "high")]
    assert order.index(("small", "status")) < order.index(("small", "delete")) < order.index(("high", "binding"))


@scene
async def test_a_victim_is_marked_and_deleted_by_uid_and_budgets_are_followed(world: World) -> None:
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}}}
    await create(world.outside, "/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)
    await world.pod("one", "2")
    uid = (await world.get("one"))["metadata"]["uid"]
    await world.pod("two", "2")
    await world.pod("high", "2", priority=10, seconds=5.0)
    calls = [call for call in world.watched.calls if call["verb"] == "delete"]
    (gone,) = [call["uri"].rsplit("/", 1)[1] for call in calls]
    if gone == "one":
        assert calls[0]["request"]["preconditions"] == {"uid": uid}
    patch = next(call["request"] for call in world.watched.calls if call["uri"].endswith(f"{gone}/status"))
    assert patch["metadata"]["uid"] == calls[0]["request"]["preconditions"]["uid"]
    assert (await world.get("high"))["spec"]["nodeName"]
    assert list(world.scheduler.state.view.objects(PodDisruptionBudget)) == ["default/b"]


FORBIDDEN = fault.Fail(statuses.forbidden("pods", "", "one", "no rights"))


@pytest.mark.parametrize("effect", [FORBIDDEN, fault.Overload(2), fault.Drop(), fault.Drop(after=True)])
@scene
async def test_a_deletion_that_fails_is_tried_again_without_haste(world: World, effect: Any) -> None:
    world.api.faults.add(effect, verb="delete", resource="pods", times=3)
    await world.pod("one", "2")
    await world.pod("two", "2")
    await world.pod("high", "2", priority=10, seconds=60.0)
    deletions = [call for call in world.watched.calls if call["verb"] == "delete"]
    assert len(deletions) <= 4
    assert (await world.get("high"))["spec"].get("nodeName")


@scene
async def test_a_nomination_is_not_lost_when_the_next_condition_comes_before_it_is_written(world: World) -> None:
    await world.pod("p", "64")
    uid = (await world.get("p"))["metadata"]["uid"]
    queue = RequestQueue(world.clock, Random(1))
    client = Client(world.watched)
    writer = ConditionWriter(client, world.clock, queue, Store(kinds.PODS, print), ServerHistory(client, world.clock))
    said = PatchPodCondition(uid, "default", "p", "Unschedulable", "first", 0, "node-1")
    writer.write(said)
    writer.write(replace(said, message="second", nominated_node_name=None))
    task = asyncio.ensure_future(queue.run())
    await asyncio.sleep(1)
    status = (await world.get("p"))["status"]
    assert (status["conditions"][0]["message"], status["nominatedNodeName"]) == ("second", "node-1")
    writer.write(replace(said, message="third", nominated_node_name=None))
    writer.write(replace(said, reason="", message="", nominated_node_name=""))
    await asyncio.sleep(1)
    status = (await world.get("p"))["status"]
    assert status["conditions"][0]["message"] == "third"
    assert "nominatedNodeName" not in status
    task.cancel()
