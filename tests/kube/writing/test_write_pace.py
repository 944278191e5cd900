"""How many writes a server answers in a time, whatever else there is between them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyengine.kube.writing.write_pace import GUESS, WINDOW, WritePace


class HandClock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.at = 100.0

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.at += seconds


def answer_for(clock: HandClock, pace: WritePace, seconds: float, each: float) -> None:
    """One write after the other, each begun as the one before it is answered, but the last one."""
    for _ in range(round(seconds / each)):
        pace.began()
        clock.at += each
        pace.ended()


def test_a_pace_is_guessed_until_a_window_is_over() -> None:
    clock = HandClock()
    pace = WritePace(clock)
    pace.began(10)
    clock.at += WINDOW / 2
    pace.ended(5)
    assert pace.seconds == GUESS
    clock.at += WINDOW / 2
    pace.ended(5)
    assert pace.seconds == pytest.approx(WINDOW / 10)


@given(latency=st.floats(0.001, 0.2), side_by_side=st.integers(1, 100))
def test_writes_side_by_side_count_by_how_many_are_answered_not_by_how_long_each_takes(
    latency: float, side_by_side: int
) -> None:
    clock = HandClock()
    pace = WritePace(clock)
    pace.began()  # one that is never answered keeps the window open
    for _ in range(round(2 / latency)):
        pace.began(side_by_side)
        clock.at += latency
        pace.ended(side_by_side)
    assert pace.seconds == pytest.approx(latency / side_by_side, rel=1e-6)


def test_time_in_which_nothing_was_under_way_does_not_count() -> None:
    clock = HandClock()
    pace = WritePace(clock)
    for _ in range(100):
        pace.began(100)
        clock.at += 0.1
        pace.ended(100)
        clock.at += 30.0
    assert pace.seconds == GUESS, "no window was ever over"


def test_time_that_a_failure_took_does_not_count() -> None:
    clock = HandClock()
    pace = WritePace(clock)
    pace.began(100)
    clock.at += 30.0
    pace.ended(1, answered=False)
    clock.at += WINDOW
    pace.ended(50)
    assert pace.seconds == pytest.approx(WINDOW / 50)


def test_the_pace_follows_a_server_that_slows_down_within_seconds() -> None:
    clock = HandClock()
    pace = WritePace(clock)
    pace.began()
    answer_for(clock, pace, 3.0, 0.001)
    assert pace.seconds == pytest.approx(0.001)
    answer_for(clock, pace, 3.0, 0.004)
    assert 0.0038 < pace.seconds <= 0.004
