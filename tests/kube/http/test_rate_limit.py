"""The token bucket: a burst at once, then so many a second, in order."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.kube.http.rate_limit import TokenBucket
from tests.kube.virtual_time import VirtualClock, run


def times(qps: float, burst: int, pauses: list[float]) -> list[tuple[float, int]]:
    """(when it got its token, which) of each that asks, after a pause."""

    async def work() -> list[tuple[float, int]]:
        clock, given = VirtualClock(), []
        bucket = TokenBucket(clock, qps, burst)

        async def ask(number: int) -> None:
            await bucket.take()
            given.append((clock.monotonic(), number))

        tasks = []
        for number, pause in enumerate(pauses):
            await asyncio.sleep(pause)
            tasks.append(asyncio.ensure_future(ask(number)))
        await asyncio.gather(*tasks)
        return given

    return run(work())


def test_a_burst_goes_out_at_once_and_the_rest_in_turn() -> None:
    found = times(10, 3, [0.0] * 6)
    assert [number for _, number in found] == [0, 1, 2, 3, 4, 5]
    assert [round(at, 6) for at, _ in found] == [0, 0, 0, 0.1, 0.2, 0.3]


def test_a_quiet_time_fills_the_bucket_and_no_more() -> None:
    found = times(10, 2, [0.0, 0.0, 100.0, 0.0, 0.0])
    assert [round(at, 6) for at, _ in found] == [0, 0, 100, 100, 100.1]


@settings(max_examples=50)
@given(
    st.floats(1, 100),
    st.integers(1, 20),
    st.lists(st.floats(0, 1), min_size=1, max_size=40),
)
def test_in_no_stretch_of_time_go_out_more_than_the_burst_and_the_rate_allow(
    qps: float, burst: int, pauses: list[float]
) -> None:
    at = sorted(when for when, _ in times(qps, burst, pauses))
    for first in range(len(at)):
        for last in range(first, len(at)):
            assert last - first + 1 <= burst + (at[last] - at[first]) * qps + 1e-6
