"""What the tests of a policy saw of it; the watch sits in the real compiled policy."""

from __future__ import annotations

import pytest

from policyengine.compiler.coverage import Coverage
from policyengine.policy_compiler import compile_checked
from tests.trials.policy_tests import NODE, A, covered, missing, policy_of

PASS = f'test "pass" {{ {A} given pod "p" {{}} expect "p" on "a" }}'
BIG = f'test "big" {{ {A} given pod "big" {{}} expect "big" rejected }}'
HIGH = f'test "high" {{ {A} given pod "p" {{ priority: 9 }} expect "p" on "a" }}'
ASKING = f'test "asking" {{ {A} given pod "p" {{ requests: {{cpu: 1}} }} expect "p" rejected by "q" }}'
EVICT = """test "evict" { given node "a" { allocatable: {cpu: 1, pods: 9} }
  given pod "old" on "a" { requests: {cpu: 1} }
  given pod "p" { priority: 9, requests: {cpu: 1} } expect "p" on "a" }"""

CASES = [
    ('filter "f" { require pod.name != "big" }', PASS, [('`require` of filter "f"', ("refuses",))]),
    ('filter "f" { require pod.name != "big" }', PASS + BIG, []),
    ('filter "f" { require node.name != "a" || pod.name != "big" }', PASS,
     [('`require` of filter "f"', ("refuses",)), ("operand of `||`", ("true", "false")),
      ("operand of `||`", ("false",))]),
    ('filter "f" when pod.priority > 5 { require node.podCount < 9 }', PASS,
     [('`when` of filter "f"', ("true",)), ('`require` of filter "f"', ("holds", "refuses"))]),
    ('filter "f" when pod.priority > 5 { require node.podCount < 9 }', PASS + HIGH,
     [('`require` of filter "f"', ("refuses",))]),
    ('score "s" weight 1 when pod.priority > 5 = 3', PASS,
     [('`when` of score "s"', ("true",)), ('score "s"', ("evaluated",))]),
    ('score "s" weight 1 when pod.priority > 5 = 3 filter "s" { require pod.name != "big" }', PASS + BIG,
     [('`when` of score "s"', ("true",)), ('score "s"', ("evaluated",))]),
    ('score "s" weight 1 = node.name == "a" ? 3 : 4', PASS, [("condition of `?:`", ("false",))]),
    ('filter "f" { require 10 / node.podCount > 0 on error true }', PASS,
     [('`require` of filter "f"', ("holds", "refuses"))]),
    ('filter "f" { require 10 / (node.podCount + 1) > 0 on error true }', PASS,
     [('`require` of filter "f"', ("refuses",)), ('`on error` of filter "f"', ("taken",))]),
    ('queue { order by pod.priority > 5 || pod.name == "x" }', PASS,
     [("operand of `||`", ("true",)), ("operand of `||`", ("true",))]),
    ('let late = pod.priority > 5 && pod.name == "p" filter "f" { require !late }', PASS,
     [('`require` of filter "f"', ("refuses",)), ("operand of `&&`", ("true",)),
      ("operand of `&&`", ("true", "false"))]),
    ('param n: int = 3 filter "f" { require n > 2 || pod.name == "q" }', PASS,
     [('`require` of filter "f"', ("refuses",)), ("operand of `||`", ("true", "false"))]),
    ('preempt when pod.priority > 5 { victims: victim.priority < 3 && victim.name != "q" }', PASS,
     [("`when` of preempt", ("true", "false")), ("`victims` of preempt", ("true", "false")),
      ("operand of `&&`", ("true", "false")), ("operand of `&&`", ("true", "false"))]),
    ('preempt when pod.priority > 5 { victims: victim.priority < 3 }', EVICT,
     [("`when` of preempt", ("false",)), ("`victims` of preempt", ("false",))]),
    ('quota "q" when pod.name == "p" { guarantee: {cpu: 1m} borrow: pod.priority > 5 }', ASKING,
     [('`when` of quota "q"', ("false",)), ('`borrow` of quota "q"', ("true",))]),
    ('permit "w" { until: pod.name == "p" }', PASS, [('`until` of permit "w"', ("false",))]),
    ('gang "g" { key: pod.name min: 1 timeout: pod.priority > 5 ? 1s : 2s waits: pod.name == "p" ? 1s : 2s }', PASS,
     [("condition of `?:`", ("true",)), ("condition of `?:`", ("false",))]),
    ('queue { fair by pod.name == "p" ? "a" : "b" }', PASS, [("condition of `?:`", ("false",))]),
    ('on reserve when node.name == "a" log "{pod.priority > 5 ? 1 : 2}"', PASS,
     [("`when` of `on reserve`", ("false",)), ("condition of `?:`", ("true",))]),
    ('bind { annotations: {"a/b": "{node.ready && pod.priority > 5}"} }', PASS,
     [("operand of `&&`", ("true",)), ("operand of `&&`", ("true", "false"))]),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "tests", "expected"), CASES)
def test_what_no_test_has_seen_is_told(rule: str, tests: str, expected: list[tuple[str, tuple[str, ...]]]) -> None:
    found = missing(f"{rule}\n{tests}")
    assert sorted(found) == sorted(expected)


def test_a_filter_of_several_requires_is_to_pass_a_node_and_refuse_one() -> None:
    rule = 'filter "f" { require node.name != "b" require node.name != "c" }'
    more = f'test "more" {{ given node "b" {NODE} given node "c" {NODE} given pod "p" {{}} expect "p" rejected }}'
    assert ('filter "f"', ("passes a node",)) in missing(f"{rule}\n{more}")
    assert missing(f"{rule}\n{more}{PASS}") == []


def test_outcomes_are_counted() -> None:
    coverage = covered(f'filter "f" {{ require pod.name != "big" }}\n{PASS}')
    assert coverage.outcomes() == (1, 2)


def test_the_body_of_a_function_is_one_point_wherever_it_is_called() -> None:
    rules = """function odd(x: int): bool = x > 5 || x < 0
      filter "f" { require !odd(pod.priority) }
      filter "g" { require !odd(node.podCount) }"""
    coverage = covered(f"{rules}\n{PASS}")
    assert sum(point.what == "operand of `||`" for point in coverage.points) == 2


def test_nothing_is_noted_while_the_policy_compiles() -> None:
    policy = policy_of('policy "p" { filter "f" { require node.podCount < 1 on error false } }')
    coverage = Coverage(policy)
    compile_checked(policy, coverage)
    assert coverage.outcomes()[0] == 0


def test_an_unwatched_policy_has_the_same_closures_as_ever() -> None:
    """Zero cost when off: without a watch no closure is wrapped."""
    policy = policy_of('policy "p" { filter "f" { require node.podCount < 1 } }')
    profile = compile_checked(policy)
    rule = profile.filters[-1]  # type: ignore[union-attr]
    assert "coverage" not in rule._of_nodes[0].condition.__code__.co_filename  # type: ignore[attr-defined]
