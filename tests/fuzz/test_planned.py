"""The plan of a recording is what a whole cluster then does, in random days."""

from __future__ import annotations

import pytest

from tests.fuzz.planned import main, tried

DAYS = 24


@pytest.mark.parametrize("first", range(0, DAYS, 4))
def test_a_plan_says_what_the_cluster_then_does(first: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["4", str(first)]) == 0, capsys.readouterr().out


def test_most_of_what_happens_is_compared() -> None:
    found = [tried(seed) for seed in range(8)]
    assert sum(compared for _, compared, _ in found) > 30
    assert any(is_whole for _, _, is_whole in found)
