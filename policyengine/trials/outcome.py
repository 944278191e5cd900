"""What came of a run: the JSON of `policyengine simulate`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from policyengine.framework.profile import Profile
from policyengine.trials.expectations import Verdict
from policyengine.trials.ledger import Ledger, NodeRecord, PodRecord, mean_share, percentile
from policyengine.trials.scenario import Json, Scenario

POINTS = 500
"""The most points of the JSON's series."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run that is over. `ledger` has everything; `json()` is what the command prints."""

    scenario: Scenario
    seed: int
    profiles: tuple[Profile, ...]
    """Those it began with."""
    end: float
    """Seconds from the start."""
    ledger: Ledger
    verdicts: tuple[Verdict, ...]

    @property
    def passed(self) -> bool:
        """Whether every expectation came true."""
        return all(verdict.passed for verdict in self.verdicts)

    def json(self) -> Json:
        """Plain values only; times in seconds from the start, cpu in millicores, memory in bytes."""
        return {
            "scenario": self.scenario.name,
            "seed": self.seed,
            "seconds": _time(self.end),
            "policies": [
                {"name": one.name, "scheduler": one.scheduler_name, "hash": one.policy_hash} for one in self.profiles
            ],
            "summary": summary(self),
            "expectations": [
                {"expectation": one.text, "passed": one.passed, "found": one.found} for one in self.verdicts
            ],
            "passed": self.passed,
            "pods": [_pod(one) for one in self.ledger.pods.values()],
            "nodes": [_node(one) for one in self.ledger.nodes.values()],
            "series": _series(self),
        }


def summary(outcome: Outcome) -> Json:
    """The run in a few figures."""
    ledger = outcome.ledger
    waits = waits_of(ledger)
    states = Counter(pod.state for pod in ledger.pods.values())
    return {
        "pods": len(ledger.pods),
        "states": dict(sorted(states.items())),
        "bound": len(waits),
        "attempts": sum(pod.attempts for pod in ledger.pods.values()),
        "preempted": ledger.preempted,
        "waited": {which: _time(percentile(waits, which)) for which in ("mean", "p50", "p90", "p99", "max")},
        "mostPending": max((sample.pending for sample in ledger.samples), default=0),
        "utilisation": {
            name: round(mean_share(ledger.samples, name, 0.0, outcome.end), 4) for name in resources(ledger)
        },
    }


def waits_of(ledger: Ledger) -> list[float]:
    """How long the pods that were bound had waited, in order."""
    return sorted(pod.waited for pod in ledger.pods.values() if pod.waited is not None)


def resources(ledger: Ledger) -> list[str]:
    """What pods ask for and nodes have, cpu and memory first."""
    asked = {name for pod in ledger.pods.values() for name in pod.asks} | {"cpu", "memory"}
    return sorted(asked - {"pods"}, key=lambda name: (name not in ("cpu", "memory"), name))


def _pod(pod: PodRecord) -> Json:
    return {
        "pod": pod.name,
        "template": pod.template,
        "created": _time(pod.created),
        "attempts": pod.attempts,
        "bound": _time(pod.bound),
        "node": pod.node or None,
        "waited": _time(pod.waited),
        "ended": _time(pod.ended),
        "state": pod.state,
        "refusedBy": list(pod.refused_by),
        "message": pod.told if pod.bound is None else "",
        "gang": pod.gang or None,
    }


def _node(node: NodeRecord) -> Json:
    return {
        "node": node.name,
        "came": _time(node.came),
        "gone": _time(node.gone),
        "pods": node.pods,
        "peak": dict(sorted(node.peak.items())),
        "peakShare": round(node.peak_share, 4),
    }


def _series(outcome: Outcome) -> list[Json]:
    samples: Sequence[Any] = outcome.ledger.samples
    step = -(-len(samples) // POINTS) or 1
    names = resources(outcome.ledger)
    return [
        {
            "at": _time(one.at),
            "pending": one.pending,
            "running": one.running,
            "share": {name: round(one.share(name), 4) for name in names},
        }
        for one in samples[::step]
    ]


def _time(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
