"""How figures are put together: spreads of single measurements, samples of a run, a figure with its target."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One number, and what is wanted of it: at most or at least so much, or nothing."""

    what: str
    value: float
    unit: str
    at_most: float | None = None
    at_least: float | None = None
    digits: int = 0
    """Digits shown behind the point."""
    more: str = ""
    """What a reader is told beside it."""

    @property
    def met(self) -> bool | None:
        """Whether the value, before it is rounded to be shown, is what is wanted; None without a target."""
        if self.at_most is not None:
            return self.value <= self.at_most
        return None if self.at_least is None else self.value >= self.at_least

    def cells(self) -> tuple[str, str, str, str]:
        """What, wanted, measured, verdict."""
        bounds = (("at most", self.at_most), ("at least", self.at_least))
        wanted = next((f"{word} {bound:,g} {self.unit}" for word, bound in bounds if bound is not None), "")
        verdict = {None: "", True: "met", False: "**missed**"}[self.met]
        return self.what, wanted, f"{self.value:,.{self.digits}f} {self.unit}{self.more}", verdict


@dataclass(frozen=True, slots=True)
class Spread:
    """Microseconds: median, 99th percentile and maximum of `count` measurements."""

    median: float
    p99: float
    max: float
    count: int

    @staticmethod
    def of(nanoseconds: Sequence[int]) -> Spread:
        """From single measurements in nanoseconds; all zero when there were none."""
        if not nanoseconds:
            return Spread(0.0, 0.0, 0.0, 0)
        ordered = sorted(nanoseconds)
        median = statistics.median(ordered)
        return Spread(median / 1e3, percentile(ordered, 99) / 1e3, ordered[-1] / 1e3, len(ordered))


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Nearest rank of an ascending sequence; 0 for an empty one."""
    if not ordered:
        return 0.0
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


@dataclass(frozen=True, slots=True)
class Samples:
    """Binds in each full second of a run, from the first bind on."""

    p50: float
    p99: float
    minimum: float
    mean_after_first: float
    """scheduler_perf's throughput: the first sample dropped, the mean of the others; of one sample, itself."""
    series: tuple[int, ...]

    @staticmethod
    def of(times: Sequence[float]) -> Samples:
        """From the moments of the binds, ascending, in seconds. The last second counts only where it is full."""
        if not times:
            return Samples(0, 0, 0, 0, ())
        series = [0] * (int(times[-1] - times[0]) + 1)
        for moment in times:
            series[int(moment - times[0])] += 1
        full = series[:-1] or series
        ordered = sorted(full)
        mean = statistics.fmean(full[1:] or full)
        return Samples(percentile(ordered, 50), percentile(ordered, 99), ordered[0], mean, tuple(series))


def rate(times: Sequence[float]) -> float:
    """Binds a second from the first to the last of ascending moments; 0 where there are fewer than two."""
    return per_second(len(times) - 1, times[-1] - times[0]) if len(times) > 1 else 0.0


def per_second(count: int, seconds: float) -> float:
    """0 where no time passed."""
    return count / seconds if seconds > 0 else 0.0
