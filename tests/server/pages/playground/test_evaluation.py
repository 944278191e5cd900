"""What the playground says of a policy: its mistakes, its tests, where pods go, what differs from the text before."""

from __future__ import annotations

import json

import pytest

from policyengine.plugins.registry import IN_TREE
from policyengine.server.pages.playground.evaluation import SHOWN, evaluate
from tests.server.pages.playground.texts import DUMP, POLICY, SCENARIO


def said(policy: str, cluster: str = "", before: str = "") -> dict[str, object]:
    found = evaluate(policy, before, cluster, IN_TREE)
    return json.loads(json.dumps(found))


def test_pods_of_a_scenario_are_placed_and_those_that_wait_come_first_with_the_reason() -> None:
    found = said(POLICY, SCENARIO)
    assert (found["bound"], found["waiting"], found["pod_count"]) == (6, 0, 6)
    strict = said(POLICY.replace(">= 2", ">= 3"), SCENARIO)
    assert (strict["bound"], strict["waiting"]) == (4, 2)
    first = strict["pods"][0]
    assert first["state"] == "pending" and first["by"] == ["roomy"] and "has 2 cpu left" in first["why"]
    assert [node["fill"]["cpu"] for node in strict["nodes"]] == [50, 50]
    assert strict["series"]["waiting"][-1] == 2 and strict["series"]["cpu"][-1] == 50


def test_a_cluster_as_it_is_keeps_its_pods_and_places_those_that_wait() -> None:
    found = said(POLICY, DUMP)
    assert [(pod["pod"], pod["node"]) for pod in found["pods"]] == [("x/web", "a")]
    assert found["nodes"][0]["fill"]["cpu"] == 50 and found["where"] == "the cluster as it is, 10min"
    documents = "kind: Node\nmetadata: {name: n}\n---\nkind: Pod\nmetadata: {name: q}"
    assert said(POLICY, documents)["waiting"] == 1


def test_a_plan_against_the_text_before_says_what_changes() -> None:
    found = said(POLICY.replace(">= 2", ">= 3"), SCENARIO, POLICY)
    titles = [title for title, _, _ in found["plan"]["tables"]]
    assert titles[:2] == ["Figures", "Newly waiting: 2"] and found["plan"]["head"][0].startswith("old  p ")
    assert said(POLICY, SCENARIO, POLICY)["plan"] is None
    assert said(POLICY, SCENARIO, "policy {")["notes"] == ["the text before has mistakes: nothing is compared with it"]
    [note] = said(POLICY, SCENARIO, POLICY.replace('scheduler "s"', 'scheduler "t"'))["notes"]
    assert note.startswith("nothing is compared with the text before: policy `p` serves scheduler `s`")


def test_tests_in_the_text_run_and_say_why_they_fail() -> None:
    [passed] = said(POLICY)["tests"]
    assert passed == {"policy": "p", "name": "the free one", "line": 5, "failures": []}
    [failed] = said(POLICY.replace('on "free"', 'on "full"'))["tests"]
    assert "full" in failed["failures"][0]["message"] and failed["failures"][0]["details"]


def test_a_mistake_is_told_with_its_place_and_nothing_is_played() -> None:
    found = said(POLICY.replace("node.free", "node.fre"), SCENARIO)
    assert found["problems"][0]["is_error"] and (found["problems"][0]["line"], found["problems"][0]["column"]) == (
        3,
        33,
    )
    assert "pods" not in found and not found["tests"]


LIBRARY = 'import "safe"\n' + POLICY


def test_libraries_that_come_along_can_be_imported() -> None:
    assert not [one for one in said(LIBRARY, SCENARIO)["problems"] if one["is_error"]]


@pytest.mark.parametrize(
    ("cluster", "told"),
    [
        ("nodes: [", "the cluster is not YAML"),
        ("a: &x [*x]", "the cluster"),
        ("- 1", "the scenario cannot be used"),
        ("5", "the scenario cannot be used"),
        ("nodes: []", "the scenario cannot be used"),
        ("nodes: [{name: n, cont: 3}]\npods: []", "did you mean `count`"),
        ("nodes: []\npods: [{name: p, scheduler: nobody}]", "no policy serves scheduler `nobody`"),
        ('{"kind": "List", "items": [3]}', "the cluster cannot be read"),
        ('{"kind": "List", "items": [{"kind": "Node", "metadata": {"name": 7}}]}', "the cluster cannot be read"),
        ("x.yaml", "the scenario cannot be used"),
        ("[" * 5000, "nested too deeply"),
        ('{"a":' * 100_000, "the cluster"),
    ],
)
def test_a_cluster_that_cannot_be_used_is_told_in_words(cluster: str, told: str) -> None:
    assert told in str(said(POLICY, cluster)["unusable"])


@pytest.mark.parametrize(
    ("policy", "told"),
    [("/" * (1 << 20) + "\n", "1 MiB"), ("\ud800", "UTF-8")],
)
def test_a_text_that_is_no_policy_file_is_told_in_words(policy: str, told: str) -> None:
    assert told in str(said(policy, SCENARIO)["unusable"])


def test_without_a_policy_pods_are_placed_as_kube_scheduler_places_them() -> None:
    found = said("", SCENARIO)
    assert found["bound"] == 6 and "as kube-scheduler places them" in str(found["notes"])


def test_lists_are_cut_and_their_lengths_told() -> None:
    found = said(POLICY, SCENARIO.replace("count: 6", f"count: {SHOWN + 9}"))
    assert len(found["pods"]) == SHOWN and found["pod_count"] == SHOWN + 9
