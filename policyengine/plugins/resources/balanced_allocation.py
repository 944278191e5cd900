"""NodeResourcesBalancedAllocation: a pod should even out how much of each resource of a node is used.

With B = trunc(100·(1 - std of the used fractions)) the score is 50 + (50 + B with the pod - B without it)/2. For two
resources std is half the difference. Fractions above 1 count as 1, resources the node does not offer are left out.
Operations and their order are kube-scheduler's, to the last bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.changes import FEW, RowColumn, at
from policyengine.framework.events import ClusterEventWithHint
from policyengine.framework.plugin import MAX_NODE_SCORE, UNCONCERNED, Reads, Scores
from policyengine.framework.status import SKIP, SUCCESS, Rows, State, Status
from policyengine.plugins.resources.amounts import (
    Amount,
    Asked,
    ScoredResources,
    amounts_at,
    columns_of,
    read_resources,
)
from policyengine.plugins.resources.per_shape import PerShape

if TYPE_CHECKING:
    from policyengine.cluster.node_table import NodeTable
    from policyengine.cluster.view import Snapshot

NAME: Final = "NodeResourcesBalancedAllocation"
Balance = NDArray[np.int64]
Fractions = NDArray[np.float64]
_COMBINATIONS: Final = 32
"""Combinations of resources whose balance without the pod is kept."""
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


class NodeResourcesBalancedAllocation:
    """Reads what the pod asks for, and allocatable and requested of the nodes, without defaults."""

    name = NAME
    reads = Reads.NODE | Reads.PODS

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        """NodeResourcesBalancedAllocationArgs: `resources`. ValueError where one is named twice."""
        resources = read_resources((arguments or {}).get("resources") or None)
        for name, count in Counter(resource.name for resource in resources).items():
            if count > 1:
                raise ValueError(f"NodeResourcesBalancedAllocation: `resources`: `{name}` stands there twice")
        self._resources = ScoredResources(resources, with_defaults=False)
        self._requests = PerShape(self._resources.requests)
        self._before = lru_cache(_COMBINATIONS)(_without_pod)
        """By the names of the resources that count."""

    def signature(self, pod: PodInfo) -> Hashable:
        """What is asked for of the resources that count."""
        requests = self._requests(pod)
        return requests if any(requests) else UNCONCERNED

    def pre_score(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Skipped for a pod that asks for none of the resources."""
        requests = self._requests(pod)
        if not any(requests):
            return SKIP, None
        return SUCCESS, self._resources.asked(requests)

    def score(self, state: State, snapshot: Snapshot, rows: Rows) -> NDArray[np.generic]:
        """50..100: above 75 where the pod evens the node out."""
        asked: Asked = state
        nodes = snapshot.nodes
        if _is_few(asked, rows):
            none = asked._replace(requests=(0, 0))
            each = [(amounts_at(nodes, asked, row, with_defaults=False)) for row in rows.tolist()]
            return np.array([_score(_of_two(one, none), _of_two(one, asked)) for one in each], dtype=np.int64)
        before = at(self._before(asked.resources).values(nodes), rows)
        scores: Scores = _score(before, balances(nodes, asked, rows))
        return scores

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """It never rejects."""
        return ()


def _score(before: Any, after: Any) -> Any:
    """By B without the pod and with it, of columns or ints."""
    return _HALF + (_HALF + after - before >> 1)


def _is_few(asked: Asked, rows: Rows) -> bool:
    """Whether to work the rows out one by one."""
    return len(rows) <= FEW and len(asked.resources) == 2


def _without_pod(resources: tuple[str, ...]) -> RowColumn:
    """B of every node as it is."""
    none = Asked(resources, (0,) * len(resources), ())
    return RowColumn(lambda nodes, rows: balances(nodes, none, rows))


def balances(nodes: NodeTable, asked: Asked, rows: Rows) -> Balance:
    """B with what is asked for on top of what is used: `int64[rows]`, 0..100."""
    if _is_few(asked, rows):
        each = [_of_two(amounts_at(nodes, asked, row, with_defaults=False), asked) for row in rows.tolist()]
        return np.array(each, dtype=np.int64)
    amounts = columns_of(nodes, asked, rows, with_defaults=False)
    if len(amounts) == 2 and all(offered is True for _, _, offered in amounts):
        fractions = [
            (used + more) / capacity for (capacity, used, _), more in zip(amounts, asked.requests, strict=True)
        ]
        first, second = (np.minimum(fraction, 1.0, out=fraction) for fraction in fractions)
        even: Fractions = _even(abs(first - second) / 2)
        return even.astype(np.int64)
    fractions = [
        np.minimum(np.divide(used + more, capacity, out=np.zeros(len(used)), where=capacity != 0), 1.0)
        for (capacity, used, _), more in zip(amounts, asked.requests, strict=True)
    ]
    even = _even(_deviation(fractions, [capacity != 0 for capacity, _, _ in amounts]))
    return even.astype(np.int64)


def _even(deviation: Any) -> Any:
    """B, not yet truncated, of a standard deviation or a column of them."""
    return (1 - deviation) * MAX_NODE_SCORE


def _of_two(amounts: Sequence[Amount], asked: Asked) -> int:
    """B of one node and two resources; of what it does not offer nothing is used, and one resource is even."""
    (first_capacity, first_used, first_offered), (second_capacity, second_used, second_offered) = amounts
    if not (first_offered and second_offered):
        return MAX_NODE_SCORE
    first = min((first_used + asked.requests[0]) / first_capacity, 1.0)
    second = min((second_used + asked.requests[1]) / second_capacity, 1.0)
    return int(_even(abs(first - second) / 2))


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
