"""What is wanted: an expression over the figures of `plan`, and whether it shall be small or large;
and a mean of few values with how sure it is.

p99(wait)                          as small as it can be: more of it is worse
utilisation.cpu                    as large
minimize wait.mean + 10.0 * evictions
evictions <= old                   a constraint; `old` is the figure of the policy as it is
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import sqrt
from statistics import fmean, stdev
from typing import Any, Final, NamedTuple

from policyengine.language.functions.probability import beta_cdf
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


SURE = 0.95


class Interval(NamedTuple):
    """`mean` lies within `low` and `high` of what more such values would come to, in 95 of 100 cases."""

    mean: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether zero is outside."""
        return self.low > 0.0 or self.high < 0.0


def interval(values: Sequence[float]) -> Interval | None:
    """Of independent values; None of fewer than two.

    For example, of 1, 2 and 3 the mean is 2, its standard error 1/√3, and t(2) = 4.303: from -0.48 to 4.48.
    """
    if len(values) < 2:
        return None
    mean, error = fmean(values), stdev(values) / sqrt(len(values))
    reach = student(len(values) - 1) * error
    return Interval(mean, mean - reach, mean + reach)


@cache
def student(freedom: int) -> float:
    """The value that Student's t of so many degrees of freedom exceeds, up or down, in 5 of 100 cases.

    P(|T| > t) is the regularised incomplete beta function I_x(freedom/2, 1/2) at x = freedom / (freedom + t²)
    (Abramowitz and Stegun, 26.7.1); bisection finds t.
    """
    low, high = 0.0, 1.0e3
    for _ in range(80):
        middle = (low + high) / 2.0
        if beta_cdf(freedom / (freedom + middle * middle), freedom / 2.0, 0.5) > 1.0 - SURE:
            low = middle
        else:
            high = middle
    return high
