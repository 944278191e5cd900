"""`explain` names for every pod what the scheduler then does, in random worlds."""

from __future__ import annotations

import pytest

from policyengine.diagnosis.forecast import Fate
from tests.fuzz.explained import main, tried

WORLDS = 24


@pytest.mark.parametrize("first", range(0, WORLDS, 4))
def test_the_scheduler_does_what_was_told(first: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["4", str(first)]) == 0, capsys.readouterr().out


def test_the_worlds_have_what_the_forecast_tells_of() -> None:
    found = [tried(seed)[1] for seed in range(12)]
    told = {one.what for each in found for one in each.pods}
    assert told >= {Fate.BOUND, Fate.HELD, Fate.GATED, Fate.UNSCHEDULABLE, Fate.UNSERVED}
    assert any(each.evicted for each in found)
