"""`python -m tests.exact.devices.soak N K [THEME…]`: N device worlds from seed K on beside one live kube-scheduler.

`--record FILE` keeps the worlds in which nothing differs, with their facts.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from tests.exact.devices.compare import differences
from tests.exact.devices.device_world import THEMES, device_world
from tests.exact.devices.live import SETTLED, Fact, live
from tests.exact.devices.recording import append
from tests.exact.real import Real, real

ADMIN = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "admin", "labels": {"resource.kubernetes.io/admin-access": "true"}},
}


async def soak(first: int, count: int, themes: tuple[str, ...], record: Path | None) -> int:
    """Play them; how many differ."""
    began, totals = time.monotonic(), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="policyengine-exact-") as folder:
        async with real(Path(folder)) as at, at.scheduler(("-v=1",)):
            await at.make(ADMIN)
            for seed in range(first, first + count):
                try:
                    found, facts = await _world(at, seed, themes)
                except Exception as error:
                    totals["failed"] += 1
                    print(f"seed {seed}: {type(error).__name__}: {error}", flush=True)
                    if not isinstance(error, AssertionError):
                        traceback.print_exc()
                    continue
                totals["worlds"] += 1
                if record is not None and not found:
                    append(record, device_world(seed, themes), facts)
                _count(totals, facts)
                if found:
                    totals["different"] += 1
                    print(f"seed {seed} {sorted(device_world(seed, themes).themes)}: " + "\n".join(found), flush=True)
                if (seed - first) % 20 == 19:
                    print(f"{time.monotonic() - began:.0f} s, {dict(totals)}", flush=True)
    print(f"seeds {first} to {first + count - 1}: {time.monotonic() - began:.0f} s, {dict(totals)}")
    return totals["different"] + totals["failed"]


async def _world(at: Real, seed: int, themes: tuple[str, ...]) -> tuple[list[str], list[Fact]]:
    """What differs, twice: the second time kube-scheduler has longer to see what was made."""
    world = device_world(seed, themes)
    facts = await live(at, world)
    found = differences(world, facts)
    if found:
        facts = await live(at, world, 4 * SETTLED)
        found = differences(world, facts)
    return found, facts


def _count(totals: Counter[str], facts: list[Fact]) -> None:
    for fact in facts:
        totals["pods"] += 1
        totals["bound" if fact["node"] else "refused"] += 1
        for status in fact["claims"].values():
            totals["devices"] += len(status.get("allocation", {}).get("devices", {}).get("results", ()))


def main(arguments: list[str]) -> int:
    record = None
    if "--record" in arguments:
        place = arguments.index("--record")
        record = Path(arguments[place + 1])
        del arguments[place : place + 2]
    count, first = (int(text) for text in (*arguments[:2], "1", "0")[:2])
    return int(asyncio.run(soak(first, count, tuple(arguments[2:]) or THEMES, record)) > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
