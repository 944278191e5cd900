"""The API server over HTTP: aiohttp in front of the handler, on loopback unless told otherwise.

aiohttp's low-level server is used, without its router: the handler knows the paths.
"""

import asyncio
import errno
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass

from aiohttp import web
from aiohttp.web_request import BaseRequest

from policyengine.simulator.api_server.faults import ConnectionDropped
from policyengine.simulator.api_server.handler import ApiServer, error_response
from policyengine.simulator.api_server.requests import Request, Response, User
from policyengine.simulator.api_server.statuses import MAX_BODY, too_large
from policyengine.simulator.api_server.tls import user_of


class PortInUse(OSError):
    """The port asked for is taken; the message says which and what to do."""


@dataclass(slots=True)
class Site:
    """A running server."""

    url: str
    host: str
    port: int
    _runner: web.ServerRunner

    async def stop(self) -> None:
        """Stop serving; open watches end."""
        await self._runner.cleanup()


class Front:
    """Carries requests between aiohttp and the handler."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api

    async def respond(self, incoming: BaseRequest) -> web.StreamResponse:
        """Answer one HTTP request."""
        headers: dict[str, str] = {}
        for name, value in incoming.headers.items():
            name = name.lower()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        body = await self._body(incoming)
        if body is None:
            return _plain(error_response(too_large()))
        url = incoming.rel_url
        request = Request(incoming.method, url.path, url.query, headers, body, _known(incoming))
        try:
            response = await self._api.handle(request)
        except ConnectionDropped:
            _cut(incoming)
            raise
        if isinstance(response.body, bytes):
            return _plain(response)
        return await self._stream(incoming, response, response.body)

    async def _body(self, incoming: BaseRequest) -> bytes | None:
        """The body, None where it is over the limit."""
        if not incoming.body_exists:
            return b""
        if incoming.content_length is not None and incoming.content_length > MAX_BODY:
            return None
        chunks: list[bytes] = []
        size = 0
        while chunk := await incoming.content.readany():
            size += len(chunk)
            if size > MAX_BODY:
                return None
            chunks.append(chunk)
        return b"".join(chunks)

    async def _stream(
        self, incoming: BaseRequest, response: Response, lines: AsyncIterator[bytes]
    ) -> web.StreamResponse:
        out = web.StreamResponse(status=response.status, headers=response.headers)
        out.enable_chunked_encoding()
        await out.prepare(incoming)
        try:
            async for chunk in lines:
                await out.write(chunk)
            await out.write_eof()
        except (ConnectionResetError, asyncio.CancelledError):
            pass
        except ConnectionDropped:
            _cut(incoming)
        finally:
            closer = getattr(lines, "aclose", None)
            if closer is not None:
                await closer()
        return out


def _known(incoming: BaseRequest) -> User | None:
    """Who the connection's certificate names."""
    transport = incoming.transport
    return user_of(transport.get_extra_info("peercert")) if transport is not None else None


def _plain(response: Response) -> web.Response:
    assert isinstance(response.body, bytes)
    return web.Response(status=response.status, headers=response.headers, body=response.body)


def _cut(incoming: BaseRequest) -> None:
    """Break the connection without an answer."""
    transport = incoming.transport
    if transport is not None:
        transport.abort()


async def serve(api: ApiServer, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None) -> Site:
    """Serve `api`; port 0 picks a free one. Raises PortInUse."""
    # A client that goes away cancels its handler: a watch nobody reads must not live on.
    server = web.Server(Front(api).respond, handler_cancellation=True, access_log=None)
    runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=1.0)
    await runner.setup()
    site = web.TCPSite(runner, host, port, ssl_context=tls, backlog=512)
    try:
        await site.start()
    except OSError as error:
        await runner.cleanup()
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(
                f"port {port} on `{host}` is in use: choose another with --port, or 0 for any free one"
            ) from error
        raise
    taken = runner.addresses[0][1]
    scheme = "https" if tls is not None else "http"
    api.address = f"{host}:{taken}"
    return Site(f"{scheme}://{host}:{taken}", host, taken, runner)
