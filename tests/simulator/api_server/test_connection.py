"""HTTP on the wire: what stands between aiohttp and the handler."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from policyengine.clock import SystemClock
from policyengine.simulator.api_server import ApiServer
from policyengine.simulator.api_server.http import MAX_HEAD, PortInUse, Site, serve
from policyengine.simulator.api_server.http_requests import Response, within
from tests.faulty_server import effects as f
from tests.faulty_server.server import FaultyServer
from tests.simulator.api_server.server_bench import NODES, node

MAPS = "/api/v1/namespaces/default/configmaps"
PATIENCE = 20


@asynccontextmanager
async def site(api: ApiServer | None = None) -> AsyncIterator[Site]:
    running = await serve(api or ApiServer(SystemClock()))
    try:
        yield running
    finally:
        await running.stop()


def get(path: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: s", *headers, "", ""]).encode()


def post(path: str, body: bytes, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: s", "Content-Type: application/json", *headers]
    length = [] if any("Transfer" in line for line in headers) else [f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, *length, "", ""]).encode() + body


def config_map(name: str) -> bytes:
    return json.dumps({"metadata": {"name": name}, "data": {"k": "é"}}, ensure_ascii=False).encode()


async def said(running: Site, *pieces: bytes) -> bytes:
    """Everything the server says to these bytes, written piece by piece, until it hangs up."""
    reader, writer = await asyncio.open_connection(running.host, running.port)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0)
    answer = await asyncio.wait_for(reader.read(), PATIENCE)
    writer.close()
    return answer


def statuses(answer: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", answer)]


LAST = get("/readyz", "Connection: close")


async def test_requests_sent_ahead_are_answered_in_order() -> None:
    async with site() as running:
        made = b"".join(post(MAPS, config_map(f"m{number}")) for number in range(90))
        answer = await said(running, made + get(f"{MAPS}/m1") + get(f"{MAPS}/absent") + LAST)
        assert statuses(answer) == [201] * 90 + [200, 404, 200]


async def test_a_head_over_a_mebibyte_is_refused_and_the_connection_closed() -> None:
    async with site() as running:
        assert b"400 Bad Request" in await said(running, b"GET /" + b"a" * (MAX_HEAD + 1))
        assert statuses(await said(running, LAST)) == [200]


async def test_a_head_answer_has_a_length_and_no_body() -> None:
    async with site() as running:
        whole = await said(running, get("/version", "Connection: close"))
        head = await said(running, get("/version", "Connection: close").replace(b"GET", b"HEAD", 1))
        body = whole.partition(b"\r\n\r\n")[2]
        assert head.endswith(b"\r\n\r\n") and f"Content-Length: {len(body)}".encode() in head


async def test_a_large_body_is_asked_for_by_those_who_wait_for_the_word() -> None:
    async with site() as running:
        body = config_map("big")
        reader, writer = await asyncio.open_connection(running.host, running.port)
        writer.write(post(MAPS, body, "Expect: 100-continue", "Connection: close").removesuffix(body))
        assert await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE) == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body)
        assert statuses(await asyncio.wait_for(reader.read(), PATIENCE)) == [201]
        writer.close()


async def test_paths_and_queries_are_decoded_and_the_first_of_two_values_counts() -> None:
    async with site() as running:
        path = f"{MAPS}/%61b?fieldManager=one%20two&fieldManager=three"
        answer = await said(running, get(path, "Connection: close"))
        assert b'configmaps \\"ab\\" not found' in answer
        whole = get("http://other" + MAPS + "?limit=1&limit=x", "Connection: close")
        assert statuses(await said(running, whole)) == [200]


async def test_a_watch_ends_whole_when_the_server_stops() -> None:
    async with site() as running:
        reader, writer = await asyncio.open_connection(running.host, running.port)
        writer.write(get(f"{NODES}?watch=1"))
        await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
        await running.stop()
        assert (await asyncio.wait_for(reader.read(), PATIENCE)).endswith(b"0\r\n\r\n")
        writer.close()


async def test_a_reader_that_is_slow_holds_up_nobody_else() -> None:
    async with site() as running:
        for number in range(40):
            body = json.dumps({"metadata": {"name": f"m{number}"}, "data": {"k": "x" * 900_000}}).encode()
            assert statuses(await said(running, post(MAPS, body, "Connection: close"))) == [201]
        reader, writer = await asyncio.open_connection(running.host, running.port)
        writer.write(get(f"{MAPS}?watch=1&timeoutSeconds=10"))
        await asyncio.sleep(0.1)
        assert statuses(await said(running, LAST)) == [200]
        seen = 0
        while seen < 40:
            seen += (await asyncio.wait_for(reader.read(1 << 20), PATIENCE)).count(b'{"type":"ADDED"')
        writer.close()


async def test_a_client_that_goes_away_leaves_no_watcher() -> None:
    api = ApiServer(SystemClock())
    async with site(api) as running, aiohttp.ClientSession(running.url) as client:
        watch = await client.get(NODES, params={"watch": "1"})
        watchers = api.store.collection(("", "nodes")).watchers
        assert len(watchers) == 1
        watch.close()
        async with asyncio.timeout(PATIENCE):
            while watchers:  # noqa: ASYNC110  (nobody tells)
                await asyncio.sleep(0.01)


async def test_a_body_over_the_limit_is_refused() -> None:
    async with site() as running, aiohttp.ClientSession(running.url) as client:
        answer = await client.post(NODES, data=b"x" * (3 * 1024 * 1024 + 1))
        assert (answer.status, (await answer.json())["reason"]) == (413, "RequestEntityTooLarge")


async def test_a_dropped_connection_is_dropped_on_the_wire() -> None:
    api = FaultyServer(SystemClock())
    api.faults.add(f.Drop(after=True), verb="create", resource="nodes")
    async with site(api) as running, aiohttp.ClientSession(running.url) as client:
        with pytest.raises(aiohttp.ClientConnectionError):
            await client.post(NODES, json=node("n1"))
        assert (await client.get(f"{NODES}/n1")).status == 200


async def test_a_port_in_use_is_one_clear_error() -> None:
    async with site() as running:
        with pytest.raises(PortInUse, match=f"port {running.port} on `127.0.0.1` is in use"):
            await serve(ApiServer(SystemClock()), port=running.port)


async def test_a_request_whose_time_is_over_is_late_though_its_answer_comes_at_the_same_moment():
    class Over(SystemClock):
        async def sleep(self, seconds: float) -> None:
            """It has passed already."""

    async def answer() -> Response:
        return Response(200, {}, b"")

    assert await within(Over(), 1.0, answer()) is None
    assert await within(SystemClock(), 60.0, answer()) is not None
