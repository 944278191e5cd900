"""Mean, deviation and forecast of samples."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyengine.server.annotator.source import statistics_of

finite = st.floats(-1e12, 1e12)


def test_the_forecast_leans_to_what_happened_last() -> None:
    found = statistics_of([(0.0, 0.0), (60.0, 8.0)], half_life=60.0)
    assert found is not None
    # Weights 1/2 and 1.
    assert (found.mean, found.deviation, found.forecast) == (4.0, 4.0, pytest.approx(16 / 3))
    assert (found.last, found.at) == (8.0, 60.0)


def test_what_is_not_a_number_is_no_sample() -> None:
    found = statistics_of([(0.0, 2.0), (1.0, math.nan), (2.0, math.inf), (3.0, 4.0), (4.0, -math.inf)], 60.0)
    assert found is not None and (found.mean, found.at) == (3.0, 3.0)
    assert statistics_of([(0.0, math.nan)], 60.0) is None and statistics_of([], 60.0) is None


@given(st.lists(finite, min_size=1, max_size=50), st.floats(1, 1e4))
def test_they_are_those_of_the_library_and_within_the_samples(values: list[float], half_life: float) -> None:
    found = statistics_of([(30.0 * number, value) for number, value in enumerate(values)], half_life)
    assert found is not None
    room = 1e-9 * max(1.0, *map(abs, values))
    assert found.mean == pytest.approx(statistics.fmean(values), abs=room)
    assert found.deviation == pytest.approx(statistics.pstdev(values), rel=1e-6, abs=room)
    assert min(values) - room <= found.forecast <= max(values) + room
