"""Plugins of scheduler-plugins and of the programs that this one takes over from become the shipped policies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from policyengine.compiler.conversion.input_documents import documents, wanted_profiles
from policyengine.compiler.conversion.reading import ConversionError
from policyengine.compiler.conversion.shipped import SHIPPED, members
from policyengine.compiler.conversion.wanted import policy_text
from policyengine.plugins.registry import IN_TREE
from policyengine.policy_compiler import compile_text

POLICIES = Path(__file__).parents[3] / "policies"


def configuration(plugins: dict[str, Any], *arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": plugins, "pluginConfig": list(arguments)}],
        **more,
    }


def converted(*values: object) -> str:
    [wanted] = wanted_profiles(documents("given", values), IN_TREE)
    text = policy_text(wanted, IN_TREE)
    result = compile_text(text)
    assert not result.diagnostics, text
    return text


def enabled(*names: str) -> dict[str, Any]:
    return {"multiPoint": {"enabled": [{"name": name} for name in names]}}


@pytest.mark.parametrize("name", SHIPPED)
def test_a_plugin_becomes_every_rule_of_its_policy(name: str) -> None:
    file = POLICIES / f"{SHIPPED[name].policy}.policy"
    result = compile_text(converted(configuration(enabled(name))))
    shipped = compile_text(file.read_text(encoding="utf-8"))
    [here], [there] = result.policies, shipped.policies
    assert [rule.name for rule in here.filters] == [rule.name for rule in there.filters]
    assert [rule.name for rule in here.scores] == [rule.name for rule in there.scores]
    assert [gang.name for gang in here.gangs] == [gang.name for gang in there.gangs]
    assert len(here.queue.order) == len(there.queue.order)


@pytest.mark.parametrize(
    ("name", "arguments", "written"),
    [
        ("Coscheduling", {"permitWaitingTimeSeconds": 10}, "param permitWaitingTime: duration = 10s"),
        ("TargetLoadPacking", {"targetUtilization": 70}, "param targetUtilization: int = 70 range"),
        ("TargetLoadPacking", {"targetUtilization": 0}, "param targetUtilization: int = 40 range"),
        ("TargetLoadPacking", {"defaultRequests": {"cpu": "1500m"}}, "param defaultRequests: cpu = 1500m"),
        ("TargetLoadPacking", {"defaultRequestsMultiplier": "2"}, "defaultRequestsMultiplier: double = 2.0 range"),
        ("LoadVariationRiskBalancing", {"safeVarianceMargin": 2}, "safeVarianceMargin: double = 2.0 range"),
        ("LoadVariationRiskBalancing", {"safeVarianceMargin": -1}, "safeVarianceMargin: double = 1.0 range"),
        ("LoadVariationRiskBalancing", {"safeVarianceSensitivity": 2.5}, "safeVarianceSensitivity: double = 2.5 range"),
        ("NodeNumber", {"reverse": True}, "param reverse: bool = true"),
    ],
)
def test_arguments_become_params(name: str, arguments: dict[str, Any], written: str) -> None:
    assert written in converted(configuration(enabled(name), {"name": name, "args": arguments}))


def test_the_weight_of_the_plugin_is_that_of_the_score() -> None:
    score = {"score": {"enabled": [{"name": "TargetLoadPacking", "weight": 7}, {"name": "NodeNumber"}]}}
    text = converted(configuration(score))
    assert 'score "target-load" weight 7' in text and 'score "nodenumber" weight 1 ' in text


def test_the_backoff_stands_beside_the_order_of_the_queue() -> None:
    text = converted(configuration(enabled("riya"), podMaxBackoffSeconds=20))
    assert "queue {\n    order by groupPriority desc, pod.qos desc\n    backoff 1s .. 20s\n  }" in text


def test_two_that_share_names_cannot_be_had_together() -> None:
    text = converted(configuration(enabled("Coscheduling", "riya")))
    assert "// note: `Coscheduling` and `riya` cannot be had together; the first is kept" in text
    alone = {name: members(shipped, {}, 1).names for name, shipped in SHIPPED.items() if name != "riya"}
    assert sum(map(len, alone.values())) == len(set().union(*alone.values()))


def test_an_argument_that_nobody_knows_is_named_and_passed_over() -> None:
    text = converted(configuration(enabled("Coscheduling"), {"name": "Coscheduling", "args": {"kubeMaster": "x"}}))
    assert "`profiles[0].pluginConfig[0].args.kubeMaster` is not known; it was passed over" in text


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("Coscheduling", {"permitWaitingTimeSeconds": -1}, "`permitWaitingTimeSeconds` is not a whole number of at"),
        ("TargetLoadPacking", {"targetUtilization": 101}, "`targetUtilization` is not a whole number from 0 to 100"),
        ("TargetLoadPacking", {"defaultRequests": {"cpu": "x"}}, "`defaultRequests.cpu`: `x` is not a quantity"),
        ("TargetLoadPacking", {"defaultRequestsMultiplier": "1.5; x"}, "`defaultRequestsMultiplier` is not a number"),
        ("LoadVariationRiskBalancing", {"safeVarianceMargin": "1"}, "`safeVarianceMargin` is not a number"),
        ("NodeNumber", {"reverse": "yes"}, "`reverse` is not true or false"),
        ("NodeLabel", {"presentLabels": "zone"}, "`presentLabels` is not a list of names"),
    ],
)
def test_an_argument_that_is_none_is_told_where(name: str, arguments: dict[str, Any], told: str) -> None:
    value = configuration(enabled(name), {"name": name, "args": arguments})
    with pytest.raises(ConversionError) as caught:
        wanted_profiles(documents("given", [value]), IN_TREE)
    assert str(caught.value).startswith("`given`: `profiles[0].pluginConfig[0].args`: ") and told in str(caught.value)


def elastic_quota(**spec: Any) -> dict[str, Any]:
    return {"kind": "ElasticQuota", "metadata": {"name": "q", "namespace": "team-a"}, "spec": spec}


CAPACITY = {"postFilter": {"enabled": [{"name": "CapacityScheduling"}], "disabled": [{"name": "*"}]}}


def test_elastic_quotas_beside_the_configuration_become_quotas() -> None:
    quota = elastic_quota(
        min={"cpu": 4, "memory": "1.5Gi"}, max={"cpu": "7500m", "memory": 2e9, "nvidia.com/gpu": "4", "pods": 9}
    )
    text = converted(configuration(CAPACITY), quota)
    assert (
        'quota "team-a/q" when pod.namespace == "team-a" {\n'
        "    guarantee: {cpu: 4, memory: 1536Mi}\n"
        '    limit: {cpu: 7500m, memory: 1953125Ki, "nvidia.com/gpu": 4}\n'
        "    borrow: true\n  }" in text
    )
    assert "counts pods, which no quota does; `max.pods` was left out" in text
    assert "disable DefaultPreemption" not in text  # what is owed it gets back


def test_elastic_quotas_that_nothing_counts_or_that_are_none_are_told() -> None:
    for values, told in (
        ((configuration({}), elastic_quota(min={"cpu": 1})), "no profile enables CapacityScheduling"),
        ((configuration(CAPACITY), elastic_quota(min={"cpu": "1 core"})), "`spec.min.cpu`: `1 core` is not a quantity"),
        ((configuration(CAPACITY), {"kind": "ElasticQuota"}), "`metadata` is missing"),
    ):
        with pytest.raises(ConversionError, match=told):
            wanted_profiles(documents("given", values), IN_TREE)
    assert "ElasticQuotas that are given beside" in converted(configuration(CAPACITY))


def test_a_configuration_is_found_in_a_config_map_and_in_a_list() -> None:
    inside = configuration(enabled("NodeNumber"))
    config_map = {
        "kind": "ConfigMap",
        "data": {"scheduler.yaml": json.dumps(inside), "notes": "a: [", "more": "kind: x"},
    }
    plain = converted(inside)
    assert converted(config_map) == plain
    assert converted({"kind": "List", "items": [{"kind": "Pod"}, config_map]}) == plain


def test_two_files_for_one_scheduler_are_converted_one_at_a_time() -> None:
    twice = [*documents("a", [configuration({})]), *documents("b", [configuration({})])]
    with pytest.raises(ConversionError, match="scheduler `default-scheduler` stands in two of the files"):
        wanted_profiles(twice, IN_TREE)
