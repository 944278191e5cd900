import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio

from policyengine.clock import SystemClock
from policyengine.simulator.api_server.http import PortInUse, Site, serve
from tests.faulty_server import effects as f
from tests.faulty_server.server import FaultyServer
from tests.simulator.api_server.server_bench import NODES, node


@pytest_asyncio.fixture
async def site() -> AsyncIterator[tuple[FaultyServer, Site]]:
    api = FaultyServer(SystemClock())
    running = await serve(api)
    yield api, running
    await running.stop()


async def test_a_client_that_goes_away_leaves_no_watcher(site: tuple[FaultyServer, Site]) -> None:
    api, running = site
    async with aiohttp.ClientSession(running.url) as client:
        watch = await client.get(NODES, params={"watch": "1"})
        collection = api.store.collection(("", "nodes"))
        assert len(collection.watchers) == 1
        watch.close()
        for _ in range(500):
            if not collection.watchers:
                break
            await asyncio.sleep(0.01)
        assert not collection.watchers


async def test_a_body_over_the_limit_is_refused(site: tuple[FaultyServer, Site]) -> None:
    _, running = site
    async with aiohttp.ClientSession(running.url) as client:
        answer = await client.post(NODES, data=b"x" * (3 * 1024 * 1024 + 1))
        assert answer.status == 413
        assert (await answer.json())["reason"] == "RequestEntityTooLarge"


async def test_a_dropped_connection_is_dropped_on_the_wire(site: tuple[FaultyServer, Site]) -> None:
    api, running = site
    api.faults.add(f.Drop(after=True), verb="create", resource="nodes")
    async with aiohttp.ClientSession(running.url) as client:
        with pytest.raises(aiohttp.ClientConnectionError):
            await client.post(NODES, json=node("n1"))
        assert (await client.get(f"{NODES}/n1")).status == 200


async def test_a_port_in_use_is_one_clear_error(site: tuple[FaultyServer, Site]) -> None:
    _, running = site
    with pytest.raises(PortInUse, match=f"port {running.port} on `127.0.0.1` is in use"):
        await serve(FaultyServer(SystemClock()), port=running.port)
