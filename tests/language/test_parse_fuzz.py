"""No text makes the front end raise, whatever it is."""

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from policyengine.language.diagnostics import CODES, Source, render, to_json
from policyengine.language.format import format_source
from policyengine.language.parse import SourceError, decode_source, parse_file
from policyengine.language.parsing.member_parser import parse_expression
from tests.language.policies import BITS, EVERYTHING, damaged


def survives(text: str) -> None:
    source = Source("a.policy", text)
    _, findings = parse_file(source)
    assert len(findings) <= 101
    for found in findings:
        assert found.code in CODES
        assert 0 <= found.span.start <= found.span.end <= len(text)
        assert "\n" not in found.message
        assert len(found.message) < 500
    assert render(findings, source).count("error[PE") == len(findings)
    assert len([to_json(found, source) for found in findings]) == len(findings)
    _, kept = format_source(source)
    assert kept == findings


@given(damaged())
@settings(max_examples=80)
def test_a_damaged_policy_gives_findings_only(text: str) -> None:
    survives(text)


@given(st.text(max_size=200))
@example("\r")
@example('policy "\\')
@example("policy\n{\n}")
@settings(max_examples=150)
def test_any_text_gives_findings_only(text: str) -> None:
    survives(text)
    parse_expression(text)


@given(st.lists(BITS, max_size=25).map("".join))
@settings(max_examples=150)
def test_any_row_of_signs_gives_findings_only(text: str) -> None:
    survives(f'policy "p" {{ {text} }}')
    parse_expression(text)


@given(st.binary(max_size=100))
def test_any_bytes_are_text_or_refused(raw: bytes) -> None:
    try:
        survives(decode_source(raw, "a.policy").text)
    except SourceError as error:
        assert "\n" not in str(error)


def test_the_policy_the_damage_is_done_to_is_right() -> None:
    assert parse_file(Source("a.policy", EVERYTHING))[1] == []


LARGE = {
    "a sum": 'policy "x" { let a = ' + "1+" * 500_000 + "1 }",
    "a list": 'policy "x" { let a = [' + "1," * 14_000 + "] }",
    "members": 'policy "x" {\n' + "let a = 1\n" * 7_000 + "}",
    "unknown members": 'policy "x" {\n' + "lett a\n" * 9_000 + "}",
    "brackets": 'policy "x" {' + "[(" * 6_000 + ")]" * 6_000,
    "strings left open": 'policy "x" {\n' + 'let a = "x\n' * 50_000 + "}",
    "strings of three quotes": '\n"""' + "\nlet a = '''\n" * 50_000,
    "comments": "#\n" * 500_000,
    "digits": 'policy "x" { let a = ' + "1" * 500_000 + "." + "2" * 400_000 + "x",
    "one name": "a" * 1_000_000,
    "signs": "-" * 25_000 + "1",
    "conditions": 'policy "x" { let a = ' + "a?b:" * 6_000 + "c}",
    "expressions in a message": 'policy "x" { filter "a" { require a else "' + "{a}" * 3_300 + '"}}',
    "messages": 'policy "x" { filter "a" {' + "require a else '{a} {b} {c}'\n" * 7_000 + "}}",
    "strange letters": "é " * 500_000,
    "braces": "}" * 1_000_000,
}


@pytest.mark.parametrize("name", LARGE)
def test_a_large_text_is_read_or_refused_in_good_time(name: str) -> None:
    text = LARGE[name][: 1024 * 1024]
    start = time.process_time()
    _, findings = parse_file(Source("a.policy", text))
    # A guard against a cost that grows with the square of the length: those take minutes, these take 0.1 to 0.5 s.
    assert time.process_time() - start < 10
    assert len(findings) <= 101
