"""What users of schedulers complain of, each as a scenario."""

from __future__ import annotations

from typing import Any

from policyengine.trials.outcome import Outcome
from policyengine.trials.simulation import Simulation


def policy(*members: str) -> list[dict[str, str]]:
    return [{"text": 'policy "p" {\n  scheduler "default-scheduler"\n' + "\n".join(members) + "\n}"}]


def gang(more: str = "") -> str:
    return f"""
  gang "g" when "podGroup" in pod.labels {{
    key: pod.labels["podGroup"]
    min: toInt(pod.labels[?"minAvailable"]).orValue(1)
    timeout: 60s
    {more}
  }}"""


def run(pods: list[dict[str, Any]], policies: list[dict[str, str]], **more: Any) -> Outcome:
    scenario = {"nodes": [{"name": "n", "count": 2, "allocatable": {"cpu": 4}}], "policies": policies, "pods": pods}
    return Simulation({**scenario, **more}, seed=0).run()


def pod(name: str, cpu: Any = 1, **more: Any) -> dict[str, Any]:
    return {"name": name, "requests": {"cpu": cpu}, **more}


def waits(outcome: Outcome, template: str) -> list[float]:
    found = [one for one in outcome.ledger.pods.values() if one.template == template]
    assert found
    return [outcome.end if one.waited is None else one.waited for one in found]


def test_no_pod_waits_where_room_is_free() -> None:
    """Pods of one size: whenever one ends while others wait, the next is bound at that very moment."""
    batch = pod("batch", 2, count=60, poisson="20s", runs={"exponential": "90s"})
    outcome = run([batch], policy())
    assert any(sample.pending for sample in outcome.ledger.samples)
    for sample in outcome.ledger.samples:
        assert sample.pending == 0 or sample.running == 4, f"{sample.pending} wait beside room at {sample.at} s"


def test_a_first_pod_that_fits_nowhere_blocks_nobody() -> None:
    first = pod("first", 64, priority=1000)
    rest = pod("rest", count=30, poisson="30s", runs="1min", at=1)
    outcome = run([first, rest], policy(), duration="30min")
    assert max(waits(outcome, "rest")) <= 60.0
    assert waits(outcome, "first") == [outcome.end]


def test_small_pods_do_not_starve_a_gang_that_may_wait_only_so_long() -> None:
    small = pod("small", 1, poisson="18s", until="45min", runs={"uniform": ["2min", "3min"]})
    crew = pod("crew", 4, at="10min", gang={"size": 2})
    without = run([small, crew], policy(gang()))
    with_room_kept = run([small, crew], policy(gang("waits: 5min")))
    assert min(waits(without, "crew")) > 1800.0
    assert max(waits(with_room_kept, "crew")) < 600.0


def test_two_gangs_that_want_the_last_room_never_hold_half_each() -> None:
    crews = [pod(name, 2, every="40s", count=5, gang={"size": 3}, runs="2min") for name in ("red", "blue")]
    outcome = run(crews, policy(gang()), expect=[{"gangs": "whole"}, {"pods": "*", "boundBy": "1h"}])
    assert outcome.passed, outcome.verdicts


def test_a_tenant_with_many_pods_leaves_another_its_share() -> None:
    many = pod("many", count=60, namespace="many", runs={"uniform": ["4min", "6min"]})
    few = pod("few", count=8, at="1min", namespace="few", runs="5min")
    unfair = run([many, few], policy())
    fair = run([many, few], policy("queue { fair by pod.namespace }"))
    assert max(waits(fair, "few")) < 1200.0 < min(waits(unfair, "few"))


def test_what_is_guaranteed_is_given_back_at_once() -> None:
    quotas = [
        f'quota "{name}" when pod.namespace == "{name}" {{ guarantee: {{cpu: 4}} borrow: true }}'
        for name in ("red", "blue")
    ]
    red = pod("red", count=8, namespace="red", priority=100, recreate=True)
    blue = pod("blue", count=4, at="5min", every="10s", namespace="blue")
    expect = [{"pods": "blue/*", "boundWithin": "1s"}, {"pods": "red/*", "preempted": 4}]
    outcome = run([red, blue], policy(*quotas), expect=expect, duration="20min")
    assert outcome.passed, outcome.verdicts
    assert outcome.ledger.preempted == 4
