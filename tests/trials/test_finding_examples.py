"""Examples of lint's findings: each is a test that passes, the smallest one, and shows what the finding says."""

from __future__ import annotations

import pytest

from policyengine.compiler.front import checked
from policyengine.language.diagnostics import Diagnostic, Source
from policyengine.language.lint.lint_settings import Settings
from policyengine.language.lint.linter import lint
from policyengine.language.lint.rules import RULES
from policyengine.plugins.facts import plugin_facts
from policyengine.trials.finding_claims import CLAIMS
from policyengine.trials.finding_search import examples
from policyengine.trials.policy_test import TestedPolicy, in_file_tests, run_tests


def policy_of(text: str) -> tuple[TestedPolicy, list[Diagnostic]]:
    """A policy, and what lint says of clusters in it."""
    source = Source("x.policy", text)
    found = checked([source], plugin_facts())
    assert not found.findings, found.findings
    opinions = lint(source, found.trees[0], found.policies, plugin_facts(), Settings())
    return TestedPolicy(found.policies[0]), [one for one in opinions if one.code in CLAIMS]


def shown(members: str, code: str) -> list[str]:
    """The examples of the first finding of a code. Each of them passes where it is put into the policy."""
    policy, findings = policy_of(f'policy "x" {{ {members} }}')
    texts = [one.text for one in examples(policy, next(one for one in findings if one.code == code))[1]]
    for text in texts:
        again = policy_of(f'policy "x" {{ {members}\n{text} }}')[0].policy
        assert [one for one in run_tests(TestedPolicy(again, in_file_tests(again))) if not one.passed] == [], text
    return texts


TIGHT = 'filter "f" { require node.podCount > 2 && node.podCount < 1 }'
WEIGHTS = """score "small" weight 1 = clamp(node.podCount, 0, 100)
  score "large" weight 1000 = clamp(100 * ratio(node.free.cpu, node.allocatable.cpu), 0, 100)"""


def test_what_never_holds_is_shown_from_both_sides() -> None:
    texts = shown(TIGHT, "PE3001")
    assert len(texts) == 2
    assert {text.count("given pod") for text in texts} == {1, 4}
    assert all("`node.podCount > 2` is" in text and 'expect "p" rejected by "f"' in text for text in texts)


def test_an_outweighed_score_prefers_one_node_and_the_pod_goes_to_the_other() -> None:
    (text,) = shown(WEIGHTS, "PE3104")
    assert 'expect "p" on "b"' in text
    small = [line for line in text.splitlines() if 'score("small"' in line]
    assert len(small) == 2
    assert "== 0" not in small[0]
    assert "== 0" in small[1]


def test_an_example_says_nothing_that_can_be_left_out() -> None:
    text = shown('filter "f" { require pod.priority > 3 || pod.priority < 5 else "no" }', "PE3002")[0]
    assert text.splitlines()[3:] == [
        '  given node "a" { allocatable: { pods: 1 } }',
        '  given pod "p" {}',
        '  expect "p" on "a"',
        "}",
    ]  # fmt: skip


CASES = {
    "PE3003": 'filter "f" { require node.podCount > 4 require node.podCount > 2 }',
    "PE3004": 'filter "f" when pod.priority > 5 && pod.priority < 3 { require node.ready }',
    "PE3005": 'filter "f" { require node.ready } filter "g" { require node.ready }',
    "PE3006": 'filter "f" { require node.zone == "a" ? node.podCount >= 0 : node.ready }',
    "PE3007": 'filter "f" { require node.podCount > 4 && node.podCount > 2 }',
    "PE3008": 'filter "f" { require node.zone == node.zone }',
    "PE3101": 'score "s" weight 1 = clamp(pod.priority, 0, 100)',
    "PE3102": 'score "s" weight 1 = ratio(node.free.cpu, node.allocatable.cpu)',
    "PE3103": 'score "s" weight 1 = 200.0 * ratio(node.free.cpu, node.allocatable.cpu)',
    "PE3105": 'score "s" weight 1 = clamp(node.free.cpu / 1m, 0, 100)',
    "PE3106": 'score "s" weight 1 = clamp(node.podCount / 110 * 100, 0, 100)',
    "PE3201": 'queue { order by pod.labels[?"tier"].orValue("") }',
    "PE3202": "queue { order by pod.priority, 5 }",
    "PE3203": 'queue { order by pod.labels[?"tier"].orValue("") }',
    "PE3301": 'gang "g" { key: pod.uid min: 2 timeout: 60s }',
    "PE3302": 'gang "g" { key: "k" min: toInt(pod.labels[?"min"]).orValue(1) timeout: 60s }',
    "PE3303": 'gang "g" { key: "k" min: 2 timeout: 20min }',
    "PE3304": 'gang "g" { key: "k" min: 2 timeout: 9s } gang "h" when pod.priority > 4 { key: "h" min: 2 timeout: 9s }',
    "PE3305": 'permit "w" when pod.priority > 7 { delay: 30min timeout: 60min }',
    "PE3306": 'permit "w" { delay: pod.priority > 9 ? 60s : 70s timeout: pod.priority > 9 ? 30s : 20s }',
    "PE3401": 'quota "q" when pod.namespace == "n" { guarantee: {cpu: 2, memory: 1Gi} limit: {cpu: 3, memory: 1Gi} }',
    "PE3403": 'filter "f" { require 10 / node.podCount > 1 on error true }',
    "PE3405": 'param team: string = "a" quota "q" by team { guarantee: {cpu: 2} limit: {cpu: 4, "x.y/z": 2} }',
    "PE3404": 'filter "f" { require node.podCount > 1 on error false }',
}


def test_a_limit_above_the_guarantee_is_shown_by_a_pod_between_them_that_is_refused() -> None:
    (text,) = shown(CASES["PE3401"], "PE3401")
    assert "requests: { cpu: 2001m }" in text
    assert 'expect "p" rejected by "q"' in text


def test_a_key_that_is_the_same_for_all_is_shown_by_a_pod_that_another_namespace_leaves_no_room() -> None:
    (text,) = shown(CASES["PE3405"], "PE3405")
    assert "namespace:" in text and 'expect "p" rejected by "q"' in text


@pytest.mark.parametrize("code", sorted(CASES)[::6])
def test_a_finding_about_clusters_is_shown_by_one_that_passes_as_a_test(code: str) -> None:
    texts = shown(CASES[code], code)
    assert 1 <= len(texts) <= 2
    assert all("expect" in text for text in texts)


def test_a_part_of_a_macro_s_body_has_no_example() -> None:
    members = 'filter "f" { require node.pods.exists(q, q.priority > 2 && q.priority > 1) }'
    assert shown(members, "PE3007") == []


def test_every_rule_that_speaks_of_clusters_has_a_case() -> None:
    assert {*CASES, "PE3001", "PE3002", "PE3104"} == set(CLAIMS)
    assert set(CLAIMS) <= {rule.code for rule in RULES}


if __name__ == "__main__":  # all of them: `make fuzz`
    for one in CASES:
        test_a_finding_about_clusters_is_shown_by_one_that_passes_as_a_test(one)
