"""What is taken along from the playground works where it is taken to."""

from __future__ import annotations

import pytest

from policyengine import plain_yaml
from policyengine.kube.policies.compiling import compiled
from policyengine.plugins.registry import IN_TREE
from policyengine.server.pages.playground.evaluation import evaluate
from policyengine.server.pages.playground.texts import exported, names, start
from policyengine.server.pages.playground.tried_cluster import Unusable
from policyengine.trials.simulation import Simulation
from tests.server.pages.playground.texts import DUMP, POLICY, SCENARIO


def test_a_config_map_holds_the_text_as_it_is_and_the_scheduler_takes_it() -> None:
    made = exported("config-map", POLICY, "", IN_TREE)
    found = plain_yaml.load(made["text"])
    assert found["data"] == {"p.policy": POLICY} and made["file"] == "p.yaml"
    assert found["metadata"]["labels"] == {"policyengine.io/policy": "true"}
    assert compiled(found["data"]).problem is None


def test_a_scenario_carries_the_policy_and_plays_alike() -> None:
    made = exported("scenario", POLICY, SCENARIO, IN_TREE)
    outcome = Simulation(made["text"]).run()
    assert sum(pod.bound is not None for pod in outcome.ledger.pods.values()) == 6
    with pytest.raises(Unusable, match="simulate --cluster"):
        exported("scenario", POLICY, DUMP, IN_TREE)


@pytest.mark.parametrize("name", ["", *names()])
def test_a_test_of_what_was_seen_passes_in_the_policy_it_came_from(name: str) -> None:
    begun = start(name, IN_TREE)
    made = exported("test", begun["policy"], begun["cluster"], IN_TREE)
    text = begun["policy"].rstrip()
    found = evaluate(text[: text.rindex("}")] + made["text"] + "}\n", "", "", IN_TREE)
    assert not [one for one in found["problems"] if one["is_error"]]
    assert [one["failures"] for one in found["tests"] if one["name"] == "what the playground showed"] == [[]]


@pytest.mark.parametrize(
    ("policy", "cluster", "told"),
    [
        ("policy {", SCENARIO, "the text has mistakes"),
        ("", SCENARIO, "holds 0 policies"),
        (POLICY, SCENARIO.replace("count: 6", "count: 101"), "101 pods says little"),
        (POLICY, "nodes: []\npods: []", "there is nothing to test"),
        (POLICY, DUMP.replace("name: there, namespace: x", "name: web, namespace: y"), "two pods have one name"),
    ],
)
def test_what_cannot_be_a_test_is_told_in_words(policy: str, cluster: str, told: str) -> None:
    with pytest.raises(Unusable, match=told):
        exported("test", policy, cluster, IN_TREE)
