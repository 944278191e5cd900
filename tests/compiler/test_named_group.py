"""`podGroup(name)` in a policy: what it reads, what it may be given, and what a rule that reads it waits for."""

from __future__ import annotations

from typing import Any

import pytest

from policyengine.cluster.pod_groups import KINDS
from policyengine.diagnosis.explain import explain
from policyengine.kube.watching.informers import kinds_read
from policyengine.language.diagnostics import Source
from policyengine.policy_compiler import compile_files, compile_policy
from tests.policies.test_formulas import node, pod

SIZE = {"cpu": "8", "memory": "16Gi", "pods": "110"}
AFTER = """policy "p" { filter "after" {
  require podGroup(pod.annotations[?"after"].orValue("")).?minMember.orValue(0) >= 3 else "no group"
} }"""


def group(name: str, members: int, namespace: str = "default") -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": {"minMember": members},
    }


def native(name: str, members: int) -> dict[str, Any]:
    found = group(name, 0) | {"apiVersion": "scheduling.k8s.io/v1alpha2"}
    return found | {"spec": {"schedulingPolicy": {"gang": {"minCount": members}}}}


def chosen(text: str, *groups: dict[str, Any], labels: dict[str, str] | None = None) -> str | None:
    there, waiting = [node("a", SIZE), node("b", SIZE)], pod("p", {"cpu": "1"})
    there[1]["metadata"]["labels"] = labels or {}
    waiting["metadata"]["annotations"] = {"after": "g"}
    (entry,) = explain({"nodes": there, "pods": [waiting], "podGroups": list(groups)}, compile_policy(text))
    found: str | None = entry["chosen"]
    return found


@pytest.mark.parametrize(
    ("groups", "is_placed"),
    [
        ([], False),
        ([group("g", 3)], True),
        ([group("g", 2)], False),
        ([group("other", 3)], False),
        ([group("g", 3, "elsewhere")], False),
        ([native("g", 3)], True),
        ([group("g", 3), native("g", 2)], False),
        ([group("g", 2), native("g", 3)], True),
    ],
)
def test_a_group_is_found_by_its_name_in_the_namespace_of_the_pod_and_the_native_one_first(
    groups: list[dict[str, Any]], is_placed: bool
) -> None:
    assert (chosen(AFTER, *groups) is not None) is is_placed


def test_a_node_may_name_the_group() -> None:
    text = (
        """policy "p" { filter "free" { require !podGroup(node.labels[?"for"].orValue("")).hasValue() else "kept" } }"""
    )
    for other in ("a", "b"):
        assert chosen(text, group("g", 1), labels={"for": "g", "also": other}) == "a"


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("podGroup()", "`podGroup` takes the name of a PodGroup"),
        ("podGroup(1)", "`podGroup` takes the name of a PodGroup"),
        ('podGroup("a", "b")', "`podGroup` takes the name of a PodGroup"),
        ('podGroup(pod.labels[?"a"])', "an optional may be empty: add `.orValue(…)`"),
        ('podGroup("a").?minMembers', "has no field `minMembers`"),
    ],
)
def test_what_is_no_name_of_a_group_is_told(expression: str, message: str) -> None:
    text = f'policy "p" {{ filter "f" {{ require {expression}.hasValue() else "no" }} }}'
    assert [message in one.message for one in compile_files([Source("p.policy", text)]).diagnostics] == [True]


def test_a_gang_and_a_queue_read_the_group_of_the_pod_and_no_other() -> None:
    text = """policy "p" {
      queue { order by podGroup("a").?minMember.orValue(1) }
      gang "g" { key: pod.name min: podGroup("a").?minMember.orValue(1) timeout: 60s }
    }"""
    found = compile_files([Source("p.policy", text)]).diagnostics
    assert len(found) == 2
    assert all(
        "reads only pod, podGroup and params, and `podGroup(name)` is none of them" in one.message for one in found
    )


def test_a_rule_that_asks_for_a_group_waits_for_groups_and_changes_of_what_it_reads_of_them() -> None:
    profile = compile_policy(AFTER)
    assert set(KINDS) <= kinds_read(profile)
    rule = next(plugin for plugin in profile.filters if plugin.name == "after")
    waits = [one for one in rule.events_to_register() if one.event.resource.value == "PodGroup"]
    assert {action.name for one in waits for action in type(one.event.action) if action in one.event.action} >= {
        "ADD",
        "DELETE",
    }
    assert any(one.hint is not None for one in waits)
