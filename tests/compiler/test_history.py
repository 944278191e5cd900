"""`history(key)` in a policy: what it reads, what it may be given, and what it makes stale."""

from __future__ import annotations

import pytest

from policyengine.diagnosis.explain import explain
from policyengine.language.diagnostics import Source
from policyengine.policy_compiler import compile_files, compile_policy
from tests.policies.test_formulas import node, pod

SIZE = {"cpu": "8", "memory": "16Gi", "pods": "110"}


def codes(expression: str) -> list[tuple[str, str]]:
    text = f'policy "p" {{ param size: double = 0.5\n score "s" weight 1 = clamp({expression}, 0.0, 100.0) }}'
    return [(one.code, one.message) for one in compile_files([Source("p.policy", text)]).diagnostics]


@pytest.mark.parametrize(
    ("expression", "code", "message"),
    [
        ("history().mean.cpu / 1m", "PE1004", "`history` takes the key of a label"),
        ("history(1).mean.cpu / 1m", "PE1004", "`history` takes the key of a label"),
        ('history("", 1).mean.cpu / 1m', "", ""),
        ('history("", "a").mean.cpu / 1m', "PE1004", "`history` takes the key of a label"),
        ('history("", 0.1, 0.1).mean.cpu / 1m', "PE1004", "`history` takes the key of a label"),
        ('history("", 1.5).mean.cpu / 1m', "PE1006", "a smoothing is from 0 to 1, not 1.5"),
        ("history(pod.name).mean.cpu / 1m", "PE1012", "what `history` takes is a literal or a param"),
        ("history(node.name).mean.cpu / 1m", "PE1012", "what `history` takes is a literal or a param"),
        ('history("", size).mean.cpu / 1m', "", ""),
        ('history("").mean[?"nvidia.com/gpu"].orValue(0.0)', "", ""),
        ('history("").men', "PE1002", "has no field `men`"),
    ],
)
def test_what_history_takes_is_a_label_and_a_smoothing_that_are_known(expression: str, code: str, message: str) -> None:
    found = codes(expression)
    assert [one for one, _ in found] == ([code] if code else [])
    assert all(message in told for _, told in found)


def test_a_rule_that_reads_a_history_waits_for_pods_to_be_placed() -> None:
    profile = compile_policy('policy "p" { filter "f" { require history("").count > 3 } }')
    rule = next(plugin for plugin in profile.filters if plugin.name == "f")
    assert "AssignedPod" in {one.event.resource.value for one in rule.events_to_register()}


def test_a_filter_tells_of_what_was_placed() -> None:
    text = """policy "p" {
      let usual = history("").mean.cpu
      filter "usual" { require pod.requests.cpu <= 2 * usual else "twice {usual}" }
    }"""
    cluster = {"nodes": [node("a", SIZE)], "pods": [pod("there", {"cpu": "500m"}, "a"), pod("p", {"cpu": "1100m"})]}
    (entry,) = explain(cluster, compile_policy(text))
    assert "twice 500m" in str(entry["preFilter"])
