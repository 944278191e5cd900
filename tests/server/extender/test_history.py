"""What an extender learns by `history` from the pods it watches, asked over HTTP; a ConfigMap keeps it for the next."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from policyengine.clock import SystemClock
from policyengine.kube import demand_memory
from policyengine.kube.demand_memory import history_store
from policyengine.kube.http.client import Client
from policyengine.simulator.api_server.handler import ApiServer
from policyengine.simulator.api_server.memory import MemoryTransport
from policyengine.simulator.sandbox import create, node
from tests.server.extender.recorded import serving

POLICY = """policy "learns" {
  let learnt = history("")
  filter "few" { require learnt.count < 2 else "{learnt.mean.cpu} each" }
}"""
PODS, CONFIG_MAPS = "/api/v1/namespaces/default/pods", "/api/v1/namespaces/kube-system/configmaps"
ASKED = {"Pod": {"metadata": {"name": "new"}, "spec": {"containers": [{"name": "c"}]}}, "NodeNames": ["a"]}


def standing(name: str, cpu: str) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"name": name}, "spec": {"nodeName": "a", "containers": [container]}}


@asynccontextmanager
async def asking(api: ApiServer) -> AsyncIterator[aiohttp.ClientSession]:
    """An extender on the server, until the block is over."""
    client = Client(MemoryTransport(api))
    store = history_store(client, "kube-system/learnt")
    async with (
        serving(POLICY, client=client, history=store) as port,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session,
    ):
        yield session


async def refused(session: aiohttp.ClientSession, reason: str) -> bool:
    """Whether the answer comes to that in time."""
    for _ in range(200):
        async with session.post("/filter", json=ASKED) as response:
            if reason in (answer := await response.text()):
                return True
        await asyncio.sleep(0.05)
    raise AssertionError(answer)


async def saved(outside: MemoryTransport) -> None:
    """Return once the ConfigMap has both pods."""
    for _ in range(200):
        text = await (await outside.request("GET", f"{CONFIG_MAPS}/learnt")).read()
        data = json.loads(text).get("data", {})
        if data and json.loads(data["history.json"])["groups"][0]["count"] == 2:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(data)


async def test_what_was_learnt_outlives_the_pods_and_the_extender(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demand_memory, "PERIOD", 0.05)
    api = ApiServer(SystemClock())
    outside = MemoryTransport(api)
    await create(outside, CONFIG_MAPS, {"metadata": {"name": "learnt"}})
    await create(outside, "/api/v1/nodes", node("a", "zone"))
    async with asking(api) as session:
        for name, cpu in (("one", "1"), ("two", "3")):
            await create(outside, PODS, standing(name, cpu))
        assert await refused(session, "few: 2 each")
        await saved(outside)
    await outside.request("DELETE", PODS, body=b'{"gracePeriodSeconds": 0}')
    assert json.loads(await (await outside.request("GET", PODS)).read())["items"] == []
    async with asking(api) as session:
        assert await refused(session, "few: 2 each")
