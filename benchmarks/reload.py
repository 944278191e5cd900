"""Measures for how long a reload holds the event loop: while the text is compiled beside it, at the swap, and at the
first decision of the new policy, which finds no column kept."""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from collections.abc import Callable

from benchmarks.decisions import Core
from benchmarks.figures import Figure
from benchmarks.language import LINES, policy_text
from benchmarks.workloads import Workload, mixed, peer_node
from policyengine.framework.profile import Profile
from policyengine.kube.policies.proving import compiled_beside
from policyengine.plugins.registry import IN_TREE
from policyengine.policy_compiler import compile_text
from policyengine.scheduler.messages import CyclesRequested, ProfileReplaced


def reloads(repeats: int = 10, nodes: int = 5_000, waiting: int = 1_000) -> list[Figure]:
    """Measure `repeats` reloads of a policy of `LINES` lines; medians."""
    # Of one policy, whose rules change each time.
    texts = [policy_text(LINES, n).replace(f'"bench-{n}"', '"bench"') for n in range(repeats + 1)]
    gc.freeze()  # as the running scheduler does: what lies in memory is not looked through again
    found = asyncio.run(_beside_a_loop(texts))
    swaps = _swaps([compile_text(text).profiles[0] for text in texts], nodes, waiting)
    compiling, gap = (statistics.median(column) for column in zip(*found, strict=True))
    swap, first, later = (statistics.median(column) for column in zip(*swaps, strict=True))
    held = f"a policy of {LINES} lines compiled: the event loop held for, at most"
    told = (f" (of {compiling:.0f} ms of CPU beside it)", f" ({nodes:,} nodes)")
    return [
        Figure(held, gap, "ms", digits=1, more=told[0]),
        Figure(f"the swap, {waiting:,} pods waiting, CPU", swap, "ms", digits=1),
        Figure("the first decision after it, dearer by", first - later, "ms", digits=1, more=told[1]),
    ]


async def _beside_a_loop(texts: list[str]) -> list[tuple[float, float]]:
    """(milliseconds of compiling, the longest of them between two turns of the loop) for each text but the first."""
    await compiled_beside({"warm.policy": texts[0]}, IN_TREE)
    found = []
    for text in texts[1:]:
        began = time.process_time_ns()
        compiling = asyncio.ensure_future(compiled_beside({"bench.policy": text}, IN_TREE))
        gap, turns = await _longest_gap(compiling.done)
        spent = time.process_time_ns() - began
        assert compiling.result().problem is None and turns
        found.append((spent / 1e6, gap / 1e6))
    return found


async def _longest_gap(is_over: Callable[[], bool]) -> tuple[int, int]:
    """(nanoseconds of CPU between two turns of a loop that has something to do all the time, turns).

    That is CPU of the compiling thread, which had the interpreter, whatever else the machine had to do.
    """
    longest = turns = 0
    while not is_over():
        before = time.process_time_ns()
        await asyncio.sleep(0)
        longest, turns = max(longest, time.process_time_ns() - before), turns + 1
    return longest, turns


def _swaps(profiles: list[Profile], nodes: int, waiting: int) -> list[tuple[float, float, float]]:
    """(milliseconds of the swap, of the first cycle, of the one after it) for each profile but the first."""
    core = Core(profiles[0])
    core.fill(Workload("reload", "", nodes, waiting, mixed, peer_node))
    core.handle(CyclesRequested(8))
    return [
        (core.handle(ProfileReplaced(profile))[1] / 1e6, core.decide()[1] / 1e6, core.decide()[1] / 1e6)
        for profile in profiles[1:]
    ]
