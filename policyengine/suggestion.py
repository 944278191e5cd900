"""What a misspelt word was probably meant to be."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word nearest to the one given, or None where none is near.

    Near is an edit distance (neighbours swapped count once) of at most a third of the longer word's length, upper
    and lower case being one. Of equally near ones the first in the alphabet wins, so that messages are stable.
    """
    if len(word) > 60:
        return None
    best: tuple[int, str] | None = None
    for candidate in sorted(known):
        allowed = max(1, max(len(word), len(candidate)) // 3)
        distance = _distance(word.lower(), candidate.lower(), allowed)
        if distance <= allowed and (best is None or distance < best[0]):
            best = distance, candidate
    return best[1] if best else None


def nearest_first(word: str, known: Iterable[str]) -> tuple[str, ...]:
    """The known words by how much of them is the one given, then by the alphabet."""
    return tuple(sorted(known, key=lambda one: (-SequenceMatcher(None, word, one).ratio(), one)))


def _distance(a: str, b: str, limit: int) -> int:
    """The optimal string alignment distance; anything over the limit may come back as limit + 1."""
    if abs(len(a) - len(b)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        earlier, before, row = before, row, [i]
        for j, y in enumerate(b, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
    return row[-1]
