"""Forecasts of a day's samples, against numbers worked out by hand; and what is said where the library is missing."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from policyengine.commands.annotate import annotate
from policyengine.server.annotator.forecasting import DAY, STEP, Forecaster, ForecastUnusable, evened
from policyengine.server.annotator.measurement import Sample
from policyengine.simulator.sandbox import kubeconfig, write_kubeconfig

AHEAD = 600.0


def samples(*values: float) -> list[Sample]:
    return [(number * STEP, value) for number, value in enumerate(values)]


def forecast(*values: float) -> float | None:
    pytest.importorskip("statsmodels")
    return Forecaster(AHEAD).of("cpu a", samples(*values))


def season(number: float) -> float:
    """Free millicores, that fall and rise by 800 about 4,000 in a day."""
    return 4000.0 + 800.0 * math.sin(2 * math.pi * number * STEP / DAY)


def test_of_a_day_the_season_goes_on() -> None:
    count = round(DAY / STEP)
    found = forecast(*(season(number) for number in range(count)))
    # Two steps after the last one, which was step 287: as at step 1.
    assert found == pytest.approx(season(count + 1), abs=0.01)


def test_a_trend_is_followed_within_what_was_seen() -> None:
    # 5,000 less 3 a step and the season: two steps ahead it is 5,000 - 3 · 289 + 800 · sin(2π · 289 / 288).
    found = forecast(*(season(number) + 1000.0 - 3.0 * number for number in range(288)))
    assert found == pytest.approx(season(289) + 1000.0 - 3.0 * 289, abs=0.01)


@pytest.mark.parametrize(("slope", "expected"), [(-100.0, 5000.0 - 100.0 * 19), (100.0, 5000.0 + 100.0 * 19)])
def test_it_never_goes_below_or_above_what_the_samples_saw(slope: float, expected: float) -> None:
    assert forecast(*(5000.0 + slope * number for number in range(20))) == expected


def test_what_never_varies_stays() -> None:
    assert forecast(*[3000.0] * 30) == 3000.0


def test_less_than_an_hour_forecasts_nothing() -> None:
    assert forecast(*[3000.0, 2000.0] * 5) is None
    assert forecast() is None
    assert forecast(*[math.nan] * 50) is None


def test_a_forecast_is_made_anew_when_half_of_the_time_ahead_has_gone() -> None:
    pytest.importorskip("statsmodels")
    forecaster = Forecaster(4 * STEP)
    first = forecaster.of("cpu a", samples(*range(3000, 2980, -1)))
    assert forecaster.of("cpu a", samples(*range(3000, 2979, -1))) == first
    assert forecaster.of("cpu a", samples(*range(3000, 2978, -1))) != first
    assert forecaster.of("memory a", samples(*[7.0] * 20)) == 7.0


def test_samples_are_averaged_by_steps_and_gaps_are_bridged() -> None:
    given = [(0.0, 1.0), (STEP - 1, 3.0), (3 * STEP - 1, 8.0), (3 * STEP, math.nan)]
    # Steps end with the last finite sample: 2 · STEP - 1 < at of 8 only; between 2 and 8 lies 5.
    assert evened(given).tolist() == [2.0, 5.0, 8.0]


def test_without_the_library_there_is_one_plain_message(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("statsmodels", "statsmodels.tsa"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ForecastUnusable, match=r"pip install 'policyengine-scheduler\[forecast\]'"):
        Forecaster(AHEAD)
    write_kubeconfig(tmp_path / "config", kubeconfig("http://127.0.0.1:9"))
    asked = ["--metrics-server", "--forecast", "10m", "--once", "--kubeconfig", str(tmp_path / "config")]
    result = CliRunner().invoke(annotate, asked)
    assert result.exit_code == 2
    assert "--forecast: a forecast needs statsmodels" in result.output
