"""`make soak SEEDS=N START=k`: worlds of so many seeds, in processes side by side; the failing ones are printed.

`python -m tests.faults.soak N k W` does it in W processes; without W there is one a processor.

`python -m tests.faults.soak --seed S` plays one, and prints what happened in it.
"""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from tests.faults.mixed import play_seed

TOLD = 5
"""Failing seeds whose timelines are printed."""


def evaluated(seed: int) -> tuple[int, list[str], str]:
    """(seed, what is wrong, the timeline of a world in which something is)."""
    try:
        objections, world = play_seed(seed)
    except Exception as error:
        return seed, [f"{type(error).__name__}: {error}"], ""
    return seed, objections, world.timeline() if objections else ""


def soak(start: int, count: int, workers: int | None = None) -> int:
    """Play them; how many failed."""
    began, failed, done = time.monotonic(), 0, 0
    with ProcessPoolExecutor(workers or os.cpu_count()) as pool:
        for seed, objections, timeline in pool.map(evaluated, range(start, start + count), chunksize=8):
            done += 1
            if objections:
                failed += 1
                print(f"seed {seed}: {objections[0]}" + (f"\n{timeline}" if failed <= TOLD else ""), flush=True)
            if done % 500 == 0:
                print(f"{done} seeds in {time.monotonic() - began:.0f} s, {failed} failed", flush=True)
    print(f"seeds {start} to {start + count - 1}: {failed} failed, {time.monotonic() - began:.0f} s")
    return failed


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0
    if arguments[0] == "--seed":
        _, objections, timeline = evaluated(int(arguments[1]))
        print("\n".join([timeline, *objections]) if objections else "every invariant holds")
        return int(bool(objections))
    count, start, workers = (int(text) for text in (*arguments, "0", "0")[:3])
    return int(soak(start, count, workers) > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
