"""A node on which preemption can make room, its victims, and which of several such nodes is chosen.

Rules (pickOneNodeForPreemption, framework/preemption/preemption.go, v1.36): the fewest violated budgets, then the
lowest priority of the most important victim, then the smallest sum of priorities, then the fewest victims, then the
latest of the times at which the first of the most important victims started.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import inf

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.status import Rows

PRIORITY_SHIFT = 1 << 31
"""Added to each priority that is summed, so that more victims never sum up to less."""
Ints = NDArray[np.int64]


def importance(pod: PodInfo) -> tuple[int, float]:
    """Smallest first is most important first: by priority, then the one that has run longest (MoreImportantPod).
    A pod that has not started yet is the youngest."""
    return -pod.priority, inf if pod.started_at is None else pod.started_at


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node and the victims that make room on it, the most important first; never without a victim."""

    row: int
    victims: tuple[PodInfo, ...]
    violations: int
    """How many victims break a disruption budget."""


@dataclass(frozen=True, slots=True, eq=False)
class Ranks:
    """What candidates are compared by, a column each: `[candidates]`."""

    violations: Ints
    highest: Ints
    """Priority of the most important victim."""
    total: Ints
    """Sum of the shifted priorities."""
    count: Ints
    started: NDArray[np.float64]
    """When the first of the most important victims started, in seconds; infinity for one that has not."""

    def best(self) -> Rows:
        """The places of those that none beats, ascending."""
        left: Rows = np.arange(len(self.count))
        for column in (self.violations, self.highest, self.total, self.count, -self.started):
            if len(left) < 2:
                break
            values = column[left]
            left = left[values == values.min()]
        return left


def ranks_of(candidates: Sequence[Candidate]) -> Ranks:
    """The columns of candidates that are spelled out."""

    def ints(values: list[int]) -> Ints:
        return np.array(values, dtype=np.int64)

    return Ranks(
        ints([one.violations for one in candidates]),
        ints([one.victims[0].priority for one in candidates]),
        ints([sum(victim.priority + PRIORITY_SHIFT for victim in one.victims) for one in candidates]),
        ints([len(one.victims) for one in candidates]),
        np.array([_first_start(one.victims) for one in candidates], dtype=np.float64),
    )


def concatenated(first: Ranks, second: Ranks) -> Ranks:
    """The columns of `first`, then those of `second`."""
    return Ranks(*(np.concatenate((getattr(first, one.name), getattr(second, one.name))) for one in fields(Ranks)))


def _first_start(victims: Sequence[PodInfo]) -> float:
    highest = max(victim.priority for victim in victims)
    return min(importance(victim)[1] for victim in victims if victim.priority == highest)
