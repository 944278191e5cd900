"""The regularised incomplete beta function, by its continued fraction (DLMF 8.17.22, modified Lentz's method)."""

from __future__ import annotations

import math

_TINY = 1e-300
_PRECISION = 1e-16
_MOST_STEPS = 10_000


def beta_cdf(x: float, a: float, b: float) -> float:
    """The share of the beta distribution with shapes a, b > 0 that lies below x: a double in 0..1."""
    if math.isnan(x) or not math.isfinite(a) or not math.isfinite(b):
        return math.nan
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    # The fraction converges fast only below the mean; above it the mirror image does.
    if x > (a + 1.0) / (a + b + 2.0):
        return min(max(1.0 - _below_mean(1.0 - x, b, a), 0.0), 1.0)
    return min(max(_below_mean(x, a, b), 0.0), 1.0)


def _below_mean(x: float, a: float, b: float) -> float:
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(front) / (a * _fraction(x, a, b))


def _fraction(x: float, a: float, b: float) -> float:
    value, c, d = 1.0, 1.0, 0.0
    for step in range(1, _MOST_STEPS):
        term = _term(step, x, a, b)
        d = 1.0 / _away_from_zero(1.0 + term * d)
        c = _away_from_zero(1.0 + term / c)
        value *= c * d
        if abs(c * d - 1.0) < _PRECISION:
            break
    return value


def _term(step: int, x: float, a: float, b: float) -> float:
    """The step's coefficient (DLMF 8.17.23)."""
    m = step // 2
    if step % 2 == 0:
        return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
    return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
