"""Work in a process beside this one."""

from __future__ import annotations

import os
import signal

import pytest

from policyengine.commands import beside as module
from policyengine.commands.beside import beside
from policyengine.commands.options import UnusableInput


@pytest.fixture(params=[True, False], ids=["beside", "here"])
def forks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    found: bool = request.param
    monkeypatch.setattr(module, "_can_fork", lambda: found)
    return found


def test_the_result_comes_from_another_process_where_there_is_one(forks: bool) -> None:
    with beside(lambda: ({"a": [1.5]}, os.getpid())) as result:
        found, process = result()
    assert found == {"a": [1.5]}
    assert (process != os.getpid()) is forks


def test_what_the_work_raises_is_raised(forks: bool) -> None:
    def fails() -> None:
        raise UnusableInput("not so")

    with beside(fails) as result, pytest.raises(UnusableInput, match="not so"):
        result()


def test_what_is_not_worth_a_process_is_done_here() -> None:
    with beside(os.getpid, is_worth_it=False) as result:
        assert result() == os.getpid()


def test_a_process_that_is_killed_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_can_fork", lambda: True)
    with (
        beside(lambda: os.kill(os.getpid(), signal.SIGKILL)) as result,
        pytest.raises(UnusableInput, match="was killed; is memory short"),
    ):
        result()


def test_a_block_that_fails_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_can_fork", lambda: True)
    with pytest.raises(KeyboardInterrupt), beside(signal.pause):
        raise KeyboardInterrupt
