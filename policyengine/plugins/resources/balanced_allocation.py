"""NodeResourcesBalancedAllocation: a pod should even out how much of each resource of a node is used.

With B = trunc(100·(1 - std of the used fractions)) the score is 50 + (50 + B with the pod - B without it)/2. For two
resources std is half the difference. Fractions above 1 count as 1, resources the node does not offer are left out.
Operations and their order are kube-scheduler's, to the last bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import Snapshot
from policyengine.framework.changes import FEW, RowColumn, at
from policyengine.framework.events import ClusterEventWithHint
from policyengine.framework.plugin import MAX_NODE_SCORE, UNCONCERNED, Reads, Scores
from policyengine.framework.plugin_entry import schema_of
from policyengine.framework.status import SKIP, SUCCESS, Rows, State, Status
from policyengine.plugins.resources.amounts import Asked, ScoredResources, read_resources

Balances = NDArray[np.int32]
Fractions = NDArray[np.float64]
_COMBINATIONS: Final = 32
"""Combinations of resources whose balance without the pod is kept."""
_HALF: Final = MAX_NODE_SCORE // 2


class NodeResourcesBalancedAllocation:
    """Reads what the pod asks for, and allocatable and requested of the nodes, without defaults."""

    name = "NodeResourcesBalancedAllocation"
    reads = Reads.NODE | Reads.PODS
    arguments: Final = schema_of(
        resources={
            "type": "array",
            "items": schema_of("name", name={"type": "string", "minLength": 1}, weight={"const": 1}),
        }
    )

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        """NodeResourcesBalancedAllocationArgs: `resources`. ValueError where one is named twice."""
        resources = read_resources((arguments or {}).get("resources") or None)
        for name, count in Counter(name for name, _ in resources).items():
            if count > 1:
                raise ValueError(f"NodeResourcesBalancedAllocation: `resources`: `{name}` stands there twice")
        self._resources = ScoredResources(resources, with_defaults=False)
        self._before = lru_cache(_COMBINATIONS)(self._without_pod)
        """By the names of the resources that count."""

    def signature(self, pod: PodInfo) -> Hashable:
        """What is asked for of the resources that count."""
        requests = self._resources.requests(pod.shape)
        return requests if any(requests) else UNCONCERNED

    def pre_score(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Skipped for a pod that asks for none of the resources."""
        requests = self._resources.requests(pod.shape)
        if not any(requests):
            return SKIP, None
        return SUCCESS, self._resources.asked(requests)

    def score(self, state: Asked, snapshot: Snapshot, rows: Rows) -> NDArray[np.generic]:
        """50..100: above 75 where the pod evens the node out."""
        nodes = snapshot.nodes
        before = at(self._before(state.resources).values(nodes), rows)
        scores: Scores = _score(before, self._balances(nodes, state, rows)).astype(np.int64)
        return scores

    def score_row(self, state: Asked, snapshot: Snapshot, row: int) -> int:
        """The score of one node."""
        if len(state.resources) != 2:
            return int(self.score(state, snapshot, np.array([row])).item())
        one, other = state.resources
        first, second = snapshot.nodes.room(one, row), snapshot.nodes.room(other, row)
        score: int = _score(_of_two(first, second, 0, 0), _of_two(first, second, *state.requests))
        return score

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """It never rejects."""
        return ()

    def _without_pod(self, resources: tuple[str, ...]) -> RowColumn:
        """B of every node as it is."""
        none = Asked(resources, (0,) * len(resources), ())
        return RowColumn(lambda nodes, rows: self._balances(nodes, none, rows))

    def _balances(self, nodes: NodeTable, asked: Asked, rows: Rows) -> Balances:
        """B with what is asked for on top of what is used: `int32[rows]`, 0..100."""
        if len(rows) <= FEW and len(asked.resources) == 2:
            one, other = asked.resources
            rooms = [(nodes.room(one, row), nodes.room(other, row)) for row in rows.tolist()]
            return np.array([_of_two(*each, *asked.requests) for each in rooms], dtype=np.int32)
        offer = nodes.offer(asked.resources)
        if len(asked.resources) == 2 and offer.is_exact and offer.is_offered is None:
            left = self._resources.left(nodes, asked)
            fractions = np.subtract(offer.amounts, left, out=left)
            fractions /= offer.amounts
            deviation = abs(fractions[0] - fractions[1])
            deviation *= 0.5
            deviation = at(deviation, rows)
        else:
            deviation = _deviation(nodes, asked, rows)
        balances: Balances = _even(deviation).astype(np.int32)
        return balances


def _score(before: Any, after: Any) -> Any:
    """By B without the pod and with it, of columns or ints: 50 + (50 + after - before)/2."""
    return (3 * _HALF + after - before) >> 1


def _even(deviation: Any) -> Any:
    """B, not yet truncated, of a standard deviation or a column of them."""
    return (1 - deviation) * MAX_NODE_SCORE


def _of_two(first: tuple[int, int], second: tuple[int, int], request: int, other_request: int) -> int:
    """B of one node by what is offered and free of two resources. A node that does not offer both is even."""
    (offered, free), (other_offered, other_free) = first, second
    if not (offered and other_offered):
        return MAX_NODE_SCORE
    fraction = min(float(offered - free + request) / float(offered), 1.0)
    other = min(float(other_offered - other_free + other_request) / float(other_offered), 1.0)
    return int(_even(abs(fraction - other) * 0.5))


def _deviation(nodes: NodeTable, asked: Asked, rows: Rows) -> Fractions:
    """The population standard deviation over the resources each node offers; 0 for fewer than two."""
    fractions: list[Fractions] = []
    offered: list[NDArray[np.bool_]] = []
    for resource, request in zip(asked.resources, asked.requests, strict=True):
        capacity, used = at(nodes.allocatable(resource), rows), at(nodes.requested(resource), rows)
        offered.append(capacity != 0)
        fraction = np.divide(used + request, capacity, out=np.zeros(len(rows)), where=offered[-1])
        fractions.append(np.minimum(fraction, 1.0))
    number = np.zeros(len(rows), dtype=np.int64)
    mean = np.zeros(len(rows))
    low, high = np.full(len(rows), 2.0), np.full(len(rows), -1.0)
    for fraction, has in zip(fractions, offered, strict=True):
        number += has
        mean += fraction  # 0 where the node does not offer the resource
        low = np.where(has, np.minimum(low, fraction), low)
        high = np.where(has, np.maximum(high, fraction), high)
    mean /= np.maximum(number, 1)
    squares = np.zeros(len(rows))
    for fraction, has in zip(fractions, offered, strict=True):
        squares += np.where(has, (fraction - mean) * (fraction - mean), 0.0)
    many = np.sqrt(squares / np.maximum(number, 1))
    return np.where(number > 2, many, np.where(number == 2, (high - low) / 2, 0.0))
