import pytest
from hypothesis import given
from hypothesis import strategies as st

import policyengine.language.syntax_codes  # noqa: F401  (registers codes)
from policyengine.language.diagnostics import (
    CODES,
    Diagnostic,
    Edit,
    Fix,
    Related,
    Severity,
    Source,
    in_order,
    register,
    render,
    to_json,
)
from policyengine.language.syntax import Span


def finding(start: int, end: int, message: str = "wrong", **more: object) -> Diagnostic:
    return Diagnostic("PE0101", Severity.ERROR, message, "a.policy", Span(start, end), **more)  # type: ignore[arg-type]


def shown(text: str, *findings: Diagnostic) -> list[str]:
    return render(findings, Source("a.policy", text)).splitlines()


def test_a_finding_shows_its_line_with_carets_below() -> None:
    assert shown("let a = b\nlet c = d e\n", finding(20, 21)) == [
        "error[PE0101]: wrong",
        " --> a.policy:2:11",
        "  |",
        "2 | let c = d e",
        "  |           ^",
    ]


def test_a_fix_is_shown_as_help_and_a_related_place_with_its_label() -> None:
    fix, related = Fix("write `)`", (Edit(Span(4, 5), ")"),)), (Related(Span(0, 1), "opened here"),)
    assert shown("(a +]", finding(4, 5, fix=fix, related=related))[-3:] == [
        "1 | (a +]",
        "  | - opened here",
        "  = help: write `)`",
    ]


def test_a_span_over_lines_marks_each_and_skips_the_middle_of_many() -> None:
    assert shown("ab {\n  c\n}", finding(3, 10))[3:] == ["1 | ab {", "  |    ^", "2 |   c", "  |   ^", "3 | }", "  | ^"]
    assert shown("a\nb\nc\nd\ne\nf", finding(0, 11))[3:] == ["1 | a", "  | ^", "...", "6 | f", "  | ^"]


@pytest.mark.parametrize(
    ("text", "at", "line", "marks"),
    [
        ("\ta = b", 3, "    a = b", "      ^"),
        ("日本 = b", 3, "日本 = b", "     ^"),
        ("e\u0301 = b", 3, "e\u0301 = b", "  ^"),
        ("a\x1b[31m = b", 7, "a�[31m = b", "       ^"),
        ("a\u202e = b", 3, "a� = b", "   ^"),
    ],
)
def test_the_caret_stands_below_what_the_terminal_shows(text: str, at: int, line: str, marks: str) -> None:
    rows = shown(text, finding(at, at + 1))
    assert rows[-2:] == [f"1 | {line}", f"  | {marks}"]


def test_a_long_line_is_cut_around_the_finding() -> None:
    rows = shown("a" * 5000 + "!" + "b" * 5000, finding(5000, 5001))
    assert rows[-2] == "1 | …" + "a" * 40 + "!" + "b" * 79 + "…"
    assert rows[-1] == "  |  " + " " * 40 + "^"


def test_the_end_of_the_text_can_be_pointed_at() -> None:
    assert shown("a", finding(1, 1))[-2:] == ["1 | a", "  |  ^"]
    assert shown("", finding(0, 0))[-2:] == ["1 |", "  | ^"]


def test_colours_come_only_when_asked_for() -> None:
    source = Source("a.policy", "a b")
    assert "\x1b" not in render([finding(0, 1)], source)
    assert "\x1b[1;31m^\x1b[0m" in render([finding(0, 1)], source, color=True)


def test_the_users_text_in_a_message_cannot_act_on_the_terminal() -> None:
    assert shown("a", finding(0, 1, "found `\x1b[2J\n`"))[0] == "error[PE0101]: found `�[2J�`"


def test_findings_are_sorted_by_place_and_shown_once() -> None:
    late, early = finding(3, 4), finding(1, 2)
    assert in_order([late, early, late]) == [early, late]


def test_the_json_is_that_of_lints_contract() -> None:
    source = Source("a.policy", "let a\nlet b")
    fix = Fix("write `x`", (Edit(Span(6, 9), "x"),))
    assert to_json(finding(6, 9, fix=fix), source) == {
        "code": "PE0101",
        "severity": "error",
        "file": "a.policy",
        "line": 2,
        "column": 1,
        "endLine": 2,
        "endColumn": 4,
        "message": "wrong",
        "fix": {
            "message": "write `x`",
            "edits": [{"line": 2, "column": 1, "endLine": 2, "endColumn": 4, "text": "x"}],
        },
    }
    assert "fix" not in to_json(finding(0, 1), source)


def test_a_code_has_one_meaning() -> None:
    code, meaning = next(iter(CODES.items()))
    register({code: meaning})
    with pytest.raises(ValueError, match=f"`{code}` is registered twice"):
        register({code: ("another", "meaning")})


@given(st.text(), st.integers(0, 300))
def test_line_and_column_lead_back_to_the_offset(text: str, at: int) -> None:
    source = Source("", text)
    offset = min(at, len(text))
    line, column = source.line_column(at)
    assert source.line_start(line) + column - 1 == offset
    assert "\n" not in source.line(line)


@given(st.text(), st.integers(0, 50), st.integers(0, 50))
def test_any_span_of_any_text_can_be_rendered(text: str, start: int, length: int) -> None:
    rows = shown(text, finding(start, start + length))
    assert any("^" in row for row in rows)
