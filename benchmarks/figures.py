"""How figures are put together: spreads of single measurements, medians of runs, memory of a process."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


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
    """Binds in each full second from the first bind on: the shares of a run."""

    p50: float
    p90: float
    p95: float
    p99: float
    minimum: float
    mean_after_first: float
    """scheduler_perf's throughput: the first sample dropped, the mean of the others; of one sample, itself."""
    series: tuple[int, ...]

    @staticmethod
    def of(times: Sequence[float]) -> Samples:
        """From the moments of the binds, ascending, in seconds. The last second counts only where it is full."""
        if not times:
            return Samples(0, 0, 0, 0, 0, 0, ())
        series = [0] * (int(times[-1] - times[0]) + 1)
        for moment in times:
            series[int(moment - times[0])] += 1
        full = series[:-1] or series
        ordered = sorted(full)
        p50, p90, p95, p99 = (percentile(ordered, percent) for percent in (50, 90, 95, 99))
        return Samples(p50, p90, p95, p99, ordered[0], statistics.fmean(full[1:] or full), tuple(series))


def rate(times: Sequence[float]) -> float:
    """Binds a second from the first to the last of ascending moments; 0 where there are fewer than two."""
    if len(times) < 2 or times[-1] <= times[0]:
        return 0.0
    return (len(times) - 1) / (times[-1] - times[0])


def resident_mb(field: str = "VmRSS", pid: int | str = "self") -> float:
    """`VmRSS` (now) or `VmHWM` (peak) of a process in MB; 0 where it is gone (Linux)."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0.0
    for line in status.splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    return 0.0
