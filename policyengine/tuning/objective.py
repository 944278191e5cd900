"""What is wanted: an expression over the figures of `plan`, and whether it shall be small or large.

p99(wait)                          as small as it can be: more of it is worse
utilisation.cpu                    as large
minimize wait.mean + 10.0 * evictions
evictions <= old                   a constraint; `old` is the figure of the policy as it is
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from policyengine.plan.condition import WrongCondition, figures_in, holds, value

WORDS: Final = {"minimize": -1, "maximize": 1}
LARGE: Final = ("placed", "utilisation", "allocated", "gangs.whole", "spread")
SMALL: Final = ("waiting", "evictions", "wait", "fragmentation", "gangs.partial", "share.error")
"""Figures of which more is better, and of which less is."""


class WrongObjective(ValueError):
    """An objective or constraint that cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Objective:
    """An expression, and whether it shall be large (1) or small (-1)."""

    expression: str
    sign: int

    def __str__(self) -> str:
        return f"{'maximize' if self.sign > 0 else 'minimize'} {self.expression}"

    def of(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> float:
        """Its value in a run. Raises `WrongObjective` where it is no number."""
        try:
            found = value(self.expression, old, new)
        except WrongCondition as error:
            raise WrongObjective(f"objective {error}") from None
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise WrongObjective(f"objective `{self.expression}` is {found!r}, and no number")
        return float(found)

    def better(self, one: float, other: float) -> bool:
        """Whether `one` is better than `other`."""
        return (one - other) * self.sign > 0.0


def objective(text: str) -> Objective:
    """Read one. Raises `WrongObjective` where nothing says whether it shall be small or large."""
    word, _, rest = text.strip().partition(" ")
    if word in WORDS and rest.strip():
        return Objective(rest.strip(), WORDS[word])
    figures = figures_in(text)
    for known, sign in ((LARGE, 1), (SMALL, -1)):
        if len(figures) == 1 and re.match(rf"({'|'.join(map(re.escape, known))})($|[.\[])", figures[0]):
            return Objective(text.strip(), sign)
    raise WrongObjective(f"objective `{text}`: write `minimize {text}` or `maximize {text}`")


def broken(constraints: Sequence[str], old: Mapping[str, Any], new: Mapping[str, Any]) -> int:
    """How many constraints a run does not keep. Raises `WrongObjective`."""
    try:
        return sum(not holds(one, old, new) for one in constraints)
    except WrongCondition as error:
        raise WrongObjective(f"constraint {error}") from None
