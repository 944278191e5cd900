"""The annotator on the embedded API server: rounds on virtual time, failures told once."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from policyengine.kube.http.client import ApiError, Client
from policyengine.server.annotator.annotations import STALE, USAGE_AT, Settings
from policyengine.server.annotator.annotator import Annotator, Round
from policyengine.server.annotator.measurement import QueryRefused, Source, SourceUnreachable
from policyengine.simulator.api_server import ApiServer, MemoryTransport
from policyengine.simulator.api_server.http_requests import ADMIN
from policyengine.simulator.sandbox import create
from tests.kube.virtual_time import VirtualClock
from tests.server.annotator.world import Told, node_object
from tests.server.on_virtual_time import virtually


class World:
    """An API server with nodes, and an annotator on it."""

    def __init__(self, source: Source | None = None, settings: Settings | None = None) -> None:
        self.clock = VirtualClock()
        self.transport = MemoryTransport(ApiServer(self.clock), user=ADMIN)
        self.client = Client(self.transport)
        self.told = Told()
        self.problems: list[str] = []
        self.annotator = Annotator(
            source or self.told, self.client, self.clock, settings or Settings(), on_problem=self.problems.append
        )

    async def add(self, *names: str) -> None:
        for name in names:
            await create(self.transport, "/api/v1/nodes", node_object(name))

    async def get(self, name: str) -> Any:
        response = await self.transport.request("GET", f"/api/v1/nodes/{name}")
        return json.loads(await response.read())

    async def annotations(self, name: str) -> dict[str, str]:
        found: dict[str, str] = (await self.get(name))["metadata"].get("annotations", {})
        return found

    async def while_it_runs(self, work: Callable[[], Any]) -> None:
        stop = asyncio.Event()
        running = asyncio.create_task(self.annotator.run(stop, 60.0))
        await work()
        stop.set()
        await running


@virtually
async def test_nodes_are_written_once_and_again_only_when_something_moved() -> None:
    world = World()
    await world.add("a", "b")
    world.told.cpu, world.told.memory = {"a": 3.0, "gone": 1.0}, {"a": 2.0**32}
    assert await world.annotator.round() == Round(nodes=2, measured=1, written=1, failed=0)
    assert (await world.annotations("a"))["mean-free-cpu"] == "3000"
    assert await world.annotations("b") == {}
    version = (await world.get("a"))["metadata"]["resourceVersion"]
    await asyncio.sleep(60)
    assert (await world.annotator.round()).written == 0
    world.told.cpu["a"] = 1.0
    assert (await world.annotator.round()).written == 1
    assert (await world.get("a"))["metadata"]["resourceVersion"] != version


@virtually
async def test_a_source_that_is_away_leaves_the_values_marks_them_and_removes_them_in_the_end() -> None:
    world = World()
    await world.add("a")
    world.told.cpu = {"a": 3.0}

    async def days() -> None:
        await asyncio.sleep(30)
        world.told.fails = SourceUnreachable("cannot reach Prometheus")
        await asyncio.sleep(120)
        assert STALE not in await world.annotations("a")
        await asyncio.sleep(120)
        kept = await world.annotations("a")
        assert kept[STALE] == "true" and kept["mean-free-cpu"] == "3000"
        await asyncio.sleep(900)
        assert await world.annotations("a") == {}
        world.told.fails = None
        await asyncio.sleep(60)
        assert USAGE_AT in await world.annotations("a") and STALE not in await world.annotations("a")

    await world.while_it_runs(days)
    assert world.problems == ["cannot reach Prometheus; the annotations stay as they are"]


@pytest.mark.parametrize("error", [SourceUnreachable("away"), QueryRefused("no")])
@virtually
async def test_one_round_alone_raises_what_the_source_raises(error: Exception) -> None:
    world = World()
    await world.add("a")
    world.told.fails = error
    with pytest.raises(type(error)):
        await world.annotator.round()


@virtually
async def test_a_node_that_went_meanwhile_is_no_problem() -> None:
    world = World()
    await world.add("a", "b")
    world.told.cpu = {"a": 3.0, "b": 3.0}
    measure = world.told.measure

    async def and_delete(now: float, nodes: Any) -> Any:
        await world.transport.request("DELETE", "/api/v1/nodes/a")
        return await measure(now, nodes)

    world.told.measure = and_delete  # type: ignore[method-assign]
    assert (await world.annotator.round()).failed == 0
    assert world.problems == [] and USAGE_AT in await world.annotations("b")


@virtually
async def test_nodes_that_cannot_be_written_are_one_message_until_they_can() -> None:
    world = World()
    await world.add("b", "a")
    world.told.cpu = {"a": 3.0, "b": 3.0}
    call = world.client.call

    async def refused(method: str, path: str, *more: Any, **options: Any) -> bytes:
        if method == "PATCH":
            raise ApiError(403, "Forbidden", "you may not")
        return await call(method, path, *more, **options)

    async def minutes() -> None:
        world.client.call = refused  # type: ignore[method-assign]
        await asyncio.sleep(150)
        assert world.problems == ["node `a` and others cannot be annotated: you may not"]
        world.client.call = call  # type: ignore[method-assign]
        await asyncio.sleep(60)

    await world.while_it_runs(minutes)
    assert len(world.problems) == 1 and USAGE_AT in await world.annotations("b")


@virtually
async def test_two_annotators_write_the_same() -> None:
    world = World()
    await world.add("a")
    world.told.cpu = {"a": 3.0}
    other = Annotator(world.told, world.client, world.clock, Settings(), on_problem=world.problems.append)
    await asyncio.gather(world.annotator.round(), other.round())
    said = await world.annotations("a")
    assert (await world.annotator.round()).written == (await other.round()).written == 0
    assert await world.annotations("a") == said and world.problems == []


@virtually
async def test_what_pods_ask_for_is_written_with_what_that_leaves_once() -> None:
    world = World(settings=Settings(requested=True))
    await world.add("a", "b")
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "300m", "memory": "1Gi"}}}
    spec = {"nodeName": "a", "containers": [container, {"name": "d", "image": "i"}]}
    for name in ("p", "q", "ended"):
        body = {"kind": "Pod", "metadata": {"name": name}, "spec": spec}
        await create(world.transport, "/api/v1/namespaces/default/pods", body)
    await world.client.patch_pod_status("default", "ended", {"phase": "Succeeded"})
    assert (await world.annotator.round()).written == 2
    said = await world.annotations("a")
    assert (said["requested-cpu"], said["requested-memory"], said["requested-pods"]) == ("600", str(2**31), "2")
    # The node has 4 cores, 8Gi and room for 110 pods.
    assert (said["free-cpu"], said["free-memory"], said["free-pods"]) == ("3400", str(6 * 2**30), "108")
    assert (said["requested-gpu"], said["free-gpu"]) == ("0", "0")
    assert (await world.annotations("b"))["free-cpu"] == "4000"
    assert (await world.annotator.round()).written == 0
