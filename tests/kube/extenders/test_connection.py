"""A request to an extender ends: at its time limit, at its size limit, or with one sentence about what went wrong."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from policyengine.kube.extenders import http_extender
from policyengine.kube.extenders.http_extender import ExtenderFailed, ExtenderUnusable, HttpExtender
from tests.kube.extenders.extender_world import configured

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def echo(request: web.Request) -> web.Response:
    return web.Response(body=request.path.encode() + b" " + await request.read())


async def moved(request: web.Request) -> web.Response:
    raise web.HTTPFound("/elsewhere")


async def never(request: web.Request) -> web.Response:
    await asyncio.sleep(30)
    raise AssertionError("nobody waits that long")


async def long(request: web.Request) -> web.Response:
    return web.Response(body=b" " * 5000)


@asynccontextmanager
async def connected(handler: Handler, **given: Any) -> AsyncIterator[HttpExtender]:
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    (completed,) = configured({"urlPrefix": f"http://127.0.0.1:{runner.addresses[0][1]}/ext/", **given})
    connection = HttpExtender(completed)
    yield connection
    await connection.close()
    await runner.cleanup()


@pytest.mark.parametrize("verb", ["filter", "/filter"])
async def test_a_verb_is_a_path_below_the_prefix(verb: str) -> None:
    async with connected(echo) as at:
        assert await at.post(verb, b"{}") == b"/ext/filter {}"


@pytest.mark.parametrize(
    ("handler", "told"),
    [
        (never, "did not answer within 0.3 s"),
        (long, "its answer is longer than 1000 bytes"),
        (moved, "answers with HTTP status 302"),
    ],
)
async def test_what_is_no_answer_in_time_and_size_is_a_failure_after_which_it_may_have_acted(
    handler: Handler, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_extender, "MAX_ANSWER", 1000)
    async with connected(handler, httpTimeout="300ms") as at:
        with pytest.raises(ExtenderFailed, match=told) as raised:
            await at.post("bind", b"{}")
        assert raised.value.sent


async def test_who_cannot_be_reached_has_not_acted() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        (given,) = configured({"urlPrefix": f"http://127.0.0.1:{probe.getsockname()[1]}"})
    connection = HttpExtender(given)
    with pytest.raises(ExtenderFailed, match="cannot be reached") as raised:
        await connection.post("bind", b"{}")
    await connection.close()
    assert not raised.value.sent


async def test_https_is_spoken_where_it_is_enabled_whatever_the_prefix_says() -> None:
    async with connected(echo, enableHTTPS=True, tlsConfig={"insecure": True}) as at:
        with pytest.raises(ExtenderFailed, match="`https://"):
            await at.post("filter", b"{}")


async def test_tls_files_that_cannot_be_used_are_said_to_be() -> None:
    (given,) = configured({"urlPrefix": "https://a", "tlsConfig": {"caFile": "/nowhere/ca.crt"}})
    with pytest.raises(ExtenderUnusable, match="extender `https://a`: its tlsConfig cannot be used: no such file"):
        HttpExtender(given)
