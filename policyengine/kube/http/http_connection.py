"""One HTTP/1.1 connection: requests sent together in one write, their answers in the same order.

llhttp (`httptools`) reads the answers; nothing is built that a short call does not need.

Rules:
1. What was sent together is answered before anything else is sent (`exchange`).
2. Whoever gives up waiting (a time-out, a cancelled task) closes the connection: a late answer can reach nobody else.
3. A connection that is lost, or that the server ends early, leaves open what became of the requests not answered yet
   (`ConnectionFailed.sent`).
4. What of a request still lies in the socket when it is given up is never sent: the connection is reset. Closed in
   order, it would be delivered by the kernel minutes later, when the network is back.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from socket import SO_LINGER, SOL_SOCKET
from typing import cast

import httptools

from policyengine.kube.http.transport import ConnectionFailed

MAX_ANSWER = 16 * 1024 * 1024
"""Bytes of an answer; etcd keeps objects under 1.5 MiB, so a longer one is no answer of an API server."""
MAX_LIST = 1024 * 1024 * 1024
"""Bytes of an answer that may be a page of a list."""

_AT_ONCE = struct.pack("ii", 1, 0)
"""`struct linger`: on, and no time (socket(7))."""


@dataclass(slots=True)
class Answer:
    """A whole answer."""

    status: int
    sent_headers: list[tuple[bytes, bytes]]
    """As they came; few answers are asked for theirs."""
    body: bytes

    @property
    def headers(self) -> Mapping[str, str]:
        """With names as in `Content-Type`."""
        return headers_of(self.sent_headers)


def headers_of(sent: Sequence[tuple[bytes, bytes]]) -> Mapping[str, str]:
    """Headers as they came, by names as in `Content-Type`; repeated ones are one, as RFC 9110 5.2 has it."""
    found: dict[str, str] = {}
    for name, value in sent:
        key, text = name.decode("latin-1").title(), value.decode("latin-1")
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found


Tell = Callable[[int, Answer | ConnectionFailed], None]
"""Is given the place of a request among those sent together, and what became of it."""


class HttpConnection(asyncio.Protocol):
    """One connection. Also what httptools' parser calls back."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        """Asked for once: CPython before 3.12 makes a system call of each time."""
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._tell: Tell = _told_nobody
        self._count = self._answered = 0
        """Requests sent together; those of them that are answered."""
        self._done: asyncio.Future[None] | None = None
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._size, self._most = 0, MAX_ANSWER
        self.is_open = self.is_kept = False
        self.idle_since = 0.0
        self._is_heard = False
        self.has_ended_unheard = False
        """Whether the other side closed, or the network did, before the first byte of an answer."""

    async def exchange(
        self, requests: Sequence[bytes], seconds: float | None, tell: Tell, most: int = MAX_ANSWER
    ) -> None:
        """Send requests, and have told what became of each, as soon as that is known. Is closed where one failed, and
        where an answer is longer than `most` bytes."""
        assert self._transport is not None and self._done is None
        self._tell, self._count, self._answered, self._most = tell, len(requests), 0, most
        self._is_heard = False
        self._done = self._loop.create_future()
        timer = None if seconds is None else self._loop.call_later(seconds, self._break, "no answer in time")
        try:
            self._transport.write(requests[0] if len(requests) == 1 else b"".join(requests))
            await self._done
        except asyncio.CancelledError:
            self._reset()
            self._answered = self._count
            self.abort()
            raise
        finally:
            self._done = None
            if timer is not None:
                timer.cancel()

    def now(self) -> float:
        """The event loop's time, in seconds."""
        return self._loop.time()

    def abort(self) -> None:
        """Close at once, whatever is under way."""
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    def _break(self, why: str) -> None:
        """No further answer comes."""
        self._reset()
        while self._answered < self._count:
            self._became(ConnectionFailed(why, sent=True))
        self.abort()

    def _reset(self) -> None:
        """Have the connection reset when it is closed, where requests are not answered."""
        if self._answered == self._count or self._transport is None:
            return
        socket = self._transport.get_extra_info("socket")
        if socket is not None:  # it is, once the connection is lost
            with suppress(OSError):
                socket.setsockopt(SOL_SOCKET, SO_LINGER, _AT_ONCE)

    def _became(self, outcome: Answer | ConnectionFailed) -> None:
        at, self._answered = self._answered, self._answered + 1
        self._tell(at, outcome)
        if self._answered == self._count and self._done is not None and not self._done.done():
            self._done.set_result(None)

    # ---- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket, and TLS where asked for, are up."""
        self._transport = cast(asyncio.Transport, transport)
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        """Bytes of answers; bytes that nobody asked for close the connection."""
        if self._answered == self._count:
            self.abort()
            return
        self._is_heard = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._break(f"the answer is not HTTP: {error}")

    def eof_received(self) -> None:
        """The other side closes: nothing more is sent on it."""
        self.is_open = False

    def connection_lost(self, exc: Exception | None) -> None:
        """The other side closed, or the network did."""
        self.is_open = False
        self.has_ended_unheard = not self._is_heard
        text = getattr(exc, "strerror", None) or str(exc or "") or "the server closed the connection"
        self._break(text)

    # ---- httptools

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header of the answer."""
        self._headers.append((name, value))

    def on_body(self, part: bytes) -> None:
        """A piece of the answer's body."""
        self._size += len(part)
        if self._size > self._most:
            self._break(f"the answer is longer than {self._most} bytes")
        else:
            self._body.append(part)

    def on_message_complete(self) -> None:
        """The answer is whole; an interim one (1xx) is passed over."""
        status = self._parser.get_status_code()
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        answer = Answer(status, self._headers, body)
        self._headers, self._body, self._size = [], [], 0
        if status < 200:
            return
        if self._answered == self._count:
            self.abort()
            return
        self.is_open = self.is_open and self._parser.should_keep_alive()
        self._became(answer)
        if not self.is_open:
            self._break("the server closed the connection")


def _told_nobody(at: int, outcome: Answer | ConnectionFailed) -> None:
    """Before the first exchange."""
