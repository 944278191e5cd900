"""How bytes reach an API server: one request at a time, as a status, headers and a stream of bytes.

`kube` speaks only through `Transport`, so the same client runs over sockets (`kube.http_transport`) and in
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
6. Creations that are asked for together may share a connection (`PostAll`); each has an outcome of its own.
7. What was refused for its credentials (401) is asked once more with fresh ones. A GET may be sent again where a
   connection that was kept ends before the first byte of an answer (RFC 9110 9.2.2).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar, cast
from urllib.parse import quote

Authorize = Callable[[bool], Awaitable[Mapping[str, str]]]
"""Gives the headers that identify the caller; True asks for fresh ones, because the last were refused."""

_is_plain = re.compile(r"[\w/.~-]*", re.ASCII).fullmatch
"""Nearly every path: nothing in it is to be quoted."""


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


class WholeAnswer(Protocol):
    """An answer that was read."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, as in `Response`."""

    @property
    def body(self) -> bytes:
        """The whole body."""


Post = tuple[str, bytes]
"""A path and the JSON to create there."""
Tell = Callable[[int, WholeAnswer | ConnectionFailed], None]
"""Is given the place of a post among those made together, and what became of it, as soon as that is known."""


POST_OPTIONS = {"fieldValidation": "Ignore"}
"""What is created together is made here: the server need not look for fields that it does not know, which costs it CPU
(https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation)."""


class PostAll(Protocol):
    """Creates objects that are asked for together, with `POST_OPTIONS`; returns when everything was told."""

    async def __call__(
        self,
        posts: Sequence[Post],
        tell: Tell,
        *,
        seconds: float | None,
        before: Callable[[], None] | None = None,
    ) -> None:
        """`seconds` bounds each answer; `before` is as in `Transport.request`, asked once for what is sent together."""


def post_all_of(transport: Transport) -> PostAll:
    """The transport's own way to create objects together (its method `post_all`), else `post_one_by_one`."""
    own = getattr(transport, "post_all", None)
    return partial(post_one_by_one, transport) if own is None else cast(PostAll, own)


async def post_one_by_one(
    transport: Transport,
    posts: Sequence[Post],
    tell: Tell,
    *,
    seconds: float | None,
    before: Callable[[], None] | None = None,
) -> None:
    """As `PostAll`, each as a request of its own, side by side."""
    headers = {"Content-Type": "application/json"}
    how: dict[str, Any] = {"timeout": seconds} if before is None else {"timeout": seconds, "before": before}

    async def post(at: int, path: str, body: bytes) -> None:
        try:
            response = await transport.request("POST", path, query=POST_OPTIONS, body=body, headers=headers, **how)
            try:
                answer = _Read(response.status, response.headers, await response.read())
            finally:
                await response.close()
        except ConnectionFailed as failure:
            tell(at, failure)
        else:
            tell(at, answer)

    if len(posts) == 1:
        await post(0, *posts[0])
    else:
        await asyncio.gather(*(post(at, path, body) for at, (path, body) in enumerate(posts)))


@dataclass(slots=True)
class _Read:
    """An answer of `Transport.request`, read."""

    status: int
    headers: Mapping[str, str]
    body: bytes


async def authorized(
    authorize: Authorize | None, headers: Mapping[str, str] | None, send: Callable[[Mapping[str, str]], Awaitable[R]]
) -> R:
    """Send with the headers that identify the caller, a second time with fresh ones where the first were refused."""
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
