"""What is experienced decays, and is a mean from 0 to 1."""

from hypothesis import given
from hypothesis import strategies as st

from policyengine.server.rewards.evidence import Mean, reward, speed

values = st.lists(st.tuples(st.floats(0, 1e5), st.floats(0, 1)), max_size=20)


def test_a_result_weighs_half_after_each_half_life() -> None:
    one = Mean(0.0).with_(1.0, 0.0, 100.0)
    assert [one.on(now, 100.0).weight for now in (0.0, 100.0, 200.0)] == [1.0, 0.5, 0.25]
    assert one.on(200.0, 100.0).value == 1.0


def test_little_evidence_moves_the_reward_little_and_much_moves_it_far() -> None:
    assert reward(Mean(0.0), 0.5) == 0.5
    bad = Mean(0.0)
    seen = []
    for _ in range(4):
        bad = bad.with_(0.0, 0.0, 100.0)
        seen.append(round(reward(bad, 0.5), 3))
    assert seen == [0.25, 0.167, 0.125, 0.1]
    assert round(reward(bad.on(1000.0, 100.0), 0.5), 3) == 0.498


def test_a_slow_run_is_worth_less_and_a_fast_one_no_more_than_1() -> None:
    assert (speed(10.0, 20.0), speed(20.0, 20.0), speed(40.0, 20.0)) == (1.0, 1.0, 0.5)


def test_a_clock_that_went_back_changes_nothing() -> None:
    one = Mean(100.0, 2.0, 1.0)
    assert one.on(50.0, 10.0) == one


@given(values, st.floats(0, 1))
def test_a_reward_is_from_0_to_1(results: list[tuple[float, float]], unknown: float) -> None:
    mean = Mean(0.0)
    for at, value in results:
        mean = mean.with_(value, at, 600.0)
    assert 0.0 <= reward(mean, unknown) <= 1.0 + 1e-12
