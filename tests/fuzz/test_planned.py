"""The plan of a recording is what a whole cluster then does, in random days."""

from __future__ import annotations

import pytest

from tests.fuzz.planned import main, tried

DAYS = 24


@pytest.mark.parametrize("first", range(8, DAYS, 4))
def test_a_plan_says_what_the_cluster_then_does(first: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["4", str(first)]) == 0, capsys.readouterr().out


def test_the_first_days_are_as_planned_and_mostly_compared() -> None:
    found = [tried(seed) for seed in range(8)]
    assert [line for lines, _ in found for line in lines] == []
    assert sum(counts["pods compared"] for _, counts in found) > 30
    assert any(not counts["days in part"] for _, counts in found)
