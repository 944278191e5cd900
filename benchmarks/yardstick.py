"""A fixed piece of work, by which a figure becomes a ratio that holds on another machine.

Half of it is what the interpreter does, half what numpy does on columns of 5,000 nodes: what a decision is made of.
"""

from __future__ import annotations

import time

import numpy as np

ROUNDS = 50


def yardstick_ns() -> int:
    """CPU nanoseconds of the work: the least of `ROUNDS`, so that whoever interrupts does not show."""
    column = np.arange(5_000, dtype=np.int64)
    return min(_once(column) for _ in range(ROUNDS))


def _once(column: np.ndarray[tuple[int], np.dtype[np.int64]]) -> int:
    started = time.thread_time_ns()
    seen: dict[str, int] = {}
    for number in range(400):
        key = f"node-{number:06d}"
        seen[key] = seen.get(key, 0) + number % 7
    total = 0
    for _ in range(4):
        kept = np.flatnonzero((column * 3 + 1) % 7 > 2)
        total += int((column[kept] * 100 // 4_000).max())
    assert total and len(seen) == 400
    return time.thread_time_ns() - started
