"""What `policyengine tune` takes: 200 candidates on a recorded hour of 1,000 nodes with 10 pod events a second. The
command itself is measured, from start to end."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

from benchmarks.figures import Figure
from benchmarks.plan import START, command_figures, shipped
from policyengine.traces.writing import TraceNode, TracePod, write

HOUR: Final = 3600.0
NODES, TRIALS = 1_000, 200
EVENTS: Final = 5
"""Of each pod: it comes, is bound, starts, finishes, and is deleted."""
EVENTS_A_SECOND: Final = 10.0
SECONDS: Final = 900.0
SIZES: Final = ("500m", "1", "2", "3")
RUNS: Final = 1_220.0
"""Seconds that a pod runs in the mean: nodes of four cores are nearly full, and pods of three wait for one."""


def tuning(nodes: int = NODES, trials: int = TRIALS) -> list[Figure]:
    """Measure it. Raises `ChildFailed`."""
    with tempfile.TemporaryDirectory(prefix="policyengine-") as folder:
        hour = Path(folder) / "hour"
        machines = (TraceNode(f"node-{i:06d}", {"cpu": "4", "memory": "32Gi"}) for i in range(nodes))
        count = write(hour, "bench", START, "default-scheduler", machines, _pods(nodes))
        command = ["tune", shipped("bin-packing", Path(folder)), "--recording", str(hour), "--points", "0"]
        command += [
            "--objective",
            "wait.mean",
            "--trials",
            str(trials),
            "--jobs",
            "2",
            "--out",
            str(Path(folder) / "out"),
        ]
        told = f"{trials} candidates on an hour of {nodes:,} nodes and {count:,} pods, 2 processes"
        found = command_figures(told, SECONDS, None, *command, codes=(0, 1))
    rate = trials / found[0].value * 60.0
    return [*found, Figure("candidates a minute", rate, "", digits=1)]


def _pods(nodes: int) -> Iterator[TracePod]:
    """Poisson arrivals; on fewer nodes each pod runs as much shorter."""
    random, at = Random("tuning"), 0.0
    for number in range(round(HOUR * EVENTS_A_SECOND / EVENTS)):
        at += random.expovariate(EVENTS_A_SECOND / EVENTS)
        ended = at + random.expovariate(1.0 / (RUNS * nodes / NODES))
        yield TracePod(f"pod-{number:06d}", at, {"cpu": random.choice(SIZES), "memory": "1Gi"}, at, ended)
