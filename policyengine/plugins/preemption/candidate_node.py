"""A node on which preemption can make room, its victims, and which of several such nodes is chosen.

Rules (pickOneNodeForPreemption, framework/preemption/preemption.go, v1.36): the fewest violated budgets, then the
lowest priority of the most important victim, then the smallest sum of priorities, then the fewest victims, then the
latest of the times at which the first of the most important victims started.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from math import inf
from typing import Final

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


_CRITERIA: Final = (
    "the fewest violated disruption budgets",
    "the lowest priority of the most important victim",
    "the smallest sum of priorities",
    "the fewest victims",
    "the latest start of the most important victims",
)
"""The rules above, in order."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node and the victims that make room on it, the most important first; never without a victim."""

    row: int
    victims: tuple[PodInfo, ...]
    violations: int
    """How many victims break a disruption budget."""
    why: str = field(default="", compare=False)
    """Why it is the one chosen, if it is: `Ranks.why`."""


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
        *_, (_, left) = self._compared()
        return left

    def why(self) -> str:
        """What set the best apart: `of 5 nodes that could be cleared 3 are left by the fewest violated disruption
        budgets, 1 by the fewest victims`."""
        (_, left), *narrowed = self._compared()
        said, count = [], len(left)
        for words, left in narrowed:
            if len(left) < count:
                count = len(left)
                said.append(f"{count} by {words}")
        if not said and count == 1:
            return "the only node that could be cleared"
        if count > 1:
            said.append("1 by the hash of the pod's UID")
        verb = "is" if said[0].startswith("1 ") else "are"
        return (
            f"of {len(self.count)} nodes that could be cleared {', '.join(said).replace(' by', f' {verb} left by', 1)}"
        )

    def _compared(self) -> Iterator[tuple[str, Rows]]:
        """(criterion, the places that are left after it), all of them first."""
        left: Rows = np.arange(len(self.count))
        yield "", left
        columns = (self.violations, self.highest, self.total, self.count, -self.started)
        for words, column in zip(_CRITERIA, columns, strict=True):
            if len(left) < 2:
                return
            values = column[left]
            left = left[values == values.min()]
            yield words, left


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
