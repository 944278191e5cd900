"""What the author of a candidate asks for: beside which pods it is tried, and what ends the trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Mode(Enum):
    """How a candidate is tried."""

    SHADOW = "shadow"
    """It decides nothing: what it would have decided is compared."""
    CANARY = "canary"
    """It decides about some of the pods."""


@dataclass(frozen=True, slots=True)
class LabelTerm:
    """One term of a label selector."""

    key: str
    operator: str
    """`in`, `notin`, `exists` or `!`."""
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet this term, as kube-apiserver understands it: a missing label is in no set."""
        held = labels.get(self.key)
        if self.operator == "in":
            return held is not None and held in self.values
        if self.operator == "notin":
            return held is None or held not in self.values
        return (held is not None) is (self.operator == "exists")


@dataclass(frozen=True, slots=True)
class Budget:
    """What a candidate may cost. Shares are of pods, between 0 and 1; None allows anything."""

    unschedulable: float | None = None
    """Of the pods that it decided about, those that it refused last."""
    divergence: float | None = None
    """Of the pods that were compared, those that would be on another node, or on one or none."""
    cycle_time: float | None = 0.05
    """Seconds of its decisions, on average."""
    window: float = 600.0
    """Seconds that are looked back."""
    least: int = 20
    """Pods in the window below which nothing is said of shares and averages."""


@dataclass(frozen=True, slots=True)
class RolloutSettings:
    """How one candidate is tried."""

    mode: Mode
    sample: float = 1.0
    """The share of pods whose decisions are compared."""
    share: float = 1.0
    """The share of pods, by owner, that a canary decides about."""
    namespaces: tuple[LabelTerm, ...] = ()
    """Which namespaces' pods these are; all of them where there is no term."""
    budget: Budget = field(default_factory=Budget)
