"""A small fixed workload for every build: what decisions cost in units of work done in the same seconds.

No absolute time is in it, so it means the same on every machine: of every ratio more is worse. Each decision is CPU,
and a sample of them is made again by a fresh evaluator.
"""

from __future__ import annotations

import time
from typing import Final

import numpy as np

from benchmarks.decisions import decisions
from benchmarks.figures import Figure
from benchmarks.scheduler_perf import WORKLOADS
from policyengine.plugins.registry import default_profile

NODES: Final = 500
PODS: Final = 300
KINDS: Final = ("basic", "mixed", "spread", "affinity", "antiaffinity", "nodeaffinity")
"""The peer workloads kube-scheduler was measured with."""
ROUNDS: Final = 50


def ratios(nodes: int = NODES, pods: int = PODS) -> list[Figure]:
    """Measure; takes a few seconds. Raises `audit.WrongDecision`."""
    rows = []
    for name in (f"peer-{kind}" for kind in KINDS):
        before = unit_of_work_ns()
        found = decisions(WORKLOADS[name].sized(nodes, pods), default_profile())
        unit = min(before, unit_of_work_ns()) / 1e3
        checked = f", {found.checks} checked"
        rows.append(Figure(f"{name}: decision", found.decision.median / unit, "units", digits=3, more=checked))
        rows.append(Figure(f"{name}: pod event", found.pod_event.median / unit, "units", digits=3))
    return rows


def unit_of_work_ns() -> int:
    """CPU nanoseconds of a fixed piece of work: the least of `ROUNDS`, so that whoever interrupts does not show.

    Half of it is what the interpreter does, half what numpy does on columns of 5,000 nodes: a decision is made of both.
    """
    column = np.arange(5_000, dtype=np.int64)
    return min(_once(column) for _ in range(ROUNDS))


def _once(column: np.ndarray[tuple[int], np.dtype[np.int64]]) -> int:
    started = time.thread_time_ns()
    seen: dict[str, int] = {}
    for number in range(400):
        key = f"node-{number:06d}"
        seen[key] = seen.get(key, 0) + number % 7
    total = 0
    for _ in range(4):
        kept = np.flatnonzero((column * 3 + 1) % 7 > 2)
        total += int((column[kept] * 100 // 4_000).max())
    assert total and len(seen) == 400
    return time.thread_time_ns() - started
