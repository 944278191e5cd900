"""Cost against size: the exponent is what it says, and each point is a process that is given up in time."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import scale as measured
from benchmarks.scale import ScaleFigures, exponent, scale
from tests.benchmarks.results import point


@given(st.floats(0.1, 1e4), st.floats(-1, 3), st.lists(st.integers(1, 200_000), min_size=2, max_size=8, unique=True))
def test_the_exponent_of_a_power_is_that_power(factor: float, power: float, sizes: list[int]) -> None:
    assert math.isclose(exponent(sizes, [factor * size**power for size in sizes]), power, abs_tol=1e-6)


def test_one_size_has_no_exponent() -> None:
    assert exponent([1_000], [5.0]) == exponent([1_000, 1_000], [5.0, 6.0]) == 0.0


def test_each_kind_of_decision_grows_with_its_own_power() -> None:
    points = tuple(point(n, 10_000, 0.2 * n) for n in (1_000, 5_000, 100_000))
    found = ScaleFigures(points, (), ()).exponents
    assert math.isclose(found["different pods against nodes"], 1.0)
    assert math.isclose(found["identical pods against nodes"], 0.0, abs_tol=1e-9)
    assert found["different pods against pods"] == 0.0


async def test_every_point_is_measured_in_a_process_of_its_own() -> None:
    told: list[str] = []
    figures = await scale((30, 60), (90,), told.append, beside=(50, 40), seconds=0.2)
    assert [(one.nodes, one.pods) for one in figures.by_nodes] == [(30, 50), (60, 50)]
    assert [(one.nodes, one.pods) for one in figures.by_pods] == [(40, 90)]
    assert figures.given_up == () and len(told) == 3
    for one in (*figures.by_nodes, *figures.by_pods):
        assert one.different_us > 0 and one.identical_us > 0 and one.peak_mb > 10


async def test_a_point_that_takes_too_long_is_given_up_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "POINT_SECONDS", 0.01)
    figures = await scale((30,), (), beside=(50, 40))
    assert figures.by_nodes == ()
    (told,) = figures.given_up
    assert told.startswith("30 nodes, 50 pods: it says nothing for 0.01 s")
