"""What saves the front end work changes no answer: each short cut against the long way."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.language import ir, syntax
from policyengine.language.check import check_files
from policyengine.language.diagnostics import Diagnostic, Source
from policyengine.language.ir import ir_walk
from policyengine.language.ir.ir_walk import expressions_in
from policyengine.language.parse import parse_file
from policyengine.language.parsing.grammar import patterns
from policyengine.language.parsing.tokens import tokenise
from policyengine.language.syntax import expression_nodes
from tests.language.checking import PLUGINS
from tests.language.policies import EVERYTHING, damaged
from tests.language.typed import sources


def checked(text: str) -> tuple[list[ir.Policy], list[Diagnostic]]:
    source = Source("a.policy", text)
    return check_files([(parse_file(source)[0], source)], PLUGINS)


# --- reading ---------------------------------------------------------------------------------------------


WHITE = re.compile(f"(?:{patterns()['WHITESPACE']})*")


@given(damaged() | st.text("a1+ \t\r\n\f\v\u00a0\ufeff\"'/#;é", max_size=40))
@settings(max_examples=150)
def test_between_tokens_stands_white_space_or_what_a_finding_tells_of(text: str) -> None:
    cut = tokenise(text, "a.policy")
    told = {at for finding in cut.findings for at in range(finding.span.start, finding.span.end)}
    at = 0
    for token in sorted([*cut.tokens, *cut.comments], key=lambda one: (one.start, one.end)):
        gap = "".join(" " if place in told else text[place] for place in range(at, token.start))
        assert WHITE.fullmatch(gap)
        at = max(at, token.end)
    assert at == len(text) or not cut.complete


@pytest.mark.parametrize("text", ['""" ' + '\\""" ' * 20_000, "'" + "\\'" * 60_000, " \n" * 80_000, "a &" * 60_000])
def test_however_much_is_unreadable_the_text_is_read_once(text: str) -> None:
    cut = tokenise(text, "a.policy")
    assert len(cut.tokens) + len(cut.findings) < 30_200


# --- checking --------------------------------------------------------------------------------------------


def test_a_lookup_behind_very_many_guards_is_found_guarded() -> None:
    chain = " && ".join(["pod.priority > 0"] * 20)
    requires = " ".join([f"require {chain}"] * 100)
    text = f'policy "p" {{ filter "f" when "a" in pod.labels {{ {requires} require pod.labels["a"] == "b" }} }}'
    assert checked(text)[1] == []


def held(value: object, kind: Any) -> list[Any]:
    """The nodes of a kind that stand in the fields of one, those in tuples too."""
    if isinstance(value, kind):
        return [value]
    return [inner for item in value for inner in held(item, kind)] if isinstance(value, tuple) else []


@given(sources("bool"), sources("int"), sources("string"))
@settings(max_examples=60)
def test_the_parts_of_an_expression_are_what_its_fields_hold(truth: str, number: str, text: str) -> None:
    source = f'policy "p" {{ filter "f" {{ require {truth} }} let x = {text} let y = {number} }}'
    policies, found = checked(source)
    assert policies or found
    pending = [expr for policy in policies for expr in expressions_in(policy)]
    while pending:
        expr = pending.pop()
        inner = [one for name in expr.__struct_fields__ for one in held(getattr(expr, name), ir.Expr)]
        # A comprehension's condition comes before its body, whichever field is first.
        assert sorted(map(id, ir_walk.children(expr))) == sorted(map(id, inner))
        pending += inner


def expressions_below(node: Any) -> list[Any]:
    """The expressions that stand in the fields of a node, or in those of its items and entries."""
    found = []
    for name in node.__struct_fields__:
        for one in held(getattr(node, name), syntax.Node):
            found += [one] if isinstance(one, syntax.Expr) else expressions_below(one)
    return found


def test_the_parts_of_what_is_written_are_what_its_fields_hold() -> None:
    file, _ = parse_file(Source("a.policy", EVERYTHING))
    pending = expressions_below(file)
    seen = 0
    while pending:
        expr = pending.pop()
        inner = expressions_below(expr)
        assert sorted(map(id, expression_nodes.children(expr))) == sorted(map(id, inner))
        seen += 1
        pending += inner
    assert seen > 100
