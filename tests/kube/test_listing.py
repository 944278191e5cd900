"""A cluster listed once: what is there, what may be left out, and what it takes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from policyengine.kube.config.access import AccessDenied
from policyengine.kube.http.client import ApiError, Client
from policyengine.kube.listing import Listed, list_cluster, list_policies
from policyengine.plugins.registry import default_profile
from policyengine.simulator.api_server import statuses
from policyengine.simulator.api_server.memory import MemoryTransport
from tests.faults.world import World, play
from tests.faulty_server import effects

FORBIDDEN = statuses.ApiError(403, "Forbidden", "you may not")


def listed(world: World) -> Any:
    return list_cluster(Client(MemoryTransport(world.api)), [default_profile()])


def in_world(work: Any) -> Any:
    found: list[Any] = []

    async def scene(world: World) -> None:
        await world.node("n1")
        await world.pod("p")
        await world.config_map("a", 'policy "a" { scheduler "a" }')
        found.append(await work(world))

    play(scene, validates=False)
    return found[0]


def test_everything_the_profiles_read_is_listed() -> None:
    async def work(world: World) -> Listed:
        answer: Listed = await listed(world)
        return answer

    found = in_world(work)
    assert {"Node", "Pod", "Namespace"} <= {kind for kind, _ in found.objects} and found.left_out == []


def test_a_kind_that_may_not_be_listed_is_left_out_and_told() -> None:
    async def work(world: World) -> Listed:
        world.faults.add(effects.Fail(FORBIDDEN), verb="list", resource="services")
        answer: Listed = await listed(world)
        return answer

    assert in_world(work).left_out == ["services may not be listed, and are left out: you may not"]


@pytest.mark.parametrize("kind", ["pods", "nodes"])
def test_pods_and_nodes_it_takes(kind: str) -> None:
    async def work(world: World) -> str:
        world.faults.add(effects.Fail(FORBIDDEN), verb="list", resource=kind)
        with pytest.raises(AccessDenied) as refused:
            await listed(world)
        return str(refused.value)

    assert f"refuses to list {kind}: you may not; ask for the right" in in_world(work)


def test_a_kind_that_is_not_served_has_no_objects_and_a_failing_server_is_an_error() -> None:
    async def work(world: World) -> tuple[Listed, int]:
        missing = statuses.ApiError(404, "NotFound", "no such kind")
        world.faults.add(effects.Fail(missing), verb="list", resource="resourceclaims", times=1)
        answer: Listed = await listed(world)
        world.faults.add(effects.Fail(statuses.internal("etcd is down")), verb="list", resource="services")
        with pytest.raises(ApiError) as failed:
            await listed(world)
        return answer, failed.value.status

    found, status = in_world(work)
    assert (found.left_out, status) == ([], 500)


def test_policies_are_listed_everywhere_or_where_they_usually_are() -> None:
    async def work(world: World) -> list[str]:
        client = Client(MemoryTransport(world.api))
        everywhere, _ = await list_policies(client)
        world.faults.add(effects.Fail(FORBIDDEN), verb="list", resource="configmaps", times=1)
        here, left_out = await list_policies(client)
        assert left_out == []
        return [source.metadata.name for source in (*everywhere, *here)]

    assert in_world(work) == ["a", "a"]


def test_an_object_that_cannot_be_read_is_left_out_and_told() -> None:
    class Garbled(MemoryTransport):
        async def request(self, method: str, path: str, **how: Any) -> Any:
            answer = await super().request(method, path, **how)
            if path.endswith("/nodes"):
                page = json.loads(await answer.read())
                page["items"].append({"metadata": {"name": 3}})
                answer._body = json.dumps(page).encode()
            return answer

    async def work(world: World) -> Listed:
        await asyncio.sleep(0)
        return await list_cluster(Client(Garbled(world.api)), [default_profile()])

    (told,) = in_world(work).left_out
    assert told.startswith("Node `3`: ") and told.endswith("it is left out")
