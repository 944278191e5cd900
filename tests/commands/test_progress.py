"""The line that tells how far something is: after two seconds, on a terminal, and nowhere else."""

from __future__ import annotations

import os
import pty
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from policyengine.commands import progress as progress_module
from policyengine.commands.main import cli
from policyengine.commands.progress import AFTER, progress
from tests.commands.process import ROOT, policyengine

TESTED = ROOT / "policies" / "riya.policy"
SCENARIO = "nodes: [{name: n, allocatable: {cpu: 4}}]\npods: [{name: web, count: 2, requests: {cpu: 1}, runs: 5min}]\n"


class Timer:
    """Stands in for `threading.Timer`: its time comes when a test says so, or as soon as it is started."""

    made: list[Timer]
    at_once = False

    def __init__(self, seconds: float, act: Callable[[], None]) -> None:
        self.seconds, self.act, self.daemon, self.is_cancelled = seconds, act, False, False
        type(self).made.append(self)

    def start(self) -> None:
        if self.at_once:
            self.act()

    def cancel(self) -> None:
        self.is_cancelled = True


@pytest.fixture
def timer(monkeypatch: pytest.MonkeyPatch) -> type[Timer]:
    Timer.made, Timer.at_once = [], False
    monkeypatch.setattr(progress_module, "Timer", Timer)
    return Timer


class Screen:
    """A terminal, as standard error; what was written on it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._ours, theirs = pty.openpty()
        self.file = os.fdopen(theirs, "w", encoding="utf-8")
        self._read = b""
        self._reader = threading.Thread(target=self._follow, daemon=True)
        self._reader.start()
        monkeypatch.setattr(sys, "stderr", self.file)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "100")

    def _follow(self) -> None:
        while True:
            try:
                found = os.read(self._ours, 4096)
            except OSError:  # the other side has been closed
                return
            if not found:
                return
            self._read += found

    def end(self) -> str:
        """Close it: everything that was written."""
        self.file.close()
        self._reader.join(60)
        os.close(self._ours)
        return self._read.decode()


def test_nothing_is_shown_of_what_is_done_within_two_seconds(
    timer: type[Timer], monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Screen(monkeypatch)
    with progress("counting") as told:
        told(0.5)
    (made,) = timer.made
    assert (made.seconds, made.is_cancelled) == (AFTER, True)
    made.act()  # its time had come as the block ended
    assert screen.end() == ""


def test_after_two_seconds_it_is_said_what_is_done_and_how_far_it_is(
    timer: type[Timer], monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Screen(monkeypatch)
    with progress("counting") as told:
        timer.made[0].act()
        told(0.5)
    shown = screen.end()
    assert "counting" in shown
    assert " 50%" in shown
    assert shown.endswith("\x1b[2K")  # the line is wiped


def test_what_fails_leaves_no_line_and_its_error(timer: type[Timer], monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(monkeypatch)
    with pytest.raises(ZeroDivisionError), progress("counting"):
        timer.made[0].act()
        raise ZeroDivisionError
    assert screen.end().endswith("\x1b[2K")


def test_a_pipe_is_told_nothing_and_starts_no_timer(timer: type[Timer], capsys: pytest.CaptureFixture[str]) -> None:
    with progress("counting") as told:
        told(0.5)
    assert timer.made == []
    assert capsys.readouterr().err == ""


def shares(monkeypatch: pytest.MonkeyPatch, module: str) -> list[float]:
    """What a command tells of how far it is."""
    told: list[float] = []

    class Listened:
        def __init__(self, what: str) -> None:
            pass

        def __enter__(self) -> Callable[[float], None]:
            return told.append

        def __exit__(self, *error: object) -> None:
            pass

    monkeypatch.setattr(f"policyengine.commands.{module}.progress", Listened)
    return told


@pytest.mark.parametrize("more", [(), ("--mutate", "--mutants", "7"), ("--coverage",)], ids=["", "mutate", "coverage"])
def test_test_tells_how_far_it_is_from_test_to_test_and_change_to_change(
    monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    told = shares(monkeypatch, "testing.execution")
    assert policyengine("test", *more, TESTED, ROOT / "policies" / "spread-cpu.policy").code == 0
    assert told == sorted(told)
    assert len(set(told)) > 5
    assert 0 < told[0] < told[-1] <= 1


def test_simulate_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "day.yaml").write_text(SCENARIO, encoding="utf-8")
    told = shares(monkeypatch, "simulate")
    assert policyengine("simulate", tmp_path / "day.yaml").code == 0
    assert told == sorted(told)
    assert told[-1] == 1


@pytest.mark.parametrize("command", ["test", "simulate"])
def test_a_command_that_takes_long_shows_it_on_a_terminal(
    command: str, timer: type[Timer], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "day.yaml").write_text(SCENARIO, encoding="utf-8")
    screen, timer.at_once = Screen(monkeypatch), True
    path = TESTED if command == "test" else tmp_path / "day.yaml"
    with pytest.raises(SystemExit):
        cli.main([command, str(path), "-o", "json"], standalone_mode=False)
    assert {"test": "running tests", "simulate": "simulating"}[command] in screen.end()
