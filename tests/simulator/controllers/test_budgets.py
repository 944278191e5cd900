"""How many pods a budget says may go."""

from typing import Any

import pytest

from policyengine.simulator.controllers.controller_client import Cluster
from policyengine.simulator.controllers.manager import budgets


def pod(name: str, ready: bool = True, **status: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    meta = {"name": name, "namespace": "ns", "labels": {"app": "web"}}
    return {"metadata": meta, "spec": {}, "status": {"phase": "Running", "conditions": conditions, **status}}


@pytest.mark.parametrize(
    ("spec", "ready", "wished", "needed", "allowed"),
    [
        ({"minAvailable": 1}, 3, 3, 1, 2),
        ({"minAvailable": "50%"}, 3, 3, 2, 1),
        ({"maxUnavailable": 1}, 3, 4, 3, 0),
        ({"maxUnavailable": "25%"}, 4, 4, 3, 1),
        ({"maxUnavailable": "26%"}, 4, 4, 2, 2),
        ({"minAvailable": 5}, 4, 4, 5, 0),
        ({}, 2, 2, 1, 1),
        ({"minAvailable": 0}, 0, 0, 0, 0),
    ],
)
def test_a_budget_counts_the_pods_it_means(
    spec: dict[str, Any], ready: int, wished: int, needed: int, allowed: int
) -> None:
    cluster = Cluster()
    rows = [pod(f"p{at}", ready=at < ready) for at in range(wished)]
    rows += [pod("ended", phase="Succeeded"), {**pod("other"), "metadata": {"name": "other", "namespace": "elsewhere"}}]
    cluster.kinds["Pod"] = {(one["metadata"]["namespace"], one["metadata"]["name"]): one for one in rows}
    selected = {**spec, "selector": {"matchLabels": {"app": "web"}}}
    budget = {"metadata": {"name": "b", "namespace": "ns", "generation": 1}, "spec": selected}
    cluster.kinds["PodDisruptionBudget"] = {("ns", "b"): budget}
    (write,) = budgets(cluster, "2026-01-01T00:00:00Z")
    told = write.body["status"]
    counted = (told["currentHealthy"], told["expectedPods"], told["desiredHealthy"], told["disruptionsAllowed"])
    assert counted == (ready, wished, needed, allowed)
    cluster.kinds["PodDisruptionBudget"] = {("ns", "b"): write.body}
    assert list(budgets(cluster, "2026-01-01T00:01:00Z")) == []
