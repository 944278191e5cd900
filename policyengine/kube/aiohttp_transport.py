"""The transport over sockets, with TLS and bearer tokens: aiohttp's client for what is read, kept connections of our
own (`kube.keep_alive`) for what is written. Behind a proxy aiohttp does both.

Compression is not asked for: unpacking a list costs more CPU than a cluster's own network saves.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import NoReturn
from urllib.parse import quote

import aiohttp
from yarl import URL

from policyengine.kube.http_connection import Answer
from policyengine.kube.keep_alive import CONNECT_TIMEOUT, IDLE, Connections
from policyengine.kube.transport import (
    ConnectionFailed,
    Post,
    Response,
    Tell,
    WholeAnswer,
    post_one_by_one,
)

MAX_LINE = 16 * 1024 * 1024
"""Bytes of one watch line; etcd keeps objects under 1.5 MiB, so a longer one is no line of an API server."""

_JSON = {"Content-Type": "application/json"}
_is_plain = re.compile(r"[\w/.~-]*", re.ASCII).fullmatch
"""Nearly every path: nothing in it is to be quoted."""

Authorize = Callable[[bool], Awaitable[Mapping[str, str]]]
"""Gives the headers that identify the caller; True asks for fresh ones, because the last were refused."""


class AiohttpResponse:
    """An answer whose body still lies in the socket."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    async def read(self) -> bytes:
        """The whole body. Raises `ConnectionFailed` where it ends early."""
        try:
            return await self._response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            _fail(error, sent=True)

    async def lines(self) -> AsyncIterator[bytes]:
        """The body line by line; an unfinished last line comes as it is."""
        async for lines in self.arrivals():
            for line in lines:
                yield line

    async def arrivals(self) -> AsyncIterator[list[bytes]]:
        """The lines that arrived together, at least one."""
        rest = b""
        try:
            async for chunk in self._response.content.iter_any():
                *whole, rest = (rest + chunk).split(b"\n") if b"\n" in chunk else (rest + chunk,)
                if whole:
                    yield whole
                if len(rest) > MAX_LINE:
                    raise ConnectionFailed(f"a line is longer than {MAX_LINE} bytes", sent=True)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            _fail(error, sent=True)
        if rest:
            yield [rest]

    async def close(self) -> None:
        """Give the connection up, or back where the body was read to its end."""
        self._response.release()


class Answered:
    """An answer that was read whole."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._body = answer.body
        self.status = answer.status

    @property
    def headers(self) -> Mapping[str, str]:
        """With names as in `Content-Type`."""
        return self._answer.headers

    async def read(self) -> bytes:
        """The whole body."""
        return self._body

    async def lines(self) -> AsyncIterator[bytes]:
        """The body line by line."""
        for line in self._body.splitlines():
            yield line

    async def arrivals(self) -> AsyncIterator[list[bytes]]:
        """All lines at once."""
        if self._body:
            yield self._body.splitlines()

    async def close(self) -> None:
        """Nothing is left to give back."""


class AiohttpTransport:
    """One API server behind a pool of keep-alive connections. Use inside a running event loop."""

    def __init__(
        self,
        server: str,
        *,
        ssl_context: ssl.SSLContext | None = None,
        server_hostname: str | None = None,
        proxy: str | None = None,
        authorize: Authorize | None = None,
        connections: int = 128,
    ) -> None:
        self._server = server.rstrip("/")
        self._proxy = proxy
        self._server_hostname = server_hostname
        self._authorize = authorize
        self._kept = (
            Connections(self._server, ssl_context=ssl_context, server_hostname=server_hostname, limit=connections)
            if proxy is None
            else None
        )
        connector = aiohttp.TCPConnector(
            ssl=ssl_context if ssl_context is not None else True,
            limit=connections,
            keepalive_timeout=IDLE,
            ttl_dns_cache=30,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "policyengine", "Accept": "application/json"},
            skip_auto_headers=("Accept-Encoding",),
        )

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
        """Send one request, a second time with fresh credentials where the first were refused (401)."""
        response = await self._send(method, path, query, body, headers, timeout, before, fresh=False)
        if response.status != 401 or self._authorize is None:
            return response
        await response.close()
        return await self._send(method, path, query, body, headers, timeout, before, fresh=True)

    async def post_all(
        self,
        posts: Sequence[Post],
        tell: Tell,
        *,
        seconds: float | None,
        before: Callable[[], None] | None = None,
    ) -> None:
        """As `PostAll`, over few connections; what was refused (401) is asked once more with fresh credentials."""
        if self._kept is None:
            await post_one_by_one(self, posts, tell, seconds=seconds, before=before)
            return
        headers = dict(_JSON)
        if self._authorize is not None:
            headers.update(await self._authorize(False))
        refused: list[int] = []

        def told(at: int, outcome: WholeAnswer | ConnectionFailed) -> None:
            if self._authorize is not None and not isinstance(outcome, ConnectionFailed) and outcome.status == 401:
                refused.append(at)
            else:
                tell(at, outcome)

        targets = [(_target(path, None), body) for path, body in posts]
        await self._kept.post_all(targets, headers, seconds, before, told)
        if refused:
            again = [posts[at] for at in refused]
            await post_one_by_one(
                self, again, lambda at, outcome: tell(refused[at], outcome), seconds=seconds, before=before
            )

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: bytes | None,
        headers: Mapping[str, str] | None,
        seconds: float | None,
        before: Callable[[], None] | None,
        *,
        fresh: bool,
    ) -> Response:
        sent_headers = dict(headers or {})
        if self._authorize is not None:
            sent_headers.update(await self._authorize(fresh))
        if body is not None and self._kept is not None:
            return Answered(await self._kept.call(method, _target(path, query), sent_headers, body, seconds, before))
        if before is not None:
            before()
        try:
            response = await self._session.request(
                method,
                # Encoded here once: yarl's own quoting costs more than the rest of a request.
                URL(self._server + _target(path, query), encoded=True),
                data=body,
                headers=sent_headers,
                proxy=self._proxy,
                server_hostname=self._server_hostname,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_TIMEOUT),
            )
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            _fail(error, sent=False)
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            _fail(error, sent=True)
        return AiohttpResponse(response)

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()
        if self._kept is not None:
            await self._kept.close()


def _target(path: str, query: Mapping[str, str] | None) -> str:
    """A request's target, percent-encoded."""
    text = path if _is_plain(path) else quote(path)
    if query:
        text += "?" + "&".join(f"{quote(key)}={quote(value, safe='')}" for key, value in query.items())
    return text


def _fail(error: Exception, *, sent: bool) -> NoReturn:
    """Raise the failure in words that name its cause once."""
    if isinstance(error, TimeoutError):
        raise ConnectionFailed("no answer in time", sent=sent) from error
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    text = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
    raise ConnectionFailed(text, sent=sent) from error
