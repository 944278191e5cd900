"""One HTTP/1.1 request whose answer is read while it arrives: a watch. Its connection serves nothing else.

Rules:
1. What the reader does not take stays in the socket: beyond `AHEAD` bytes no more is read from it.
2. An answer that ends before its length or its last chunk says so raises `ConnectionFailed`, once all that came was
   taken; one that has neither ends with the connection.
3. Whoever gives up waiting closes the connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import cast

import httptools

from policyengine.kube.http.http_connection import headers_of
from policyengine.kube.http.transport import ConnectionFailed

MAX_LINE = 16 * 1024 * 1024
"""Bytes of one watch line; etcd keeps objects under 1.5 MiB, so a longer one is no line of an API server."""
AHEAD = 1024 * 1024
"""Bytes that are held for the reader."""


class HttpStream(asyncio.Protocol):
    """A `transport.Response` once `ask` has returned. Also what httptools' parser calls back."""

    def __init__(self, gone: Callable[[HttpStream], None]) -> None:
        """`gone` is told when the connection is closed."""
        self.status = 0
        self._gone = gone
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._sent_headers: list[tuple[bytes, bytes]] = []
        self._parts: list[bytes] = []
        self._held = 0
        self._is_paused = self._has_ended = False
        self._failure = ""
        """Why no more comes, where it should."""
        self._news = asyncio.Event()

    async def ask(self, request: bytes) -> None:
        """Send the request; returns when the headers are in. Raises `ConnectionFailed`."""
        assert self._transport is not None
        self._transport.write(request)
        try:
            while not self.status:
                await self._wait()
        except BaseException:
            self.abort()
            raise

    @property
    def headers(self) -> Mapping[str, str]:
        """With names as in `Content-Type`."""
        return headers_of(self._sent_headers)

    async def read(self) -> bytes:
        """The whole body. Raises `ConnectionFailed` where it ends early."""
        parts = []
        while part := await self._take():
            parts.append(part)
        return b"".join(parts)

    async def lines(self) -> AsyncIterator[bytes]:
        """The body line by line; an unfinished last line comes as it is."""
        async for lines in self.arrivals():
            for line in lines:
                yield line

    async def arrivals(self) -> AsyncIterator[list[bytes]]:
        """The lines that arrived together, at least one."""
        rest = b""
        while part := await self._take():
            *whole, rest = (rest + part).split(b"\n") if b"\n" in part else (rest + part,)
            if whole:
                yield whole
            if len(rest) > MAX_LINE:
                raise ConnectionFailed(f"a line is longer than {MAX_LINE} bytes", sent=True)
        if rest:
            yield [rest]

    async def close(self) -> None:
        """Close the connection."""
        self.abort()

    def abort(self) -> None:
        """Close at once, whatever is under way."""
        if self._transport is not None:
            self._transport.abort()

    async def _take(self) -> bytes:
        """What of the body has come since; nothing at its end. Raises `ConnectionFailed`."""
        while not self._parts:
            if self._has_ended:
                return b""
            await self._wait()
        part = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts, self._held = [], 0
        if self._is_paused:
            self._is_paused = False
            cast(asyncio.Transport, self._transport).resume_reading()
        return part

    async def _wait(self) -> None:
        """Until something has happened since it was looked. Raises `ConnectionFailed` where nothing will."""
        if self._failure:
            raise ConnectionFailed(self._failure, sent=True)
        self._news.clear()
        await self._news.wait()

    def _end(self, failure: str = "") -> None:
        self._has_ended, self._failure = not failure, failure
        self._news.set()
        self.abort()

    # ---- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket, and TLS where asked for, are up."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """A piece of the answer."""
        if self._has_ended or self._failure:
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._end(f"the answer is not HTTP: {error}")
        if self._held > AHEAD and not (self._is_paused or self._has_ended or self._failure):
            self._is_paused = True
            cast(asyncio.Transport, self._transport).pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """The other side closed, or the network did."""
        self._gone(self)
        if self._has_ended or self._failure:
            return
        names = {name.lower() for name, _ in self._sent_headers}
        if exc is None and self.status and names.isdisjoint((b"content-length", b"transfer-encoding")):
            self._end()
        else:
            self._end(getattr(exc, "strerror", None) or str(exc or "") or "the server closed the connection")

    # ---- httptools

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header of the answer."""
        self._sent_headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The body follows; an interim answer (1xx) is passed over."""
        status = self._parser.get_status_code()
        if status < 200:
            self._sent_headers = []
        else:
            self.status = status
            self._news.set()

    def on_body(self, part: bytes) -> None:
        """A piece of the body."""
        self._parts.append(part)
        self._held += len(part)
        self._news.set()

    def on_message_complete(self) -> None:
        """The answer is whole."""
        if self.status:
            self._end()
