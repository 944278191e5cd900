"""Calls over HTTP/1.1: short ones over connections that are kept open, a request and its answer both in memory; an
answer that is read while it arrives (`http_stream`) on a connection of its own.

A scheduler writes two small objects for every pod it places. For those aiohttp's client costs more CPU than the
decision; here nothing is built that a short call does not need, and what is left is mostly the sending itself. So
calls that are made together (`post_all`) share a connection and one write (`http_connection`).

Rules:
1. A connection carries one call at a time, or up to `TOGETHER` made together, and is used again only after whole
   answers that let it.
2. Calls behind each other on a connection are answered one after the other. So every call has a connection to itself
   while an answer takes longer than `QUICK`, and unless the server is `SWIFT`.
3. `ConnectionFailed.sent` is False only while no byte of the request was given to the socket.
4. Only a GET is sent twice: where a kept connection ends just as it is used again, before the first byte of an answer
   (RFC 9110 9.2.2; Go's net/http does so too). Of anything else that makes an open outcome.
5. At most `limit` connections for short calls, which else wait for one, first come, first served. The last one used
   is used again first, so that a quiet time lets the others go.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar
from urllib.parse import urlsplit

from policyengine.kube.http.http_connection import MAX_ANSWER, MAX_LIST, Answer, HttpConnection, Tell
from policyengine.kube.http.http_stream import HttpStream
from policyengine.kube.http.transport import ConnectionFailed

P = TypeVar("P", HttpConnection, HttpStream)

CONNECT_TIMEOUT = 10.0
"""Seconds for the connection and its TLS handshake."""
IDLE = 60.0
"""Seconds for which an unused connection is kept; API servers keep theirs for longer."""
TOGETHER = 32
"""Calls that one write may carry."""
QUICK = 0.05
"""Seconds for one answer, on average over the last few connections used, under which calls are sent together."""
SWIFT = 0.0004
"""Seconds of the server for one answer, on average over the last few, under which calls are sent together: most of its
work is sockets then. kube-apiserver takes longer on two cores, and is done with writes sooner when they come side by
side, since etcd does in one go what waits for it at once."""
_WEIGHT = 1 / 8
_HEADERS = {"User-Agent": "policyengine", "Accept": "application/json"}
"""What is sent unless a caller says otherwise."""


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
        self._idle: list[HttpConnection] = []
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._in_use: set[HttpConnection] = set()
        self._streams: set[HttpStream] = set()
        self._pace = QUICK
        """Seconds from a request to its answer."""
        self._service = SWIFT
        """Seconds from one answer to the next, whatever the connection."""
        self._closed = False

    async def call(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | None,
        seconds: float | None,
        before: Callable[[], None] | None = None,
    ) -> Answer:
        """Send one request and read its answer; `target` is percent-encoded. Raises `ConnectionFailed`.

        `seconds` bounds the exchange once there is a connection; `before` is called then, and may raise.
        """
        found: list[Answer | ConnectionFailed] = []

        def told(at: int, outcome: Answer | ConnectionFailed) -> None:
            found.append(outcome)

        if body is None:
            requests = [self._request(method, target, headers)]
        else:
            requests = self._requests(method, [(target, body)], headers)
        if method == "GET":
            await self._get(requests, seconds, before, told)
        else:
            await self._exchange(requests, seconds, before, told)
        outcome = found[-1]
        if isinstance(outcome, ConnectionFailed):
            raise outcome
        return outcome

    async def _get(
        self, request: Sequence[bytes], seconds: float | None, before: Callable[[], None] | None, tell: Tell
    ) -> None:
        """Send a request once more as long as a kept connection ends unheard, within the same time: each turn but the
        last uses up one of these."""
        loop = asyncio.get_running_loop()
        deadline = None if seconds is None else loop.time() + seconds
        while await self._exchange(request, seconds, before, tell, MAX_LIST):
            if deadline is not None:
                seconds = deadline - loop.time()
                if seconds <= 0:
                    return

    async def stream(
        self, method: str, target: str, headers: Mapping[str, str], before: Callable[[], None] | None = None
    ) -> HttpStream:
        """Send one request without a body; returns when the headers of its answer are in. Raises `ConnectionFailed`."""
        if self._closed:
            raise ConnectionFailed("the client is closed", sent=False)
        stream = await self._connected(lambda: HttpStream(self._streams.discard))
        self._streams.add(stream)
        try:
            if before is not None:
                before()
        except BaseException:
            stream.abort()
            raise
        await stream.ask(self._request(method, target, headers))
        return stream

    async def post_all(
        self,
        posts: Sequence[tuple[str, bytes]],
        headers: Mapping[str, str],
        seconds: float | None,
        before: Callable[[], None] | None,
        tell: Tell,
    ) -> None:
        """POST bodies to targets, in this order where they are sent together, and have told what became of each."""
        requests = self._requests("POST", posts, headers)
        apart = self._pace >= QUICK or self._service >= SWIFT
        size = 1 if apart else TOGETHER
        parts = [(at, requests[at : at + size]) for at in range(0, len(requests), size)]
        if len(parts) == 1:
            await self._attempt(requests, 0, seconds, before, tell)
        else:
            await asyncio.gather(*(self._attempt(part, at, seconds, before, tell) for at, part in parts))

    async def _attempt(
        self,
        requests: Sequence[bytes],
        first: int,
        seconds: float | None,
        before: Callable[[], None] | None,
        tell: Tell,
    ) -> None:
        """Some of what is posted: `requests` are those from place `first` on."""
        try:
            shifted: Tell = tell if first == 0 else lambda at, outcome: tell(first + at, outcome)
            await self._exchange(requests, seconds, before, shifted)
        except ConnectionFailed as failure:
            for at in range(len(requests)):
                tell(first + at, failure)

    async def _exchange(
        self,
        requests: Sequence[bytes],
        seconds: float | None,
        before: Callable[[], None] | None,
        tell: Tell,
        most: int = MAX_ANSWER,
    ) -> bool:
        """Send requests together; whether a connection that was kept ended before the first byte of an answer. Raises
        `ConnectionFailed` where nothing of them was sent."""
        connection = await self._acquire()
        is_kept = connection.is_kept
        self._in_use.add(connection)
        side_by_side = len(self._in_use)
        started = connection.now()
        try:
            if before is not None:
                before()
            await connection.exchange(requests, seconds, tell, most)
        finally:
            self._in_use.discard(connection)
            self._release(connection)
            each = (connection.idle_since - started) / len(requests)
            self._pace += (each - self._pace) * _WEIGHT
            self._service += (each / side_by_side - self._service) * _WEIGHT
        return is_kept and connection.has_ended_unheard

    def _request(self, method: str, target: str, headers: Mapping[str, str]) -> bytes:
        """The bytes of a request without a body."""
        return f"{method} {self._path}{target} HTTP/1.1\r\n{self._lines_of(headers)}\r\n".encode("latin-1")

    def _requests(self, method: str, sent: Sequence[tuple[str, bytes]], headers: Mapping[str, str]) -> list[bytes]:
        """The bytes of requests, each a target and a body."""
        before, after = f"{method} {self._path}", f" HTTP/1.1\r\n{self._lines_of(headers)}Content-Length: "
        return [f"{before}{target}{after}{len(body)}\r\n\r\n".encode("latin-1") + body for target, body in sent]

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
        every: list[HttpConnection | HttpStream] = [*self._idle, *self._in_use, *self._streams]
        for connection in every:
            connection.abort()
        self._idle.clear()
        await asyncio.sleep(0)

    async def _acquire(self) -> HttpConnection:
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

    async def _connect(self) -> HttpConnection:
        self._open += 1
        try:
            return await self._connected(HttpConnection)
        except BaseException:
            self._open -= 1
            self._next()
            raise

    async def _connected(self, protocol: Callable[[], P]) -> P:
        """A new connection. Raises `ConnectionFailed`."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                _, connection = await loop.create_connection(
                    protocol, self._host, self._port, ssl=self._ssl, server_hostname=self._server_hostname
                )
        except TimeoutError as error:
            raise ConnectionFailed("no connection in time", sent=False) from error
        except (OSError, ssl.SSLError) as error:
            raise ConnectionFailed(error.strerror or str(error) or type(error).__name__, sent=False) from error
        return connection

    def _release(self, connection: HttpConnection) -> None:
        connection.idle_since = connection.now()
        if connection.is_open and not self._closed:
            connection.is_kept = True
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
