"""A port of ours: its certificate, bounds on its connections and on the memory of bodies, and why it cannot be had.

Rules:
1. Each step of a connection has its time: the first byte (of TLS too), the headers, the body, the next request.
   A request that is whole may take as long as its answer takes.
2. When all places are taken, a new connection gets the place of the one that has waited longest for its client.
   A peer that holds half of the places loses one of its own, so that it takes none from others.
3. Probes are always answered: `RESERVED` places stay free of other requests under way.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from aiohttp import StreamReader, web
from aiohttp.http import HttpProcessingError
from yarl import URL

from policyengine.server.callers import Callers, Handler, Reviewer, is_probe
from policyengine.server.certificate import ServingCertificate


class Patience(NamedTuple):
    """Seconds that a client is given for each step."""

    first_byte: float
    headers: float
    body: float
    idle: float
    """More than the 90 of Go's clients, so that they do not meet a connection that is being closed."""


PATIENCE = Patience(10.0, 10.0, 60.0, 120.0)
MAX_CONNECTIONS = 256
BACKLOG = 4096
"""Connections that may wait to be accepted. Linux drops what comes beyond: its client, a probe too, asks again after a
second. It is Linux' own limit, and more than `most`, as who waits longest gives way only to who is accepted."""
RESERVED = 8
LINGERING = 1.0
"""Seconds for which the rest of a refused body is read, so that the client sees the answer."""


class CannotListen(Exception):
    """A server's port, or its certificate, cannot be had; one sentence that says what to do."""


@asynccontextmanager
async def listening(
    application: web.Application,
    address: str,
    tls: ServingCertificate | None,
    most: int,
    shutdown: float,
    patience: Patience = PATIENCE,
    client_names: Collection[str] = (),
    reviewer: Reviewer | None = None,
) -> AsyncIterator[int]:
    """The application at `address` (HOST:PORT; without a host on every one), while the block runs; gives the port.

    At most `most` connections are held, as the head of this file says. Requests under way are given `shutdown` seconds
    at the end. Where `tls` asks clients for certificates they must bear one of `client_names`, if there are any; the
    `reviewer` is asked about tokens. Raises `CannotListen`.
    """
    host, _, port = address.rpartition(":")
    places = _Places(most, patience)
    callers = Callers(tls is not None and tls.asks_clients, client_names, reviewer)
    application.middlewares.extend((places.admit, callers.guard))
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=shutdown)
    await runner.setup()
    server, loop = runner.server, asyncio.get_running_loop()
    assert server is not None
    server.request_factory = partial(_request, server.request_factory)
    handshake = patience.first_byte if tls is not None else None
    try:
        try:
            site = await loop.create_server(
                lambda: _Connection(server, places, loop),
                host.strip("[]") or None,
                int(port),
                ssl=None if tls is None else tls.context,
                backlog=BACKLOG,
                ssl_handshake_timeout=handshake,
            )
        except OSError as error:
            raise CannotListen(f"cannot listen on `{address}`: {_reason(error)}; choose another --listen") from None
        beside = [asyncio.create_task(places.sweep())]
        if tls is not None:
            beside.append(asyncio.create_task(tls.follow()))
        try:
            yield site.sockets[0].getsockname()[1]
        finally:
            site.close()
            for task in beside:
                task.cancel()
    finally:
        await runner.cleanup()


def _request(make: Callable[..., web.BaseRequest], message: Any, *rest: Any) -> web.BaseRequest:
    """A request. aiohttp's parser takes a `CONNECT` to nobody for one without a URL, on which its handler would die."""
    return make(message if message.url is not None else message._replace(url=URL("/")), *rest)


def _reason(error: OSError) -> str:
    """Why a port cannot be had; asyncio tells the address before it, which is said already."""
    return (error.strerror or str(error)).rpartition("): ")[2].lower()


_Phase = Literal["first_byte", "headers", "body", "answered", "idle"]
"""What a connection waits for; its answer is worked out, or is nobody's to wait for, while it is `answered`."""


class _Connection(web.RequestHandler):
    """aiohttp's connection, with what it waits for and since when."""

    __slots__ = ("_places", "body", "peer", "phase", "since")

    def __init__(self, server: web.Server, places: _Places, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(server, loop=loop, access_log=None, lingering_time=LINGERING, auto_decompress=False)  # type: ignore[arg-type]  # no log
        self._places = places
        self.peer = ""
        self.body: StreamReader | None = None
        self.enter("first_byte")

    def enter(self, phase: _Phase) -> None:
        """It waits for something else from now on."""
        self.phase = phase
        self.since = self._loop.time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a place, or end."""
        super().connection_made(transport)
        self.peer = str((transport.get_extra_info("peername") or ("",))[0])
        if not self._places.take(self):
            self.end()

    def data_received(self, data: bytes) -> None:
        """Read on, and see whether a request begins or its body is whole."""
        if self.phase in ("first_byte", "idle"):
            self.enter("headers")
        super().data_received(data)
        if self.phase == "body" and self.body is not None and self.body.is_eof():
            self.enter("answered")

    def connection_lost(self, exc: BaseException | None) -> None:
        """Give the place back."""
        self._places.give_back(self)
        super().connection_lost(exc)

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Say nothing of what is no HTTP, or ends within: whoever reaches the port could fill the log with it."""
        if not isinstance(kw.get("exc_info"), HttpProcessingError | ConnectionResetError):
            super().log_exception(*args, **kw)

    def end(self) -> None:
        """Close at once, whatever is under way."""
        transport = self.transport
        if isinstance(transport, asyncio.Transport):
            transport.abort()


class _Places:
    """Who is connected, who gives way to a new connection, and whose time is over."""

    def __init__(self, most: int, patience: Patience) -> None:
        self._most = most
        self._share = max(1, most // 2)
        self._requests = max(1, self._share - RESERVED)
        self._patience = patience
        self._held: dict[_Connection, None] = {}
        self._under_way = 0

    def take(self, new: _Connection) -> bool:
        """Whether there is a place, if need be that of the connection that has waited longest."""
        crowd = [one for one in self._held if one.peer == new.peer]
        if len(crowd) < self._share:
            crowd = list(self._held) if len(self._held) >= self._most else []
        if crowd:
            waiting = [one for one in crowd if one.phase != "answered"]
            if not waiting:
                return False
            longest = min(waiting, key=attrgetter("since"))
            self.give_back(longest)
            longest.end()
        self._held[new] = None
        return True

    def give_back(self, gone: _Connection) -> None:
        """Its place is free."""
        self._held.pop(gone, None)

    async def sweep(self) -> None:
        """End the connections whose time is over, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(1.0, *self._patience))
            now = loop.time()
            for one in list(self._held):
                if one.phase != "answered" and now - one.since > getattr(self._patience, one.phase):
                    one.end()

    @web.middleware
    async def admit(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a request if it is a probe, or so many are not under way; note when it begins and ends."""
        connection = request.protocol
        assert isinstance(connection, _Connection)
        connection.body = request.content
        connection.enter("answered" if request.content.is_eof() else "body")
        try:
            if is_probe(request):
                return await handler(request)
            if self._under_way >= self._requests:
                return web.Response(status=503, text="too many requests are under way; ask again\n")
            self._under_way += 1
            try:
                return await handler(request)
            finally:
                self._under_way -= 1
        finally:
            connection.body = None
            connection.enter("idle")


class BodyRefused(Exception):
    """A body is not read to its end: an HTTP status and a sentence."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class Bodies:
    """What is in hand of the bodies of a server: at most `most` bytes of one, `together` bytes of all."""

    def __init__(self, most: int, together: int) -> None:
        self._most = most
        self._together = together
        self._held = 0

    @asynccontextmanager
    async def read(self, request: web.Request) -> AsyncIterator[bytearray]:
        """The body, while the block runs; not copied. Raises `BodyRefused`, of a body known to be too long, or packed,
        before it is read: to unpack one takes a thousand times what it takes to send."""
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise BodyRefused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the body is packed; send it as it is")
        if (request.content_length or 0) > self._most:
            raise self._too_long()
        body = bytearray()
        try:
            async for chunk in _chunks(request):
                self._held += len(chunk)
                body += chunk
                if len(body) > self._most:
                    raise self._too_long()
                if self._held > self._together:
                    message = f"the requests in hand take {self._together} bytes together; ask again"
                    raise BodyRefused(HTTPStatus.SERVICE_UNAVAILABLE, message)
            yield body
        finally:
            self._held -= len(body)

    def _too_long(self) -> BodyRefused:
        return BodyRefused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is longer than {self._most} bytes")


async def _chunks(request: web.Request) -> AsyncIterator[bytes]:
    """The body as it comes. Raises `BodyRefused`."""
    try:
        async for chunk in request.content.iter_any():
            yield chunk
    except (web.RequestPayloadError, ConnectionError):
        raise BodyRefused(HTTPStatus.BAD_REQUEST, "the body breaks off, or is not framed as HTTP has it") from None
