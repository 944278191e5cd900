"""A mean of few values, and how sure it is: Student's interval of 95 %."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import NamedTuple

from policyengine.language.functions.probability import beta_cdf

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
