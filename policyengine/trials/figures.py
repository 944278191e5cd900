"""Figures of a run: percentiles, means over time, times as people write them."""

from __future__ import annotations

from collections.abc import Sequence

from policyengine.trials.ledger import Sample


def percentile(ordered: Sequence[float], which: str) -> float:
    """`mean`, `max` or `pN` (nearest rank: the least value that N % do not exceed) of values in order; 0 of none."""
    if not ordered:
        return 0.0
    if which == "mean":
        return sum(ordered) / len(ordered)
    if which == "max":
        return ordered[-1]
    rank = -(-int(which[1:]) * len(ordered) // 100)
    return ordered[max(rank, 1) - 1]


def mean_share(samples: Sequence[Sample], resource: str, start: float, end: float) -> float:
    """The share of a resource that was used between two times, in the mean over time."""
    total = 0.0
    for index, sample in enumerate(samples):
        until = samples[index + 1].at if index + 1 < len(samples) else end
        total += sample.share(resource) * max(0.0, min(until, end) - max(sample.at, start))
    return total / (end - start) if end > start else 0.0


def clock(seconds: float) -> str:
    """A time or duration: `1d 2h`, `3h 20min`, `2min 5s`, `4.25s`, `0s`."""
    if seconds < 60.0:
        return f"{round(seconds, 2):g}s"
    whole = round(seconds)
    parts = [(whole // 86400, "d"), (whole % 86400 // 3600, "h"), (whole % 3600 // 60, "min"), (whole % 60, "s")]
    first = next(index for index, (number, _) in enumerate(parts) if number)
    return " ".join(f"{number}{unit}" for number, unit in parts[first : first + 2] if number)


def thinned(samples: Sequence[Sample], end: float, width: int) -> list[list[Sample]]:
    """The samples that hold in each of so many equal stretches of time; each stretch has one at least."""
    stretches: list[list[Sample]] = []
    at = 0
    for number in range(width):
        until = end * (number + 1) / width
        first = at
        while at + 1 < len(samples) and samples[at + 1].at < until:
            at += 1
        stretches.append(list(samples[first : at + 1]))
    return stretches
