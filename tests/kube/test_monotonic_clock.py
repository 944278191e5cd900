"""The core's clock: what it makes of a machine's clock that is set."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.kube.runner import MonotonicClock
from policyengine.scheduler.binding.bind_result import LANDS_WITHIN, SLEW, retry_after


class SetClock:
    """A clock that somebody sets."""

    def __init__(self) -> None:
        self.elapsed = 0.0
        self.offset = 1_767_600_000.0

    def now(self) -> float:
        return self.elapsed + self.offset

    def monotonic(self) -> float:
        return self.elapsed

    async def sleep(self, seconds: float) -> None:
        self.elapsed += seconds


steps = st.lists(
    st.tuples(st.floats(0.0, 20.0), st.sampled_from([-86_400.0, -1.0, 0.0, 0.0, 0.5, 30.0, 3600.0])), max_size=40
)


def elapsed_until(seconds: float, moves: list[tuple[float, float]]) -> float:
    """The time that passes for certain while the core's clock shows so many seconds more."""
    machine = SetClock()
    steady = MonotonicClock(machine)
    due = steady.now() + seconds
    for passed, step in [*moves, *[(1.0, 3600.0)] * 400]:
        machine.elapsed += passed
        machine.offset += step
        if steady.now() >= due:
            return machine.elapsed
    raise AssertionError("it stands still")


@settings(max_examples=50)
@given(steps)
def test_it_runs_a_tenth_fast_or_slow_at_most_and_never_back(moves: list[tuple[float, float]]) -> None:
    machine = SetClock()
    steady = MonotonicClock(machine)
    shown = steady.now()
    for passed, step in moves:
        machine.elapsed += passed
        machine.offset += step
        before, shown = shown, steady.now()
        assert passed * (1 - SLEW) - 1e-6 <= shown - before <= passed * (1 + SLEW) + 1e-6


@settings(max_examples=50)
@given(steps, st.sampled_from(["a", "b", "c", "d"]), st.sampled_from([1.0, 5.0, 20.0, 120.0]))
def test_retry_after_is_over_on_the_server_s_clock_too(
    moves: list[tuple[float, float]], uid: str, asked: float
) -> None:
    assert elapsed_until(retry_after(uid, asked), moves) >= asked - 1e-6


@settings(max_examples=50)
@given(steps)
def test_a_minute_after_which_nothing_lands_is_a_minute(moves: list[tuple[float, float]]) -> None:
    assert elapsed_until(LANDS_WITHIN, moves) >= 60.0 - 1e-6
