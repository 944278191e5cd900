"""How evenly the resources of a node are used, and what a pod does for that: NodeResourcesBalancedAllocation's score.

B = trunc(100·(1 - std of the used fractions)); score 50 + (50 + B with the pod - B without it)/2. For two resources std
is half the difference. Fractions above 1 count as 1. Operations and their order are kube-scheduler's, to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.row_follower import RowFollower
from policyengine.framework.plugin import MAX_NODE_SCORE, Scores
from policyengine.plugins.resources.amounts import Amounts

if TYPE_CHECKING:
    from policyengine.cluster.node_table import NodeTable

Fractions = NDArray[np.float64]
_HALF: Final = MAX_NODE_SCORE // 2
_SHIFT: Final = 3 * _HALF
"""50 + (50 + x)/2 is (150 + x)/2."""
LARGEST: Final = 2**52
"""Amounts up to this are kept: with a request, which is no larger, they are doubles exactly."""


def score_of(before: int, after: int) -> int:
    """The score of one node by B without the pod and with it: 50..100, above 75 where the pod evens it out."""
    return _HALF + (_HALF + after - before) // 2


def scores_of(before: Amounts, after: Amounts) -> Scores:
    """The same of many: `int64[rows]`."""
    return _shifted(before - _SHIFT, after)


def _shifted(before_shifted: Amounts, after: Amounts) -> Scores:
    """The same where `_SHIFT` was taken from B without the pod: in two steps, which are written to `after`."""
    np.subtract(after, before_shifted, out=after)
    return np.right_shift(after, 1, out=after)


def balance(used: Sequence[Fractions], capacities: Sequence[Fractions]) -> Amounts:
    """B: `int64[rows]`, 0..100, of what is used of each resource and offered, 0 where it is not."""
    if len(capacities) == 2 and all(capacity.all() for capacity in capacities):
        first, second = (np.minimum(a / c, 1.0) for a, c in zip(used, capacities, strict=True))
        return _balance_of_two(first, second)
    fractions = [
        np.minimum(np.divide(a, c, out=np.zeros(len(c)), where=c != 0), 1.0)
        for a, c in zip(used, capacities, strict=True)
    ]
    offered = [capacity != 0 for capacity in capacities]
    return ((1 - _deviation(fractions, offered)) * MAX_NODE_SCORE).astype(np.int64)


def balance_of(fractions: Sequence[float]) -> int:
    """B of one node, of the fractions of the resources it offers; in Python's numbers, for few rows the faster way."""
    deviation = 0.0
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        mean = 0.0
        for fraction in fractions:  # in this order, not as `sum`, which compensates from Python 3.12 on
            mean += fraction
        mean /= len(fractions)
        squares = 0.0
        for fraction in fractions:
            squares += (fraction - mean) * (fraction - mean)
        deviation = sqrt(squares / len(fractions))
    return int((1 - deviation) * MAX_NODE_SCORE)


def _balance_of_two(first: Fractions, second: Fractions) -> Amounts:
    """B of two fractions; `first` is written to.

    (2 - d)·50 is (1 - d/2)·100 to the last bit: halving and doubling are exact, and rounding goes along with them.
    """
    np.subtract(first, second, out=first)
    np.abs(first, out=first)
    np.subtract(2.0, first, out=first)
    np.multiply(first, MAX_NODE_SCORE / 2, out=first)
    return first.astype(np.int64)


def _deviation(fractions: Sequence[Fractions], offered: Sequence[NDArray[np.bool_]]) -> Fractions:
    """The population standard deviation over the resources each node offers; 0 for fewer than two."""
    rows = len(fractions[0])
    number = np.zeros(rows, dtype=np.int64)
    mean = np.zeros(rows)
    low, high = np.full(rows, 2.0), np.full(rows, -1.0)
    for fraction, has in zip(fractions, offered, strict=True):
        number += has
        mean += fraction  # 0 where the node does not offer the resource
        low = np.where(has, np.minimum(low, fraction), low)
        high = np.where(has, np.maximum(high, fraction), high)
    mean /= np.maximum(number, 1)
    squares = np.zeros(rows)
    for fraction, has in zip(fractions, offered, strict=True):
        squares += np.where(has, (fraction - mean) * (fraction - mean), 0.0)
    many = np.sqrt(squares / np.maximum(number, 1))
    return np.where(number > 2, many, np.where(number == 2, (high - low) / 2, 0.0))


class BalanceColumns(RowFollower):
    """What every node uses and offers of some resources, and its B as it is."""

    def __init__(self, resources: tuple[str, ...]) -> None:
        super().__init__()
        self._resources = resources
        self._used: list[Fractions] = []
        self._offers: list[Fractions] = []
        self._before: Amounts = np.zeros(0, dtype=np.int64)
        """B less `_SHIFT`."""
        self._least: list[int] = []
        """Never above the least that is left of a resource."""
        self._all_offered = False
        self.are_usual = False
        """Whether no amount is beyond `LARGEST`; else there are no columns."""

    def fill(self, table: NodeTable) -> None:
        """All of every resource."""
        amounts = [(table.requested(resource), table.allocatable(resource)) for resource in self._resources]
        self.are_usual = table.n > 0 and all(max(used.max(), offer.max()) <= LARGEST for used, offer in amounts)
        if not self.are_usual:
            self.fill_when_nodes_change()
            return
        self._used = [used.astype(np.float64) for used, _ in amounts]
        self._offers = [offer.astype(np.float64) for _, offer in amounts]
        self._least = [int((offer - used).min()) for used, offer in amounts]
        self._all_offered = all(bool(offer.all()) for offer in self._offers)
        if not self._all_offered:
            self.fill_when_nodes_change()
        self._before = balance(self._used, self._offers) - _SHIFT

    def write(self, table: NodeTable, row: int) -> None:
        """All of one node."""
        if not self.are_usual:
            return
        fractions: list[float] = []
        for place, resource in enumerate(self._resources):
            offer, used = table.room(resource, row)
            if used > LARGEST or offer > LARGEST:
                self.are_usual = False
                self.fill_when_nodes_change()
                return
            self._used[place][row], self._offers[place][row] = used, offer
            if offer - used < self._least[place]:
                self._least[place] = offer - used
            if offer:
                fractions.append(min(used / offer, 1.0))
            else:
                self._all_offered = False
                self.fill_when_nodes_change()
        self._before[row] = balance_of(fractions) - _SHIFT

    def score(self, requests: Sequence[int]) -> Scores:
        """The score of every node for a pod with these requests: `int64[nodes]`."""
        if len(requests) == 2 and self._all_offered:
            after = _balance_of_two(self._fractions(0, requests[0]), self._fractions(1, requests[1]))
        else:
            after = balance([used + float(r) for used, r in zip(self._used, requests, strict=True)], self._offers)
        return _shifted(self._before, after)

    def _fractions(self, place: int, request: int) -> Fractions:
        used: Fractions = self._used[place] + float(request)
        np.divide(used, self._offers[place], out=used)
        return np.minimum(used, 1.0, out=used) if request > self._least[place] else used
