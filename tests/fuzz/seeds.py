"""One trial after another, each made from its seed.

    python -m tests.fuzz.seeds WHAT [HOW MANY] [THE FIRST SEED]

WHAT is a module of this folder whose `tried(seed)` gives the lines to print, none where all is right, and how many
there were of what.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from importlib import import_module

TRIALS: Mapping[str, tuple[str, int]] = {
    "rules": ("rules", 100_000),
    "histories": ("histories", 5_000),
    "lint_proofs": ("policies", 10_000),
    "fixes": ("texts", 10_000),
    "explained": ("worlds", 100),
    "planned": ("days", 500),
    "remedies": ("worlds", 1_000),
}
"""Module -> what is counted of its trials, and how many of that there are where nobody says."""


def main(arguments: list[str]) -> int:
    """Tries seeds until there are as many as are asked for of what is counted; 1 where one was wrong."""
    counted, usual = TRIALS[arguments[0]]
    tried = import_module(f"tests.fuzz.{arguments[0]}").tried
    wanted, seed = int(arguments[1]) if arguments[1:] else usual, int(arguments[2]) if arguments[2:] else 0
    counts, wrong = Counter({counted: 0}), 0
    while counts[counted] < wanted:
        lines, more = tried(seed)
        counts.update(more)
        wrong += bool(lines)
        seed += 1
        for line in lines:
            print(line, flush=True)
    print(", ".join(f"{count:,} {what}" for what, count in counts.items()) + f"; {wrong:,} seeds with a difference")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
