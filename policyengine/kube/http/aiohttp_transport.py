"""The transport through a proxy: aiohttp's client. Loaded only where there is one: it costs a seventh of a second."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from typing import NoReturn

import aiohttp
from yarl import URL

from policyengine.kube.http.http_stream import MAX_LINE
from policyengine.kube.http.keep_alive import CONNECT_TIMEOUT, IDLE
from policyengine.kube.http.transport import Authorize, ConnectionFailed, Response, authorized, target_of


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
        connections: int = 192,
    ) -> None:
        self._server = server.rstrip("/")
        self._proxy = proxy
        self._server_hostname = server_hostname
        self._authorize = authorize
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
        """Send one request."""
        # Encoded here once: yarl's own quoting costs more than the rest of a request.
        url = URL(self._server + target_of(path, query), encoded=True)
        patience = aiohttp.ClientTimeout(total=timeout, sock_connect=CONNECT_TIMEOUT)

        async def send(sent: Mapping[str, str]) -> AiohttpResponse:
            if before is not None:
                before()
            return await self._send(method, url, sent, body, patience)

        return await authorized(self._authorize, headers, send)

    async def _send(
        self, method: str, url: URL, headers: Mapping[str, str], body: bytes | None, patience: aiohttp.ClientTimeout
    ) -> AiohttpResponse:
        try:
            response = await self._session.request(
                method,
                url,
                data=body,
                headers=headers,
                proxy=self._proxy,
                server_hostname=self._server_hostname,
                allow_redirects=False,
                timeout=patience,
            )
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            _fail(error, sent=False)
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            _fail(error, sent=True)
        return AiohttpResponse(response)

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
