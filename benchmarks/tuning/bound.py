"""What no order of placement exceeds: the GPUs that the pods of a run can be given.

A linear program over classes of pods (what they ask for, and which nodes will do) and types of nodes: how many pods
of a class, in fractions too, lie on all nodes of a type together. Of a class there are no more than fit on single
nodes. HiGHS solves it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

from benchmarks.options import BenchError
from benchmarks.tuning.openb import GPU, MODEL
from policyengine.quantity import milli_value
from policyengine.traces.writing import TraceNode, TracePod

RESOURCES = ("cpu", "memory", GPU)


class Kind(NamedTuple):
    """A type of nodes, or a class of pods."""

    amounts: tuple[int, ...]
    """Thousandths of each of `RESOURCES`."""
    models: tuple[str, ...]
    """That a node has, or that will do for a pod; none: any."""

    def fits(self, node: Kind) -> int:
        """How many pods of this class an empty node holds."""
        if self.models and not set(self.models) & set(node.models):
            return 0
        return min(room // asked for asked, room in zip(self.amounts, node.amounts, strict=True) if asked)


def most_gpus(nodes: Sequence[TraceNode], pods: Sequence[TracePod]) -> float:
    """The bound. Raises `BenchError`."""
    types = Counter(Kind(_amounts(one.allocatable), (one.labels[MODEL],)) for one in nodes)
    classes = Counter(Kind(_amounts(one.requests), tuple(one.on.get(MODEL, ()))) for one in pods if GPU in one.requests)
    pairs = [(pod, node) for pod in classes for node in types if pod.fits(node)]
    if not pairs:
        return 0.0
    room = {node: number * len(RESOURCES) for number, node in enumerate(types)}
    cells = [
        (room[node] + at, column, asked / (node.amounts[at] * types[node]))
        for column, (pod, node) in enumerate(pairs)
        for at, asked in enumerate(pod.amounts)
        if asked
    ]
    first = len(types) * len(RESOURCES)
    rows = {pod: first + number for number, pod in enumerate(classes)}
    cells += [(rows[pod], column, 1.0 / classes[pod]) for column, (pod, _) in enumerate(pairs)]
    most = [float(types[node] * pod.fits(node)) for pod, node in pairs]
    return _maximum([pod.amounts[-1] / 1000 for pod, _ in pairs], cells, first + len(classes), most)


def _amounts(said: Any) -> tuple[int, ...]:
    return tuple(milli_value(said.get(name, "0")) for name in RESOURCES)


def _maximum(
    gains: Sequence[float], cells: Sequence[tuple[int, int, float]], rows: int, most: Sequence[float]
) -> float:
    """The largest sum of the gains, each row's sum being 1 at most, each number within 0 and `most`."""
    try:
        optimize, sparse = import_module("scipy.optimize"), import_module("scipy.sparse")
    except ImportError:
        raise BenchError("the bound needs SciPy: pip install scipy") from None
    at, columns, values = zip(*cells, strict=True)
    matrix = sparse.csr_array((values, (at, columns)), shape=(rows, len(gains)))
    bounds = [(0.0, one) for one in most]
    costs, limits = [-one for one in gains], [1.0] * rows
    found = optimize.linprog(costs, A_ub=matrix, b_ub=limits, bounds=bounds, method="highs")
    if not found.success:
        raise BenchError(f"HiGHS found no bound: {found.message}")
    return float(-found.fun)
