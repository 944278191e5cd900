"""The fuzzer is told what to fuzz, and says in a line where it cannot."""

from __future__ import annotations

import importlib.util

import pytest

from tests.fuzz.guided import MODULES, in_time, main


def test_without_atheris_it_says_so_in_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["webhook"]) == 0
    assert capsys.readouterr().out == "skipped: atheris is not installed (pip install atheris)\n"


@pytest.mark.parametrize("arguments", [[], ["everything"]])
def test_a_target_that_is_none_is_told_which_there_are(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().out == f"say which target: {', '.join(MODULES)}\n"


def test_an_input_that_takes_too_long_is_a_find(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter((0.0, 1.5))
    monkeypatch.setattr("time.process_time", lambda: next(moments))
    with pytest.raises(AssertionError, match=r"2 bytes took 1\.5 s of CPU time"):
        in_time(lambda raw: None, b"ab")
