"""`python -m tests.exact.soak N k`: so many worlds from seed k on, on one API server; the failing ones are printed.

`python -m tests.exact.soak --seed S` plays one.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from tests.exact.play import play
from tests.exact.real import real


async def soak(first: int, count: int) -> int:
    """Play them; how many failed."""
    began, failed = time.monotonic(), 0
    totals: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="policyengine-exact-") as folder:
        async with real(Path(folder)) as at:
            for seed in range(first, first + count):
                try:
                    comparison = await play(at, seed)
                except Exception as error:
                    failed += 1
                    print(f"seed {seed}: {type(error).__name__}: {error}", flush=True)
                    if not isinstance(error, AssertionError):
                        traceback.print_exc()
                else:
                    for name in ("bound", "chosen_among", "scores", "refused", "preempted", "gated"):
                        totals[name] += getattr(comparison, name)
                    reasons += comparison.reasons
                    if comparison.differences:
                        failed += 1
                        print(
                            f"seed {seed} ({', '.join(comparison.themes)}): " + "\n".join(comparison.differences),
                            flush=True,
                        )
                await at.empty()
                if (seed - first) % 10 == 9:
                    print(
                        f"{seed - first + 1} worlds, {time.monotonic() - began:.0f} s, {failed} failed, {dict(totals)}",
                        flush=True,
                    )
    print(f"seeds {first} to {first + count - 1}: {failed} failed, {time.monotonic() - began:.0f} s, {dict(totals)}")
    print("\n".join(f"{count:>8} {reason}" for reason, count in reasons.most_common()))
    return failed


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--seed"]:
        return asyncio.run(soak(int(arguments[1]), 1))
    count, first = (int(text) for text in (*arguments, "0")[:2])
    return int(asyncio.run(soak(first, count)) > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
