"""One HTTP/1.1 connection of the server: llhttp (`httptools`) reads requests, the handler answers them in order.

A binding costs the handler less than a general web server's request objects would; this is what a short request needs
and no more. Rules this file owns:

1. One request is answered at a time; those sent ahead wait in order, and reading stops while too many do.
2. A client that goes away ends the watch it had; a request that is under way is finished by the handler or not at all.
3. What is no HTTP gets the real server's bare 400 and the connection closed; bodies over the limit are passed over.
4. Nobody holds a connection for nothing: `sweep` closes idle ones, and requests that never end.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import cast
from urllib.parse import parse_qsl, unquote

import httptools

from policyengine.simulator.api_server.access.authentication import user_of
from policyengine.simulator.api_server.faults import ConnectionDropped
from policyengine.simulator.api_server.handler import ApiServer, error_response
from policyengine.simulator.api_server.requests import Request, Response, User
from policyengine.simulator.api_server.statuses import MAX_BODY, internal, too_large

MAX_HEAD = 1024 * 1024
"""Bytes of a request's line and headers, as Go's server has it."""
MAX_AHEAD = 32
"""Requests a client may send before their answers; then nothing more is read until one is answered."""
IDLE_SECONDS = 120.0
"""How long a connection may be without a request: longer than clients keep theirs."""
_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n" for status in HTTPStatus}
_BARE = "HTTP/1.1 {0}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n{0}"
_NO_HTTP = _BARE.format("400 Bad Request").encode()
_NO_HOST = _NO_HTTP + b": missing required Host header"
_HEAD_TOO_LARGE = _BARE.format("431 Request Header Fields Too Large").encode()
_LAST_CHUNK = b"0\r\n\r\n"
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Asked:
    """A whole request, and how its answer is to be sent."""

    request: Request
    too_large: bool
    keep_alive: bool
    chunked: bool
    """Whether the client knows chunks (HTTP/1.1); else the connection's end is the body's."""


class Connection(asyncio.Protocol):
    """One client. Also what httptools' parser calls back."""

    def __init__(self, api: ApiServer, connections: set[Connection]) -> None:
        self._api = api
        self._connections = connections
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None
        self._user: User | None = None
        self._waiting: deque[_Asked] = deque()
        self._arrived: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._busy = False
        self._last = 0.0
        self._begin()

    def _begin(self) -> None:
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._head_size = self._body_size = 0

    # ---- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there; its certificate says who it is."""
        self._transport = cast(asyncio.Transport, transport)
        self._user = user_of(transport.get_extra_info("peercert"))
        self._connections.add(self)
        self._last = asyncio.get_running_loop().time()
        self._task = asyncio.ensure_future(self._serve())

    def data_received(self, data: bytes) -> None:
        """Bytes of requests."""
        assert self._transport is not None
        if self._transport.is_closing():
            return
        self._head_size += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # Nothing is upgraded here; the request was answered as any other, and what follows is not HTTP.
            return
        except httptools.HttpParserError:
            self._refuse(_NO_HTTP)
            return
        if self._head_size > MAX_HEAD:
            self._refuse(_HEAD_TOO_LARGE)

    def _refuse(self, answer: bytes) -> None:
        """What is no request gets a bare answer, and ends the connection after those before it."""
        assert self._transport is not None
        if not self._busy and not self._waiting:
            self._transport.write(answer)
        self._transport.close()

    def pause_writing(self) -> None:
        """The client reads slower than a stream is written."""
        self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        """It has caught up."""
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    def connection_lost(self, exc: Exception | None) -> None:
        """The client went away, or was sent away."""
        self._connections.discard(self)
        if self._task is not None:
            self._task.cancel()

    # ---- httptools

    def on_url(self, url: bytes) -> None:
        """A part of the request's target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header; repeated ones are one."""
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        self._headers[key] = f"{self._headers[key]}, {text}" if key in self._headers else text

    def on_headers_complete(self) -> None:
        """The body comes next; a client may wait for the word."""
        self._head_size = 0
        if self._headers.get("expect", "").lower() == "100-continue" and not self._busy and not self._waiting:
            assert self._transport is not None
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, part: bytes) -> None:
        """A part of the body; what is over the limit is passed over."""
        self._head_size = 0
        self._body_size += len(part)
        if self._body_size <= MAX_BODY:
            self._body.append(part)

    def on_message_complete(self) -> None:
        """A whole request."""
        if self._transport is None or self._transport.is_closing():
            return
        version = self._parser.get_http_version()
        if version == "1.1" and "host" not in self._headers:
            self._refuse(_NO_HOST)
            return
        path, query = _target(self._url)
        over = self._body_size > MAX_BODY
        body = b"" if over else self._body[0] if len(self._body) == 1 else b"".join(self._body)
        method = self._parser.get_method().decode("ascii")
        request = Request(method, path, query, self._headers, body, self._user)
        self._waiting.append(_Asked(request, over, self._parser.should_keep_alive(), version == "1.1"))
        self._begin()
        if len(self._waiting) > MAX_AHEAD:
            self._transport.pause_reading()
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    # ---- answering

    async def _serve(self) -> None:
        """Answer every request in turn until one of both sides has enough."""
        assert self._transport is not None
        loop = asyncio.get_running_loop()
        try:
            while True:
                if not self._waiting:
                    self._arrived = loop.create_future()
                    await self._arrived
                asked = self._waiting.popleft()
                self._busy = True
                if len(self._waiting) == MAX_AHEAD:
                    self._transport.resume_reading()
                await self._answer(asked)
                self._busy = False
                self._last = loop.time()
                if not asked.keep_alive or self._transport.is_closing():
                    self._transport.close()
                    return
        except ConnectionDropped:
            self._transport.abort()

    async def _answer(self, asked: _Asked) -> None:
        try:
            response = error_response(too_large()) if asked.too_large else await self._api.handle(asked.request)
        except ConnectionDropped:
            raise
        except Exception:
            _log.exception("a bug: %s %s", asked.request.method, asked.request.path)
            response = error_response(internal("the server failed"))
        assert self._transport is not None
        if isinstance(response.body, bytes):
            head = _head(response, f"Content-Length: {len(response.body)}\r\n", asked.keep_alive)
            self._transport.write(head if asked.request.method == "HEAD" else head + response.body)
        else:
            await self._stream(response, response.body, asked)

    async def _stream(self, response: Response, pieces: AsyncIterator[bytes], asked: _Asked) -> None:
        assert self._transport is not None
        asked.keep_alive = asked.keep_alive and asked.chunked
        coding = "Transfer-Encoding: chunked\r\n" if asked.chunked else ""
        self._transport.write(_head(response, coding, asked.keep_alive))
        try:
            if asked.request.method != "HEAD":
                await self._copy(pieces, asked.chunked)
        except asyncio.CancelledError:
            # The server stops: what was sent is whole.
            if asked.chunked and not self._transport.is_closing():
                self._transport.write(_LAST_CHUNK)
            raise
        finally:
            closer = getattr(pieces, "aclose", None)
            if closer is not None:
                await closer()

    async def _copy(self, pieces: AsyncIterator[bytes], chunked: bool) -> None:
        assert self._transport is not None
        async for piece in pieces:
            if self._writable is not None:
                await self._writable
            if piece:
                self._transport.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
        if chunked:
            self._transport.write(_LAST_CHUNK)

    # ---- ending

    def sweep(self, now: float) -> None:
        """Close the connection if nothing has been answered on it for long."""
        if not self._busy and now - self._last > IDLE_SECONDS and self._transport is not None:
            self._transport.close()

    async def stop(self) -> None:
        """End what is under way, then the connection."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._transport is not None:
            self._transport.close()


def _target(url: bytes) -> tuple[str, Mapping[str, str]]:
    """Path and query of a request's target; of a parameter given twice the first counts."""
    if not url.startswith(b"/"):
        parsed = httptools.parse_url(url)
        url = (parsed.path or b"/") + (b"?" + parsed.query if parsed.query else b"")
    path, _, query = url.decode("latin-1").partition("?")
    if "%" in path:
        path = unquote(path, errors="replace")
    return path, dict(reversed(parse_qsl(query, keep_blank_values=True))) if query else {}


def _head(response: Response, length: str, keep_alive: bool) -> bytes:
    lines = "".join([f"{name}: {_one_line(value)}\r\n" for name, value in response.headers.items()])
    end = "\r\n" if keep_alive else "Connection: close\r\n\r\n"
    date = _date(int(time.time()))
    return f"{_LINES[response.status]}{lines}{length}Date: {date}\r\n{end}".encode("latin-1", "replace")


@lru_cache(maxsize=4)
def _date(second: int) -> str:
    return formatdate(second, usegmt=True)


def _one_line(value: str) -> str:
    return value.replace("\r", " ").replace("\n", " ") if "\n" in value or "\r" in value else value
