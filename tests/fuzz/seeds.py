"""One trial after another, each made from its seed: `python -m tests.fuzz.<module> [how many] [the first seed]`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping


def run(
    arguments: list[str], tried: Callable[[int], tuple[list[str], Mapping[str, int]]], counted: str, usual: int
) -> int:
    """Tries seeds until there are as many of what is `counted` as the arguments ask for; 1 where one was wrong.

    `tried` gives the lines to print, none where all is right, and how many there were of what.
    """
    wanted, seed = int(arguments[0]) if arguments else usual, int(arguments[1]) if len(arguments) > 1 else 0
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
