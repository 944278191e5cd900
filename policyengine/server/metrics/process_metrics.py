"""Metrics of the process, whatever it serves: its resources, its build, and when its certificate runs out."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator
from time import monotonic
from typing import Protocol

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from policyengine.server.certificate import ServingCertificate
from policyengine.version import __version__

BUILD_INFO = "policyengine_build_info"
EXPIRATION = "policyengine_certificate_expiration_timestamp_seconds"

KEPT = 0.25
"""Seconds for which a page is shown again: it takes 5 ms of the thread that schedules, whoever asks however often."""


class Collects(Protocol):
    """What gives metrics: prometheus_client's registries and collectors do."""

    def collect(self) -> Iterable[Metric]:
        """The metrics as they are now."""


class MetricsPage(Collector):
    """`/metrics` of a process: `process_*` as every client of Prometheus names them, and what it counts itself."""

    def __init__(self, certificate: ServingCertificate | None, *others: Collects) -> None:
        self._certificate = certificate
        self._others = (ProcessCollector(registry=CollectorRegistry()), *others)
        self._made, self._body = -KEPT, b""

    def collect(self) -> Iterator[Metric]:
        """Everything, as prometheus_client asks for it."""
        for other in self._others:
            yield from other.collect()
        build = GaugeMetricFamily(BUILD_INFO, "1, with what runs.", labels=("version", "python"))
        build.add_metric((__version__, platform.python_version()), 1.0)
        yield build
        if self._certificate is not None:
            told = "When the certificate of this port runs out, in seconds since the epoch."
            yield GaugeMetricFamily(EXPIRATION, told, value=self._certificate.expires)

    async def page(self, request: web.Request) -> web.Response:
        """The page as it is now, or was a moment ago."""
        if monotonic() - self._made >= KEPT:
            self._made, self._body = monotonic(), generate_latest(self)
        return web.Response(body=self._body, headers={"Content-Type": CONTENT_TYPE_LATEST})
