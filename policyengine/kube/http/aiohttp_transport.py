"""The transport over sockets: aiohttp's client, with TLS, bearer tokens and proxies.

Compression is not asked for: unpacking a list costs more CPU than a cluster's own network saves.

Rules:
1. At most `connections` short calls are under way; the others wait, first come, first served. Watches (no time-out)
   have connections of their own, so that they cannot use up those of the calls.
2. A connection is reset when it is closed, so that the kernel does not deliver a request that was given up.
3. An answer is bounded in size: `max_answer`, and `MAX_LINE` for one line of a watch.
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import NoReturn
from urllib.parse import quote, urlencode

import aiohttp
from yarl import URL

from policyengine.kube.http.client import ConnectionFailed, Response, TimedOut, lines_of

CONNECTIONS = 192
"""Those that a scheduler can use at once: 96 for its writes (`Limits.writes`), 32 for pods that extenders are asked
about, one for each kind that is listed (about 20), and some for leases, statuses and reviews."""
CONNECT_TIMEOUT = 10.0
"""Seconds for the connection and its TLS handshake."""
IDLE = 60.0
"""Seconds for which an unused connection is kept; API servers keep theirs for longer."""
MAX_LINE = 16 * 1024 * 1024
"""Bytes of one watch line; etcd keeps objects under 1.5 MiB, so a longer one is no line of an API server."""
MAX_ANSWER = 16 * 1024 * 1024
"""Bytes of an answer to a write, likewise."""
MAX_LIST = 1024 * 1024 * 1024
"""Bytes of an answer to a GET, which may be a page of a list."""
READ_AHEAD = 1024 * 1024
"""Bytes of a body that are held for its reader."""
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""`struct linger`: on, and no time (socket(7))."""


Authorize = Callable[[bool], Awaitable[Mapping[str, str]]]
"""Gives the headers that identify the caller; True asks for fresh ones, because the last were refused."""


class _Sending:
    """One request on its way."""

    def __init__(self, before: Callable[[], None] | None) -> None:
        self.before = before
        self.sent = False
        """Whether a byte may have left."""


_sending: ContextVar[_Sending] = ContextVar("sending")


class _Request(aiohttp.ClientRequest):
    """Asks `before` once it has a connection, right before the first byte is written."""

    async def send(self, conn: aiohttp.connector.Connection) -> aiohttp.ClientResponse:
        sending = _sending.get()
        if sending.before is not None:
            sending.before()
        sending.sent = True
        return await super().send(conn)


class AiohttpResponse:
    """An answer whose body still lies in the socket."""

    def __init__(self, response: aiohttp.ClientResponse, max_answer: int) -> None:
        self._response = response
        self._max_answer = max_answer
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    async def read(self) -> bytes:
        """The whole body. Raises `ConnectionFailed` if it ends early, or is too long."""
        parts: list[bytes] = []
        size = 0
        async for chunk in self._chunks():
            parts.append(chunk)
            size += len(chunk)
            if size > self._max_answer:
                self._response.close()
                raise ConnectionFailed(f"its answer is longer than {self._max_answer} bytes", sent=True, began=True)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def lines(self) -> AsyncIterator[list[bytes]]:
        """The body's lines, as they arrive."""
        return lines_of(self._chunks(), MAX_LINE)

    async def _chunks(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            _fail(error, sent=True, began=True)

    async def close(self) -> None:
        """Give the connection up, or back if the body was read to its end."""
        self._response.release()


class AiohttpTransport:
    """One server behind a pool of keep-alive connections. Use inside a running event loop."""

    def __init__(
        self,
        server: str,
        *,
        ssl_context: ssl.SSLContext | None = None,
        server_hostname: str | None = None,
        proxy: str | None = None,
        authorize: Authorize | None = None,
        connections: int = CONNECTIONS,
        max_answer: int | None = None,
    ) -> None:
        """`max_answer`: bytes; None for the sizes of an API server's answers."""
        self._server = server.rstrip("/")
        self._proxy = proxy
        self._server_hostname = server_hostname
        self._authorize = authorize
        self._max_answer = max_answer
        self._calls = _session(ssl_context, connections)
        self._watches = _session(ssl_context, 0)

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
        """As `Transport.request`."""
        # Encoded here once: yarl's own quoting takes longer.
        url = URL(self._server + _target(path, query), encoded=True)
        session = self._watches if timeout is None else self._calls
        bounds = aiohttp.ClientTimeout(total=timeout, sock_connect=CONNECT_TIMEOUT)
        given = dict(headers or {})
        for fresh in (False, True):
            if self._authorize is not None:
                given |= await self._authorize(fresh)
            sending = _Sending(before)
            token = _sending.set(sending)
            try:
                response = await session.request(
                    method,
                    url,
                    data=body,
                    headers=given,
                    proxy=self._proxy,
                    server_hostname=self._server_hostname,
                    allow_redirects=False,
                    timeout=bounds,
                )
            except (TimeoutError, aiohttp.ClientError, OSError) as error:
                _fail(error, sent=sending.sent)
            except RuntimeError:
                if not session.closed:
                    raise
                raise ConnectionFailed("the client is closed", sent=sending.sent) from None
            finally:
                _sending.reset(token)
            if response.status != 401 or self._authorize is None or fresh:
                break
            response.release()
        return AiohttpResponse(response, self._max_answer or (MAX_LIST if method == "GET" else MAX_ANSWER))

    async def close(self) -> None:
        """Close every connection."""
        await self._calls.close()
        await self._watches.close()


def _session(ssl_context: ssl.SSLContext | None, limit: int) -> aiohttp.ClientSession:
    """`limit`: connections at most; 0 for no limit."""
    connector = aiohttp.TCPConnector(
        ssl=ssl_context if ssl_context is not None else True,
        limit=limit,
        keepalive_timeout=IDLE,
        ttl_dns_cache=30,
        socket_factory=_socket,
    )
    return aiohttp.ClientSession(
        connector=connector,
        request_class=_Request,
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": "policyengine", "Accept": "application/json"},
        skip_auto_headers=("Accept-Encoding", "Content-Type"),
        read_bufsize=READ_AHEAD,
    )


def _target(path: str, query: Mapping[str, str] | None) -> str:
    """A request's target, percent-encoded."""
    return f"{quote(path)}?{urlencode(query, safe='', quote_via=quote)}" if query else quote(path)


def _socket(address: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    return made


def _fail(error: Exception, *, sent: bool, began: bool = False) -> NoReturn:
    """Raise the failure in words that name its cause once."""
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        raise TimedOut("no connection in time", sent=sent) from error
    if isinstance(error, TimeoutError):
        raise TimedOut("no answer in time", sent=sent) from error
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    text = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
    raise ConnectionFailed(text, sent=sent, began=began) from error
