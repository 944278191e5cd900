"""Simulations: what comes, changes and goes, and what was expected of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import policyengine
from policyengine.policy_compiler import compile_policy
from policyengine.trials.ledger import PodRecord
from policyengine.trials.outcome import Outcome
from policyengine.trials.simulation import Simulation
from tests.commands.process import ROOT

GANGS = """policy "gangs" {
  scheduler "default-scheduler"
  gang "g" when "podGroup" in pod.labels {
    key: pod.labels["podGroup"]
    min: toInt(pod.labels[?"minAvailable"]).orValue(1)
    timeout: 60s
  }
}"""
GROUPS = """policy "groups" {
  scheduler "default-scheduler"
  gang "pod-group" when podGroup.hasValue() {
    key: pod.namespace + "/" + podGroup.?name.orValue("")
    min: podGroup.?minMember.orValue(1)
    timeout: 60s
  }
}"""


def scenario(pods: list[dict[str, Any]], *changes: dict[str, Any], **more: Any) -> dict[str, Any]:
    nodes = [{"name": "n", "count": 2, "allocatable": {"cpu": "4"}}]
    return {"nodes": nodes, "pods": pods, "changes": list(changes), **more}


def run(pods: list[dict[str, Any]], *changes: dict[str, Any], **more: Any) -> Outcome:
    return Simulation(scenario(pods, *changes, **more)).run()


def by_name(outcome: Outcome) -> dict[str, PodRecord]:
    return {pod.name.removeprefix("default/"): pod for pod in outcome.ledger.pods.values()}


def pod(name: str = "p", cpu: str = "1", **more: Any) -> dict[str, Any]:
    return {"name": name, "requests": {"cpu": cpu}, **more}


def test_a_pod_runs_its_time_and_leaves_its_room_to_the_next() -> None:
    found = by_name(run([pod("wide", "4", count=3, runs="10min")]))
    assert [found[f"wide-{number}"].bound for number in range(3)] == [0, 0, 600]
    assert [found[f"wide-{number}"].ended for number in range(3)] == [600, 600, 1200]
    assert found["wide-2"].state == "finished"
    assert found["wide-2"].refused_by == ("NodeResourcesFit",)


def test_without_a_duration_it_ends_when_nothing_is_planned_any_more() -> None:
    assert run([pod(runs="10min")]).end == 600
    waits = run([pod(cpu="64")])
    assert waits.end == 600
    assert by_name(waits)["p"].state == "pending"
    assert run([pod(runs="10min")], duration="2h").end == 7200


def test_nodes_come_and_go_with_their_pods() -> None:
    tiny = {"name": "tiny", "allocatable": {"cpu": "100m"}}
    nodes = [tiny, {"name": "short", "at": "1min", "lives": "5min"}, {"name": "later", "at": "10min"}]
    outcome = Simulation({"nodes": nodes, "pods": [pod(recreate=True)]}).run()
    found = by_name(outcome)
    assert (found["p"].bound, found["p"].node, found["p"].ended, found["p"].how) == (60, "short", 360, "lost")
    assert (found["p-r1"].created, found["p-r1"].bound, found["p-r1"].node) == (361, 600, "later")
    assert (outcome.ledger.nodes["short"].came, outcome.ledger.nodes["short"].gone) == (60, 360)


def test_a_drained_node_takes_nothing_until_it_is_uncordoned() -> None:
    drained = run(
        [pod("p", "3", count=2, recreate=True)], {"at": "1min", "drain": "n-0"}, {"at": "5min", "uncordon": "n-0"}
    )
    found = by_name(drained)
    moved = next(record for record in found.values() if record.how == "drained")
    again = found[moved.name.removeprefix("default/") + "-r1"]
    assert (again.created, again.bound, again.node) == (61, 300, "n-0")


def test_a_failed_node_keeps_its_pods_for_five_minutes() -> None:
    for lasts, expected in (("4min", ["running", "running"]), ("6min", ["lost", "running"])):
        found = by_name(run([pod("p", "3", count=2)], {"at": "1min", "fail": "n-0", "for": lasts}, duration="1h"))
        assert sorted(record.state for record in found.values()) == expected
    late = by_name(run([pod("p", "1", at="2min", count=4)], {"at": "1min", "fail": "n-0", "for": "5min"}))
    assert {record.node for record in late.values()} == {"n-1"}


def test_a_node_that_fails_twice_is_back_when_both_failures_are_over() -> None:
    failures = ({"at": "1min", "fail": "n-*", "for": "2min"}, {"at": "2min", "fail": "n-1", "for": "5min"})
    found = by_name(run([pod("p", "3", count=2), pod("late", at="4min", count=5)], *failures, duration="1h"))
    assert {record.node: record.state for record in found.values() if record.created == 0} == {
        "n-0": "running",
        "n-1": "lost",  # five minutes after the first failure began
    }
    assert sorted(record.bound for record in found.values() if record.created) == [240, 420, 420, 420, 420]


def test_edits_of_nodes_and_pods() -> None:
    pods = [
        pod("picky", spec={"nodeSelector": {"disk": "ssd"}}),
        pod("wide", "6"),
        pod("gated", gated=True),
        pod("gone"),
        pod("done"),
    ]
    changes = [
        {"at": "1min", "node": "n-1", "labels": {"disk": "ssd"}},
        {"at": "2min", "node": "n-0", "allocatable": {"cpu": 8}},
        {"at": "3min", "pod": "gated", "ungate": True},
        {"at": "4min", "delete": "gone"},
        {"at": "5min", "finish": "default/done"},
    ]
    found = by_name(run(pods, *changes))
    assert [(found[name].bound, found[name].node) for name in ("picky", "wide")] == [(60, "n-1"), (120, "n-0")]
    assert found["gated"].bound == 180
    assert [(found[name].state, found[name].ended) for name in ("gone", "done")] == [
        ("deleted", 240),
        ("finished", 300),
    ]


def test_policies_are_replaced_while_it_runs() -> None:
    refuses = 'policy "p" { scheduler "default-scheduler" filter "never" { require pod.name != "late" } }'
    allows = 'policy "p" { scheduler "default-scheduler" }'
    outcome = run(
        [pod("early"), pod("late", at="1min")],
        {"at": "5min", "policy": {"text": allows}},
        policies=[{"text": refuses}],
    )
    found = by_name(outcome)
    assert (found["early"].bound, found["late"].bound) == (0, 300)
    assert found["late"].refused_by == ("never",)


def test_gangs_come_whole_by_labels_and_by_pod_groups() -> None:
    for text, by in ((GANGS, "labels"), (GROUPS, "PodGroup")):
        crew = pod("crew", "3", count=2, every="1min", gang={"size": 2, "by": by}, runs="10min")
        outcome = run([crew], policies=[{"text": text}], expect=[{"gangs": "whole"}])
        found = by_name(outcome)
        assert [found[name].bound for name in ("crew-0-0", "crew-0-1", "crew-1-0", "crew-1-1")] == [0, 0, 600, 600]
        assert outcome.passed, outcome.verdicts


def test_priorities_preempt_and_what_is_preempted_comes_again() -> None:
    pods = [pod("low", "4", count=2, recreate=True), pod("high", "4", at="1min", priority=10)]
    found = by_name(run(pods))
    victim = next(record for record in found.values() if record.how == "preempted")
    assert (victim.ended, found["high"].bound) == (60, 60)
    assert found[victim.name.removeprefix("default/") + "-r1"].state == "pending"


def test_objects_of_other_kinds_count() -> None:
    budget = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "kept"}}},
        "status": {"disruptionsAllowed": 0},
    }
    pods = [
        pod("kept", "4", labels={"app": "kept"}),
        pod("other", "4"),
        pod("high", "4", at="1min", priority=10),
    ]
    found = by_name(run(pods, objects=[budget]))
    assert (found["kept"].state, found["other"].state) == ("running", "preempted")
    budget["metadata"] = {"name": "b"}  # of the pods' namespace, where it says none
    found = by_name(run(pods, objects=[budget]))
    assert (found["kept"].state, found["other"].state) == ("running", "preempted")


EXPECTATIONS = [
    ({"pods": "a", "on": "n-*"}, True),
    ({"pods": "a", "on": "m-*"}, False),
    ({"pods": "a", "before": "b"}, True),
    ({"pods": "b", "before": "a"}, False),
    ({"pods": "b", "boundWithin": "0s"}, True),
    ({"pods": "wide", "boundWithin": "1h"}, False),
    ({"pods": "b", "boundBy": "1min"}, True),
    ({"pods": "b", "boundBy": "59s"}, False),
    ({"pods": "wide", "pending": True, "because": "Insufficient cpu"}, True),
    ({"pods": "wide", "pending": True, "because": "taint"}, False),
    ({"pods": "a", "pending": True}, False),
    ({"pods": "*", "waited": {"p50": "0s", "max": "1h"}}, True),
    ({"pods": "*", "waited": {"max": "9min"}}, False),
    ({"pods": "*", "preempted": 0}, True),
    ({"pods": "[ab]", "use": {"cpu": 2}}, True),
    ({"pods": "[ab]", "use": {"cpu": "1500m"}}, False),
    ({"maxPending": 1}, True),
    ({"maxPending": 0}, False),
    ({"utilisation": "cpu", "from": "2min", "to": "3min", "atLeast": 0.25, "atMost": 0.25}, True),
    ({"utilisation": "cpu", "atLeast": 0.5}, False),
    ({"overcommitted": "never"}, True),
    ({"gangs": "whole"}, True),
    ({"pods": "nobody", "pending": True}, False),
]


def test_every_expectation_can_come_true_and_can_fail() -> None:
    pods = [pod("a"), pod("b", at="1min"), pod("wide", "9")]
    outcome = run(pods, expect=[said for said, _ in EXPECTATIONS], duration="10min")
    assert [(verdict.text, verdict.passed) for verdict in outcome.verdicts] == [
        (verdict.text, passed) for verdict, (_, passed) in zip(outcome.verdicts, EXPECTATIONS, strict=True)
    ]
    assert all(verdict.found for verdict in outcome.verdicts)


OVERCOMMITS = 'policy "blind" { scheduler "default-scheduler" base none }'
HALVES = 'policy "halves" { scheduler "default-scheduler" }'


def test_overcommitment_and_halved_gangs_are_seen() -> None:
    crowd = run([pod("p", "3", count=4)], policies=[{"text": OVERCOMMITS}], expect=[{"overcommitted": "never"}])
    assert not crowd.passed
    crew = pod("crew", "3", gang={"size": 3})
    assert not run([crew], policies=[{"text": HALVES}], expect=[{"gangs": "whole"}]).passed


BUSY = {
    "nodes": [{"name": "n", "count": 3}],
    "pods": [pod("p", "2", count=30, poisson="20s", runs={"exponential": "2min"}, recreate=True)],
    "duration": "30min",
}


def test_the_same_seed_is_the_same_run_and_another_is_another() -> None:
    one, other = Simulation(BUSY).run().json(), Simulation(BUSY).run().json()
    assert one == other
    assert Simulation(BUSY, seed=5).run().json()["pods"] != one["pods"]


def test_another_template_changes_no_draw_of_the_first() -> None:
    def created(data: dict[str, Any]) -> list[float]:
        pods = Simulation(data).run().ledger.pods.values()
        return [record.created for record in pods if record.template == "p"]

    assert created(BUSY) == created({**BUSY, "pods": [pod("q", "100m", count=5, poisson="1min"), *BUSY["pods"]]})


def test_profiles_given_serve_instead_of_the_scenarios() -> None:
    given = compile_policy('policy "closed" { filter "never" { require pod.name == "x" } }')
    outcome = Simulation(scenario([pod()]), [given]).run()
    assert by_name(outcome)["p"].refused_by == ("never",)
    assert outcome.json()["policies"][0]["hash"] == given.policy_hash


def test_it_is_there_for_python() -> None:
    assert policyengine.Simulation is Simulation
    told: list[float] = []
    assert policyengine.Simulation(scenario([pod(runs="1min")]), folder=Path()).run(told.append).passed
    assert told[-1] == 1.0


@pytest.mark.parametrize("path", sorted((ROOT / "examples/simulate").glob("*.yaml")), ids=lambda path: path.name)
def test_the_examples_come_true(path: Path) -> None:
    outcome = Simulation(path).run()
    assert outcome.verdicts
    assert [verdict for verdict in outcome.verdicts if not verdict.passed] == []


def test_the_figures_add_up() -> None:
    outcome = Simulation(BUSY).run()
    found = outcome.json()
    assert found["summary"]["pods"] == len(found["pods"]) == sum(found["summary"]["states"].values())
    assert found["summary"]["bound"] == sum(one["bound"] is not None for one in found["pods"])
    assert found["summary"]["mostPending"] == max(sample["pending"] for sample in found["series"])
    running = sum(one["state"] == "running" for one in found["pods"])
    assert found["series"][-1]["running"] == running
    for node in outcome.ledger.nodes.values():
        held = [one for one in outcome.ledger.pods.values() if one.node == node.name and one.state == "running"]
        assert node.used.get("cpu", 0) == sum(one.asks["cpu"] for one in held)
