"""How bytes reach an API server: one request at a time, as a status, headers and a stream of bytes.

`kube` speaks only through `Transport`, so the same client runs over sockets (`kube.aiohttp_transport`) and in
memory, straight into the embedded API server's handler, on virtual time.

Rules of a transport:
1. An answer of any status is a `Response`; only a connection that failed raises, and then `ConnectionFailed`.
2. `ConnectionFailed.sent` is False only where the server cannot have seen the request. When in doubt it is True:
   a binding whose outcome is unknown keeps its reservation.
3. `request` returns as soon as the headers are in. `timeout` bounds the whole exchange, the body included; a watch
   passes None and is timed by its reader.
4. `before` is called when nothing but the sending is left: there is a connection, and credentials. What it raises is
   raised, and nothing was sent.
5. A response is closed by whoever asked for it; closing one whose body was read returns its connection.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Protocol


class ConnectionFailed(Exception):
    """The connection was refused, lost or too slow; carries no answer."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent
        """Whether the request may have reached the server: its outcome is then unknown."""


class Response(Protocol):
    """An answer whose body has not been read yet."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; callers ask for `Content-Type` and `Retry-After` in this spelling."""

    async def read(self) -> bytes:
        """The whole body. Raises `ConnectionFailed` where it ends early."""

    def lines(self) -> AsyncIterator[bytes]:
        """The body line by line, without line ends, as it arrives; an unfinished last line comes as it is.

        Raises `ConnectionFailed` where the stream breaks.
        """

    def arrivals(self) -> AsyncIterator[list[bytes]]:
        """The same lines, those that arrived together as one list: for who reads many. No list is empty."""

    async def close(self) -> None:
        """Give the connection up, or back where the body was read to its end."""


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
