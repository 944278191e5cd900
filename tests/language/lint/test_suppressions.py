"""Comments allow findings for a reason, in the place they are about, and are findings where they do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyengine.language.diagnostics import Diagnostic, Severity, in_order
from policyengine.language.lint import suppressions
from policyengine.language.lint.lint_settings import Settings
from policyengine.language.lint.suppressions import Suppression
from policyengine.language.syntax import Span
from tests.language.lint.findings import checked_and_linted, opinions, places

WHY = "because dashboards use the name"


def codes(text: str, settings: Settings | None = None) -> list[str]:
    return sorted(finding.code for finding in opinions(text, settings))


def policy(comment: str, inside: str = "") -> str:
    return f'policy "p" {{\n  {comment}\n  filter "F" {{{inside}\n    require node.ready\n  }}\n}}\n'


def test_a_comment_above_a_member_is_about_all_of_it() -> None:
    assert codes(policy("")) == ["PE3504", "PE3506", "PE3801"]
    assert codes(policy(f"// lint: allow PE3504, PE3506 {WHY}")) == ["PE3801"]


def test_a_comment_behind_code_is_about_its_line() -> None:
    assert codes(policy("", f" // lint: allow PE3504 {WHY}")) == ["PE3506", "PE3801"]
    assert codes(policy("", f" // lint: allow PE3506 {WHY}")) == ["PE3504", "PE3506", "PE3801", "PE3902"]


def test_a_comment_above_a_policy_is_about_all_of_it() -> None:
    assert codes(f"# lint: allow PE3801,PE3504 , PE3506 {WHY}\n" + policy("")) == []


def test_other_comments_and_docs_may_stand_between() -> None:
    assert codes(policy(f"// lint: allow PE3504, PE3506 {WHY}\n  // and so on\n  /// What it is.")) == ["PE3801"]


@pytest.mark.parametrize("comment", ["// lint: allow PE3504", "// lint: allow PE3504 because", "// lint: off"])
def test_without_a_reason_nothing_is_allowed(comment: str) -> None:
    assert codes(policy(comment)) == ["PE3504", "PE3506", "PE3801", "PE3901"]


def test_a_comment_in_a_string_is_none() -> None:
    text = 'policy "p" {\n  filter "f" { require node.name != "// lint: allow PE3517 because" else "" }\n}\n'
    assert "PE3901" not in codes(text)


def test_of_several_codes_the_unused_ones_are_named_and_the_comment_stays() -> None:
    text = policy(f"// lint: allow PE3504, PE3001 {WHY}")
    (unused,) = (finding for finding in opinions(text) if finding.code == "PE3902")
    assert "`PE3001`" in unused.message
    assert "`PE3504`" not in unused.message
    assert unused.fix is None
    assert places([unused], text) == [(2, "PE3902")]


def test_an_unused_comment_is_removed_with_its_line_by_the_fix() -> None:
    text = policy(f"// lint: allow PE3001 {WHY}")
    (unused,) = (finding for finding in opinions(text) if finding.code == "PE3902")
    assert unused.fix is not None
    assert unused.fix.safe
    (edit,) = unused.fix.edits
    assert text[: edit.span.start] + text[edit.span.end :] == policy("").replace("\n  \n", "\n")


def test_a_comment_about_what_is_switched_off_is_not_called_unused() -> None:
    off = Settings(ignored=frozenset({"PE3504"}))
    assert codes(policy(f"// lint: allow PE3504 {WHY}"), off) == ["PE3506", "PE3801"]


def test_in_a_text_with_errors_no_comment_is_called_unused() -> None:
    wrong, found = checked_and_linted(policy(f"// lint: allow PE3504 {WHY}", " require nope"))
    assert wrong
    assert found == []


# --- many of both ----------------------------------------------------------------------------------------

PLACES = st.tuples(st.integers(0, 30), st.integers(1, 12)).map(lambda place: Span(place[0], place[0] + place[1]))
CODES_ALLOWED = st.sampled_from(["PE3001", "PE3504", "PE3506"])


@given(
    st.lists(st.tuples(CODES_ALLOWED, PLACES), max_size=12),
    st.lists(st.tuples(st.sets(CODES_ALLOWED, min_size=1), PLACES), max_size=12),
)
def test_one_sweep_finds_what_holding_every_finding_against_every_comment_finds(
    found: list[tuple[str, Span]], written: list[tuple[set[str], Span]]
) -> None:
    findings = [Diagnostic(code, Severity.WARNING, f"{n}", "a.policy", span) for n, (code, span) in enumerate(found)]
    comments = [Suppression(tuple(codes), Span(0, 0), about) for codes, about in written]
    used: set[tuple[Span, str]] = set()
    left = list(suppressions._not_allowed(findings, comments, used))

    def allows(comment: Suppression, finding: Diagnostic) -> bool:
        return finding.code in comment.codes and comment.about.start <= finding.span.start < comment.about.end

    assert in_order(left) == in_order(one for one in findings if not any(allows(c, one) for c in comments))
    assert used == {(c.about, one.code) for c in comments for one in findings if allows(c, one)}
