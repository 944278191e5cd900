"""`lint --fix` changes no decision of a generated text and loses no comment; edits that do are found out."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyengine.language import parse
from policyengine.language.lint import linter
from tests.fuzz.fixes import main, wrongs


@pytest.mark.parametrize("first", range(0, 30, 15))
def test_a_fixed_text_decides_the_same_and_has_its_comments(first: int, tmp_path: Path) -> None:
    assert [line for seed in range(first, first + 15) for line in wrongs(seed, tmp_path)] == []


def test_edits_that_lose_comments_are_found_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in (parse, linter):
        monkeypatch.setattr(module, "keeping_comments", lambda source, fix: fix)
    assert main(["6", "0"]) == 1
    assert "lost // c" in capsys.readouterr().out
