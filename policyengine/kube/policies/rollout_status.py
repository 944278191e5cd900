"""What the annotation `policyengine.io/status` of a candidate says of how it is tried, and reading that back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from policyengine.cluster.objects import ConfigMap
from policyengine.kube.policies.config_map import SUSPENDED, annotated
from policyengine.scheduler.rollout.candidate import Rollout
from policyengine.scheduler.rollout.rollout_settings import RolloutSettings

MOST_RULES = 10
"""Rules that are named in a status: those that make most differences."""


@dataclass(frozen=True, slots=True)
class Suspension:
    """What was suspended, and why."""

    policy_hash: str
    settings: Mapping[str, Any] | RolloutSettings
    why: str

    def is_of(self, policy_hash: str, settings: RolloutSettings) -> bool:
        """Whether it is this policy, tried in this way, that was suspended."""
        ours = described(self.settings) if isinstance(self.settings, RolloutSettings) else self.settings
        return self.policy_hash == policy_hash and ours == described(settings)


def suspension_of(config_map: ConfigMap) -> Suspension | None:
    """What its status says was suspended."""
    status = annotated(config_map)
    rollout = status.get("rollout")
    settings = rollout.get("settings") if isinstance(rollout, dict) else None
    if status.get("state") != SUSPENDED or not isinstance(settings, dict):
        return None
    return Suspension(str(status.get("hash")), settings, str(status.get("message") or "suspended"))


def described(settings: RolloutSettings) -> dict[str, Any]:
    """How a candidate is tried, as plain values. Shares are percentages, times seconds."""
    budget = settings.budget
    return {
        "mode": settings.mode.value,
        "sample": _percent(settings.sample),
        "percent": _percent(settings.share),
        "namespaces": [f"{term.key} {term.operator} {','.join(sorted(term.values))}" for term in settings.namespaces],
        "budget": {
            "unschedulable": None if budget.unschedulable is None else _percent(budget.unschedulable),
            "divergence": None if budget.divergence is None else _percent(budget.divergence),
            "cycleTime": budget.cycle_time,
            "window": budget.window,
            "least": budget.least,
        },
    }


def found(rollout: Rollout) -> dict[str, Any]:
    """What was found of a candidate so far, as plain values."""
    agreement = rollout.agreement
    return {
        "compared": rollout.compared,
        "agreement": None if agreement is None else _percent(agreement),
        "otherNode": rollout.other_node,
        "otherFeasible": rollout.other_feasible,
        "decided": rollout.decided,
        "refused": rollout.refused,
        "rules": dict(rollout.by_rule.most_common(MOST_RULES)),
        "samples": [
            {
                "pod": one.pod,
                "live": one.live,
                "candidate": one.candidate,
                "feasible": {"live": one.feasible[0], "candidate": one.feasible[1]},
                "rules": list(one.rules[:MOST_RULES]),
            }
            for one in rollout.samples
        ],
    }


def _percent(share: float) -> float:
    return round(share * 100, 4)
