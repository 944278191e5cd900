"""Whether this replica may change anything, and a transport that asks so right before it sends what would."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from policyengine.kube.http.transport import ConnectionFailed, Response, Transport


class NotLeading(ConnectionFailed):
    """A request that only a leader may make; it was not sent."""

    def __init__(self) -> None:
        super().__init__("this replica does not lead", sent=False)


class Leadership(Protocol):
    """Whether this replica may change anything."""

    @property
    def elected(self) -> asyncio.Event:
        """Set once it leads."""

    def holds(self) -> bool:
        """Whether it may act now."""


class Alone:
    """No election: the only replica."""

    def __init__(self) -> None:
        self.elected = asyncio.Event()
        self.elected.set()

    def holds(self) -> bool:
        """Always."""
        return True


class LeadersTransport:
    """A transport that lets requests which change something out only while this replica leads.

    To whoever asks that looks like a server that cannot be reached: bindings fail, what may wait is tried again.
    """

    def __init__(self, transport: Transport, leadership: Leadership) -> None:
        self._transport = transport
        self._leadership = leadership

    async def request(self, method: str, path: str, **how: Any) -> Response:
        """As `Transport.request`; raises `NotLeading`."""
        if method != "GET":
            how["before"] = self._check
        return await self._transport.request(method, path, **how)

    async def close(self) -> None:
        """Close every connection."""
        await self._transport.close()

    def _check(self) -> None:
        if not self._leadership.holds():
            raise NotLeading
