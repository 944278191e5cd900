"""Bindings that are verified: what is read of the server, and how a pod that does not hold is evicted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from policyengine.kube.http.client import Client, Response
from policyengine.kube.scheduling import Scheduler
from policyengine.plugins.registry import default_profile
from policyengine.scheduler.binding.verification import GIVES_WAY
from policyengine.simulator.api_server.handler import ApiServer
from policyengine.simulator.api_server.memory import MemoryTransport
from policyengine.simulator.sandbox import create
from tests.faults.actors import meanwhile
from tests.faults.objects import binding
from tests.kube import scenes
from tests.kube.scenes import EVENTS, PODS, pod
from tests.scheduler.invariants import validate

BINDINGS = {"verb": "create", "resource": "pods", "subresource": "binding", "client": "scheduler"}
DELETIONS = {"verb": "delete", "resource": "pods", "client": "scheduler"}
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "set", "uid": "set", "controller": True}
Json = dict[str, Any]


class Watched(MemoryTransport):
    """Notes what is sent about pods: (method, path, field selector or body)."""

    def __init__(self, api: ApiServer) -> None:
        super().__init__(api, user_agent="scheduler")
        self.calls: list[tuple[str, str, Any]] = []

    async def request(self, method: str, path: str, **more: Any) -> Response:
        selected = (more.get("query") or {}).get("fieldSelector", "")
        if "spec.nodeName" in selected:
            self.calls.append((method, path, more["query"]))
        elif method in ("DELETE", "PATCH") and "/pods/" in path:
            self.calls.append((method, path, json.loads(more["body"])))
        return await super().request(method, path, **more)


class World(scenes.World):
    """One node of one core, and a scheduler that verifies what it binds."""

    def __init__(self) -> None:
        super().__init__()
        self.watched = Watched(self.api)
        client = Client(self.watched)
        self.scheduler = Scheduler(client, self.clock, Random(1), [default_profile()], verifies_bindings=True)

    async def a_stranger_first(self) -> None:
        """The pod `p` is bound, and right before it one of another scheduler, to the same node."""
        other = pod("foreign", "1", scheduler="another")
        both = ("POST", PODS, other), ("POST", f"{PODS}/foreign/binding", binding("foreign", "node-1"))
        self.api.faults.add(meanwhile(*both), **BINDINGS)
        item = pod("p", "1")
        item["metadata"]["ownerReferences"] = [OWNER]
        await create(self.outside, PODS, item)
        await asyncio.sleep(1)

    def first(self, method: str) -> tuple[str, str, Any]:
        return next(call for call in self.watched.calls if call[0] == method)

    async def get(self, name: str) -> Json:
        found: Json = await self.call("GET", f"{PODS}/{name}")
        return found


async def play(work: Callable[[World], Awaitable[None]]) -> None:
    world = World()
    amounts = {"cpu": "1", "memory": "4Gi", "pods": "110"}
    item = {"kind": "Node", "metadata": {"name": "node-1"}, "status": {"allocatable": amounts, "capacity": amounts}}
    await create(world.outside, "/api/v1/nodes", item)
    task = asyncio.ensure_future(world.scheduler.run(world.stop))
    await asyncio.sleep(1)
    await work(world)
    validate(world.scheduler.state)
    world.stop.set()
    await asyncio.wait_for(task, 60)


scene = scenes.scene_of(play)


@scene
async def test_the_node_is_listed_without_a_version_or_a_limit_and_the_pod_goes_at_the_version_that_was_read(
    world: World,
) -> None:
    await world.a_stranger_first()
    listed, patched, deleted = (world.first(method) for method in ("GET", "PATCH", "DELETE"))
    selector = "status.phase!=Succeeded,status.phase!=Failed,spec.nodeName=node-1"
    assert listed == ("GET", "/api/v1/pods", {"fieldSelector": selector})
    gone = await world.get("p")
    assert gone["metadata"]["annotations"][GIVES_WAY]
    assert "deletionTimestamp" in gone["metadata"]
    (told,) = [one for one in gone["status"]["conditions"] if one["type"] == "DisruptionTarget"]
    assert (told["reason"], told["status"]) == ("EvictionByScheduler", "True")
    uid = gone["metadata"]["uid"]
    assert (patched[0], patched[1], patched[2]["metadata"]["uid"]) == ("PATCH", f"{PODS}/p/status", uid)
    before, after = patched[2]["metadata"]["resourceVersion"], deleted[2]["preconditions"]["resourceVersion"]
    assert deleted[:2] == ("DELETE", f"{PODS}/p")
    assert deleted[2]["preconditions"]["uid"] == uid
    assert int(before) < int(after)
    events = [one for one in (await world.call("GET", EVENTS))["items"] if one["reason"] == "Evicted"]
    assert [(one["regarding"]["name"], one["related"]["name"], one["type"]) for one in events] == [
        ("p", "node-1", "Warning")
    ]


@scene
async def test_a_pod_that_a_kubelet_takes_right_before_it_is_evicted_stays(world: World) -> None:
    started = {"status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}}
    patch = meanwhile(("PATCH", f"{PODS}/p/status", started))
    world.api.faults.add(patch, **DELETIONS)
    await world.a_stranger_first()
    await asyncio.sleep(10)
    assert "deletionTimestamp" not in (await world.get("p"))["metadata"]
    assert [method for method, *_ in world.watched.calls].count("DELETE") == 1
