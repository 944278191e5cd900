"""Policy text is untrusted: what is too large, too deep or too costly is a finding, soon."""

from __future__ import annotations

import pytest

from policyengine.language.check import check_files
from policyengine.language.diagnostics import Diagnostic, Source, in_order
from policyengine.language.parse import parse_file
from policyengine.language.parsing.expression_actions import MAX_DEPTH
from tests.language.checking import PLUGINS


def found(members: str) -> list[Diagnostic]:
    source = Source("p.policy", f'policy "p" {{\n{members}\n}}')
    file, broken = parse_file(source)
    return in_order([*broken, *check_files([(file, source)], PLUGINS)[1]])


def nested(levels: int) -> str:
    return "pod.priority" + " + 1" * levels


def calls(count: int) -> str:
    """So many calls of a function, no two alike."""
    return " ".join(f"let a{at} = f(pod.priority + {at})" for at in range(count))


@pytest.mark.parametrize(
    ("members", "code", "part"),
    [
        (f"let x = {'(' * 100}1{')' * 100}", "PE0401", f"{MAX_DEPTH} levels"),
        (f"let x = {nested(MAX_DEPTH + 1)}", "PE0401", f"{MAX_DEPTH} levels"),
        (f'let x = "{"a" * 10_001}"', "PE0403", "10,000"),
        (f"let {'a' * 251} = 1", "PE0403", "250"),
        ("let x = 99999999999999999999", "PE0202", "64 bits"),
        ("let x = " + "1, " * 30_000, "PE0402", "30,000"),
        ('let x = "a".matches("(a*)*\\\\1")', "PE1006", "RE2"),
        (f"function f(x: int): int = [{'x, ' * 900}1].sum() {calls(50)}", "PE2019", "40,000"),
        ("}" + ' library "a" { }' * 501, "PE0402", "500"),
    ],
)
def test_text_that_is_too_much_is_told_with_the_limit(members: str, code: str, part: str) -> None:
    codes = {finding.code: finding.message for finding in found(members)}
    assert code in codes, codes


def test_macros_in_macros_in_macros_cost_too_much() -> None:
    body = "a + b + c + d + e + f > 0"
    for name in "fedcba":
        body = f"[1, 2].all({name}, {body})"
    (finding,) = found(f'filter "f" {{ require node.ready && {body} }}')
    assert finding.code == "PE2019"
    assert "steps" in finding.message


def test_a_let_is_paid_for_once() -> None:
    column = " + ".join(["node.podCount"] * 60)
    requires = "\n".join(f"require wide > {at}" for at in range(800))
    assert not found(f'let wide = {column}\nfilter "f" {{ {requires} }}')


def test_a_rule_pays_a_step_for_each_let_it_needs() -> None:
    lets = "let a0 = pod.priority\n" + "".join(f"let a{place} = a{place - 1}\n" for place in range(1, 500))
    rules = [f'filter "f{at}" {{ require a499 > {at} }}\n' for at in range(500)]
    assert not found(lets + "".join(rules[:390]))
    (finding,) = found(lets + "".join(rules))
    assert finding.code == "PE2019"


def test_a_policy_as_long_as_it_may_be_is_within_the_budget() -> None:
    requires = "\n".join(f"require node.free.cpu - pod.requests.cpu >= {at}" for at in range(2000))
    assert not found(f'filter "f" {{ {requires} }}')


def test_a_condition_that_is_too_deep_costs_its_member_and_no_more() -> None:
    deep = " && ".join(["node.ready"] * (MAX_DEPTH + 6))
    findings = found(f'filter "f" {{ require {deep} }}\nlet x = nothing')
    assert [(one.code, one.message.split(";")[0]) for one in findings] == [
        ("PE0401", f"the expression is more than {MAX_DEPTH} levels deep"),
        ("PE1001", "nothing is called `nothing`"),
    ]


def test_a_mistake_on_every_level_is_looked_at_once_a_level() -> None:
    words = "pod.name"
    for at in range(MAX_DEPTH // 2 - 2):
        words = f"string({words} == w{at})"
    assert len(found(f"let x = {words}")) == MAX_DEPTH // 2 - 2
    assert [one.code for one in found(f"let x = pod.nothing{'.spec' * (MAX_DEPTH - 4)}")] == ["PE1002"]
