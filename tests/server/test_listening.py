"""A port of ours: bounded, given back, or one sentence about why it or its certificate cannot be had."""

import asyncio
import socket
import ssl
from pathlib import Path

import pytest
from aiohttp import web

from policyengine.server.listening import CannotListen, CertificateUnusable, listening, server_context
from tests.simulator.api_server.keys import Keys, needs_openssl


def application() -> web.Application:
    async def page(request: web.Request) -> web.Response:
        return web.Response(text="here")

    found = web.Application()
    found.router.add_get("/", page)
    return found


async def asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """What is answered on a connection; nothing where it is closed."""
    writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    try:
        return await asyncio.wait_for(reader.read(1024), 10)
    except ConnectionError:
        return b""


async def test_a_connection_over_the_limit_is_closed_and_the_others_are_served() -> None:
    async with listening(application(), "127.0.0.1:0", None, 2, 0.1) as port:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        assert all([b"here" in await asked(*one) for one in held])
        over = await asyncio.open_connection("127.0.0.1", port)
        assert await asyncio.wait_for(over[0].read(), 10) == b""
        held[0][1].close()
        await held[0][1].wait_closed()
        async with asyncio.timeout(10):
            while b"here" not in await asked(*await asyncio.open_connection("127.0.0.1", port)):  # noqa: ASYNC110  (polled over the port)
                await asyncio.sleep(0.01)


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


def problem(certificate: Path, key: Path | None) -> str:
    with pytest.raises(CertificateUnusable) as caught:
        server_context(certificate, key)
    return str(caught.value)


@needs_openssl
def test_a_certificate_and_its_key_are_shown_with_no_old_protocol(tmp_path: Path) -> None:
    context = server_context(*Keys(tmp_path).sign("one", "/CN=127.0.0.1"))
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2


@needs_openssl
def test_files_that_cannot_be_read_are_told_apart(tmp_path: Path) -> None:
    certificate, key = Keys(tmp_path).sign("one", "/CN=127.0.0.1")
    absent = tmp_path / "absent"
    assert problem(absent, key) == f"certificate `{absent}` cannot be used: no such file or directory"
    assert problem(certificate, absent) == f"key `{absent}` cannot be used: no such file or directory"
    assert "is a directory" in problem(tmp_path, key)


@needs_openssl
def test_files_that_hold_something_else_are_told(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    certificate, _ = keys.sign("one", "/CN=127.0.0.1")
    _, other = keys.sign("other", "/CN=127.0.0.1")
    assert problem(certificate, other).endswith(f"with key `{other}`: they do not belong together")
    assert problem(certificate, None).endswith("with a key in the same file: both must be PEM")
