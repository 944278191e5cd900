"""How many requests a second: a token bucket in front of a transport, as client-go's flow control is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from policyengine.clock import Clock
from policyengine.kube.http.transport import Post, Response, Tell, Transport, post_all_of


class LimitedTransport:
    """Lets `qps` requests out a second, `burst` of them at once after a quiet time; the others wait in their order.

    Leases do not belong here: a lease must not wait behind bindings.
    """

    def __init__(self, transport: Transport, clock: Clock, qps: float, burst: int) -> None:
        self._transport = transport
        self._post_all = post_all_of(transport)
        self._clock = clock
        self._interval = 1.0 / qps
        self._slack = (burst - 1) * self._interval
        self._next = clock.monotonic() - self._slack
        """When the bucket, were it never full, would give the next token."""

    async def request(self, method: str, path: str, **how: Any) -> Response:
        """As `Transport.request`, once there is a token; the time-out of a request does not count the wait."""
        await self._take(1)
        return await self._transport.request(method, path, **how)

    async def post_all(self, posts: Sequence[Post], tell: Tell, **how: Any) -> None:
        """As `PostAll`, once there is a token for each: parts of what comes together are not sent alone."""
        await self._take(len(posts))
        await self._post_all(posts, tell, **how)

    async def _take(self, count: int) -> None:
        """Wait until the last of `count` tokens is there."""
        now = self._clock.monotonic()
        first = max(self._next, now - self._slack)
        self._next = first + count * self._interval
        at = self._next - self._interval
        if at > now:
            await self._clock.sleep(at - now)

    async def close(self) -> None:
        """Close every connection."""
        await self._transport.close()
