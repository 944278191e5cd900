"""Bodies of requests, read within two bounds of memory: one for each of them, one for all that are in hand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

from aiohttp import web


class BodyRefused(Exception):
    """A body is not read to its end: an HTTP status and a sentence."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class Bodies:
    """What is in hand of the bodies of a server: at most `most` bytes of one, `together` bytes of all."""

    def __init__(self, most: int, together: int) -> None:
        self._most = most
        self._together = together
        self._held = 0

    @asynccontextmanager
    async def read(self, request: web.Request) -> AsyncIterator[bytearray]:
        """The body, while the block runs; not copied. Raises `BodyRefused`, of a body known to be too long, or packed,
        before it is read: to unpack one takes a thousand times what it takes to send."""
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise BodyRefused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the body is packed; send it as it is")
        if (request.content_length or 0) > self._most:
            raise self._too_long()
        body = bytearray()
        try:
            async for chunk in _chunks(request):
                self._held += len(chunk)
                body += chunk
                if len(body) > self._most:
                    raise self._too_long()
                if self._held > self._together:
                    message = f"the requests in hand take {self._together} bytes together; ask again"
                    raise BodyRefused(HTTPStatus.SERVICE_UNAVAILABLE, message)
            yield body
        finally:
            self._held -= len(body)

    def _too_long(self) -> BodyRefused:
        return BodyRefused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is longer than {self._most} bytes")


async def _chunks(request: web.Request) -> AsyncIterator[bytes]:
    """The body as it comes. Raises `BodyRefused`."""
    try:
        async for chunk in request.content.iter_any():
            yield chunk
    except (web.RequestPayloadError, ConnectionError):
        raise BodyRefused(HTTPStatus.BAD_REQUEST, "the body breaks off, or is not framed as HTTP has it") from None
