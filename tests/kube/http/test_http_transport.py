import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from policyengine.kube.http.aiohttp_transport import AiohttpTransport
from policyengine.kube.http.http_transport import HttpTransport
from policyengine.kube.http.transport import ConnectionFailed, WholeAnswer, post_all_of

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
Kind = type[HttpTransport] | type[AiohttpTransport]


@pytest.fixture(params=[HttpTransport, AiohttpTransport])
def kind(request: pytest.FixtureRequest) -> Any:
    """The transport of our own, and the one for proxies: each keeps what `Transport` says."""
    return request.param


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


async def lines_of(kind: Kind, server: str, path: str = "/") -> list[bytes]:
    transport = kind(server)
    try:
        response = await transport.request("GET", path)
        return [line async for line in response.lines()]
    finally:
        await transport.close()


async def test_a_refused_connection_was_never_sent(kind: Kind) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        server = f"http://127.0.0.1:{probe.getsockname()[1]}"
    with pytest.raises(ConnectionFailed) as caught:
        await lines_of(kind, server)
    assert caught.value.sent is False


async def test_a_connection_cut_before_the_answer_may_have_been_sent(kind: Kind) -> None:
    async def cut(request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async with answering(cut) as server:
        transport = kind(server)
        with pytest.raises(ConnectionFailed) as caught:
            await transport.request("POST", "/x", body=b"{}")
        await transport.close()
    assert caught.value.sent is True


async def test_an_answer_that_takes_too_long_leaves_the_outcome_open(kind: Kind) -> None:
    never = asyncio.Event()

    async def silent(request: web.BaseRequest) -> web.StreamResponse:
        await never.wait()
        return web.Response()

    async with answering(silent) as server:
        transport = kind(server)
        with pytest.raises(ConnectionFailed, match="no answer in time") as caught:
            await transport.request("POST", "/x", body=b"{}", timeout=0.05)
        await transport.close()
        never.set()
    assert caught.value.sent is True


async def test_lines_come_whole_however_the_server_cuts_them(kind: Kind) -> None:
    async def streaming(request: web.BaseRequest) -> web.StreamResponse:
        out = web.StreamResponse()
        await out.prepare(request)
        for part in (b"on", b"e\ntwo\nth", b"ree\n", b"unfinished"):
            await out.write(part)
        await out.write_eof()
        return out

    async with answering(streaming) as server:
        assert await lines_of(kind, server) == [b"one", b"two", b"three", b"unfinished"]


async def test_a_stream_that_breaks_raises(kind: Kind) -> None:
    async def breaking(request: web.BaseRequest) -> web.StreamResponse:
        out = web.StreamResponse()
        await out.prepare(request)
        await out.write(b"one\ntw")
        assert request.transport is not None
        request.transport.abort()
        return out

    async with answering(breaking) as server:
        with pytest.raises(ConnectionFailed):
            await lines_of(kind, server)


async def test_query_values_and_paths_are_encoded_once(kind: Kind) -> None:
    async def echo(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text=f"{request.rel_url.path} {request.rel_url.query['fieldSelector']}")

    async with answering(echo) as server:
        transport = kind(server)
        query = {"fieldSelector": "status.phase!=Succeeded,a=b c&d%20"}
        response = await transport.request("GET", "/api/v1/a b", query=query)
        assert await response.read() == b"/api/v1/a b status.phase!=Succeeded,a=b c&d%20"
        await transport.close()


async def test_a_401_is_asked_again_once_with_fresh_credentials(kind: Kind) -> None:
    asked: list[bool] = []

    async def authorize(fresh: bool) -> Mapping[str, str]:
        asked.append(fresh)
        return {"Authorization": "Bearer new" if fresh else "Bearer old"}

    async def guarded(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=200 if request.headers["Authorization"] == "Bearer new" else 401)

    async with answering(guarded) as server:
        transport = kind(server, authorize=authorize)
        assert (await transport.request("GET", "/")).status == 200
        await transport.close()
    assert asked == [False, True]


async def test_what_is_posted_together_and_refused_for_its_credentials_is_posted_once_more(kind: Kind) -> None:
    valid = held = "old"

    async def authorize(fresh: bool) -> Mapping[str, str]:
        nonlocal held
        held = valid if fresh else held
        return {"Authorization": held}

    arrived: list[str] = []

    async def guarded(request: web.BaseRequest) -> web.StreamResponse:
        if request.headers["Authorization"] != valid:
            return web.Response(status=401)
        arrived.append(await request.text())
        return web.Response(status=409 if arrived[-1] == "b3" else 201)

    async with answering(guarded) as server:
        transport = kind(server, authorize=authorize)
        for token in ("old", "new"):
            valid = token
            told: dict[int, int] = {}

            def tell(at: int, outcome: WholeAnswer | ConnectionFailed, told: dict[int, int] = told) -> None:
                assert not isinstance(outcome, ConnectionFailed) and at not in told
                told[at] = outcome.status

            await post_all_of(transport)([("/x", b"b%d" % number) for number in range(5)], tell, seconds=5.0)
            assert told == {0: 201, 1: 201, 2: 201, 3: 409, 4: 201}
        await transport.close()
    assert sorted(arrived) == sorted([f"b{number}" for number in range(5)] * 2)


async def test_connections_are_kept_and_used_again(kind: Kind) -> None:
    peers = set()

    async def note(request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        peers.add(request.transport.get_extra_info("peername"))
        return web.Response(text="ok")

    async with answering(note) as server:
        transport = kind(server)
        for _ in range(5):
            response = await transport.request("GET", "/", timeout=5.0)
            await response.read()
            await response.close()
        await transport.close()
    assert len(peers) == 1
