"""The Policy API of old: predicates and priorities become plugins, and rules where a label was meant."""

from typing import Any

import pytest

from policyengine.compiler.conversion.input_documents import documents
from policyengine.compiler.conversion.legacy_policy import read_policy
from policyengine.compiler.conversion.older_versions import LIGHT
from policyengine.compiler.conversion.reading import ConversionError
from policyengine.compiler.conversion.wanted import WantedProfile, policy_text
from policyengine.plugins.registry import IN_TREE
from policyengine.policy_compiler import compile_policy


def policy(**fields: Any) -> dict[str, Any]:
    return {"kind": "Policy", "apiVersion": "v1", **fields}


def text_of(wanted: WantedProfile) -> str:
    return policy_text(wanted, IN_TREE)


def test_absent_lists_are_the_defaults_at_the_weights_that_they_had() -> None:
    profile = compile_policy(text_of(read_policy(policy(), IN_TREE)))
    weights = {plugin.name: weight for plugin, weight in profile.scores}
    assert {name: weights[name] for name in LIGHT} == dict.fromkeys(LIGHT, 1) and weights["PodTopologySpread"] == 2
    assert {plugin.name for plugin in profile.filters} == {entry.name for entry in IN_TREE.values() if entry.filters}


def test_what_required_affinity_of_others_weighs_counts_beside_the_default_priorities_too() -> None:
    assert "hardPodAffinityWeight: 50" in text_of(read_policy(policy(hardPodAffinitySymmetricWeight=50), IN_TREE))


def test_listed_predicates_are_all_there_is_but_for_the_mandatory_ones() -> None:
    wanted = read_policy(policy(predicates=[{"name": "PodFitsResources"}, {"name": "HostName"}]), IN_TREE)
    profile = compile_policy(text_of(wanted))
    listed = {"NodeUnschedulable", "NodeName", "TaintToleration", "NodeResourcesFit", "DynamicResources"}
    scoring = {"NodeAffinity", "VolumeBinding", "PodTopologySpread", "InterPodAffinity"}
    assert {plugin.name for plugin in profile.filters} == listed | scoring | {"NodeDeclaredFeatures"}
    assert "`NodeAffinity` was to score only; here it filters as well" in wanted.notes


def test_priorities_become_weights_and_those_of_one_plugin_add_up() -> None:
    priorities = [
        {"name": "MostRequestedPriority", "weight": 5},
        {"name": "EvenPodsSpreadPriority", "weight": 2},
        {"name": "SelectorSpreadPriority", "weight": 1},
        {"name": "EqualPriority", "weight": 9},
    ]
    profile = compile_policy(text_of(read_policy(policy(priorities=priorities), IN_TREE)))
    assert {plugin.name: weight for plugin, weight in profile.scores} == {"NodeResourcesFit": 5, "PodTopologySpread": 3}


def test_an_empty_list_of_priorities_scores_nothing() -> None:
    assert compile_policy(text_of(read_policy(policy(priorities=[]), IN_TREE))).scores == ()


def test_labels_that_must_be_there_and_labels_preferred_become_rules() -> None:
    value = policy(
        predicates=[{"name": "zoned", "argument": {"labelsPresence": {"labels": ["zone", "rack"], "presence": True}}}],
        priorities=[
            {"name": "no-spot", "weight": 3, "argument": {"labelPreference": {"label": "spot", "presence": False}}}
        ],
    )
    text = text_of(read_policy(value, IN_TREE))
    assert 'require "zone" in node.labels' in text and 'require "rack" in node.labels' in text
    assert 'score "no-spot" weight 3 = "spot" in node.labels ? 0 : 100' in text
    compile_policy(text)


def test_a_shape_becomes_the_strategy_of_the_resources_fit() -> None:
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    argument = {"requestedToCapacityRatioArguments": {"shape": shape, "resources": [{"name": "cpu", "weight": 2}]}}
    wanted = read_policy(policy(priorities=[{"name": "packed", "weight": 2, "argument": argument}]), IN_TREE)
    compile_policy(text_of(wanted))
    assert wanted.plugins["NodeResourcesFit"].arguments["scoringStrategy"]["type"] == "RequestedToCapacityRatio"


def test_what_is_not_known_is_noted() -> None:
    value = policy(
        predicates=[{"name": "MyPredicate"}], priorities=[{"name": "MyPriority"}], extenders=[{"urlPrefix": "x"}]
    )
    notes = read_policy(value, IN_TREE).notes
    assert any("`MyPredicate`" in note for note in notes) and any("`MyPriority`" in note for note in notes)
    assert any("extenders" in note for note in notes)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"kind": "Deployment"}, "`kind` is `Deployment`"),
        ({}, "`kind` is missing"),
        (policy(predicates="x"), "`predicates` is not a list"),
        (policy(priorities=[{"name": "x", "weight": True}]), "`priorities[0].weight` is not an int from 0 to 1000000"),
    ],
)
def test_a_wrong_policy_is_told_where(value: object, message: str) -> None:
    with pytest.raises(ConversionError) as caught:
        documents("f", [value])
        read_policy(value, IN_TREE)
    assert message in str(caught.value)


def test_a_predicate_that_names_no_labels_asks_nothing() -> None:
    wanted = read_policy(policy(predicates=[{"name": "x", "argument": {"labelsPresence": {"labels": []}}}]), IN_TREE)
    assert not wanted.rules and not any("`x`" in note for note in wanted.notes)
