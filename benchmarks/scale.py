"""What a decision costs as the cluster grows, and what holding it takes: one process a point, each bounded in time.

Nodes grow at a fixed number of placed pods, then placed pods at a fixed number of nodes. At every point pods of
different shapes and then identical ones are decided; CPU is measured, not the clock. The exponent is the slope of a
line through the logarithms by least squares: 0 is a cost that does not grow, 1 one that grows with the cluster. For
costs of 10, 20 and 40 µs at 1,000, 2,000 and 4,000 nodes it is 1.
"""

from __future__ import annotations

import math
import statistics
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.processes import ChildFailed, module

NODES: Final = (1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 100_000)
PLACED_BESIDE: Final = 10_000
"""Placed pods while nodes grow."""
PODS: Final = (10_000, 20_000, 50_000, 100_000, 150_000)
NODES_BESIDE: Final = 15_000
"""Nodes while placed pods grow."""
POINT_SECONDS: Final = 120.0
"""After which a point is given up."""
DECIDING_SECONDS: Final = 6.0
"""CPU a point may spend on each kind of pod."""


@dataclass(frozen=True, slots=True)
class Point:
    """A cluster of one size. Microseconds are CPU, medians."""

    nodes: int
    pods: int
    """Placed before anything is decided."""
    different_us: float
    """A decision for a pod unlike the one before."""
    identical_us: float
    """A decision for a pod like the one before."""
    start_cpu_seconds: float
    """Taking in every node and pod, from decoded objects to rows."""
    kb_per_node: float
    """Resident memory that came with the nodes."""
    kb_per_pod: float
    """Resident memory that came with the placed pods."""
    peak_mb: float


COSTS: Final[Mapping[str, Callable[[Point], float]]] = {
    "different pods": lambda point: point.different_us,
    "identical pods": lambda point: point.identical_us,
    "start": lambda point: point.start_cpu_seconds,
}


@dataclass(frozen=True, slots=True)
class ScaleFigures:
    """Cost against size."""

    by_nodes: tuple[Point, ...]
    by_pods: tuple[Point, ...]
    given_up: tuple[str, ...]
    """Points without a figure, and why."""

    @property
    def exponents(self) -> dict[str, float]:
        """Of each cost: `COST against nodes`, `COST against pods`."""
        found = {}
        for name, cost in COSTS.items():
            found[f"{name} against nodes"] = exponent([one.nodes for one in self.by_nodes], map(cost, self.by_nodes))
            found[f"{name} against pods"] = exponent([one.pods for one in self.by_pods], map(cost, self.by_pods))
        return found

    @staticmethod
    def from_json(figures: Mapping[str, Any]) -> ScaleFigures:
        """Read back from a record."""
        by_nodes, by_pods = (tuple(Point(**one) for one in figures[name]) for name in ("by_nodes", "by_pods"))
        return ScaleFigures(by_nodes, by_pods, tuple(figures["given_up"]))


def exponent(sizes: Sequence[float], costs: Iterable[float]) -> float:
    """The slope of log cost over log size, by least squares; 0 where there are fewer than two sizes."""
    if len(set(sizes)) < 2:
        return 0.0
    return statistics.linear_regression([*map(math.log, sizes)], [*map(math.log, costs)]).slope


async def scale(
    nodes: Sequence[int] = NODES,
    pods: Sequence[int] = PODS,
    report: Callable[[str], None] = lambda told: None,
    beside: tuple[int, int] = (PLACED_BESIDE, NODES_BESIDE),
    seconds: float = DECIDING_SECONDS,
) -> ScaleFigures:
    """Measure every point, one after the other. `beside`: (placed pods while nodes grow, nodes while pods grow)."""
    lost: list[str] = []

    async def points(sizes: Sequence[tuple[int, int]]) -> tuple[Point, ...]:
        found = [await _point(size, seconds, lost, report) for size in sizes]
        return tuple(one for one in found if one is not None)

    by_nodes = await points([(count, beside[0]) for count in nodes])
    return ScaleFigures(by_nodes, await points([(beside[1], count) for count in pods]), tuple(lost))


async def _point(size: tuple[int, int], seconds: float, lost: list[str], report: Callable[[str], None]) -> Point | None:
    """One point in a process of its own; what cannot be measured is noted in `lost`."""
    nodes, pods = size
    with tempfile.TemporaryDirectory(prefix="policyengine-") as folder:
        argument = {"nodes": nodes, "pods": pods, "seconds": seconds}
        try:
            async with module("scale_process", argument, Path(folder)) as child:
                point = Point(**await child.line(POINT_SECONDS))
        except ChildFailed as failure:
            lost.append(f"{nodes:,} nodes, {pods:,} pods: {failure}")
            report(lost[-1])
            return None
    report(f"{nodes:,} nodes, {pods:,} pods: {point.different_us:,.0f} µs, identical {point.identical_us:,.0f} µs")
    return point
