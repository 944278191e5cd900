"""The metrics of one scheduler as Prometheus scrapes them, with those that others keep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import Metric

from policyengine.server.metrics.definitions import Metrics
from policyengine.server.metrics.tallies import Counter, Gauge, Histogram

Tally = Counter | Gauge | Histogram


class Registry(Metrics):
    """The metrics of one scheduler, and what to read right before they are scraped."""

    def __init__(self) -> None:
        super().__init__()
        self._before: list[Callable[[], None]] = []
        self._others: list[Callable[[], Iterable[Metric]]] = []

    def tallies(self) -> list[Tally]:
        """Every metric, in the order of the table."""
        return [value for value in vars(self).values() if isinstance(value, Counter | Gauge | Histogram)]

    def before_scrape(self, read: Callable[[], None]) -> None:
        """Have gauges read right before they are shown."""
        self._before.append(read)

    def also(self, families: Callable[[], Iterable[Metric]]) -> None:
        """Show families of others too."""
        self._others.append(families)

    def collect(self) -> Iterator[Metric]:
        """What `prometheus_client.generate_latest` wants of a registry."""
        for read in self._before:
            read()
        for tally in self.tallies():
            yield tally.family()
        for families in self._others:
            yield from families()
