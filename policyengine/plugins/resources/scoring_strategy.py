"""How full nodes should be: the scoring strategies of NodeResourcesFit.

Per resource of weight w, over the nodes' allocatable a and what would be requested r with the pod on it:
LeastAllocated 100·(a - r)/a, MostAllocated 100·min(r, a)/a, RequestedToCapacityRatio a broken line over 100·r/a.
All in integers; resources a node does not offer are left out of its weighted mean.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.node_table import NodeTable
from policyengine.framework.changes import at
from policyengine.framework.plugin import MAX_NODE_SCORE, Scores
from policyengine.framework.plugin_entry import schema_of
from policyengine.framework.status import Rows
from policyengine.plugins.resources.amounts import (
    DEFAULT_RESOURCES,
    RESOURCES_SCHEMA,
    Asked,
    ScoredResources,
    Weighted,
    percent,
    read_resources,
)

MAX_SHAPE_SCORE: Final = 10
"""Scores of a shape run from 0 to 10."""

SHAPE_SCHEMA: Final[Mapping[str, object]] = {
    "type": "array",
    "minItems": 1,
    "items": schema_of(
        utilization={"type": "integer", "minimum": 0, "maximum": 100},
        score={"type": "integer", "minimum": 0, "maximum": MAX_SHAPE_SCORE},
    ),
}
STRATEGY_NAMES: Final = {"enum": ["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]}
STRATEGY_SCHEMA: Final = schema_of(
    type=STRATEGY_NAMES,
    resources=RESOURCES_SCHEMA,
    requestedToCapacityRatio=schema_of("shape", shape=SHAPE_SCHEMA),
)


class AllocationStrategy(ABC):
    """A weighted mean over resources."""

    def __init__(self, resources: Sequence[Weighted]) -> None:
        self.resources = ScoredResources(resources, with_defaults=True)

    def score(self, nodes: NodeTable, asked: Asked, rows: Rows) -> Scores:
        """`int64[rows]`, 0..100."""
        capacity, is_offered, is_exact = nodes.offer(asked.resources)
        if not is_exact:
            return np.array([self.score_at(nodes, asked, row) for row in rows.tolist()], dtype=np.int64)
        points = self._points(self.resources.left(nodes, asked), capacity)
        weights: Any = asked.weights
        shares: Any = sum(weights) or 1
        if is_offered is not None or self.zero_counts_not:
            counts = points > 0 if self.zero_counts_not else True
            weights = np.array(weights)[:, None] * (counts if is_offered is None else counts & is_offered)
            shares = np.maximum(weights.sum(axis=0), 1)
        total = points[0] * weights[0] if len(points) else np.zeros(nodes.n, dtype=np.int64)
        for one, weight in zip(points[1:], weights[1:], strict=True):
            total += one * weight
        scores: Scores = np.empty(nodes.n, dtype=np.int64)
        scores[:] = self._mean(total, shares)
        return at(scores, rows)

    def score_at(self, nodes: NodeTable, asked: Asked, row: int) -> int:
        """The score of one node, 0..100."""
        total = shares = 0
        for resource, request, weight in zip(*asked, strict=True):
            capacity, free = nodes.room(resource, row, with_defaults=True)
            points = self._points(max(free - request, 0), capacity) if capacity else 0
            if points or (capacity and not self.zero_counts_not):
                total += points * weight
                shares += weight
        score: int = self._mean(total, shares or 1)
        return score

    zero_counts_not = False
    """Whether a resource that scores 0 is left out of the mean."""

    @abstractmethod
    def _points(self, left: Any, capacity: Any) -> Any:
        """0..100 by what would be left and what is offered, above 0: ints, or columns of all resources."""

    def _mean(self, total: Any, weights: Any) -> Any:
        return total // weights


class LeastAllocated(AllocationStrategy):
    """Spread out: the emptier the better."""

    def _points(self, left: Any, capacity: Any) -> Any:
        return percent(left, capacity)


class MostAllocated(AllocationStrategy):
    """Pack: the fuller the better."""

    def _points(self, left: Any, capacity: Any) -> Any:
        return percent(capacity - left, capacity)


class RequestedToCapacityRatio(AllocationStrategy):
    """A broken line over the utilisation in percent. Resources that score 0 do not count in the mean."""

    zero_counts_not = True

    def __init__(self, resources: Sequence[Weighted], shape: Sequence[Mapping[str, Any]]) -> None:
        """`shape`: as `read_line` takes it."""
        super().__init__(resources)
        self._line = read_line(shape)

    def _points(self, left: Any, capacity: Any) -> Any:
        return self._line[percent(capacity - left, capacity)]

    def _mean(self, total: Any, weights: Any) -> Any:
        # Go rounds half away from zero; in integers, for what is never negative:
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
    if kind != "RequestedToCapacityRatio":
        return MostAllocated(resources) if kind == "MostAllocated" else LeastAllocated(resources)
    shape = (scoring.get("requestedToCapacityRatio") or {}).get("shape")
    if not shape:
        raise ValueError("NodeResourcesFit: RequestedToCapacityRatio needs `requestedToCapacityRatio.shape`")
    return RequestedToCapacityRatio(resources, shape)


def read_line(shape: Sequence[Mapping[str, Any]]) -> NDArray[np.int64]:
    """The score, 0..100, at each utilisation of 0..100 percent, by a shape of KubeSchedulerConfiguration:
    `int64[101]`. ValueError when its utilisations do not ascend."""
    points = [(int(point.get("utilization", 0)), int(point.get("score", 0))) for point in shape]
    if any(after[0] <= before[0] for before, after in pairwise(points)):
        raise ValueError("utilizations of a shape must ascend")
    scaled = [(at_, score * (MAX_NODE_SCORE // MAX_SHAPE_SCORE)) for at_, score in points]
    return np.array([_on_line(scaled, utilization) for utilization in range(MAX_NODE_SCORE + 1)], dtype=np.int64)
