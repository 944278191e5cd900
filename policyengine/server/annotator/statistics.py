"""What samples of a node's free room say: mean, deviation, and a forecast. Pure; a sample is (moment, value).

The forecast is the exponentially weighted mean: a sample's weight halves with every `half_life` of its age, so that
what happened last counts most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Sample = tuple[float, float]
"""(seconds since the epoch, value)."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """Over one window, in the samples' unit."""

    mean: float
    deviation: float
    """Of the population."""
    forecast: float
    last: float
    at: float
    """The moment of the last sample."""


def statistics_of(samples: Sequence[Sample], half_life: float) -> Statistics | None:
    """The statistics of finite samples, ascending in time; None where no sample is finite."""
    finite = [(at, value) for at, value in samples if math.isfinite(value)]
    if not finite:
        return None
    at, last = finite[-1]
    mean = math.fsum(value for _, value in finite) / len(finite)
    variance = math.fsum((value - mean) ** 2 for _, value in finite) / len(finite)
    weights = [0.5 ** ((at - moment) / half_life) for moment, _ in finite]
    weighted = math.fsum(weight * value for weight, (_, value) in zip(weights, finite, strict=True))
    return Statistics(mean, math.sqrt(variance), weighted / math.fsum(weights), last, at)
