"""NodeResourcesBalancedAllocation: a pod should even out how much of each resource of a node is used.

With B = trunc(100·(1 - std of the used fractions)) the score is 50 + (50 + B with the pod - B without it)/2. For two
resources std is half the difference. Fractions above 1 count as 1, resources the node does not offer are left out.
Operations and their order are kube-scheduler's, to the last bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.changes import FEW
from policyengine.framework.events import ClusterEventWithHint
from policyengine.framework.plugin import MAX_NODE_SCORE, UNCONCERNED, Reads, Scores
from policyengine.framework.status import SKIP, SUCCESS, Rows, State, Status
from policyengine.plugins.resources.amounts import (
    Amounts,
    Asked,
    ScoredResources,
    amounts_at,
    columns_of,
    read_resources,
)
from policyengine.plugins.resources.per_shape import PerShape

if TYPE_CHECKING:
    from policyengine.cluster.view import Snapshot

NAME: Final = "NodeResourcesBalancedAllocation"
Fractions = NDArray[np.float64]
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
        if len(rows) <= FEW:
            each = [_node_score(amounts_at(nodes, asked, row, with_defaults=False), asked) for row in rows.tolist()]
            if None not in each:
                return np.array(each, dtype=np.int64)
        amounts = columns_of(nodes, asked, rows, with_defaults=False)
        offers, before = [offered for offered, _ in amounts], [used for _, used in amounts]
        after = [used + request for used, request in zip(before, asked.requests, strict=True)]
        scores: Scores = _score(balance(before, offers), balance(after, offers))
        return scores

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """It never rejects."""
        return ()


def _score(before: Any, after: Any) -> Any:
    """By B without the pod and with it, of columns or ints."""
    return _HALF + (_HALF + after - before) // 2


def _balance_of_two(first: Any, second: Any) -> Any:
    """B, not yet truncated, of two fractions, columns or floats."""
    return (1 - abs((first - second) / 2)) * MAX_NODE_SCORE


def _node_score(amounts: Sequence[tuple[int, int]], asked: Asked) -> int | None:
    """The score of one node, by (offered, used) of two resources that it offers; None of others."""
    if len(amounts) != 2 or not (amounts[0][0] and amounts[1][0]):
        return None
    before = [min(float(used) / float(offered), 1.0) for offered, used in amounts]
    after = [
        min(float(u + more) / float(offered), 1.0) for (offered, u), more in zip(amounts, asked.requests, strict=True)
    ]
    score: int = _score(int(_balance_of_two(*before)), int(_balance_of_two(*after)))
    return score


def balance(used: Sequence[Amounts], capacities: Sequence[Amounts]) -> Amounts:
    """B: `int64[rows]`, 0..100, of what is used of each resource and offered, 0 where it is not."""
    if len(capacities) == 2 and all(capacity.min() > 0 for capacity in capacities):
        first, second = (np.minimum(a, c) / c for a, c in zip(used, capacities, strict=True))
        even: Amounts = _balance_of_two(first, second).astype(np.int64)
        return even
    fractions = [
        np.minimum(np.divide(a, c, out=np.zeros(len(c)), where=c != 0), 1.0)
        for a, c in zip(used, capacities, strict=True)
    ]
    offered = [capacity != 0 for capacity in capacities]
    return ((1 - _deviation(fractions, offered)) * MAX_NODE_SCORE).astype(np.int64)


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
