"""The transport over sockets: aiohttp's client with a keep-alive pool, TLS and bearer tokens.

Compression is not asked for: unpacking a list costs more CPU than a cluster's own network saves.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import NoReturn
from urllib.parse import quote

import aiohttp
from yarl import URL

from policyengine.kube.transport import ConnectionFailed

MAX_LINE = 16 * 1024 * 1024
"""Bytes of one watch line; etcd keeps objects under 1.5 MiB, so a longer one is no line of an API server."""
CONNECT_TIMEOUT = 10.0
_KEEP_ALIVE = 60.0

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
        rest = b""
        try:
            async for chunk in self._response.content.iter_any():
                *whole, rest = (rest + chunk).split(b"\n") if b"\n" in chunk else (rest + chunk,)
                for line in whole:
                    yield line
                if len(rest) > MAX_LINE:
                    raise ConnectionFailed(f"a line is longer than {MAX_LINE} bytes", sent=True)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            _fail(error, sent=True)
        if rest:
            yield rest

    async def close(self) -> None:
        """Give the connection up, or back where the body was read to its end."""
        self._response.release()


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
        connector = aiohttp.TCPConnector(
            ssl=ssl_context if ssl_context is not None else True,
            limit=connections,
            keepalive_timeout=_KEEP_ALIVE,
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
    ) -> AiohttpResponse:
        """Send one request, a second time with fresh credentials where the first were refused (401)."""
        response = await self._send(method, path, query, body, headers, timeout, fresh=False)
        if response.status != 401 or self._authorize is None:
            return response
        await response.close()
        return await self._send(method, path, query, body, headers, timeout, fresh=True)

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: bytes | None,
        headers: Mapping[str, str] | None,
        seconds: float | None,
        *,
        fresh: bool,
    ) -> AiohttpResponse:
        sent_headers = dict(headers or {})
        if self._authorize is not None:
            sent_headers.update(await self._authorize(fresh))
        try:
            response = await self._session.request(
                method,
                self._url(path, query),
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

    def _url(self, path: str, query: Mapping[str, str] | None) -> URL:
        """Encoded here once: yarl's own quoting costs more than the rest of a request."""
        text = self._server + quote(path)
        if query:
            text += "?" + "&".join(f"{quote(key)}={quote(value, safe='')}" for key, value in query.items())
        return URL(text, encoded=True)

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()


def _fail(error: Exception, *, sent: bool) -> NoReturn:
    """Raise the failure in words that name its cause once."""
    if isinstance(error, TimeoutError):
        raise ConnectionFailed("no answer in time", sent=sent) from error
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    text = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
    raise ConnectionFailed(text, sent=sent) from error
