"""How full nodes should be: the scoring strategies of NodeResourcesFit.

Per resource of weight w, over the nodes' allocatable a and what would be requested r with the pod on it:
LeastAllocated 100·(a - r)/a, MostAllocated 100·min(r, a)/a, RequestedToCapacityRatio a broken line over 100·r/a.
All in integers; resources a node does not offer are left out of its weighted mean.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from policyengine.framework.changes import FEW
from policyengine.framework.plugin import MAX_NODE_SCORE, Scores
from policyengine.framework.status import Rows
from policyengine.plugins.resources.amounts import (
    DEFAULT_RESOURCES,
    RESOURCES_SCHEMA,
    Amount,
    Asked,
    ScoredResources,
    WeightedResource,
    amounts_at,
    at_least,
    at_most,
    columns_of,
    is_float,
    percent,
    quotient,
    read_resources,
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
        if len(rows) <= FEW:
            each = [self._score(amounts_at(nodes, asked, row, with_defaults=True), asked) for row in rows.tolist()]
            return np.array(each, dtype=np.int64)
        scores: Scores = np.empty(len(rows), dtype=np.int64)
        scores[:] = self._score(columns_of(nodes, asked, rows, with_defaults=True), asked)
        return scores

    def _score(self, amounts: Sequence[Amount], asked: Asked) -> Any:
        """The mean over the resources that a node offers, of columns or ints."""
        total: Any = 0
        shares: Any = 0
        for (capacity, used, offered), request, weight in zip(amounts, asked.requests, asked.weights, strict=True):
            points = self._points(used + request, capacity if offered is True else at_least(capacity, 1))
            counts = offered & (points > 0) if self.zero_counts_not else offered
            share = weight if counts is True else counts * weight
            total = total + points * share
            shares = shares + share
        return self._mean(total, at_least(shares, 1))

    zero_counts_not = False
    """Whether a resource that scores 0 is left out of the mean."""

    @abstractmethod
    def _points(self, requested: Any, capacity: Any) -> Any:
        """0..100 for one resource; `capacity` is above 0."""

    def _mean(self, total: Any, weights: Any) -> Any:
        return quotient(total, weights)


class LeastAllocated(AllocationStrategy):
    """Spread out: the emptier the better."""

    def _points(self, requested: Any, capacity: Any) -> Any:
        return percent(at_least(capacity - requested, 0), capacity)


class MostAllocated(AllocationStrategy):
    """Pack: the fuller the better."""

    def _points(self, requested: Any, capacity: Any) -> Any:
        return percent(at_most(requested, capacity), capacity)


class RequestedToCapacityRatio(AllocationStrategy):
    """A broken line over the utilisation in percent. Resources that score 0 do not count in the mean."""

    zero_counts_not = True

    def __init__(self, resources: Sequence[WeightedResource], shape: Sequence[tuple[int, int]]) -> None:
        """`shape`: (utilization 0..100, score 0..10), utilisations ascending."""
        super().__init__(resources)
        scaled = [(at_, score * (MAX_NODE_SCORE // MAX_SHAPE_SCORE)) for at_, score in shape]
        line = [_on_line(scaled, utilization) for utilization in range(MAX_NODE_SCORE + 1)]
        self._line: NDArray[np.int64] = np.array(line, dtype=np.int64)

    def _points(self, requested: Any, capacity: Any) -> Any:
        utilization = percent(at_most(requested, capacity), capacity)
        return self._line[utilization.astype(np.int64) if is_float(utilization) else utilization]

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
