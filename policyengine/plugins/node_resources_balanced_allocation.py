"""NodeResourcesBalancedAllocation: a pod should even out how much of each resource of a node is used.

Score: see `balance`. Resources the node does not offer are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.pod_info import PodInfo, PodShape
from policyengine.framework.events import ClusterEventWithHint
from policyengine.framework.plugin import UNCONCERNED, Reads, Scores
from policyengine.framework.rows import FEW, at
from policyengine.framework.status import SKIP, SUCCESS, Rows, State, Status
from policyengine.plugins.balance import BalanceColumns, balance, balance_of, score_of, scores_of
from policyengine.plugins.per_shape import PerShape
from policyengine.plugins.resource_amounts import counts, read_resources, scored_requests

if TYPE_CHECKING:
    from policyengine.cluster.columns import NodeTable
    from policyengine.cluster.snapshot import Snapshot

NAME: Final = "NodeResourcesBalancedAllocation"

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
        names, is_whole = tuple(name for name, _ in asked), len(rows) == nodes.n
        columns = nodes.follower((BalanceColumns, names), lambda: BalanceColumns(names)) if is_whole else None
        if columns is not None and columns.are_usual:
            return columns.score([request for _, request in asked])
        held = [at(nodes.requested(name), rows) for name in names]
        offers = [at(nodes.allocatable(name), rows).astype(np.float64) for name in names]
        before = [amounts.astype(np.float64) for amounts in held]
        after = [
            (amounts + np.int64(request)).astype(np.float64) if request else floats
            for amounts, floats, (_, request) in zip(held, before, asked, strict=True)
        ]
        return scores_of(balance(before, offers), balance(after, offers))

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


def _node_score(nodes: NodeTable, asked: _Asked, row: int) -> int:
    """The score of one node, in Python's numbers: for a patch of few rows the faster way."""
    before, after = [], []
    for resource, request in asked:
        offer, used = nodes.room(resource, row)
        if offer:
            capacity = float(offer)
            before.append(min(float(used) / capacity, 1.0))
            after.append(min(float(used + request) / capacity, 1.0))
    return score_of(balance_of(before), balance_of(after))
