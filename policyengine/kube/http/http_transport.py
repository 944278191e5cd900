"""The transport over sockets, with TLS and bearer tokens: connections of our own (`kube.keep_alive`), as few as there
is work for. Behind a proxy `kube.aiohttp_transport` takes its place.

Compression is not asked for: unpacking a list costs more CPU than a cluster's own network saves.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from policyengine.kube.http.http_connection import Answer
from policyengine.kube.http.keep_alive import Connections
from policyengine.kube.http.transport import (
    POST_OPTIONS,
    Authorize,
    ConnectionFailed,
    Post,
    Response,
    Tell,
    WholeAnswer,
    authorized,
    post_one_by_one,
    target_of,
)

_JSON = {"Content-Type": "application/json"}
_OPTIONS = target_of("", POST_OPTIONS)


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


class HttpTransport:
    """One API server behind kept connections. Use inside a running event loop."""

    def __init__(
        self,
        server: str,
        *,
        ssl_context: ssl.SSLContext | None = None,
        server_hostname: str | None = None,
        authorize: Authorize | None = None,
        connections: int = 192,
    ) -> None:
        self._authorize = authorize
        self._kept = Connections(
            server.rstrip("/"), ssl_context=ssl_context, server_hostname=server_hostname, limit=connections
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
        """Send one request. An answer that may take any time is read while it arrives; any other at once."""
        target = target_of(path, query)

        async def send(sent: Mapping[str, str]) -> Response:
            if body is None and timeout is None:
                return await self._kept.stream(method, target, sent, before)
            return Answered(await self._kept.call(method, target, sent, body, timeout, before))

        return await authorized(self._authorize, headers, send)

    async def post_all(
        self,
        posts: Sequence[Post],
        tell: Tell,
        *,
        seconds: float | None,
        before: Callable[[], None] | None = None,
    ) -> None:
        """As `PostAll`, over few connections; what was refused (401) is asked once more with fresh credentials."""
        headers = _JSON if self._authorize is None else {**_JSON, **await self._authorize(False)}
        refused: list[int] = []

        def told(at: int, outcome: WholeAnswer | ConnectionFailed) -> None:
            if self._authorize is not None and not isinstance(outcome, ConnectionFailed) and outcome.status == 401:
                refused.append(at)
            else:
                tell(at, outcome)

        targets = [(target_of(path, None) + _OPTIONS, body) for path, body in posts]
        await self._kept.post_all(targets, headers, seconds, before, told)
        if refused:
            again = [posts[at] for at in refused]
            await post_one_by_one(
                self, again, lambda at, outcome: tell(refused[at], outcome), seconds=seconds, before=before
            )

    async def close(self) -> None:
        """Close every connection."""
        await self._kept.close()
