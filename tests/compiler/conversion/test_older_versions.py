"""Configurations of kube-scheduler 1.16 to 1.25 mean here what they meant there, by the types and defaults of then."""

from typing import Any

import pytest

from policyengine.compiler.conversion.input_documents import documents, wanted_profiles
from policyengine.compiler.conversion.reading import ConversionError
from policyengine.compiler.conversion.scheduler_configuration import read_configuration
from policyengine.compiler.conversion.wanted import WantedProfile, policy_text
from policyengine.plugins.registry import IN_TREE
from policyengine.policy_compiler import compile_policy

WEIGHTS = {
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
    "InterPodAffinity": 1,
    "NodeResourcesFit": 1,
    "NodeAffinity": 1,
    "PodTopologySpread": 2,
    "TaintToleration": 1,
    "DynamicResources": 2,
}
"""Of v1beta1's defaults, with NodeResourcesFit for NodeResourcesLeastAllocated, without NodePreferAvoidPods; and of
DynamicResources, which came later and scores only for pods with claims."""


def read(version: str, **fields: Any) -> WantedProfile:
    head = {"apiVersion": f"kubescheduler.config.k8s.io/{version}", "kind": "KubeSchedulerConfiguration"}
    [wanted] = read_configuration(head | fields, IN_TREE)
    return wanted


def profile(**fields: Any) -> dict[str, Any]:
    return {"profiles": [fields]}


def scores(wanted: WantedProfile) -> dict[str, int]:
    return {plugin.name: weight for plugin, weight in compile_policy(policy_text(wanted, IN_TREE)).scores}


@pytest.mark.parametrize("version", ["v1alpha1", "v1alpha2", "v1beta1", "v1beta2"])
def test_a_default_configuration_has_the_weights_of_its_version(version: str) -> None:
    assert scores(read(version)) == WEIGHTS


def test_v1beta3_has_the_weights_of_v1() -> None:
    assert scores(read("v1beta3")) == scores(read("v1")) and scores(read("v1"))["TaintToleration"] == 3


def test_v1alpha1_has_its_one_profile_at_the_root() -> None:
    post_filter = {"enabled": [{"name": "TaintToleration"}], "disabled": [{"name": "*"}]}  # of then: preScore
    wanted = read(
        "v1alpha1",
        schedulerName="old",
        disablePreemption=True,
        bindTimeoutSeconds=30,
        hardPodAffinitySymmetricWeight=7,
        plugins={"postFilter": post_filter, "unreserve": {"enabled": [{"name": "Mine"}]}},
        algorithmSource={"provider": "ClusterAutoscalerProvider"},
    )
    assert wanted.scheduler_name == "old" and "DefaultPreemption" not in wanted.plugins
    assert wanted.plugins["VolumeBinding"].arguments == {"bindTimeoutSeconds": 30}
    assert wanted.plugins["InterPodAffinity"].arguments == {"hardPodAffinityWeight": 7}
    assert wanted.plugins["NodeResourcesFit"].arguments == {"scoringStrategy": {"type": "MostAllocated"}}
    assert "`InterPodAffinity` cannot do without its preScore; it is kept" in wanted.notes
    assert "`Mine` is no plugin of kube-scheduler's own" in wanted.notes


def test_a_plugin_that_scored_by_resources_is_a_strategy() -> None:
    score = {
        "disabled": [{"name": "NodeResourcesLeastAllocated"}],
        "enabled": [{"name": "NodeResourcesMostAllocated", "weight": 5}],
    }
    arguments = {"name": "NodeResourcesMostAllocated", "args": {"resources": [{"name": "cpu", "weight": 3}]}}
    wanted = read("v1beta1", **profile(plugins={"score": score}, pluginConfig=[arguments]))
    assert scores(wanted) == WEIGHTS | {"NodeResourcesFit": 5}
    strategy = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 3}]}
    assert wanted.plugins["NodeResourcesFit"].arguments == {"scoringStrategy": strategy}
    off = {"disabled": [{"name": "NodeResourcesLeastAllocated"}]}
    assert "NodeResourcesFit" not in scores(read("v1beta1", **profile(plugins={"score": off})))


def test_a_shape_is_a_strategy_too() -> None:
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    wanted = read(
        "v1alpha2",
        **profile(
            plugins={"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "RequestedToCapacityRatio"}]}},
            pluginConfig=[{"name": "RequestedToCapacityRatio", "args": {"shape": shape}}],
        ),
    )
    assert scores(wanted) == {"NodeResourcesFit": 1}
    strategy = wanted.plugins["NodeResourcesFit"].arguments["scoringStrategy"]
    assert strategy == {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": shape}}


def test_what_is_a_part_of_another_plugin_now_does_not_switch_that_off() -> None:
    plugins = {
        "filter": {"disabled": [{"name": "EBSLimits"}]},
        "score": {"disabled": [{"name": "*"}], "enabled": [{"name": "SelectorSpread", "weight": 2}]},
    }
    wanted = read("v1beta1", **profile(plugins=plugins))
    assert wanted.plugins["NodeVolumeLimits"].filters and scores(wanted) == {"PodTopologySpread": 2}
    assert "`EBSLimits` is a part of NodeVolumeLimits now, which is kept" in wanted.notes


def test_what_is_gone_is_noted() -> None:
    gone = {"enabled": [{"name": "NodePreferAvoidPods", "weight": 9}], "disabled": [{"name": "NodeResourceLimits"}]}
    wanted = read("v1beta1", **profile(plugins={"score": gone}))
    assert "`NodePreferAvoidPods` is gone from kube-scheduler; it was left out" in wanted.notes
    assert scores(wanted) == WEIGHTS


def test_labels_of_nodes_become_rules() -> None:
    arguments = {"presentLabels": ["zone"], "absentLabels": ["spot"], "presentLabelsPreference": ["ssd"]}
    wanted = read(
        "v1beta1",
        **profile(
            plugins={"filter": {"enabled": [{"name": "NodeLabel"}]}, "score": {"enabled": [{"name": "NodeLabel"}]}},
            pluginConfig=[{"name": "NodeLabel", "args": arguments | {"absentLabelsPreference": ["old"]}}],
        ),
    )
    assert wanted.rules == [
        'filter "node-label" { require "zone" in node.labels require !("spot" in node.labels) }',
        'score "node-label" weight 1 = (("ssd" in node.labels ? 100 : 0) + ("old" in node.labels ? 0 : 100)) / 2',
    ]
    assert scores(wanted) == WEIGHTS | {"node-label": 1}


def test_a_field_that_nobody_knows_is_named_and_passed_over() -> None:
    fit = {"name": "NodeResourcesFit", "args": {"ignoredResources": ["a.b/c"], "colour": "red"}}
    wanted = read("v1beta1", colour="red", **profile(plugins={"postfilter": {}}, pluginConfig=[fit], more=1))
    told = {note.split("`")[1] for note in wanted.notes if note.endswith("is not known; it was passed over")}
    known = {"colour", "profiles[0].plugins.postfilter", "profiles[0].more", "profiles[0].pluginConfig[0].args.colour"}
    assert told == known
    assert wanted.plugins["NodeResourcesFit"].arguments == {"ignoredResources": ["a.b/c"]}


ALPHA = {
    "apiVersion": "kubescheduler.config.k8s.io/v1alpha1",
    "kind": "KubeSchedulerConfiguration",
    "schedulerName": "old",
    "disablePreemption": True,
    "algorithmSource": {"policy": {"file": {"path": "/etc/policy.json"}}},
}


def test_a_policy_that_is_the_algorithm_is_given_beside_its_configuration() -> None:
    policy = {"kind": "Policy", "apiVersion": "v1", "priorities": [{"name": "MostRequestedPriority", "weight": 3}]}
    given = [*documents("c.yaml", [ALPHA]), *documents("p.json", [policy])]
    [wanted] = wanted_profiles(given, IN_TREE)
    assert wanted.scheduler_name == "old" and scores(wanted) == {"NodeResourcesFit": 3}
    assert "DefaultPreemption" not in wanted.plugins
    with pytest.raises(ConversionError, match=r"`c.yaml`: `algorithmSource.policy` names a Policy; give that one"):
        wanted_profiles(given[:1], IN_TREE)
