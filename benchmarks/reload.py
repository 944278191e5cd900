"""Measures for how long a reload holds the event loop: while the text is compiled beside it, at the swap, and at the
first decision of the new policy, which finds no column kept."""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.decisions import nodes_of, pods_of
from benchmarks.language import LINES, policy_text
from benchmarks.workloads import Workload, mixed, peer_node
from benchmarks.yardstick import yardstick_ns
from policyengine.catalogue import CATALOGUE, compile_text
from policyengine.framework.profile import Profile
from policyengine.kube.policies.compiling import compiler_with
from policyengine.scheduler.messages import CacheSynced, CyclesRequested, NodeObserved, PodObserved, ProfileReplaced
from policyengine.scheduler.state import SchedulerState

SCHEDULER = "bench"


@dataclass(frozen=True, slots=True)
class ReloadFigures:
    """Milliseconds; medians over the reloads."""

    lines: int
    nodes: int
    waiting: int
    """Pods in the queue."""
    compile_ms: float
    """CPU of compiling beside an event loop."""
    gap_ms: float
    """The longest that the loop was held meanwhile: CPU of this process between two turns of it. That is the compiling
    thread's, which had the interpreter, whatever else the machine had to do."""
    swap_ms: float
    """CPU of the core's taking in the new policy."""
    first_cycle_ms: float
    """CPU of the first decision after it."""
    cycle_ms: float
    """CPU of a later one of another pod."""
    yardstick_us: float

    @property
    def ratios(self) -> dict[str, float]:
        """What to compare between runs; more is worse."""
        return {
            "gap of a reload / yardstick": self.gap_ms * 1e3 / self.yardstick_us,
            "swap of a policy / yardstick": self.swap_ms * 1e3 / self.yardstick_us,
        }


def reloads(repeats: int = 10, nodes: int = 5_000, waiting: int = 1_000) -> ReloadFigures:
    """Measure `repeats` reloads of a policy of `LINES` lines."""
    # Of one policy, whose rules change each time.
    texts = [policy_text(LINES, n).replace(f'"bench-{n}"', '"bench"') for n in range(repeats + 1)]
    gc.freeze()  # as the running scheduler does: what lies in memory is not looked through again
    found = asyncio.run(_beside_a_loop(texts))
    swaps = _swaps([compile_text(text).profiles[0] for text in texts], nodes, waiting)
    compiling, gap = (statistics.median(column) for column in zip(*found, strict=True))
    swap, first, later = (statistics.median(column) for column in zip(*swaps, strict=True))
    return ReloadFigures(LINES, nodes, waiting, compiling, gap, swap, first, later, yardstick_ns() / 1e3)


async def _beside_a_loop(texts: list[str]) -> list[tuple[float, float]]:
    """(milliseconds of compiling, the longest of them between two turns of the loop) for each text but the first."""
    compile_beside = compiler_with(CATALOGUE)
    await compile_beside({"warm.policy": texts[0]})
    found = []
    for text in texts[1:]:
        began = time.process_time_ns()
        compiling = asyncio.ensure_future(compile_beside({"bench.policy": text}))
        gap, turns = await _longest_gap(compiling.done)
        spent = time.process_time_ns() - began
        assert compiling.result().problem is None and turns
        found.append((spent / 1e6, gap / 1e6))
    return found


async def _longest_gap(is_over: Callable[[], bool]) -> tuple[int, int]:
    """(nanoseconds of CPU between two turns of a loop that has something to do all the time, turns)."""
    longest = turns = 0
    while not is_over():
        before = time.process_time_ns()
        await asyncio.sleep(0)
        longest, turns = max(longest, time.process_time_ns() - before), turns + 1
    return longest, turns


def _swaps(profiles: list[Profile], nodes: int, waiting: int) -> list[tuple[float, float, float]]:
    """(milliseconds of the swap, of the first cycle, of the one after it) for each profile but the first."""
    state = SchedulerState(profiles[:1])
    workload = Workload("reload", "", nodes, waiting, mixed, peer_node)
    now = 1_767_600_000.0
    for node in nodes_of(workload):
        state.handle(NodeObserved(node), now)
    for pod in pods_of(workload, SCHEDULER):
        state.handle(PodObserved(pod), now)
    state.handle(CacheSynced(), now)
    state.handle(CyclesRequested(8), now)

    def spent(message: ProfileReplaced | CyclesRequested) -> float:
        started = time.process_time_ns()
        state.handle(message, now)
        return (time.process_time_ns() - started) / 1e6

    return [
        (spent(ProfileReplaced(profile)), spent(CyclesRequested(1)), spent(CyclesRequested(1)))
        for profile in profiles[1:]
    ]
