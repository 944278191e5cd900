"""What `policyengine tune` takes: 200 candidates on a recorded hour of 1,000 nodes with 10 pod events a second. The
command itself is measured, from start to end."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

from benchmarks.figures import Figure
from benchmarks.plan import START, command_figures
from policyengine.traces.writing import TraceNode, TracePod, write

HOUR: Final = 3600.0
NODES, TRIALS = 1_000, 200
EVENTS: Final = 5
"""Of each pod: it comes, is bound, starts, finishes, and is deleted."""
EVENTS_A_SECOND: Final = 10.0
SECONDS: Final = 900.0
POLICY: Final = """policy "hour" {
  scheduler "default-scheduler"
  base filters
  param most: int = 3 range [1, 16]
  filter "few" { require node.podCount < most else "has {node.podCount} pods" }
  score "full" weight 3 = 100 * ratio(node.used.cpu, node.allocatable.cpu)
  score "even" weight 5 = 100 * (1.0 - ratio(node.used.cpu + pod.requests.cpu, node.allocatable.cpu))
}
"""
SIZES: Final = ("500m", "1", "2", "3")
RUNS: Final = 1_500.0
"""Seconds that a pod runs in the mean: nodes of four cores are full after three quarters of the hour, and pods wait."""


def tuning(nodes: int = NODES, trials: int = TRIALS) -> list[Figure]:
    """Measure it. Raises `ChildFailed`."""
    with tempfile.TemporaryDirectory(prefix="policyengine-") as folder:
        hour = Path(folder) / "hour"
        machines = (TraceNode(f"node-{i:06d}", {"cpu": "4", "memory": "32Gi"}) for i in range(nodes))
        count = write(hour, "bench", START, "default-scheduler", machines, _pods(nodes))
        policy = Path(folder) / "hour.policy"
        policy.write_text(POLICY, encoding="utf-8")
        command = ["tune", str(policy), "--recording", str(hour), "--points", "0"]
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
    """Poisson arrivals, as much fewer as there are fewer nodes."""
    random, at = Random("tuning"), 0.0
    rate = EVENTS_A_SECOND / EVENTS * nodes / NODES
    for number in range(round(HOUR * rate)):
        at += random.expovariate(rate)
        ended = at + random.expovariate(1.0 / RUNS)
        yield TracePod(f"pod-{number:06d}", at, {"cpu": random.choice(SIZES), "memory": "1Gi"}, at, ended)
