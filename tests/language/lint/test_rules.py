"""Every rule finds what its file of cases says, on that line, and nothing in the cases that are in order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from policyengine.language.diagnostics import CODES, Severity
from policyengine.language.lint.linter import LINT_CODES
from policyengine.language.lint.rules import RULES
from tests.language.lint.findings import checked_and_linted, marks, places, whole

FOLDER = Path(__file__).parent
FILES = {file.stem: file.read_text(encoding="utf-8") for file in sorted(FOLDER.glob("PE*.md"))}
CASES = [
    pytest.param(code, case, id=f"{code}-{number}")
    for code, text in FILES.items()
    for number, case in enumerate(re.findall(r"^```policy\n(.*?)\n```$", text, re.DOTALL | re.MULTILINE), 1)
]


@pytest.mark.parametrize(("code", "case"), CASES)
def test_a_case(code: str, case: str) -> None:
    text = whole(case)
    wrong, found = checked_and_linted(text)
    assert [finding.message for finding in wrong] == []
    assert places([finding for finding in found if finding.code == code], text) == marks(case)


_CLAIMS = re.compile(
    r"\b(?:never|always|cannot|no node can|nothing here can|none of them|implies|true wherever|the same|"
    r"known beforehand|refused before|lies within|adds at most)\b"
)


@pytest.mark.parametrize("code", [rule.code for rule in RULES])
def test_what_never_or_always_is_comes_with_the_steps_of_its_proof_or_by_definition(code: str) -> None:
    title, page = CODES[code]
    cases = [whole(case.values[1]) for case in CASES if case.values[0] == code]
    found = [one for text in cases for one in checked_and_linted(text)[1] if one.code == code]
    claiming = [one for one in found if _CLAIMS.search(f"{title}; {one.message}")]
    if claiming and "By definition: " not in page:
        assert "How it is known: " in page, claiming[0].message
        assert [one.message for one in claiming if not one.steps] == []
    assert all(step.label for one in found for step in one.steps)


def test_every_rule_has_cases_of_both_outcomes_and_a_page() -> None:
    assert FILES.keys() == LINT_CODES
    for code, text in FILES.items():
        found, clean = text.split("\n## Not found\n")
        assert f"// ^ {code}" in found
        assert "// ^" not in clean
        title, page = CODES[code]
        assert text.startswith(f"# {code}: {title}\n")
        assert len(page) > 80


def test_every_code_has_one_rule_that_keeps_no_policy_from_loading() -> None:
    codes = [rule.code for rule in RULES]
    assert len(set(codes)) == len(codes) >= 35
    assert codes == sorted(codes)
    assert all(rule.severity is not Severity.ERROR for rule in RULES)
