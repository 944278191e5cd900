"""Disruption budgets: how many pods are healthy, how many must stay, how many may go."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil
from typing import Any

from policyengine.simulator.api_server.reading.selectors import from_object
from policyengine.simulator.controllers.cluster import Cluster, Object, Write, finished, of, ready, terminating


def budgets(cluster: Cluster, now: str) -> Iterator[Write]:
    """Write each budget's status that is no longer true."""
    for budget in cluster.all("PodDisruptionBudget"):
        status = _status(cluster, budget, now)
        if status != budget.get("status"):
            # A PUT of this version: pods being evicted are noted there by others.
            yield Write("PUT", of("PodDisruptionBudget", budget, "status"), {**budget, "status": status})


def _status(cluster: Cluster, budget: Object, now: str) -> Object:
    spec, held = budget["spec"], budget.get("status") or {}
    selector = from_object(spec.get("selector"))
    pods = [pod for pod in _live(cluster, budget) if selector.matches(_labels(pod))]
    desired = len(pods)
    names = {pod["metadata"]["name"] for pod in pods}
    disrupted = {name: at for name, at in (held.get("disruptedPods") or {}).items() if name in names}
    healthy = sum(ready(pod) and pod["metadata"]["name"] not in disrupted for pod in pods)
    if spec.get("maxUnavailable") is not None:
        needed = max(0, desired - _scaled(spec["maxUnavailable"], desired))
    else:
        needed = _scaled(spec.get("minAvailable", 1), desired)
    allowed = max(0, healthy - needed) if desired else 0
    generation = budget["metadata"].get("generation", 0)
    status = {
        "observedGeneration": generation,
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": needed,
        "expectedPods": desired,
        "conditions": [_allowed(held, allowed > 0, generation, now)],
    }
    return {**status, "disruptedPods": disrupted} if disrupted else status


def _allowed(held: Object, yes: bool, generation: int, now: str) -> Object:
    word = "True" if yes else "False"
    before: Object = next((one for one in held.get("conditions") or [] if one.get("status") == word), {})
    return {
        "type": "DisruptionAllowed",
        "status": word,
        "observedGeneration": generation,
        "lastTransitionTime": before.get("lastTransitionTime") or now,
        "reason": "SufficientPods" if yes else "InsufficientPods",
        "message": "",
    }


def _live(cluster: Cluster, budget: Object) -> Iterator[Object]:
    namespace = budget["metadata"]["namespace"]
    for pod in cluster.all("Pod"):
        if pod["metadata"]["namespace"] == namespace and not terminating(pod) and not finished(pod):
            yield pod


def _labels(pod: Object) -> dict[str, str]:
    return pod["metadata"].get("labels") or {}


def _scaled(value: Any, whole: int) -> int:
    """A bound in pods; a percentage is rounded up, as the disruption controller does."""
    if isinstance(value, str):
        return ceil(Fraction(int(value.rstrip("%")), 100) * whole)
    return value if isinstance(value, int) else 0
