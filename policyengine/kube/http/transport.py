"""How bytes reach an API server: one request at a time, as a status, headers and a stream of bytes.

`kube` speaks only through `Transport`, so the same client runs over sockets (`kube.http.aiohttp_transport`) and in
memory, straight into the embedded API server's handler, on virtual time.

Rules of a transport:
1. An answer of any status is a `Response`; only a connection that failed raises, and then `ConnectionFailed`.
2. `ConnectionFailed.sent` is False only if the server cannot have seen the request. When in doubt it is True:
   a binding whose outcome is unknown keeps its reservation.
3. `request` returns when the headers are in. `timeout` bounds the whole exchange, the body included; a watch
   passes None and is timed by its reader.
4. `before` is called when nothing but the sending is left: there is a connection, and credentials. If it raises,
   nothing is sent and the exception is passed on.
5. Whoever asked for a response closes it; closing one whose body was read returns its connection.
6. A request refused for its credentials (401) is sent once more with fresh ones. An idempotent one (GET, PUT, DELETE)
   may be sent again if a reused connection ends before the first byte of an answer (RFC 9110 9.2.2).
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Protocol, TypeVar
from urllib.parse import quote

Authorize = Callable[[bool], Awaitable[Mapping[str, str]]]
"""Gives the headers that identify the caller; True asks for fresh ones, because the last were refused."""

_is_plain = re.compile(r"[\w/.~-]*", re.ASCII).fullmatch
"""Nearly every path: nothing in it needs quoting."""


class ConnectionFailed(Exception):
    """The connection was refused, lost or too slow; carries no answer."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent
        """Whether the request may have reached the server: its outcome is then unknown."""


class TimedOut(ConnectionFailed):
    """No answer in time."""


class Response(Protocol):
    """An answer whose body has not been read yet."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; callers ask for `Content-Type` and `Retry-After` in this spelling."""

    async def read(self) -> bytes:
        """The whole body. Raises `ConnectionFailed` if it ends early."""

    def lines(self) -> AsyncIterator[list[bytes]]:
        """The body's lines without line ends; each list holds those that arrived together and is never empty.

        An unfinished last line comes as it is. Raises `ConnectionFailed` if the stream breaks.
        """

    async def close(self) -> None:
        """Give the connection up, or back if the body was read to its end."""


R = TypeVar("R", bound=Response)


class Transport(Protocol):
    """Sends requests to one API server."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  (bounds the exchange, the body included)
        before: Callable[[], None] | None = None,
    ) -> Response:
        """Send one request; `path` starts with `/` and is not yet percent-encoded. Raises `ConnectionFailed`."""

    async def close(self) -> None:
        """Close every connection."""


async def lines_of(chunks: AsyncIterator[bytes], longest: int | None = None) -> AsyncIterator[list[bytes]]:
    """Chunks cut into lines, as `Response.lines`. Raises `ConnectionFailed` for a line over `longest` bytes.

    `b"on"`, `b"e\\ntwo\\nth"`, `b"ree"` come out as `[b"one", b"two"]`, `[b"three"]`.
    """
    parts: list[bytes] = []
    size = 0
    async for chunk in chunks:
        if b"\n" in chunk:
            *whole, rest = b"".join([*parts, chunk]).split(b"\n")
            yield whole
            parts, size = [rest], len(rest)
        else:
            parts.append(chunk)
            size += len(chunk)
        if longest is not None and size > longest:
            raise ConnectionFailed(f"a line is longer than {longest} bytes", sent=True)
    if size:
        yield [b"".join(parts)]


async def authorized(
    authorize: Authorize | None, headers: Mapping[str, str] | None, send: Callable[[Mapping[str, str]], Awaitable[R]]
) -> R:
    """Send with the headers that identify the caller, a second time with fresh ones if the first were refused."""
    given = headers or {}
    if authorize is None:
        return await send(given)
    response = await send({**given, **await authorize(False)})
    if response.status != 401:
        return response
    await response.close()
    return await send({**given, **await authorize(True)})


def target_of(path: str, query: Mapping[str, str] | None) -> str:
    """A request's target, percent-encoded."""
    text = path if _is_plain(path) else quote(path)
    if query:
        text += "?" + "&".join(f"{quote(key)}={quote(value, safe='')}" for key, value in query.items())
    return text
