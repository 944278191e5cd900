"""The API server over HTTP, on loopback: aiohttp reads and writes, the handler answers.

A client that goes away ends the watch it had. A watch that the server ends, ends whole.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from policyengine.simulator.api_server.access.authentication import user_of
from policyengine.simulator.api_server.handler import ApiServer, error_response
from policyengine.simulator.api_server.http_requests import ConnectionDropped, Request, Response
from policyengine.simulator.api_server.statuses import MAX_BODY, internal, too_large

HOST = "127.0.0.1"
MAX_HEAD = 1024 * 1024
"""Bytes of a request's line, and of a header, as Go's server has it for both together."""
IDLE_SECONDS = 120.0
"""How long a connection may be without a request: longer than clients keep theirs."""
STOP_SECONDS = 0.5
"""How long a request under way may take once the server stops."""
_log = logging.getLogger(__name__)


class PortInUse(OSError):
    """The port asked for is taken; the message says which and what to do."""


@dataclass(slots=True)
class Site:
    """A running server."""

    url: str
    host: str
    port: int
    _api: ApiServer
    _server: asyncio.Server
    _web: web.Server

    async def stop(self) -> None:
        """Stop serving; open watches end."""
        self._server.close()
        self._api.end_watches()
        await self._web.shutdown(STOP_SECONDS)


async def serve(api: ApiServer, port: int = 0, tls: ssl.SSLContext | None = None) -> Site:
    """Serve `api`; port 0 picks a free one. Raises PortInUse."""
    loop = asyncio.get_running_loop()

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        return await _answer(api, request)

    def make(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
        return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=MAX_BODY)

    served = web.Server(
        handle,
        request_factory=make,
        handler_cancellation=True,
        access_log=None,
        keepalive_timeout=IDLE_SECONDS,
        max_line_size=MAX_HEAD,
        max_field_size=MAX_HEAD,
    )
    try:
        server = await loop.create_server(served, HOST, port, ssl=tls, backlog=512)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            why = f"port {port} on `{HOST}` is in use: choose another with --port, or 0 for any free one"
            raise PortInUse(why) from error
        raise
    taken = server.sockets[0].getsockname()[1]
    api.address = f"{HOST}:{taken}"
    return Site(f"{'https' if tls else 'http'}://{HOST}:{taken}", HOST, taken, api, server, served)


async def _answer(api: ApiServer, request: web.BaseRequest) -> web.StreamResponse:
    assert request.transport is not None
    if request.headers.get("Expect", "").lower() == "100-continue":
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    try:
        response = await _handled(api, request)
        if isinstance(response.body, bytes):
            return web.Response(status=response.status, headers=response.headers, body=response.body)
        return await _stream(request, response, response.body)
    except ConnectionDropped:
        request.transport.abort()
        raise


async def _handled(api: ApiServer, request: web.BaseRequest) -> Response:
    try:
        body = await request.read() if request.can_read_body else b""
        headers = {name.lower(): value for name, value in request.headers.items()}
        user = user_of(request.get_extra_info("peercert"))
        return await api.handle(Request(request.method, request.path, dict(request.query), headers, body, user))
    except web.HTTPRequestEntityTooLarge:
        return error_response(too_large())
    except ConnectionDropped:
        raise
    except Exception:
        _log.exception("a bug: %s %s", request.method, request.path)
        return error_response(internal("the server failed"))


async def _stream(request: web.BaseRequest, response: Response, pieces: AsyncIterator[bytes]) -> web.StreamResponse:
    sent = web.StreamResponse(status=response.status, headers=response.headers)
    await sent.prepare(request)
    try:
        async for piece in pieces:
            await sent.write(piece)
    finally:
        closer = getattr(pieces, "aclose", None)
        if closer is not None:
            await closer()
    await sent.write_eof()
    return sent
