"""`explain` names for every pod what the scheduler then does, in random worlds."""

from __future__ import annotations

import pytest

from policyengine.diagnosis.forecast import Fate
from tests.fuzz.explained import main, tried

WORLDS = 24


@pytest.mark.parametrize("first", range(12, WORLDS, 4))
def test_the_scheduler_does_what_was_told(first: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["4", str(first)]) == 0, capsys.readouterr().out


def test_the_first_worlds_are_as_told_and_have_what_a_forecast_tells_of() -> None:
    found = [tried(seed) for seed in range(12)]
    assert [line for lines, _ in found for line in lines] == []
    told = {what for _, counts in found for what, number in counts.items() if number}
    assert told >= {fate.value for fate in (Fate.BOUND, Fate.HELD, Fate.GATED, Fate.UNSCHEDULABLE, Fate.UNSERVED)}
    assert "victims" in told
