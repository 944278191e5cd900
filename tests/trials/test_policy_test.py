"""The tests of policies: what each expectation means, and what is said where it does not hold."""

from __future__ import annotations

import pytest

from policyengine.language.checking.given_objects import NODE_FIELDS, POD_FIELDS
from policyengine.language.ir import test_nodes as ir_test
from policyengine.language.syntax import Span
from policyengine.policy_compiler import compile_text
from policyengine.trials.policy_test import failed_tests, held_to_tests
from policyengine.trials.policy_test_objects import given_namespace, given_node, given_pod
from tests.trials.policy_tests import NODE, A, messages, outcome_of, policy_of

FULL = 'filter "small" { require node.podCount < 1 else "is full with {node.podCount}" }'
GANG = 'gang "g" when "g" in pod.labels { key: pod.labels["g"] min: 2 timeout: 60s }'
SAYS = """bind { annotations: {"example.com/zone": "{node.name}-1"} }
  on reserve when pod.name == "p" log "{pod.name} to {node.name}" """
SCORES = """score "named" weight 3 when pod.name != "plain" = node.name == "a" ? 80 : 20
  base filters"""


ONE_NAME = """filter "team" { require node.podCount < 1 else "is full" }
  score "team" weight 2 = node.name == "a" ? 30 : 10
  gang "team" when "g" in pod.labels { key: pod.labels["g"] min: 2 timeout: 60s }
  quota "team" when pod.priority > 0 { limit: {cpu: 1} }
  permit "team" when pod.priority < 0 { until: false timeout: 5s }"""


PASSING = [
    (f'{A} given pod "s" on "a" {{}} given pod "p" {{}} expect "p" rejected on "a" by "team"', ONE_NAME),
    (f'{A} given pod "p" {{}} expect that score("team", "p", "a") == 30', ONE_NAME.split("\n")[1]),
    (f'{A} given pod "p" {{ labels: {{g: "x"}} }} expect "p" waits', ONE_NAME),
    (f'{A} given pod "p" {{ priority: 1, requests: {{cpu: 2}} }} expect "p" rejected by "team"', ONE_NAME),
    (f'{A} given pod "p" {{ priority: -1 }} expect "p" waits after 5s expect "p" rejected by "team"', ONE_NAME),
    (f'{A} given pod "p" {{}} expect "p" on "a"', ""),
    (f'{A} given pod "p" {{}} given pod "q" {{}} expect "p" before "q"', ""),
    (f'{A} given pod "p" {{}} given pod "q" {{ priority: 5 }} expect "q" before "p"', ""),
    (f'{A} given pod "s" on "a" {{}} given pod "p" {{}} expect "p" rejected', FULL),
    (f'{A} given pod "s" on "a" {{}} given pod "p" {{}} expect "p" rejected on "a" by "small"', FULL),
    (f'{A} given pod "p" {{ requests: {{cpu: 5}} }} expect "p" rejected by "NodeResourcesFit"', ""),
    (f'{A} given pod "p" {{ labels: {{g: "x"}} }} expect "p" waits', GANG),
    (f'{A} given pod "p" {{}} expect that placed("p") && placed("p", "a") && !placed("p", "a") == false', ""),
    (f'{A} given pod "p" {{ requests: {{cpu: 5}} }} expect that !feasible("p") && !feasible("p", "a")', ""),
    (f'{A} given node "b" {NODE} given pod "p" {{}} expect that score("named", "p", "b") == 20', SCORES),
    (f'{A} given node "b" {NODE} given pod "p" {{}} expect that total("p", "a") == total("p", "b") + 180', SCORES),
    (f'{A} given node "b" {NODE} given pod "plain" {{}} expect that score("named", "plain", "a") == 0', SCORES),
    (f'{A} given pod "s" on "a" {{ requests: {{cpu: 4}} }} given pod "p" {{}} expect that feasible("s", "a")', ""),
    (f'{A} given pod "p" {{}} expect "p" rejected given param open = true expect "p" on "a"',
     'param open: bool = false filter "door" { require open || node.podCount < 0 }'),
    (f'given param n = 3 {A} given pod "p" {{}} expect that placed("p") && n == 3', "param n: int = 1"),
    (f'given now "2026-01-05T18:30:00Z" {A} given pod "p" {{}} expect "p" on "a"',
     'filter "evening" { require now.getHours() == 18 }'),
    (f'{A} given pod "p" {{}} expect that annotation("p", "example.com/zone") == optional.of("a-1")', SAYS),
    (f'{A} given pod "p" {{}} expect that annotation("p", "other").orValue("none") == "none"', SAYS),
    (f'{A} given pod "p" {{requests: {{cpu: 5}}}} expect that !annotation("p", "example.com/zone").hasValue()', SAYS),
    (f'{A} given pod "p" {{}} given pod "q" {{}} expect that logged("p", "p to a") && !logged("p", "to a")', SAYS),
    (f'{A} given pod "p" {{}} given pod "q" {{}} expect that !logged("q", "p to a") && !logged("q", "q to a")', SAYS),
    ("""given node "a" { allocatable: {cpu: 4, pods: 9}, usage: {cpu: 3500m} } given pod "p" {}
      expect "p" rejected by "cool" """, 'filter "cool" { require node.usage.?cpu.orValue(0m) < 3 }'),
    (f"""{A} given pod "d" on "a" {{ phase: "Failed", finishedAt: "2026-01-01T00:00:00Z" }} given pod "p" {{}}
      expect "p" rejected by "luck" after 2h expect "p" on "a" """,
     'filter "luck" { require !node.finished.exists(f, f.failed) }'),
    (f'given now "2026-01-05T17:59:50Z" {A} given pod "p" {{}} expect "p" rejected after 70s expect "p" on "a"',
     'filter "evening" { require now.getHours() == 18 }'),
]  # fmt: skip


@pytest.mark.parametrize(("steps", "members"), PASSING)
def test_what_holds_passes(steps: str, members: str) -> None:
    assert messages(steps, members) == []


FAILING = [
    (f'{A} given node "b" {NODE} given pod "p" {{ nodeSelector: {{"kubernetes.io/hostname": "b"}} }} expect "p" on "a"',
     "", "expected `p` on `a`, but it is on `b`"),
    (f'{A} given pod "p" {{ requests: {{cpu: 5}} }} expect "p" on "a"', "",
     "expected `p` on `a`, but it fits nowhere"),
    (f'{A} given pod "p" {{}} given pod "q" {{}} expect "q" before "p"', "",
     "expected `q` before `p`, but `p` was popped first"),
    (f'{A} given pod "p" {{ labels: {{g: "x"}} }} given pod "q" {{}} expect "q" before "p"', GANG,
     "expected `q` before `p`, but `p` was never popped: its gang is held"),
    (f'{A} given pod "p" {{}} expect "p" rejected', "", "expected `p` rejected, but it is on `a`"),
    (f'{A} given pod "p" {{}} expect "p" rejected on "a"', "",
     "expected `p` rejected on `a`, but it was not: `a` let it pass"),
    (f'{A} given pod "p" {{ requests: {{cpu: 5}} }} expect "p" rejected by "small"', FULL,
     "expected `p` rejected by `small`, but it was rejected by `NodeResourcesFit`"),
    (f'{A} given pod "p" {{}} expect "p" waits', "",
     "expected `p` to wait for a gang or at a permit, but it is on `a`"),
    (f'{A} given pod "p" {{}} expect that !placed("p")', "", "expected the condition to hold, but it is false"),
    (f'{A} given pod "p" {{ requests: {{cpu: 5}} }} expect that total("p", "a") > 0', "",
     "expected the condition to hold, but it has no value: `a` was rejected by `NodeResourcesFit`, so it has no score"),
    (f'after 10s given now "2026-01-01T00:00:05Z" {A} given pod "p" {{}} expect "p" on "a"', "",
     "time does not go back: it is 2026-01-01T00:00:10Z already"),
]  # fmt: skip


@pytest.mark.parametrize(("steps", "members", "message"), FAILING)
def test_what_does_not_hold_is_told_with_what_happened(steps: str, members: str, message: str) -> None:
    assert messages(steps, members) == [message]


def test_a_node_that_is_given_no_room_for_pods_is_named() -> None:
    steps = 'given node "a" { allocatable: {cpu: 4, memory: 8Gi} } given pod "p" {} expect "p" on "a"'
    (failure,) = outcome_of(steps).failures
    assert "`a` is given without `pods` in `allocatable`, so it has room for none; write `pods: 110`" in failure.details
    (failure,) = outcome_of(steps.replace("8Gi", "8Gi, pods: 0")).failures
    assert not any("room for none" in line for line in failure.details)


def test_a_failure_says_why_and_where() -> None:
    steps = f'{A}\ngiven node "b" {NODE}\ngiven pod "p" {{ requests: {{cpu: 1}} }}\nexpect "p" on "b"'
    outcome = outcome_of(steps, 'score "first" weight 7 = node.name == "a" ? 100 : 0 base filters')
    (failure,) = outcome.failures
    assert failure.details == ("`a` has 700 = first 100×7", "`b` has 0")
    assert failure.span.end > failure.span.start
    tiers = 'score "top" tier = node.name == "a" ? 1 : 0 score "first" weight 7 = 1 base filters'
    (failure,) = outcome_of(steps, tiers).failures
    assert failure.details == ("`a` has top 1 (tier), then 7 = first 1×7", "`b` has top 0 (tier), then 7 = first 1×7")


def test_a_condition_that_does_not_hold_is_told_with_its_answers() -> None:
    asked = ['annotation("p", "example.com/zone")', 'annotation("p", "x")', 'logged("p", "Hm")', 'placed("p")']
    zone, other, line, placed = asked
    condition = f'{zone} == optional.of("B") || {other}.hasValue() || {line} || !{placed}'
    (failure,) = outcome_of(f'{A} given pod "p" {{}} expect that {condition}', SAYS.replace("-1", "-Z")).failures
    assert failure.details == (f"{zone}: a-Z", f"{other}: none", f"{line}: false", f"{placed}: true")


def test_a_refusal_is_told_with_the_rules_own_words() -> None:
    steps = f'{A} given pod "s" on "a" {{}} given pod "p" {{}} expect "p" on "a"'
    (failure,) = outcome_of(steps, FULL).failures
    assert failure.details[0] == "`a` was rejected by `small`: is full with 1"


def test_every_expectation_that_fails_is_told() -> None:
    assert len(messages(f'{A} given pod "p" {{}} expect "p" rejected expect "p" waits expect "p" on "a"')) == 2


def test_members_of_a_gang_are_judged_with_those_before_them_in_place() -> None:
    pods = " ".join(f'given pod "{name}" {{ labels: {{g: "x"}}, requests: {{cpu: 3}} }}' for name in ("p", "q"))
    nodes = f'{A} given node "b" {NODE}'
    assert messages(f'{nodes} {pods} expect that placed("p") && placed("q")', GANG) == []


def test_a_pod_group_is_given_with_one_of_its_pods() -> None:
    rule = """gang "g" when pod.podGroup.hasValue() { key: pod.podGroup.orValue("")
      min: podGroup.?minMember.orValue(1) timeout: podGroup.?scheduleTimeout.orValue(60s) }"""
    group = 'group: {name: "crew", minMember: 2, scheduleTimeout: 90s}'
    steps = f"""{A} given pod "p" {{ {group} }} expect "p" waits
      given pod "q" {{ {group} }} expect that placed("p") && placed("q")"""
    assert messages(steps, rule) == []


def test_victims_are_told() -> None:
    steps = f"""{A} given pod "s" on "a" {{ requests: {{cpu: 4}} }}
      given pod "p" {{ requests: {{cpu: 4}}, priority: 10 }} expect "p" on "a" expect "s" on "a" """
    assert messages(steps) == ["expected `s` on `a`, but it is gone: it was preempted, or deleted"]


def test_a_test_that_does_not_come_to_rest_fails() -> None:
    rule = 'filter "later" { require now > timestamp("2027-06-01T00:00:00Z") }'
    (failure,) = outcome_of(f'{A} given pod "p" {{}} after 400d expect "p" on "a"', rule, 300).failures
    assert failure.message == "the test does not come to rest within 300 steps"


def test_raw_spec_that_is_none_is_told_and_does_not_crash() -> None:
    assert messages(f'{A} given pod "p" {{ spec: {{affinity: 3}} }} expect "p" on "a"')[0].startswith("Pod `default/p`")


# --- what proves nothing -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        (A, "expects nothing"),
        (f'{A} given pod "s" on "a" {{}} expect "s" on "a"', "gives no pod to be placed"),
        (f'{A} given pod "s" on "a" {{}} expect "s" on "a" given pod "p" {{}} expect "p" on "a"', "cannot fail"),
    ],
)
def test_a_test_that_proves_nothing_is_known(steps: str, why: str) -> None:
    (test,) = policy_of(f'policy "p" {{ test "t" {{ {steps} }} }}').tests
    assert isinstance(test, ir_test.Test)
    assert why in (ir_test.vacuous(test) or "")


# --- before a policy serves --------------------------------------------------------------------------------


def test_the_gate_names_the_test_and_its_line() -> None:
    text = f'policy "p" {{\n  test "t" {{\n    {A}\n    given pod "p" {{}}\n    expect "p" rejected\n  }}\n}}'
    policy = policy_of(text)
    (finding,) = failed_tests([policy])
    assert finding.code == "PE2950"
    assert finding.message == "test `t` of policy `p` fails: expected `p` rejected, but it is on `a`"
    assert policy.source.line_column(finding.span.start) == (5, 5)


def test_the_gate_lets_pass_what_has_no_tests_or_passing_ones() -> None:
    good = f'test "t" {{ {A} given pod "p" {{}} expect "p" on "a" }}'
    assert failed_tests([policy_of('policy "p" {}'), policy_of(f'policy "q" {{ {good} }}')]) == []


# --- what is given -----------------------------------------------------------------------------------------

NOWHERE = Span(0, 0)
NODE_VALUES = {
    "labels": {"x": "y"},
    "annotations": {"x": "y"},
    "capacity": {"cpu": 8},
    "allocatable": {"cpu": 4, "storage": "1Gi"},
    "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}],
    "unschedulable": True,
    "ready": False,
    "conditions": [{"type": "MemoryPressure", "status": "True"}],
    "images": ["app:1"],
    "usage": {"cpu": "500m", "memory": "1Gi", "at": "2026-01-01T00:00:00Z"},
    "zone": "z",
    "region": "r",
    "createdAt": "2026-01-01T00:00:00Z",
    "spec": {"unschedulable": True},
    "status": {"declaredFeatures": ["f"]},
}
POD_VALUES = {
    "namespace": "n",
    "uid": "u",
    "labels": {"x": "y"},
    "annotations": {"x": "y"},
    "requests": {"cpu": "500m"},
    "limits": {"memory": "1Gi"},
    "priority": 7,
    "priorityClass": "high",
    "nodeSelector": {"x": "y"},
    "tolerations": [{"key": "k", "operator": "Exists"}],
    "containers": [{"name": "main", "image": "x", "requests": {"cpu": 1}, "ports": [{"hostPort": 80}]}],
    "initContainers": [{"name": "before", "requests": {"cpu": 2}}],
    "images": ["app:2"],
    "volumes": [{"name": "v", "claim": "c"}],
    "owner": {"kind": "Job", "name": "j"},
    "serviceAccount": "sa",
    "createdAt": "2026-01-01T00:00:00Z",
    "podGroup": "g",
    "namespaceLabels": {"team": "a"},
    "namespaceAnnotations": {"cores": "4"},
    "group": {"name": "g", "minMember": 2},
    "scheduledAt": "2026-01-01T00:00:01Z",
    "startedAt": "2026-01-01T00:00:02Z",
    "terminating": True,
    "restarts": 3,
    "phase": "Running",
    "reason": "Evicted",
    "finishedAt": "2026-01-01T00:00:03Z",
    "nominatedNode": "a",
    "spec": {"hostNetwork": True},
    "status": {"reason": "x"},
}


def test_every_field_that_may_be_given_is_in_these_tables() -> None:
    assert set(NODE_VALUES) == set(NODE_FIELDS)
    assert set(POD_VALUES) == set(POD_FIELDS)


@pytest.mark.parametrize("name", sorted(NODE_VALUES))
def test_a_given_field_of_a_node_shows_in_the_node(name: str) -> None:
    plain = given_node(ir_test.GivenNode(name="a", fields={}, span=NOWHERE))
    assert given_node(ir_test.GivenNode(name="a", fields={name: NODE_VALUES[name]}, span=NOWHERE)) != plain


@pytest.mark.parametrize("name", sorted(POD_VALUES))
def test_a_given_field_of_a_pod_shows_in_the_pod(name: str) -> None:
    def pod(fields: dict[str, object]) -> object:
        step = ir_test.GivenPod(name="p", on="a", fields=fields, span=NOWHERE)
        return given_pod(step, 1, "s", "2026-02-02T00:00:00Z"), given_namespace(step, {})

    assert pod({name: POD_VALUES[name]}) != pod({"phase": "Pending"} if name == "phase" else {})


def test_the_gate_keeps_the_profiles_of_a_file_that_fails_its_tests() -> None:
    bad = f'policy "p" {{ test "t" {{ {A} given pod "p" {{}} expect "p" rejected }} }}'
    result = held_to_tests(compile_text(bad))
    assert (result.profiles, [finding.code for finding in result.diagnostics]) == ([], ["PE2950"])
    good = compile_text('policy "p" {}')
    assert held_to_tests(good) is good
