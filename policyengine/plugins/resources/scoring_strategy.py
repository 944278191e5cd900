"""How full nodes should be: the scoring strategies of NodeResourcesFit.

Per resource of weight w, over the nodes' allocatable a and what would be requested r with the pod on it:
LeastAllocated 100·(a - r)/a, MostAllocated 100·min(r, a)/a, RequestedToCapacityRatio a broken line over 100·r/a.
All in integers; resources a node does not offer are left out of its weighted mean.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from policyengine.framework.plugin import MAX_NODE_SCORE, Scores
from policyengine.framework.rows import FEW, at
from policyengine.framework.status import Rows
from policyengine.plugins.resources.allocation_columns import AllocationColumns, Doubles
from policyengine.plugins.resources.amounts import (
    DEFAULT_RESOURCES,
    RESOURCES_SCHEMA,
    Amounts,
    Asked,
    ScoredResources,
    WeightedResource,
    percent,
    read_resources,
    taken,
)

if TYPE_CHECKING:
    from policyengine.cluster.node_table import NodeTable

MAX_SHAPE_SCORE: Final = 10
"""Scores of a shape run from 0 to 10."""

SHAPE_SCHEMA: Final[Mapping[str, object]] = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "properties": {
            "utilization": {"type": "integer", "minimum": 0, "maximum": 100},
            "score": {"type": "integer", "minimum": 0, "maximum": MAX_SHAPE_SCORE},
        },
        "additionalProperties": False,
    },
}

STRATEGY_SCHEMA: Final[Mapping[str, object]] = {
    "type": "object",
    "properties": {
        "type": {"enum": ["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]},
        "resources": RESOURCES_SCHEMA,
        "requestedToCapacityRatio": {
            "type": "object",
            "properties": {"shape": SHAPE_SCHEMA},
            "required": ["shape"],
            "additionalProperties": False,
        },
    },
    "additionalProperties": False,
}


class AllocationStrategy(ABC):
    """A weighted mean over resources."""

    def __init__(self, resources: Sequence[WeightedResource]) -> None:
        self.resources = ScoredResources(resources, with_defaults=True)

    def score(self, nodes: NodeTable, asked: Asked, rows: Rows) -> Scores:
        """`int64[rows]`, 0..100."""
        if not asked.resources:
            return np.zeros(len(rows), dtype=np.int64)
        if len(rows) <= FEW:
            score_of = self.node_score(nodes, asked)
            return np.array([score_of(row) for row in rows.tolist()], dtype=np.int64)
        if len(rows) == nodes.n:
            kept = self._kept_score(nodes, asked)
            if kept is not None:
                return kept
        requested = [
            at(taken(nodes, resource, with_defaults=True), rows) + np.int64(request)
            for resource, request in zip(asked.resources, asked.requests, strict=True)
        ]
        capacities = [at(nodes.allocatable(resource), rows) for resource in asked.resources]
        return self._column_score(requested, capacities, asked.weights)

    def _kept_score(self, nodes: NodeTable, asked: Asked) -> Scores | None:
        """The score of all nodes by columns kept for it; None where the strategy has no use for them, or a node is
        unusual."""
        if self._whole_points is None:
            return None
        names = asked.resources
        columns = nodes.follower((AllocationColumns, names), lambda: AllocationColumns(names))
        if columns is None or not columns.are_usual:
            return None
        total: Doubles | None = None
        for place, (request, weight) in enumerate(zip(asked.requests, asked.weights, strict=True)):
            points = self._whole_points(columns.percent_left(place, request))
            if weight != 1:
                points *= weight
            total = points if total is None else np.add(total, points, out=total)
        assert total is not None
        shares = sum(asked.weights)
        if shares != 1:
            total /= shares
        return total.astype(np.int64)

    _whole_points: Callable[[Doubles], Doubles] | None = None
    """Makes 0..100 of what is left in percent, unrounded; None where the mean is not that of the points."""

    def _column_score(
        self, requested: Sequence[Amounts], capacities: Sequence[Amounts], weights: Sequence[int]
    ) -> Scores:
        total: Amounts | None = None
        shares: Amounts | int = 0
        for used, capacity, weight in zip(requested, capacities, weights, strict=True):
            share: Amounts | int = weight
            if len(capacity) and capacity.min() > 0:
                points = self._points(used, capacity)
            else:
                offered = capacity > 0
                points = np.where(offered, self._points(used, np.maximum(capacity, 1)), 0)
                share = offered * np.int64(weight)
            if self.zero_counts_not:
                share = (points > 0) * np.int64(1) * share
            mine = points if weight == 1 else points * weight
            total = mine if total is None else total + mine
            shares = shares + share
        assert total is not None
        return self._mean(total, shares)

    def node_score(self, nodes: NodeTable, asked: Asked) -> Callable[[int], int]:
        """The same for one node, by its row, in Python's integers: for a patch of few rows the faster way. Of use
        until a Node changes."""
        columns = [
            (nodes.allocatable(resource).data, taken(nodes, resource, with_defaults=True).data, request, weight)
            for resource, request, weight in zip(*asked, strict=True)
        ]
        points_of, zero_counts_not, mean = self._node_points, self.zero_counts_not, self._node_mean

        def score(row: int) -> int:
            total = shares = 0
            for capacities, used, request, weight in columns:
                capacity = capacities[row]
                if capacity > 0:
                    points = points_of(used[row] + request, capacity)
                    if points > 0 or not zero_counts_not:
                        total += points * weight
                        shares += weight
            return mean(total, shares) if shares else 0

        return score

    zero_counts_not = False
    """Whether a resource that scores 0 is left out of the mean."""

    @abstractmethod
    def _points(self, requested: Amounts, capacity: Amounts) -> Amounts:
        """0..100 for one resource; `capacity` is above 0."""

    @abstractmethod
    def _node_points(self, requested: int, capacity: int) -> int:
        """The same for one node."""

    def _mean(self, total: Amounts, weights: Amounts | int) -> Scores:
        if isinstance(weights, int):
            return total // weights
        return total // np.maximum(weights, 1)

    def _node_mean(self, total: int, weights: int) -> int:
        return total // weights


class LeastAllocated(AllocationStrategy):
    """Spread out: the emptier the better."""

    def _points(self, requested: Amounts, capacity: Amounts) -> Amounts:
        return percent(np.maximum(capacity - requested, 0), capacity)

    @staticmethod
    def _whole_points(left: Doubles) -> Doubles:
        return np.floor(left, out=left)

    def _node_points(self, requested: int, capacity: int) -> int:
        return max(capacity - requested, 0) * MAX_NODE_SCORE // capacity


class MostAllocated(AllocationStrategy):
    """Pack: the fuller the better."""

    def _points(self, requested: Amounts, capacity: Amounts) -> Amounts:
        return percent(np.minimum(requested, capacity), capacity)

    @staticmethod
    def _whole_points(left: Doubles) -> Doubles:
        np.ceil(left, out=left)
        return np.subtract(float(MAX_NODE_SCORE), left, out=left)

    def _node_points(self, requested: int, capacity: int) -> int:
        return min(requested, capacity) * MAX_NODE_SCORE // capacity


class RequestedToCapacityRatio(AllocationStrategy):
    """A broken line over the utilisation in percent. Resources that score 0 do not count in the mean."""

    zero_counts_not = True

    def __init__(self, resources: Sequence[WeightedResource], shape: Sequence[tuple[int, int]]) -> None:
        """`shape`: (utilization 0..100, score 0..10), utilisations ascending."""
        super().__init__(resources)
        scaled = [(at_, score * (MAX_NODE_SCORE // MAX_SHAPE_SCORE)) for at_, score in shape]
        self._line = [_on_line(scaled, utilization) for utilization in range(MAX_NODE_SCORE + 1)]
        self._line_column: NDArray[np.int64] = np.array(self._line, dtype=np.int64)

    def _points(self, requested: Amounts, capacity: Amounts) -> Amounts:
        return self._line_column[percent(np.minimum(requested, capacity), capacity)]

    def _node_points(self, requested: int, capacity: int) -> int:
        return self._line[min(requested, capacity) * MAX_NODE_SCORE // capacity]

    def _mean(self, total: Amounts, weights: Amounts | int) -> Scores:
        # Go rounds half away from zero; in integers, for what is never negative:
        safe = np.maximum(weights, 1)
        mean: Scores = (2 * total + safe) // (2 * safe)
        return mean

    def _node_mean(self, total: int, weights: int) -> int:
        return (2 * total + weights) // (2 * weights)


def _on_line(points: Sequence[tuple[int, int]], utilization: int) -> int:
    """The line's value, divided towards zero as Go does."""
    for index, (end, score) in enumerate(points):
        if utilization <= end:
            if index == 0:
                return score
            start, before = points[index - 1]
            rise = (score - before) * (utilization - start)
            step = abs(rise) // (end - start)
            return before + (step if rise >= 0 else -step)
    return points[-1][1]


def read_strategy(scoring: Mapping[str, Any] | None, short: str | None) -> AllocationStrategy:
    """The strategy of NodeResourcesFitArgs (`scoringStrategy`), or the one named by `short`; LeastAllocated over
    cpu and memory by default. ValueError when malformed."""
    scoring = scoring or {}
    if scoring and short is not None and scoring.get("type", short) != short:
        raise ValueError("NodeResourcesFit: `strategy` and `scoringStrategy.type` differ; write one of them")
    kind = scoring.get("type") or short or "LeastAllocated"
    resources = read_resources(scoring.get("resources")) if scoring else DEFAULT_RESOURCES
    if kind != "RequestedToCapacityRatio" and "requestedToCapacityRatio" in scoring:
        raise ValueError(f"NodeResourcesFit: `requestedToCapacityRatio` is not for `{kind}`")
    if kind == "LeastAllocated":
        return LeastAllocated(resources)
    if kind == "MostAllocated":
        return MostAllocated(resources)
    if kind == "RequestedToCapacityRatio":
        return RequestedToCapacityRatio(resources, _read_shape(scoring))
    raise ValueError(f"NodeResourcesFit: `{kind}` is not a scoring strategy")


def _read_shape(scoring: Mapping[str, Any]) -> list[tuple[int, int]]:
    ratio = scoring.get("requestedToCapacityRatio") or {}
    shape = [(int(point.get("utilization", 0)), int(point.get("score", 0))) for point in ratio.get("shape") or ()]
    if not shape:
        raise ValueError("NodeResourcesFit: RequestedToCapacityRatio needs `requestedToCapacityRatio.shape`")
    if any(after[0] <= before[0] for before, after in pairwise(shape)):
        raise ValueError("NodeResourcesFit: utilizations of a shape must ascend")
    return shape


def read_line(shape: Sequence[Mapping[str, Any]]) -> list[int]:
    """The score, 0..100, at each utilisation of 0..100 percent, by a shape of KubeSchedulerConfiguration. ValueError
    when its utilisations do not ascend."""
    points = [(int(point.get("utilization", 0)), int(point.get("score", 0))) for point in shape]
    if any(after[0] <= before[0] for before, after in pairwise(points)):
        raise ValueError("utilizations of a shape must ascend")
    scaled = [(at_, score * (MAX_NODE_SCORE // MAX_SHAPE_SCORE)) for at_, score in points]
    return [_on_line(scaled, utilization) for utilization in range(MAX_NODE_SCORE + 1)]
