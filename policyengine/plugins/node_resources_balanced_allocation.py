"""NodeResourcesBalancedAllocation: a pod should even out how much of each resource of a node is used.

B = trunc(100·(1 - std of the used fractions)); score 50 + (50 + B with the pod - B without it)/2. For two
resources std is half the difference. Fractions above 1 count as 1; resources the node does not offer are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.pod_info import PodInfo, PodShape
from policyengine.framework.events import ClusterEventWithHint
from policyengine.framework.plugin import MAX_NODE_SCORE, UNCONCERNED, Reads, Scores
from policyengine.framework.rows import FEW, at
from policyengine.framework.status import SKIP, SUCCESS, Rows, State, Status
from policyengine.plugins.per_shape import PerShape
from policyengine.plugins.resource_amounts import (
    Amounts,
    counts,
    read_resources,
    scored_requests,
)

if TYPE_CHECKING:
    from policyengine.cluster.columns import NodeTable
    from policyengine.cluster.snapshot import Snapshot

NAME: Final = "NodeResourcesBalancedAllocation"
_HALF: Final = MAX_NODE_SCORE // 2

ARGUMENTS: Final[Mapping[str, object]] = {
    "type": "object",
    "properties": {
        "resources": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string", "minLength": 1}, "weight": {"const": 1}},
                "required": ["name"],
                "additionalProperties": False,
            },
        }
    },
    "additionalProperties": False,
}

Fractions = NDArray[np.float64]
_Asked = tuple[tuple[str, int], ...]
"""(resource, request) of the resources that count for a pod."""


class NodeResourcesBalancedAllocation:
    """Reads what the pod asks for, and allocatable and requested of the nodes, without defaults."""

    name = NAME
    reads = Reads.NODE | Reads.PODS
    of_template = True
    pointwise = True

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        """NodeResourcesBalancedAllocationArgs: `resources`. ValueError where one is named twice."""
        self._resources = read_resources((arguments or {}).get("resources") or None)
        for name, count in Counter(resource.name for resource in self._resources).items():
            if count > 1:
                raise ValueError(f"NodeResourcesBalancedAllocation: `resources`: `{name}` stands there twice")
        self._requests = PerShape(self._requests_of)

    def signature(self, pod: PodInfo) -> Hashable:
        """What is asked for of the resources that count."""
        requests = self._requests(pod)
        return requests if any(requests) else UNCONCERNED

    def pre_score(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Skipped for a pod that asks for none of the resources."""
        requests = self._requests(pod)
        if not any(requests):
            return SKIP, None
        asked: _Asked = tuple(
            (resource.name, request)
            for resource, request in zip(self._resources, requests, strict=True)
            if counts(resource.name, request)
        )
        return SUCCESS, asked

    def score(self, state: State, snapshot: Snapshot, rows: Rows) -> NDArray[np.generic]:
        """50..100: above 75 where the pod evens the node out."""
        asked: _Asked = state
        nodes = snapshot.nodes
        if len(rows) <= FEW:
            return np.array([_node_score(nodes, asked, row) for row in rows.tolist()], dtype=np.int64)
        held = [at(nodes.requested(name), rows) for name, _ in asked]
        offers = [at(nodes.allocatable(name), rows).astype(np.float64) for name, _ in asked]
        before = [amounts.astype(np.float64) for amounts in held]
        after = [
            (amounts + np.int64(request)).astype(np.float64) if request else floats
            for amounts, floats, (_, request) in zip(held, before, asked, strict=True)
        ]
        gain = _balance(after, offers) - _balance(before, offers)
        return _HALF + ((_HALF + gain) >> 1)

    def points(self, state: State, snapshot: Snapshot, row: int) -> int:
        """The score of one node."""
        return _node_score(snapshot.nodes, state, row)

    def scale(self, state: State, scores: NDArray[np.generic]) -> Hashable:
        """Nothing: the score stands by itself."""
        return None

    def rescale(self, state: State, scale: Any, scores: NDArray[np.generic]) -> Scores:
        """As it is."""
        return scores.astype(np.int64, copy=False)

    def normalize(self, state: State, scores: NDArray[np.generic]) -> Scores:
        """As it is."""
        return scores.astype(np.int64, copy=False)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """It never rejects."""
        return ()

    def _requests_of(self, shape: PodShape) -> tuple[int, ...]:
        return scored_requests(shape, self._resources, with_defaults=False)


def _balance(used: Sequence[Fractions], capacities: Sequence[Fractions]) -> Amounts:
    """B: `int64[rows]`, 0..100. Operations and their order are kube-scheduler's, to the last bit."""
    if len(capacities) == 2 and all(capacity.all() for capacity in capacities):
        first, second = (np.minimum(a / c, 1.0) for a, c in zip(used, capacities, strict=True))
        return _points(np.abs((first - second) / 2))
    fractions = [
        np.minimum(np.divide(a, c, out=np.zeros(len(c)), where=c != 0), 1.0)
        for a, c in zip(used, capacities, strict=True)
    ]
    offered = [capacity != 0 for capacity in capacities]
    return _points(_deviation(fractions, offered))


def _node_score(nodes: NodeTable, asked: _Asked, row: int) -> int:
    """The score of one node, in Python's numbers: for a patch of few rows the faster way."""
    before, after = [], []
    for resource, request in asked:
        offer, used = nodes.room(resource, row)
        if offer:
            capacity = float(offer)
            before.append(min(float(used) / capacity, 1.0))
            after.append(min(float(used + request) / capacity, 1.0))
    return _HALF + (_HALF + _balance_of(after) - _balance_of(before)) // 2


def _balance_of(fractions: Sequence[float]) -> int:
    """B of one node."""
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


def _points(deviation: Fractions) -> Amounts:
    return ((1 - deviation) * MAX_NODE_SCORE).astype(np.int64)
