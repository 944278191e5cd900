"""Node resources as the resource plugins score them, and exact integer division of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.node_objects import Node
from policyengine.cluster.pod_shape import PodShape, shape_of
from policyengine.cluster.requests import CPU, MEMORY, Reading, is_scalar
from policyengine.framework.changes import at
from policyengine.framework.status import Rows

if TYPE_CHECKING:
    from policyengine.cluster.node_table import NodeTable

Amounts = NDArray[np.int64]
PODS: Final = "pods"
_DEFAULTED: Final = (CPU, MEMORY)
_INT64_MAX: Final = 2**63 - 1
EXACT: Final = 2**53
"""Below it every integer is a float64, and the floor of a correctly rounded quotient of two such integers is the
floor of the exact one: were x/y just below an integer k, the gap is at least 1/y > k/2**53, more than half a unit
in the last place, so rounding cannot reach k."""


@dataclass(frozen=True, slots=True)
class WeightedResource:
    """A resource that counts in a score, and how much."""

    name: str
    weight: int


DEFAULT_RESOURCES: Final = (WeightedResource(CPU, 1), WeightedResource(MEMORY, 1))

RESOURCES_SCHEMA: Final[Mapping[str, object]] = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1},
            "weight": {"type": "integer", "minimum": 1, "maximum": 100},
        },
        "required": ["name"],
        "additionalProperties": False,
    },
}


def read_resources(entries: Iterable[Mapping[str, Any]] | None) -> tuple[WeightedResource, ...]:
    """The `resources` argument; cpu and memory alike where it is absent. A weight left out is 1."""
    if entries is None:
        return DEFAULT_RESOURCES
    return tuple(WeightedResource(str(entry["name"]), int(entry.get("weight") or 1)) for entry in entries)


class Asked(NamedTuple):
    """What counts of one pod's requests; the three are aligned."""

    resources: tuple[str, ...]
    requests: tuple[int, ...]
    weights: tuple[int, ...]


class ScoredResources:
    """The resources of a score."""

    def __init__(self, resources: Sequence[WeightedResource], with_defaults: bool) -> None:
        """With defaults, a container that asks for no cpu or memory counts, and what the pod asks for as a whole does
        not: so kube-scheduler 1.36 scores the pod that comes, though not those that stand (`getScorer`,
        noderesources/fit.go, hands the scorer no `enablePodLevelResources`)."""
        self._names = tuple([resource.name for resource in resources])
        self._weights = tuple([resource.weight for resource in resources])
        self._with_defaults = with_defaults
        self._readers = [_reader(name, with_defaults) for name in self._names]
        self._some_scalar = any(is_scalar(name) for name in self._names)

    def requests(self, shape: PodShape) -> tuple[int, ...]:
        """What the pod asks of each."""
        if self._with_defaults and shape.spec.resources is not None:
            shape = shape_of(msgspec.structs.replace(shape.spec, resources=None))
        return tuple([read(shape) for read in self._readers])

    def asked(self, requests: tuple[int, ...]) -> Asked:
        """What counts of such requests: scalar resources count for pods alone that ask for them."""
        if not self._some_scalar:
            return Asked(self._names, requests, self._weights)
        all_of_them = zip(self._names, requests, self._weights, strict=True)
        counted = [one for one in all_of_them if one[1] != 0 or not is_scalar(one[0])]
        return Asked(*zip(*counted, strict=True)) if counted else Asked((), (), ())


def _reader(resource: str, with_defaults: bool) -> Callable[[PodShape], int]:
    if resource in _DEFAULTED:
        return attrgetter(f"nonzero_{resource}" if with_defaults else f"requests.{resource}")
    return lambda shape: shape.requests.get(resource)


Amount = tuple[Any, Any, Any]
"""(allocatable, used, whether anything is allocatable) of one resource: of nodes as columns, or of one node in Python's
integers. A column of allocatable is `float64`, or `int64` where that would not be exact; the third is True where it is
so on all nodes, else `bool[rows]`."""


def columns_of(nodes: NodeTable, asked: Asked, rows: Rows, with_defaults: bool) -> list[Amount]:
    """The amounts of each resource asked for."""
    found: list[Amount] = []
    for resource in asked.resources:
        offer = nodes.offer(resource)
        capacity = at(offer.floats if offer.most < EXACT // 100 else offer.amounts, rows)
        used = at(_taken(nodes, resource, with_defaults), rows)
        found.append((capacity, used, True if offer.least > 0 else capacity > 0))
    return found


def amounts_at(nodes: NodeTable, asked: Asked, row: int, with_defaults: bool) -> list[Amount]:
    """The same of one row."""
    room = nodes.room_with_defaults if with_defaults else nodes.room
    rooms = [room(resource, row) for resource in asked.resources]
    return [(capacity, used, capacity > 0) for capacity, used in rooms]


def _taken(nodes: NodeTable, resource: str, with_defaults: bool) -> Amounts:
    if with_defaults and resource == CPU:
        return nodes.nonzero_requested_cpu
    if with_defaults and resource == MEMORY:
        return nodes.nonzero_requested_memory
    return nodes.requested(resource)


# One formula serves whole columns, `int64[rows]`, and single rows, ints: for these calling numpy costs more than the
# arithmetic.


def at_least(amount: Any, least: int) -> Any:
    """The larger of the two."""
    return max(amount, least) if isinstance(amount, int) else np.maximum(amount, least)


def at_most(amount: Any, most: Any) -> Any:
    """The smaller of the two."""
    return np.minimum(amount, most) if isinstance(amount, np.ndarray) else min(amount, most)


def quotient(part: Any, whole: Any) -> Any:
    """part/whole, rounded down; of whole numbers below `EXACT` in columns of floats too."""
    return np.floor(part / whole) if is_float(part) else part // whole


def percent(part: Any, whole: Any) -> Any:
    """100·part/whole, rounded down, for 0 <= part <= whole and whole > 0; a column of floats in `part` is written
    over.

    By a column of floats the quotient is `float64[rows]`, exact as long as `whole` is below 2**53/100. Integers are
    divided in int64, or, beyond what 100 of fit into that, in Python's integers.
    """
    if is_float(whole):
        part = part * 100.0 if not is_float(part) else np.multiply(part, 100.0, out=part)
        part /= whole
        return np.floor(part, out=part)
    if isinstance(part, int) or int(whole.max()) <= _INT64_MAX // 100:
        return part * 100 // whole
    exact: Amounts = (part.astype(object) * 100 // whole).astype(np.int64)
    return exact


def is_float(amount: Any) -> bool:
    """Whether it is a column of floats."""
    return isinstance(amount, np.ndarray) and amount.dtype == np.float64


def node_allocatable(node: Node) -> dict[str, int]:
    """What a Node object says it offers, in the scheduler's units; what is malformed counts as absent."""
    reading = Reading()
    amounts = reading.amounts(node.status.allocatable or {}, "allocatable")
    return {name: reading.whole(name, amount, "allocatable") for name, amount in amounts.items()}
