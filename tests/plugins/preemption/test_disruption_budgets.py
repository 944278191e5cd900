"""Which evictions break a budget: as one would ask each budget about each pod, and without asking each about each."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyengine.cluster.objects import decode
from policyengine.cluster.view import ClusterView
from policyengine.cluster.workload_objects import PodDisruptionBudget
from policyengine.plugins.preemption.victim_selection import DisruptionBudgets
from policyengine.plugins.selectors.label_selector import Requirement
from tests.builders import make_pod
from tests.plugins import oracle

Json = dict[str, Any]
KEYS, VALUES, NAMES = ("app", "tier", "zone"), ("a", "b", ""), [f"p{number}" for number in range(6)]
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def budget(name: str, selector: Json | None, allowed: int = 0, going: tuple[str, ...] = (), **meta: str) -> Json:
    status = {"disruptionsAllowed": allowed, "disruptedPods": dict.fromkeys(going, "2026-01-01T00:00:00Z")}
    return {
        "metadata": {"name": name, "namespace": "default", **meta},
        "spec": {"selector": selector},
        "status": status,
    }


def seeing(view: ClusterView, *budgets: Json) -> DisruptionBudgets:
    for one in budgets:
        view.set_object("PodDisruptionBudget", decode(PodDisruptionBudget, one))
    return DisruptionBudgets(view.snapshot())


def random_selector(rng: Random) -> Json | None:
    if rng.random() < 0.1:
        return rng.choice((None, {}))
    labels = {key: rng.choice(VALUES) for key in KEYS if rng.random() < 0.3}
    expressions = []
    for _ in range(rng.randrange(3)):
        operator = rng.choice(OPERATORS)
        values = rng.sample(VALUES, rng.randint(1, 2)) if operator in ("In", "NotIn") else []
        expressions.append({"key": rng.choice(KEYS), "operator": operator, "values": values})
    return {"matchLabels": labels, "matchExpressions": expressions}


def selects(selector: Json | None, labels: dict[str, str]) -> bool:
    """An empty selector selects nobody here."""
    return any((selector or {}).values()) and oracle.selects(selector, labels)


@given(seed=st.integers(0, 2**32))
def test_evictions_break_the_budgets_that_asking_each_about_each_finds(seed: int) -> None:
    rng, view = Random(seed), ClusterView()
    there: dict[str, Json] = {}
    for version in ("1", "2"):  # the second time some have changed
        for name in rng.sample(["b0", "b1", "b2", "b3", "b4"], rng.randint(1, 5)):
            allowed, going = rng.randrange(-1, 3), tuple(rng.sample(NAMES, 1))
            there[name] = budget(name, random_selector(rng), allowed, going, resourceVersion=version)
        budgets = seeing(view, *there.values())
        pods = [(name, {key: rng.choice(VALUES) for key in KEYS if rng.random() < 0.6}) for name in NAMES]
        expected, left = [], {name: one["status"]["disruptionsAllowed"] for name, one in there.items()}
        for name, labels in pods:
            breaks = False
            for own, one in there.items():
                if labels and selects(one["spec"]["selector"], labels) and name not in one["status"]["disruptedPods"]:
                    left[own] -= 1
                    breaks |= left[own] < 0
            expected.append(breaks)
        assert budgets.violated_by([make_pod(name).labels(labels).info() for name, labels in pods]) == expected


@pytest.mark.parametrize("operator", ["NotIn", "In"])
def test_a_budget_of_a_thousand_requirements_is_not_asked_about_each_pod(
    operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    holds = Requirement.holds

    def noted(one: Requirement, value: str | None) -> bool:
        asked.append(one.key)
        return holds(one, value)

    monkeypatch.setattr(Requirement, "holds", noted)
    view = ClusterView()
    expressions = [{"key": f"k{number}", "operator": operator, "values": ["x"]} for number in range(1000)]
    budgets = seeing(view, *(budget(f"b{number}", {"matchExpressions": expressions}) for number in range(20)))
    for number in range(100):
        protected = budgets.violated_by([make_pod("p").label("app", f"a{number}").info()])
        assert protected == [operator == "NotIn"]
    assert len(asked) <= 100


def test_what_is_known_of_the_selectors_serves_the_next_attempt_until_a_budget_changes() -> None:
    view = ClusterView()
    pod = make_pod("p").label("app", "a").info()
    assert seeing(view, budget("b", {"matchLabels": {"app": "a"}}, resourceVersion="1")).violated_by([pod]) == [True]
    assert DisruptionBudgets(view.snapshot()).violated_by([pod]) == [True]
    after = seeing(view, budget("b", {"matchLabels": {"app": "a"}}, allowed=1, resourceVersion="2"))
    assert after.violated_by([pod]) == [False]
    view.remove_object("PodDisruptionBudget", "default/b")
    assert DisruptionBudgets(view.snapshot()).are_absent
