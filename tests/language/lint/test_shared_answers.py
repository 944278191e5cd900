"""What rules share says of an expression what a walk of all of it says."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from policyengine.language import ir
from policyengine.language.check import check_files
from policyengine.language.diagnostics import Source
from policyengine.language.ir.ir_walk import expressions_in, walk
from policyengine.language.lint.lint_settings import Settings
from policyengine.language.lint.rule import Subject
from policyengine.language.lint.truth import true
from policyengine.language.parse import parse_file
from tests.fuzz.vocabulary import EVERY_POD
from tests.language.lint.findings import plugins
from tests.language.typed import sources


@st.composite
def subjects(draw: st.DrawFn) -> Subject:
    """A policy of random expressions, of which some name lets that name lets."""
    first = draw(sources("bool"))
    second, number = draw(sources("bool", where=EVERY_POD)), draw(sources("int", where=EVERY_POD))
    text = f"""\
policy "p" {{
  scheduler "s"
  let first = pod.priority > {number}
  let second = first || {first}
  filter "f" when {second} {{
    require second && {second} else "no"
    require {first} else "no"
  }}
  score "s" weight 2 when first = second ? 1 : 2
}}
"""
    source = Source("a.policy", text)
    file, _ = parse_file(source)
    policies, _ = check_files([(file, source)], plugins())
    assume(policies)
    return Subject(source, file.policies[0], policies[0], plugins(), Settings(), file, frozenset())


def all_parts(subject: Subject) -> Iterator[ir.Expr]:
    return (part for expr in expressions_in(subject.policy) for part in walk(expr))


@given(subjects())
@settings(max_examples=40)
def test_the_parts_of_a_kind_are_all_of_that_kind(subject: Subject) -> None:
    own = [part for place in subject.places for part in walk(place.expr)]
    for kind in {type(part) for part in own}:
        assert [id(one) for one in subject.parts_of(kind)] == [id(one) for one in own if type(one) is kind]


@given(subjects())
@settings(max_examples=40)
def test_an_expression_may_fail_where_one_of_its_parts_or_lets_may(subject: Subject) -> None:
    for part in all_parts(subject):
        reached = walk(part, subject.let_value)
        alone = [one for one in reached if not isinstance(one, ir.LetRef)]
        assert subject.bounds.may_fail(part) == any(map(subject.bounds.may_fail, alone))


@given(subjects())
@settings(max_examples=40)
def test_what_a_condition_says_by_itself_is_what_it_says_beside_one_that_says_nothing(subject: Subject) -> None:
    nothing = ir.Const(type=subject.policy.filters[0].requires[0].condition.type, span=subject.policy.span, value=True)
    for part in all_parts(subject):
        if part.type == nothing.type:
            assert subject.truth.impossible(true(part)) == subject.truth.impossible(true(part), true(nothing))
            assert subject.truth.implied(part) == subject.truth.implied(part, true(nothing))
