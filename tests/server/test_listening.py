"""A port of ours: bounded in connections and time, given back; or one sentence about why it cannot be had."""

import asyncio
import socket
from contextlib import suppress
from pathlib import Path

import pytest
from aiohttp import web

from policyengine.server.certificate import CertificateFiles
from policyengine.server.listening import (
    RESERVED,
    CannotListen,
    Patience,
    listening,
)
from tests.simulator.api_server.keys import Keys


def application() -> web.Application:
    async def page(request: web.Request) -> web.Response:
        return web.Response(text="here")

    found = web.Application()
    found.router.add_get("/", page)
    return found


GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
PROBE = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def connected(port: int, peer: str = "127.0.0.1") -> Connection:
    return await asyncio.open_connection("127.0.0.1", port, local_addr=(peer, 0))


async def asked(connection: Connection, request: bytes = GET) -> bytes:
    """What is answered on a connection; nothing where it is closed."""
    reader, writer = connection
    try:
        writer.write(request)
        return await asyncio.wait_for(reader.read(1024), 10)
    except ConnectionError:
        return b""


async def ended(connection: Connection) -> bool:
    """Whether the server closes the connection before long, without a word."""
    return await asked(connection, b"") == b""


async def test_the_connection_that_waited_longest_gives_way_to_a_new_one() -> None:
    async with listening(application(), "127.0.0.1:0", None, 4, 0.1) as port:
        first, second = await connected(port), await connected(port)
        assert b"here" in await asked(second) and b"here" in await asked(first)
        third = await connected(port)
        assert b"here" in await asked(third) and await ended(second)
        assert b"here" in await asked(first)


async def test_connections_that_come_all_at_once_are_all_accepted() -> None:
    """A dropped one is asked for again after a second, and a probe among them is late by that."""
    async with listening(application(), "127.0.0.1:0", None, 4, 0.1) as port:
        at_once = [socket.create_connection(("127.0.0.1", port), timeout=0.5) for _ in range(300)]
        assert b"here" in await asked(await connected(port, "127.0.0.2"))
        for one in at_once:
            one.close()


async def test_a_peer_takes_no_places_from_others() -> None:
    async with listening(application(), "127.0.0.1:0", None, 4, 0.1) as port:
        quiet = [await connected(port, "127.0.0.2") for _ in range(2)]
        assert all([b"here" in await asked(one) for one in quiet])
        for _ in range(20):
            assert b"here" in await asked(await connected(port, "127.0.0.3"))
        assert all([b"here" in await asked(one) for one in quiet])


async def test_requests_under_way_leave_room_for_probes() -> None:
    go_on, under_way, found = asyncio.Event(), asyncio.Semaphore(0), application()

    async def slow(request: web.Request) -> web.Response:
        under_way.release()
        await go_on.wait()
        return web.Response(text="slow")

    async def healthz(request: web.Request) -> web.Response:
        return web.Response(text="ok")

    found.router.add_get("/slow", slow)
    found.router.add_get("/healthz", healthz)
    async with listening(found, "127.0.0.1:0", None, 2 * (RESERVED + 2), 1.0) as port:
        waiting = [asyncio.create_task(asked(await connected(port), GET.replace(b"/", b"/slow", 1))) for _ in range(2)]
        for _ in waiting:
            await under_way.acquire()
        assert b"503" in await asked(await connected(port))
        idle = [await connected(port) for _ in range(3 * RESERVED)]
        assert b"ok" in await asked(await connected(port), PROBE)
        go_on.set()
        assert all(b"slow" in one for one in await asyncio.gather(*waiting))
        assert b"here" in await asked(idle[-1])


SHORT = Patience(first_byte=0.2, headers=0.2, body=0.2, idle=0.2)
POST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n"


@pytest.mark.parametrize(
    "request_", [b"", GET[:5], GET[:-2], POST, POST + b"x"], ids=["first byte", "line", "headers", "body", "more body"]
)
async def test_a_request_that_does_not_come_in_time_is_given_up(request_: bytes) -> None:
    found = application()

    async def read(request: web.Request) -> web.Response:
        return web.Response(body=await request.read())

    found.router.add_post("/", read)
    async with listening(found, "127.0.0.1:0", None, 4, 0.1, SHORT) as port:
        assert await asked(await connected(port), request_) == b""


async def test_a_client_that_leaves_within_a_body_leaves_no_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    found, left = application(), asyncio.Event()

    async def read(request: web.Request) -> web.Response:
        try:
            return web.Response(body=await request.read())
        finally:
            left.set()

    found.router.add_post("/", read)
    async with listening(found, "127.0.0.1:0", None, 4, 0.1) as port:
        _, writer = await connected(port)
        writer.write(POST)
        await asyncio.sleep(0.1)
        writer.transport.abort()
        await asyncio.wait_for(left.wait(), 10)
        await asyncio.sleep(0.1)
    assert not caplog.records


async def test_a_client_that_dribbles_gains_no_time() -> None:
    async with listening(application(), "127.0.0.1:0", None, 4, 0.1, SHORT) as port:
        reader, writer = await connected(port)
        answer = asyncio.create_task(reader.read())
        async with asyncio.timeout(10):
            writer.write(GET[:-2])
            while not answer.done():
                writer.write(b"X: y\r\n")
                await asyncio.sleep(0.02)
        with suppress(ConnectionError):
            assert answer.result() == b""


async def test_a_handshake_that_does_not_come_in_time_is_given_up(tmp_path: Path) -> None:
    tls = CertificateFiles(*Keys(tmp_path).sign("one", "/CN=127.0.0.1"))
    async with listening(application(), "127.0.0.1:0", tls, 4, 0.1, SHORT) as port:
        assert await ended(await connected(port))


async def test_an_idle_connection_ends_and_one_whose_answer_takes_long_does_not() -> None:
    found = application()

    async def slow(request: web.Request) -> web.Response:
        await asyncio.sleep(1.0)
        return web.Response(text="slow")

    found.router.add_get("/slow", slow)
    async with listening(found, "127.0.0.1:0", None, 4, 0.1, SHORT) as port:
        connection = await connected(port)
        assert b"slow" in await asked(connection, GET.replace(b"/", b"/slow", 1))
        assert await ended(connection)


async def test_the_port_is_free_again_afterwards() -> None:
    async with listening(application(), "127.0.0.1:0", None, 2, 0.1) as port:
        pass
    async with listening(application(), f"127.0.0.1:{port}", None, 2, 0.1) as again:
        assert again == port


async def test_a_port_that_is_taken_is_said_to_be_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(CannotListen) as raised:
            async with listening(application(), address, None, 2, 0.1):
                pass
    assert str(raised.value) == f"cannot listen on `{address}`: address already in use; choose another --listen"
