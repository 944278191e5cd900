"""Counters, gauges and histograms whose writing costs a fraction of a microsecond; made into families when scraped.

They belong to the one thread of the event loop, so nothing is locked (a `prometheus_client.Histogram` takes ten times
as long, and a bound pod makes eight entries).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

Labels = tuple[str, ...]


@dataclass(frozen=True)
class Described:
    """A metric: its name, what it says, its labels."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    """Upper bounds; empty for what is no histogram."""


class Counter:
    """Numbers that only grow, by label values."""

    kind = "counter"

    def __init__(self, name: str, help: str, labels: tuple[str, ...] = ()) -> None:
        self.described = Described(name, help, labels)
        self.values: dict[Labels, float] = {} if labels else {(): 0.0}

    def add(self, labels: Labels, number: float = 1.0) -> None:
        """Count."""
        self.values[labels] = self.values.get(labels, 0.0) + number

    def family(self) -> Metric:
        """As scraped."""
        told = self.described
        family = CounterMetricFamily(told.name.removesuffix("_total"), told.help, labels=told.labels)
        for labels, value in sorted(self.values.items()):
            family.add_metric(labels, value)
        return family


class Gauge:
    """Numbers as they are now, by label values; those that are zero again are left out where labels are free."""

    kind = "gauge"

    def __init__(self, name: str, help: str, labels: tuple[str, ...] = ()) -> None:
        self.described = Described(name, help, labels)
        self.values: dict[Labels, float] = {}

    def add(self, labels: Labels, number: float) -> None:
        """Change a number; one that comes to nothing is forgotten."""
        value = self.values.get(labels, 0.0) + number
        if value:
            self.values[labels] = value
        else:
            self.values.pop(labels, None)

    def read(self, values: Iterable[tuple[Labels, float]]) -> None:
        """Replace all numbers."""
        self.values = dict(values)

    def family(self) -> Metric:
        """As scraped."""
        told = self.described
        family = GaugeMetricFamily(told.name, told.help, labels=told.labels)
        for labels, value in sorted(self.values.items()):
            family.add_metric(labels, value)
        return family


class Histogram:
    """How often values fell under each bound, by label values."""

    kind = "histogram"

    def __init__(self, name: str, help: str, labels: tuple[str, ...], buckets: tuple[float, ...]) -> None:
        self.described = Described(name, help, labels, buckets)
        self._bounds = buckets
        self._cells: dict[Labels, list[float]] = {}
        """Label values -> how many values fell into each bucket, the one above all bounds too, and last their sum."""
        if not labels:
            self._start(())

    def observe(self, labels: Labels, value: float) -> None:
        """Count a value; a bound counts what equals it."""
        cells = self._cells.get(labels)
        if cells is None:
            cells = self._start(labels)
        cells[bisect_left(self._bounds, value)] += 1
        cells[-1] += value

    def count(self, labels: Labels = ()) -> int:
        """How many values were counted."""
        return int(sum(self._cells.get(labels, (0.0,))[:-1]))

    def _start(self, labels: Labels) -> list[float]:
        cells = self._cells[labels] = [0.0] * (len(self._bounds) + 2)
        return cells

    def family(self) -> Metric:
        """As scraped: cumulative, with +Inf."""
        told = self.described
        family = HistogramMetricFamily(told.name, told.help, labels=told.labels)
        bounds = [f"{bound:.12g}" for bound in self._bounds] + ["+Inf"]
        for labels, cells in sorted(self._cells.items()):
            family.add_metric(labels, list(zip(bounds, accumulate(cells[:-1]), strict=True)), cells[-1])
        return family


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """`start`, `start * factor`, … (`ExponentialBuckets` of Go's client)."""
    return tuple(start * factor**number for number in range(count))
