"""NodeResourcesBalancedAllocation: a pod should even out how much of each resource of a node is used.

Score: see `balance`. Resources the node does not offer are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.events import ClusterEventWithHint
from policyengine.framework.plugin import UNCONCERNED, Reads, Scores
from policyengine.framework.rows import FEW, at
from policyengine.framework.status import SKIP, SUCCESS, Rows, State, Status
from policyengine.plugins.resources.amounts import Asked, ScoredResources, read_resources
from policyengine.plugins.resources.balance import BalanceColumns, balance, balance_of, score_of, scores_of
from policyengine.plugins.resources.per_shape import PerShape

if TYPE_CHECKING:
    from policyengine.cluster.node_table import NodeTable
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


class NodeResourcesBalancedAllocation:
    """Reads what the pod asks for, and allocatable and requested of the nodes, without defaults."""

    name = NAME
    reads = Reads.NODE | Reads.PODS
    of_template = True
    pointwise = True

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
            score_of = _node_score(nodes, asked)
            return np.array([score_of(row) for row in rows.tolist()], dtype=np.int64)
        names, is_whole = asked.resources, len(rows) == nodes.n
        columns = nodes.follower((BalanceColumns, names), lambda: BalanceColumns(names)) if is_whole else None
        if columns is not None and columns.are_usual:
            return columns.score(asked.requests)
        held = [at(nodes.requested(name), rows) for name in names]
        offers = [at(nodes.allocatable(name), rows).astype(np.float64) for name in names]
        before = [amounts.astype(np.float64) for amounts in held]
        after = [
            (amounts + np.int64(request)).astype(np.float64) if request else floats
            for amounts, floats, request in zip(held, before, asked.requests, strict=True)
        ]
        return scores_of(balance(before, offers), balance(after, offers))

    def row_score(self, state: State, snapshot: Snapshot) -> Callable[[int], int]:
        """The score of one node."""
        return _node_score(snapshot.nodes, state)

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


def _node_score(nodes: NodeTable, asked: Asked) -> Callable[[int], int]:
    """The score of one node, by its row, in Python's numbers: for a patch of few rows the faster way. Of use until a
    Node changes."""
    columns = [
        (nodes.allocatable(name).data, nodes.requested(name).data, request)
        for name, request in zip(asked.resources, asked.requests, strict=True)
    ]

    def score(row: int) -> int:
        before, after = [], []
        for offers, taken, request in columns:
            offer = offers[row]
            if offer:
                used, capacity = taken[row], float(offer)
                before.append(used / capacity if used < offer else 1.0)
                after.append((used + request) / capacity if used + request < offer else 1.0)
        return score_of(balance_of(before), balance_of(after))

    return score
