"""How well a group of pods has fared on a node: results from 0 to 1 whose weight decays, and their mean.

A result weighs 1 when it is seen and half of that each half-life later. The reward is the weighted mean of the results
and of one that nobody has seen, `unknown`: little evidence moves it little, and what is long past is forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass

FORGOTTEN = 0.01
"""Evidence that weighs less is dropped."""


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean whose parts decay. `weight` and `total` are as of `at`, seconds since the epoch."""

    at: float
    weight: float = 0.0
    total: float = 0.0

    def on(self, now: float, half_life: float) -> Mean:
        """The same as it weighs now. A clock that went back changes nothing."""
        part = 0.5 ** (max(now - self.at, 0.0) / half_life)
        return Mean(max(now, self.at), self.weight * part, self.total * part)

    def with_(self, value: float, now: float, half_life: float) -> Mean:
        """With one more value."""
        then = self.on(now, half_life)
        return Mean(then.at, then.weight + 1.0, then.total + value)

    @property
    def value(self) -> float:
        """The mean; 0 of nothing."""
        return self.total / self.weight if self.weight else 0.0


def reward(evidence: Mean, unknown: float) -> float:
    """From 0 to 1: the mean of the evidence and of one result `unknown`."""
    return (evidence.total + unknown) / (evidence.weight + 1.0)


def speed(seconds: float, usual: float) -> float:
    """What a run of these seconds is worth where the group's usual one takes `usual`: 1, or less the slower it was."""
    return 1.0 if seconds <= usual else usual / seconds
