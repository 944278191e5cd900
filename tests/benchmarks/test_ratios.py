"""The small fixed workload of every build, and instructions counted by valgrind."""

import shutil

import pytest

from benchmarks import instructions as counting
from benchmarks.instructions import NotCounted, instructions
from benchmarks.instructions_process import PIECES, pod_events, ten_operators
from benchmarks.ratios import KINDS, ratios


def test_every_peer_workload_is_told_in_units_of_work_done_beside_it() -> None:
    figures = ratios(nodes=20, pods=10)
    assert set(figures.yardsticks) == set(figures.events) == {f"peer-{kind}" for kind in KINDS}
    assert all(value > 0 for value in figures.ratios.values()) and len(figures.ratios) == 2 * len(KINDS)
    assert figures.checks == 10 * len(KINDS)


def test_where_valgrind_is_missing_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(NotCounted, match="`valgrind` is not installed"):
        instructions()


@pytest.mark.parametrize("name", PIECES)
def test_every_piece_can_be_done_and_is_as_many_as_it_says(name: str) -> None:
    work, times = PIECES[name]()
    work()
    assert times >= 1


def test_a_piece_does_all_it_counts() -> None:
    work, times = pod_events()
    assert isinstance(done := work(), list) and len(done) == times
    work, times = ten_operators()
    assert isinstance(done := work(), list) and len(done) == times


@pytest.mark.skipif(
    any(shutil.which(name) is None for name in counting.PROGRAMS), reason="valgrind is not installed here"
)
def test_a_piece_is_counted_without_start_up_and_imports() -> None:
    figures = instructions(["a pod taken in"])
    assert list(figures.thousands) == ["a pod taken in"]
    assert 1 < figures.thousands["a pod taken in"] < 10_000  # starting takes more than a million
    assert figures.ratios == {"thousand instructions, a pod taken in": figures.thousands["a pod taken in"]}
