"""Node resources as the resource plugins score them, and exact integer division of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.pod_requests import CPU, MEMORY, is_scalar
from policyengine.cluster.pod_shape import PodShape, shape_of
from policyengine.framework.plugin_entry import schema_of

Amounts = NDArray[np.int64]
Doubles = NDArray[np.float64]
PODS: Final = "pods"
_DEFAULTED: Final = (CPU, MEMORY)


Weighted = tuple[str, int]
"""A resource that counts in a score, and how much."""
DEFAULT_RESOURCES: Final[tuple[Weighted, ...]] = ((CPU, 1), (MEMORY, 1))

RESOURCES_SCHEMA: Final[Mapping[str, object]] = {
    "type": "array",
    "minItems": 1,
    "items": schema_of(
        "name",
        name={"type": "string", "minLength": 1},
        weight={"type": "integer", "minimum": 1, "maximum": 100},
    ),
}


def read_resources(entries: Iterable[Mapping[str, Any]] | None) -> tuple[Weighted, ...]:
    """The `resources` argument; cpu and memory alike where it is absent. A weight left out is 1."""
    if entries is None:
        return DEFAULT_RESOURCES
    return tuple((str(entry["name"]), int(entry.get("weight") or 1)) for entry in entries)


class Asked(NamedTuple):
    """What counts of one pod's requests; the three are aligned."""

    resources: tuple[str, ...]
    requests: tuple[int, ...]
    weights: tuple[int, ...]


class ScoredResources:
    """The resources of a score."""

    def __init__(self, resources: Sequence[Weighted], with_defaults: bool) -> None:
        """With defaults, a container that asks for no cpu or memory counts, and what the pod asks for as a whole does
        not: so kube-scheduler 1.36 scores the pod that comes, though not those that stand (`getScorer`,
        noderesources/fit.go, hands the scorer no `enablePodLevelResources`)."""
        self._names = tuple([name for name, _ in resources])
        self._weights = tuple([weight for _, weight in resources])
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

    def left(self, nodes: NodeTable, asked: Asked) -> Doubles:
        """What would be left of each resource, 0 where the pod does not fit: `float64[resources, nodes]`, right where
        `Offer.is_exact`."""
        free = [nodes.free(resource, self._with_defaults) for resource in asked.resources]
        left: Doubles = np.array(free, dtype=np.float64).reshape(len(free), nodes.n)
        left -= np.array(asked.requests, dtype=np.float64)[:, None]
        return np.maximum(left, np.zeros(nodes.n), out=left)  # with a number it would take twice the time

    def filled(self, nodes: NodeTable, rows: NDArray[np.int64], shapes: Iterable[PodShape]) -> int:
        """How full the nodes are, taken as one, together with pods of these shapes: a weighted mean, 0..100."""
        asked = self.asked(tuple(sum(column) for column in zip(*map(self.requests, shapes), strict=True)))
        total = shares = 0
        for resource, request, weight in zip(asked.resources, asked.requests, asked.weights, strict=True):
            capacity = int(nodes.allocatable(resource)[rows].sum())
            if capacity:
                taken = capacity - int(nodes.free(resource, self._with_defaults)[rows].sum()) + request
                total += weight * (min(taken, capacity) * 100 // capacity)
                shares += weight
        return total // (shares or 1)


def _reader(resource: str, with_defaults: bool) -> Callable[[PodShape], int]:
    if resource in _DEFAULTED:
        return attrgetter(f"nonzero_{resource}" if with_defaults else f"requests.{resource}")
    return lambda shape: shape.requests.get(resource)


def percent(part: Any, whole: Any) -> Any:
    """100·part/whole, rounded down, for 0 <= part <= whole and whole > 0. Of doubles it is exact, as `int32`, for a
    whole below 2**53/100; the column of parts is written over."""
    if isinstance(part, int):
        return part * 100 // whole
    part *= 100.0
    part /= whole
    return part.astype(np.int32)
