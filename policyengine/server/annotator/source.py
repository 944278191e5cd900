"""What a source measures, how it fails, and the statistics of its samples: mean, deviation and a forecast.

The forecast is the exponentially weighted mean: the weight of a sample halves with every `half_life` of its age.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from policyengine.server.annotator.nodes import MeasuredNode

Sample = tuple[float, float]
"""(seconds since the epoch, value)."""


class SourceUnreachable(Exception):
    """Nobody answers; one sentence."""


class QueryRefused(Exception):
    """The source answers that it cannot; one sentence with what it says."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Samples by node, ascending in time: free cores, free bytes, congestion. What is not measured is absent."""

    cpu: Mapping[str, Sequence[Sample]] = field(default_factory=dict)
    memory: Mapping[str, Sequence[Sample]] = field(default_factory=dict)
    congestion: Mapping[str, Sequence[Sample]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    """What of the answer could not be used, a sentence each."""


class Source(Protocol):
    """Something that measures nodes."""

    async def measure(self, now: float, nodes: Mapping[str, MeasuredNode]) -> Measured:
        """The samples of the window that ends now. Raises `SourceUnreachable`, `QueryRefused`."""

    async def close(self) -> None:
        """Give connections up."""


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
