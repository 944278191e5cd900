"""Where the event loop's processor time went, by its stacks."""

import asyncio
import signal
import time

import pytest

from policyengine.kube.config import process
from policyengine.server.profiling import cpu_profile


async def busily(ends: float) -> None:
    while time.monotonic() < ends:
        sum(range(20_000))
        await asyncio.sleep(0)


async def idly(ends: float) -> None:
    while time.monotonic() < ends:  # noqa: ASYNC110  (that it waits is the point)
        await asyncio.sleep(0.02)


@pytest.mark.parametrize(("work", "is_seen"), [(busily, True), (idly, False)])
@pytest.mark.parametrize("run", [asyncio.run, process.run])
def test_a_stack_counts_by_the_processor_time_that_it_took(run: object, work: object, is_seen: bool) -> None:
    async def profiled() -> str:
        profile, _ = await asyncio.gather(cpu_profile(0.7), work(time.monotonic() + 0.6))  # type: ignore[operator]
        return str(profile)

    began = time.process_time()
    profile = run(profiled())  # type: ignore[operator]
    most = (time.process_time() - began) * 1e6
    spent = {stack: int(micros) for stack, micros in (line.rsplit(" ", 1) for line in profile.splitlines())}
    name = work.__name__  # type: ignore[attr-defined]
    ours = sum(micros for stack, micros in spent.items() if stack.endswith(f".{name}"))
    assert ours <= 1.2 * most + 20_000  # the timer charges whole ticks: right in the mean, not for each run
    assert (ours > most / 2) is is_seen


async def test_a_look_that_comes_late_ends_nobody() -> None:
    await cpu_profile(0.01)
    signal.raise_signal(signal.SIGPROF)
    assert signal.getitimer(signal.ITIMER_PROF)[0] == 0
