"""A small fixed workload for every build: what decisions cost in units of work done in the same seconds.

No absolute time is in it, so it means the same on every machine: of every ratio more is worse. Each decision is CPU,
and a sample of them is made again by a fresh evaluator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from benchmarks.decisions import DecisionFigures, decisions
from benchmarks.scheduler_perf import WORKLOADS
from policyengine.plugins.registry import default_profile

NODES: Final = 500
PODS: Final = 300
KINDS: Final = ("basic", "mixed", "spread", "affinity", "antiaffinity", "nodeaffinity")
"""The peer workloads kube-scheduler was measured with."""


@dataclass(frozen=True, slots=True)
class RatioFigures:
    """What the workloads' decisions cost."""

    nodes: int
    pods: int
    yardsticks: dict[str, float]
    """Workload -> median decision in yardsticks (`benchmark.yardstick`)."""
    events: dict[str, float]
    """Workload -> median pod event in yardsticks."""
    checks: int
    """Decisions made again by a fresh evaluator, all equal."""

    @property
    def ratios(self) -> dict[str, float]:
        """What to compare between runs; more is worse."""
        found = {f"{name}: decision / yardstick": value for name, value in self.yardsticks.items()}
        return found | {f"{name}: pod event / yardstick": value for name, value in self.events.items()}


def ratios(nodes: int = NODES, pods: int = PODS) -> RatioFigures:
    """Measure; takes a few seconds. Raises `audit.WrongDecision`."""
    found: dict[str, DecisionFigures] = {}
    for name in (f"peer-{kind}" for kind in KINDS):
        found[name] = decisions(WORKLOADS[name].sized(nodes, pods), default_profile())
    return RatioFigures(
        nodes,
        pods,
        {name: one.decision.median / one.yardstick_us for name, one in found.items()},
        {name: one.pod_event.median / one.yardstick_us for name, one in found.items()},
        sum(one.checks for one in found.values()),
    )
