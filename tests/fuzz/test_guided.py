"""What is fuzzed takes or refuses whole and damaged inputs; the fuzzer says in a line where it cannot run."""

from __future__ import annotations

import importlib.util
from importlib import import_module
from pathlib import Path

import pytest

from tests.fuzz.guided import MODULES, in_time, main
from tests.fuzz.listeners import LISTENERS
from tests.fuzz.readers import READERS

DAMAGED = {"front-end": 60} | dict.fromkeys(READERS, 88) | dict.fromkeys(LISTENERS, 40)
"""Target -> how many damaged inputs it is given."""


@pytest.mark.parametrize("name", DAMAGED)
def test_whole_inputs_are_taken_and_damaged_ones_taken_or_refused(name: str) -> None:
    with import_module(f"tests.fuzz.{MODULES[name]}").target(name) as target:
        assert target.damage is not None
        for seed in target.seeds:
            target.take(seed)
        for number in range(DAMAGED[name]):
            in_time(target.take, target.damage(target.seeds[number % len(target.seeds)], number))


def test_every_target_is_fuzzed() -> None:
    assert MODULES.keys() == DAMAGED.keys()


@pytest.mark.parametrize("reader", READERS)
def test_what_a_reader_starts_from_is_no_refusal(reader: str, tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(READERS[reader][1])
    READERS[reader][0](path)


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
