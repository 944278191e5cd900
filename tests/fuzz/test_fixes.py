"""`lint --fix` changes no decision of a generated text and loses no comment; edits that do are found out."""

from __future__ import annotations

import pytest

from policyengine.language import parse
from policyengine.language.lint import linter
from tests.fuzz.fixes import main


@pytest.mark.parametrize("first", range(0, 30, 15))
def test_a_fixed_text_decides_the_same_and_has_its_comments(first: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["15", str(first)]) == 0, capsys.readouterr().out


def test_edits_that_lose_comments_are_found_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in (parse, linter):
        monkeypatch.setattr(module, "keeping_comments", lambda source, fix: fix)
    assert main(["6", "0"]) == 1
    assert "lost // c" in capsys.readouterr().out
