"""The transport over sockets: what it promises, whatever a server does between two bytes."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.kube.http import aiohttp_transport
from policyengine.kube.http.aiohttp_transport import AiohttpTransport
from policyengine.kube.http.client import ConnectionFailed
from policyengine.kube.http.client import lines_of as cut_into_lines

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def answering(handler: Handler) -> AsyncIterator[str]:
    runner = web.ServerRunner(web.Server(handler))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def lines_of(server: str, path: str = "/") -> list[bytes]:
    transport = AiohttpTransport(server)
    try:
        response = await transport.request("GET", path)
        return [line async for lines in response.lines() for line in lines]
    finally:
        await transport.close()


async def test_a_refused_connection_was_never_sent() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        server = f"http://127.0.0.1:{probe.getsockname()[1]}"
    with pytest.raises(ConnectionFailed) as caught:
        await lines_of(server)
    assert caught.value.sent is False


async def test_lines_come_whole_however_the_server_cuts_them() -> None:
    async def streaming(request: web.BaseRequest) -> web.StreamResponse:
        out = web.StreamResponse()
        await out.prepare(request)
        for part in (b"on", b"e\ntwo\nth", b"ree\n", b"unfinished"):
            await out.write(part)
        await out.write_eof()
        return out

    async with answering(streaming) as server:
        assert await lines_of(server) == [b"one", b"two", b"three", b"unfinished"]


async def test_a_stream_that_breaks_raises() -> None:
    async def breaking(request: web.BaseRequest) -> web.StreamResponse:
        out = web.StreamResponse()
        await out.prepare(request)
        await out.write(b"one\ntw")
        assert request.transport is not None
        request.transport.abort()
        return out

    async with answering(breaking) as server:
        with pytest.raises(ConnectionFailed):
            await lines_of(server)


async def test_query_values_and_paths_are_encoded_once() -> None:
    async def echo(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text=f"{request.rel_url.path} {request.rel_url.query['fieldSelector']}")

    async with answering(echo) as server:
        transport = AiohttpTransport(server)
        query = {"fieldSelector": "status.phase!=Succeeded,a=b c&d%20"}
        response = await transport.request("GET", "/api/v1/a b", query=query)
        assert await response.read() == b"/api/v1/a b status.phase!=Succeeded,a=b c&d%20"
        await transport.close()


async def test_a_401_is_asked_again_once_with_fresh_credentials() -> None:
    asked: list[bool] = []

    async def authorize(fresh: bool) -> Mapping[str, str]:
        asked.append(fresh)
        return {"Authorization": "Bearer new" if fresh else "Bearer old"}

    async def guarded(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=200 if request.headers["Authorization"] == "Bearer new" else 401)

    async with answering(guarded) as server:
        transport = AiohttpTransport(server, authorize=authorize)
        assert (await transport.request("GET", "/")).status == 200
        await transport.close()
    assert asked == [False, True]


async def test_connections_are_kept_and_used_again() -> None:
    peers = set()

    async def note(request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        peers.add(request.transport.get_extra_info("peername"))
        return web.Response(text="ok")

    async with answering(note) as server:
        transport = AiohttpTransport(server)
        for _ in range(5):
            response = await transport.request("GET", "/", timeout=60.0)
            await response.read()
            await response.close()
        await transport.close()
    assert len(peers) == 1


# ---- raw sockets on the other side

OK = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
Peer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def served(peer: Peer, connections: int = 4) -> AsyncIterator[AiohttpTransport]:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await peer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    transport = AiohttpTransport(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", connections=connections)
    try:
        yield transport
    finally:
        await transport.close()
        server.close()


async def request_of(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    lengths = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
    return head + (await reader.readexactly(int(lengths[0].split()[1])) if lengths else b"")


async def call(transport: AiohttpTransport, method: str = "POST", **how: Any) -> bytes:
    body = None if method == "GET" else b"{}"
    response = await transport.request(method, "/x", body=body, **{"timeout": 5.0, **how})
    try:
        return await response.read()
    finally:
        await response.close()


async def test_no_more_calls_than_connections_are_under_way_and_nobody_waits_for_ever() -> None:
    now, most = 0, 0

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal now, most
        while True:
            await request_of(reader)
            now, most = now + 1, max(most, now + 1)
            await asyncio.sleep(0.001)
            now -= 1
            writer.write(OK)

    async with served(peer, connections=3) as transport:
        answers = await asyncio.gather(*(call(transport) for _ in range(30)))
    assert len(answers) == 30 and most == 3


async def test_watches_take_no_connection_from_calls() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (await request_of(reader)).startswith(b"GET /watch"):
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n")
            await reader.read()
        writer.write(OK)

    async with served(peer, connections=1) as transport:
        watches = [await transport.request("GET", "/watch") for _ in range(3)]
        assert await call(transport) == b"{}"
        for watch in watches:
            await watch.close()


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST", "PATCH"])
async def test_only_an_idempotent_request_is_sent_again_where_a_kept_connection_ends_unheard(method: str) -> None:
    asked: list[int] = []

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = len(asked)
        asked.append(0)
        while True:
            await request_of(reader)
            asked[connection] += 1
            if connection == 0 and asked[0] == 2:
                return
            writer.write(OK)

    async with served(peer) as transport:
        await call(transport, method)
        if method in ("GET", "PUT", "DELETE"):
            assert await call(transport, method) == b"{}"
            assert asked == [2, 1]
        else:
            with pytest.raises(ConnectionFailed) as caught:
                await call(transport, method)
            assert caught.value.sent and asked == [2]


@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_request_that_is_given_up_is_not_delivered_by_the_kernel_later(cancelled: bool) -> None:
    """Its connection is reset, so that nothing of it is left in a socket."""
    ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        try:
            ended.set_result(f"closed in order: {await reader.read()!r}")
        except ConnectionResetError:
            ended.set_result("reset")

    async with served(peer) as transport:
        with pytest.raises(TimeoutError if cancelled else ConnectionFailed) as caught:
            async with asyncio.timeout(0.1 if cancelled else None):
                await call(transport, timeout=30.0 if cancelled else 0.1)
        assert await ended == "reset"
    assert cancelled or (str(caught.value), caught.value.sent) == ("no answer in time", True)


async def test_whoever_may_not_send_is_asked_once_there_is_a_connection_and_sends_nothing() -> None:
    heard: list[bytes] = []

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionResetError):
            heard.append(await reader.read(100))
        ended.set()

    ended = asyncio.Event()

    def refuse() -> None:
        raise ConnectionFailed("this replica does not lead", sent=False)

    async with served(peer) as transport:
        with pytest.raises(ConnectionFailed, match="does not lead") as caught:
            await call(transport, before=refuse)
        await ended.wait()
    assert not caught.value.sent and heard in ([], [b""])


async def test_a_call_that_waits_for_a_connection_too_long_was_not_sent() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with served(peer, connections=1) as transport:
        first = asyncio.ensure_future(call(transport))
        await asyncio.sleep(0.05)
        with pytest.raises(ConnectionFailed) as caught:
            await call(transport, timeout=0.05)
        assert not caught.value.sent
        first.cancel()


@pytest.mark.parametrize(
    "answer",
    [b"HTTP/1.1 abc\r\n\r\n", b"<html>", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", b""],
)
async def test_an_answer_that_is_none_leaves_the_outcome_open(answer: bytes) -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(answer)

    async with served(peer) as transport:
        with pytest.raises(ConnectionFailed) as caught:
            await call(transport)
    assert caught.value.sent


async def test_a_line_and_an_answer_without_end_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aiohttp_transport, "MAX_LINE", 1000)
    monkeypatch.setattr(aiohttp_transport, "MAX_ANSWER", 1000)

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"64\r\n" + b"x" * 100 + b"\r\n")
            await writer.drain()
            await asyncio.sleep(0)

    async with served(peer) as transport:
        with pytest.raises(ConnectionFailed, match="its answer is longer than 1000 bytes"):
            await call(transport)
        response = await transport.request("GET", "/watch")
        with pytest.raises(ConnectionFailed, match="a line is longer than 1000 bytes"):
            await anext(response.lines())
        await response.close()


@settings(max_examples=100)
@given(st.lists(st.binary(max_size=12).map(lambda text: text.replace(b"\n", b"-"))), st.lists(st.integers(1, 9)))
def test_lines_are_the_same_however_the_body_is_cut(lines: list[bytes], sizes: list[int]) -> None:
    body = b"\n".join(lines)

    async def chunks() -> AsyncIterator[bytes]:
        at = 0
        for size in sizes:
            yield body[at : at + size]
            at += size
        yield body[at:]

    async def read() -> list[bytes]:
        return [line async for found in cut_into_lines(chunks()) for line in found]

    expected = body.split(b"\n")
    assert asyncio.run(read()) == (expected if expected[-1] else expected[:-1])
