"""A cluster that is watched: its pages follow it, and nothing is ever written to it."""

import asyncio
from random import Random
from typing import Any

from policyengine.clock import SystemClock
from policyengine.kube.http.client import Client
from policyengine.plugins.registry import IN_TREE
from policyengine.server.pages.watched import watched
from policyengine.simulator.api_server.handler import ApiServer
from policyengine.simulator.api_server.memory import MemoryTransport
from policyengine.simulator.sandbox import create, node
from tests.server.pages.scenes import pages


class _ReadOnly(MemoryTransport):
    """Notes what is asked for."""

    async def request(self, method: str, *given: Any, **more: Any) -> Any:
        asked.append((method, given[0]))
        return await super().request(method, *given, **more)


asked: list[tuple[str, str]] = []


async def test_what_comes_is_seen_and_nothing_is_asked_for_but_lists_and_watches() -> None:
    asked.clear()
    clock = SystemClock()
    api = ApiServer(clock)
    outside = MemoryTransport(api)
    await create(outside, "/api/v1/nodes", node("node-1", "a"))
    container = {"name": "c", "image": "i"}
    spec = {"schedulerName": "default-scheduler", "containers": [container]}
    client = Client(_ReadOnly(api))
    async with watched(client, "a cluster", IN_TREE, clock, Random(1)) as source, pages(source) as site:
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
        await create(outside, "/api/v1/namespaces/default/pods", pod)
        async with asyncio.timeout(60):
            while "default/p" not in await site.get("pods"):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        text = await site.get("")
        assert "the cluster is only watched" in text and "the cluster is looked at, not scheduled" in text
        assert "1 of 1 nodes" in await site.get("pods/default/p")
    written = {(method, path) for method, path in asked if method != "GET" and "selfsubject" not in path}
    assert not written
