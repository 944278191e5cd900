"""What only a leader may send: the lease is asked for when nothing but the sending is left (`kube.leader`)."""

from __future__ import annotations

from typing import Any

from policyengine.kube.http.client import ConnectionFailed, Response, Transport
from policyengine.kube.leader import LeaderElector


class NotLeading(ConnectionFailed):
    """A request that only a leader may make; it was not sent."""

    def __init__(self) -> None:
        super().__init__("this replica does not lead", sent=False)


class LeadersTransport:
    """A transport that lets requests which change something out only while this replica leads.

    To whoever asks that looks like a server that cannot be reached: bindings fail, what may wait is tried again.
    """

    def __init__(self, transport: Transport, elector: LeaderElector) -> None:
        self._transport = transport
        self._elector = elector

    async def request(self, method: str, path: str, **how: Any) -> Response:
        """As `Transport.request`; raises `NotLeading`."""
        if method != "GET":
            how["before"] = self._check
        return await self._transport.request(method, path, **how)

    async def close(self) -> None:
        """Close every connection."""
        await self._transport.close()

    def _check(self) -> None:
        if not self._elector.holds():
            raise NotLeading
