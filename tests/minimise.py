"""Makes a failing input smaller while it still fails: list entries and fields go, one after another."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

Json = dict[str, Any]
Path = tuple[str | int, ...]

TRIES = 3000
"""How often the input is evaluated at most; a case is small long before."""


def minimise(case: Json, fails: Callable[[Json], bool], tries: int = TRIES) -> Json:
    """The smallest case found by deleting parts of `case` for which `fails` still holds, which it must for `case`.

    Large parts are tried first. An input that cannot be evaluated at all (`fails` raises) is no failure.
    """
    assert _still(case, fails), "there is nothing to minimise: the case does not fail"
    smallest = copy.deepcopy(case)
    shrunk = True
    while shrunk and tries > 0:
        shrunk = False
        for path in _parts(smallest):
            candidate = _without(smallest, path)
            if candidate is None:
                continue
            tries -= 1
            if _still(candidate, fails):
                smallest, shrunk = candidate, True
            if tries == 0:
                break
    return smallest


def _still(case: Json, fails: Callable[[Json], bool]) -> bool:
    try:
        return fails(copy.deepcopy(case))
    except Exception:
        return False


def _parts(value: Any, path: Path = ()) -> list[Path]:
    """Every field and list entry, the outermost first, the last entries of a list first."""
    levels: list[list[Path]] = []
    for depth, found in _walk(value, path):
        while len(levels) <= depth:
            levels.append([])
        levels[depth].append(found)
    return [found for level in levels for found in reversed(level)]


def _walk(value: Any, path: Path, depth: int = 0) -> Iterator[tuple[int, Path]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield depth, (*path, key)
        yield from _walk(inner, (*path, key), depth + 1)


def _without(case: Json, path: Path) -> Json | None:
    """A copy without the part; None where it has gone with a larger one, or a list has grown shorter."""
    candidate = copy.deepcopy(case)
    place: Any = candidate
    try:
        for key in path[:-1]:
            place = place[key]
        del place[path[-1]]
    except (KeyError, IndexError, TypeError):
        return None
    return candidate
