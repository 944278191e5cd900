"""Short calls over HTTP/1.1 connections that are kept open: a request in one write, its answer in memory.

A scheduler writes two small objects for every pod it places. For those aiohttp's client costs more CPU than the
decision; here llhttp (`httptools`) reads the answers, and nothing is built that a short call does not need.

Rules:
1. A connection carries one request at a time and is used again only after a whole answer that lets it.
2. Whoever gives up waiting (a time-out, a cancelled task) closes the connection: a late answer can reach nobody else.
3. `ConnectionFailed.sent` is False only while no byte of the request was given to the socket.
4. Nothing is sent twice. A kept connection that the server closes just as it is used again makes an open outcome.
5. At most `limit` connections; further calls wait for one, first come, first served. The last one used is used
   again first, so that a quiet time lets the others go.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

import httptools

from policyengine.kube.transport import ConnectionFailed

CONNECT_TIMEOUT = 10.0
"""Seconds for the connection and its TLS handshake."""
IDLE = 60.0
"""Seconds for which an unused connection is kept; API servers keep theirs for longer."""
MAX_ANSWER = 16 * 1024 * 1024
"""Bytes of an answer; etcd keeps objects under 1.5 MiB, so a longer one is no answer of an API server."""
_HEADERS = {"User-Agent": "policyengine", "Accept": "application/json"}
"""What is sent unless a caller says otherwise."""


@dataclass(slots=True)
class Answer:
    """A whole answer."""

    status: int
    sent_headers: list[tuple[bytes, bytes]]
    """As they came; few answers are asked for theirs."""
    body: bytes

    @property
    def headers(self) -> Mapping[str, str]:
        """With names as in `Content-Type`; repeated ones are one, as RFC 9110 5.2 has it."""
        found: dict[str, str] = {}
        for name, value in self.sent_headers:
            key, text = name.decode("latin-1").title(), value.decode("latin-1")
            found[key] = f"{found[key]}, {text}" if key in found else text
        return found


class _Connection(asyncio.Protocol):
    """One connection. Also what httptools' parser calls back."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[Answer] | None = None
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._size = 0
        self.is_open = False
        self.idle_since = 0.0

    # ---- one exchange

    async def exchange(self, request: bytes, seconds: float | None) -> Answer:
        """Send a request; its answer. Raises `ConnectionFailed`, and is closed then."""
        assert self._transport is not None and self._answer is None
        loop = asyncio.get_running_loop()
        self._answer = loop.create_future()
        timer = None if seconds is None else loop.call_later(seconds, self._break, "no answer in time")
        try:
            self._transport.write(request)
            return await self._answer
        except asyncio.CancelledError:
            self.abort()
            raise
        finally:
            self._answer = None
            if timer is not None:
                timer.cancel()

    def abort(self) -> None:
        """Close at once, whatever is under way."""
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    def _break(self, why: str) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionFailed(why, sent=True))
        self.abort()

    # ---- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket, and TLS where asked for, are up."""
        self._transport = cast(asyncio.Transport, transport)
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        """Bytes of an answer; bytes that nobody asked for close the connection."""
        if self._answer is None:
            self.abort()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._break(f"the answer is not HTTP: {error}")

    def connection_lost(self, exc: Exception | None) -> None:
        """The other side closed, or the network did."""
        self.is_open = False
        text = getattr(exc, "strerror", None) or str(exc or "") or "the server closed the connection"
        self._break(text)

    # ---- httptools

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header of the answer."""
        self._headers.append((name, value))

    def on_body(self, part: bytes) -> None:
        """A piece of the answer's body."""
        self._size += len(part)
        if self._size > MAX_ANSWER:
            self._break(f"the answer is longer than {MAX_ANSWER} bytes")
        else:
            self._body.append(part)

    def on_message_complete(self) -> None:
        """The answer is whole; an interim one (1xx) is passed over."""
        status = self._parser.get_status_code()
        answer = Answer(status, self._headers, b"".join(self._body))
        self._headers, self._body, self._size = [], [], 0
        if status < 200:
            return
        self.is_open = self.is_open and self._parser.should_keep_alive()
        if self._answer is None or self._answer.done():
            self.abort()
        else:
            self._answer.set_result(answer)


class Connections:
    """Kept connections to one server. Use inside a running event loop."""

    def __init__(
        self, server: str, *, ssl_context: ssl.SSLContext | None, server_hostname: str | None, limit: int
    ) -> None:
        parts = urlsplit(server)
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._ssl = (ssl_context or True) if parts.scheme == "https" else None
        self._server_hostname = server_hostname if self._ssl is not None else None
        self._host_line = f"Host: {parts.netloc.rpartition('@')[2]}\r\n"
        self._path = parts.path.rstrip("/")
        self._limit = limit
        self._asked: tuple[tuple[str, str], ...] | None = None
        self._lines = ""
        self._open = 0
        self._idle: list[_Connection] = []
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._in_use: set[_Connection] = set()
        self._closed = False

    async def call(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes,
        seconds: float | None,
        before: Callable[[], None] | None = None,
    ) -> Answer:
        """Send one request and read its answer; `target` is percent-encoded. Raises `ConnectionFailed`.

        `seconds` bounds the exchange once there is a connection; `before` is called then, and may raise.
        """
        lines = self._lines_of(headers)
        head = f"{method} {self._path}{target} HTTP/1.1\r\n{lines}Content-Length: {len(body)}\r\n\r\n"
        connection = await self._acquire()
        self._in_use.add(connection)
        try:
            if before is not None:
                before()
            return await connection.exchange(head.encode("latin-1") + body, seconds)
        finally:
            self._in_use.discard(connection)
            self._release(connection)

    def _lines_of(self, headers: Mapping[str, str]) -> str:
        """The header lines that calls have in common, built once for as long as the same headers are asked for."""
        asked = tuple(headers.items())
        if asked != self._asked:
            lines = [f"{name}: {value}\r\n" for name, value in {**_HEADERS, **headers}.items()]
            self._asked, self._lines = asked, "".join([self._host_line, *lines])
        return self._lines

    async def close(self) -> None:
        """Close every connection; calls under way fail."""
        self._closed = True
        for connection in [*self._idle, *self._in_use]:
            connection.abort()
        self._idle.clear()
        await asyncio.sleep(0)

    async def _acquire(self) -> _Connection:
        """A connection that is open and free: a kept one, or a new one while there may be more."""
        while True:
            if self._closed:
                raise ConnectionFailed("the client is closed", sent=False)
            while self._idle:
                connection = self._idle.pop()
                if connection.is_open:
                    return connection
                self._open -= 1
            if self._open < self._limit:
                return await self._connect()
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._next()
                raise

    async def _connect(self) -> _Connection:
        self._open += 1
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                _, connection = await loop.create_connection(
                    _Connection, self._host, self._port, ssl=self._ssl, server_hostname=self._server_hostname
                )
        except BaseException as error:
            self._open -= 1
            self._next()
            if isinstance(error, TimeoutError):
                raise ConnectionFailed("no connection in time", sent=False) from error
            if isinstance(error, OSError | ssl.SSLError):
                raise ConnectionFailed(error.strerror or str(error) or type(error).__name__, sent=False) from error
            raise
        return connection

    def _release(self, connection: _Connection) -> None:
        if connection.is_open and not self._closed:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.append(connection)
            self._drop_stale(connection.idle_since)
        else:
            connection.abort()
            self._open -= 1
        self._next()

    def _drop_stale(self, now: float) -> None:
        """The front of the list was not used for longest."""
        while self._idle and now - self._idle[0].idle_since > IDLE:
            self._idle.pop(0).abort()
            self._open -= 1

    def _next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
