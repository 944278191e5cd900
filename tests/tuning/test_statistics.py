from random import Random

import pytest

from policyengine.tuning.objective import interval, student


@pytest.mark.parametrize(
    ("freedom", "value"), [(1, 12.7062), (2, 4.3027), (4, 2.7764), (9, 2.2622), (30, 2.0423), (120, 1.9799)]
)
def test_students_value_is_that_of_the_printed_tables(freedom: int, value: float) -> None:
    assert student(freedom) == pytest.approx(value, abs=5e-5)


def test_the_interval_of_one_two_three_is_worked_out_by_hand() -> None:
    found = interval([1.0, 2.0, 3.0])
    assert found is not None
    assert tuple(found) == pytest.approx((2.0, 2.0 - 4.3027 / 3**0.5, 2.0 + 4.3027 / 3**0.5), abs=1e-4)
    assert not found.excludes_zero


def test_one_value_has_no_interval_and_equal_ones_have_one_of_no_width() -> None:
    assert interval([]) is None
    assert interval([4.0]) is None
    assert interval([4.0, 4.0]) == (4.0, 4.0, 4.0)


def test_ninety_five_of_a_hundred_intervals_hold_the_mean() -> None:
    random = Random(1)
    drawn = [interval([random.gauss(5.0, 2.0) for _ in range(6)]) for _ in range(2_000)]
    assert 0.935 < sum(one is not None and one.low <= 5.0 <= one.high for one in drawn) / 2_000 < 0.965
