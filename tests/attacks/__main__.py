"""Run attacks and print what they cost, as rows of the table in docs/reliability.md. `make attacks` runs each for long.

python -m tests.attacks [SECONDS [embedded|envtest [ATTACK …]]]
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from tests.attacks.attacks import ATTACKS
from tests.attacks.measure import HEAD, KILLS, measured
from tests.attacks.site import site

SECONDS = 300.0


async def main(seconds: float = SECONDS, kind: str = "embedded", *attacks: str) -> int:
    """1 where something is not as it should be."""
    print(HEAD, flush=True)
    misses = 0
    for attack in attacks or (*ATTACKS, KILLS):
        with tempfile.TemporaryDirectory(prefix="policyengine-attacks-") as folder:
            async with site(kind, Path(folder)) as at:
                found = await measured(at, attack, seconds)
                print(found.row(), flush=True)
                for miss in (*found.misses, *found.slow):
                    print(f"MISSED: {attack}: {miss}", flush=True)
                    misses += 1
    return 1 if misses else 0


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(asyncio.run(main(*map(float, given[:1]), *given[1:])))
