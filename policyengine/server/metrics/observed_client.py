"""A transport with a stopwatch beside it: its requests are counted and timed under client-go's names."""

from __future__ import annotations

from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

from policyengine.kube.http.client import Response, Transport
from policyengine.server.metrics.scheduler_metrics import SchedulerMetrics

FAILED = "<error>"
"""client-go's code of a request without an answer."""


class ObservedTransport:
    """Carries requests to the server of `url`, and counts them. Watches, which have no time-out, are not timed."""

    def __init__(self, transport: Transport, url: str, metrics: SchedulerMetrics) -> None:
        self._transport = transport
        self._host = urlsplit(url).netloc
        self._metrics = metrics

    async def request(self, method: str, path: str, **how: Any) -> Response:
        """As `Transport.request`."""
        began, code = perf_counter(), FAILED
        try:
            response = await self._transport.request(method, path, **how)
            code = str(response.status)
            return response
        finally:
            self._metrics.rest_requests.add((code, method, self._host))
            if how.get("timeout") is not None:
                self._metrics.rest_duration.observe((method, self._host), perf_counter() - began)

    async def close(self) -> None:
        """Close every connection."""
        await self._transport.close()
