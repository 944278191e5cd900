"""`ln`, `exp`, `pow` and the logarithm of the gamma function, the same to the last bit on every machine.

A C library, or numpy on a CPU with other instructions, answers other last bits, and a score that is rounded shows them.
So these functions are made of `+ - * /`, comparisons and exact scaling by powers of two only, which IEEE 754 defines to
the bit. One algorithm serves single values and columns: what differs comes from `Lanes`.

Logarithms and exponents are worked out as sums of two doubles, about 2⁻⁶⁵ apart from the truth, and rounded once: the
answers of `ln`, `exp` and `pow` are nearly always the nearest doubles, exact where the truth is a double.

    ln 10 = ln(1.25 · 2³) = 3 ln 2 + 2 atanh(0.25 / 2.25)
    exp 1 = 2¹ · exp(1 - ln 2)

Sources: sums and products of two doubles after Dekker (1971) and Knuth (TAOCP 4.2.2); the series of atanh and exp;
Stirling's series for ln Γ (DLMF 5.11.1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final, NamedTuple


class Lanes(NamedTuple):
    """How many values are worked on at once: one float here, an array of them in the compiler."""

    choose: Callable[[Any, Any, Any], Any]
    """`numpy.where`: (which, value where it holds, value where not)."""
    all: Callable[[Any], bool]
    """`numpy.all`."""
    split: Callable[[Any], tuple[Any, Any]]
    """`numpy.frexp`: x = m · 2ᵉ with m in [0.5, 1), e as a double."""
    scale: Callable[[Any, Any], Any]
    """`numpy.ldexp`: x · 2ᵉ, e a double that is whole."""
    nearest: Callable[[Any], Any]
    """`numpy.rint`."""
    is_negative: Callable[[Any], Any]
    """`numpy.signbit`: that of -0.0 too."""


def _split(x: float) -> tuple[float, float]:
    m, e = math.frexp(x)
    return m, float(e)


ONE_VALUE: Final = Lanes(
    lambda which, then, otherwise: then if which else otherwise,
    bool,
    _split,
    lambda x, e: math.ldexp(x, int(e)),
    lambda x: float(round(x)),
    lambda x: math.copysign(1.0, x) < 0.0,
)

_Parts = tuple[Any, Any]
"""A number as the sum of two doubles, the second at most half a unit in the last place of the first."""


def _parts(value: Fraction) -> tuple[float, float]:
    return float(value), float(value - Fraction(float(value)))


_LN_2: Final = Fraction("0.69314718055994530941723212145817656807550013436025525412068")
_LN_2_DOUBLE: Final = float(_LN_2)
_LN_2_HIGH: Final = float(Fraction(int(_LN_2 * 2**32), 2**32))
"""Its first 32 bits: any whole number of them below 2²¹ is a double."""
_LN_2_LOW: Final = float(_LN_2 - Fraction(_LN_2_HIGH))
_THIRD: Final = _parts(Fraction(1, 3))
_ATANH: Final = [1.0 / number for number in range(25, 3, -2)]
"""Of atanh(s)/s = 1 + s²/3 + s⁴/5 + …, from the last coefficient to that of s⁴."""
_EXP: Final = [float(Fraction(1, math.factorial(number))) for number in range(15, 1, -1)]
_STIRLING: Final = [
    float(one) for one in map(Fraction, ("1/156", "-691/360360", "1/1188", "-1/1680", "1/1260", "-1/360", "1/12"))
]
_HALF_LN_2_PI: Final = 0.9189385332046727418
_ROOT_HALF: Final = math.sqrt(0.5)
_LEAST, _GREATEST = -746.0, 709.782712893384
"""Below the first exp is 0, above the second it is no double."""
_FAR: Final = 800.0
_HUGE: Final = 1e290


def ln(x: Any, lanes: Lanes = ONE_VALUE) -> Any:
    """The natural logarithm: -∞ of 0, NaN of what is negative."""
    choose = lanes.choose
    inside = (x > 0.0) & (x < math.inf)
    high, low = _ln(choose(inside, x, 1.0), lanes)
    return choose(inside, high + low, choose(x == 0.0, -math.inf, choose(x > 0.0, math.inf, math.nan)))


def exp(x: Any, lanes: Lanes = ONE_VALUE) -> Any:
    """e to the power of x."""
    return _exp(x, 0.0, lanes)


def power(base: Any, exponent: Any, lanes: Lanes = ONE_VALUE) -> Any:
    """IEEE 754's pow: base to the power of exponent."""
    choose = lanes.choose
    size = choose(base < 0.0, -base, base)
    ordinary = (size > 0.0) & (size < math.inf) & (abs(exponent) < math.inf)
    high, low = _ln(choose(ordinary, size, 1.0), lanes)
    given = choose(ordinary, exponent, 1.0)
    rough = given * high
    near = abs(rough) < _FAR
    within = choose(near & (abs(given) < _HUGE), given, 0.0)  # larger ones are near only where ln is 0
    product, rest = _times(within, high)
    value = choose(near, _exp(product, rest + within * low, lanes), choose(rough > 0.0, math.inf, 0.0))
    # What is no number, or none that is finite, on either side.
    grows = (size > 1.0) == (exponent > 0.0)
    value = choose(ordinary, value, choose(size == 1.0, 1.0, choose(grows, math.inf, 0.0)))
    is_whole, is_odd = _whole_and_odd(exponent, lanes)
    value = choose(lanes.is_negative(base) & is_odd, -value, value)
    value = choose((base < 0.0) & (size < math.inf), choose(is_whole, value, math.nan), value)
    value = choose((base != base) | (exponent != exponent), math.nan, value)
    return choose((exponent == 0.0) | (base == 1.0), 1.0, value)


def ln_gamma(x: Any, lanes: Lanes = ONE_VALUE) -> Any:
    """ln Γ of doubles above 0, none infinite: Stirling's series from 10 on, and Γ(x + 1) = x Γ(x) below."""
    choose = lanes.choose
    product = 1.0
    for _ in range(10):
        is_small = x < 10.0
        product = choose(is_small, product * x, product)
        x = choose(is_small, x + 1.0, x)
    inverse = 1.0 / x
    series = _polynomial(inverse * inverse, _STIRLING) * inverse
    return (x - 0.5) * ln(x, lanes) - x + _HALF_LN_2_PI + series - ln(product, lanes)


def ln_of_rest(x: Any, lanes: Lanes = ONE_VALUE) -> Any:
    """ln(1 - x) of doubles in 0..1, exact for small ones too (Kahan: what 1 - x lost is made good in proportion)."""
    rest = 1.0 - x
    lost = lanes.choose(rest == 1.0, 1.0, 1.0 - rest)
    return lanes.choose(rest == 1.0, -x, ln(rest, lanes) * (x / lost))


def _ln(x: Any, lanes: Lanes) -> _Parts:
    """Of finite doubles above 0: ln x = e ln 2 + 2 atanh(f / (2 + f)), where x = (1 + f) 2ᵉ and 1 + f is about 1."""
    choose = lanes.choose
    m, e = lanes.split(x)
    is_low = m < _ROOT_HALF
    m, e = choose(is_low, m + m, m), choose(is_low, e - 1.0, e)
    f = m - 1.0
    below, below_rest = _plus(2.0, f)
    s = f / below
    product, rest = _times(s, below)
    s_rest = ((f - product) - rest - s * below_rest) / below
    z, z_rest = _times(s, s)
    z_rest = z_rest + 2.0 * s * s_rest
    u, u_rest = _plus(_THIRD[0], z * _polynomial(z, _ATANH))
    w, w_rest = _times(z, u)
    w_rest = w_rest + z * (u_rest + _THIRD[1]) + z_rest * u
    v, v_rest = _plus(1.0, w)
    v_rest = v_rest + w_rest
    high, low = _times(2.0 * s, v)
    low = low + 2.0 * (s_rest * v + s * v_rest)
    total, total_rest = _plus(e * _LN_2_HIGH, high)
    return _plus(total, total_rest + low + e * _LN_2_LOW)


def _exp(x: Any, rest: Any, lanes: Lanes) -> Any:
    """Of x + rest: eˣ = 2ᵏ eʳ, where r is at most ln 2 / 2."""
    choose = lanes.choose
    inside = (x > _LEAST) & (x <= _GREATEST)
    given, rest = choose(inside, x, 0.0), choose(inside, rest, 0.0)
    k = lanes.nearest(given * (1.0 / _LN_2_DOUBLE))
    r, r_rest = _plus(given - k * _LN_2_HIGH, rest - k * _LN_2_LOW)
    total, total_rest = _plus(1.0, r)
    value = total + (total_rest + (r_rest + r * r_rest + r * r * _polynomial(r, _EXP)))
    return choose(inside, lanes.scale(value, k), choose(x != x, x, choose(x > 0.0, math.inf, 0.0)))


def _whole_and_odd(x: Any, lanes: Lanes) -> tuple[Any, Any]:
    """Whether doubles are whole, and whether odd: from 2⁵³ on all are even."""
    is_small = abs(x) < 2.0**53
    small = lanes.choose(is_small, x, 0.0)
    is_whole = lanes.nearest(small) == small
    return is_whole, is_whole & (lanes.nearest(small * 0.5) != small * 0.5)


def _plus(a: Any, b: Any) -> _Parts:
    """a + b exactly."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def _times(a: Any, b: Any) -> _Parts:
    """a · b exactly, while none of it overflows or vanishes."""
    product = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _halves(a: Any) -> _Parts:
    scaled = a * 134217729.0  # 2²⁷ + 1
    high = scaled - (scaled - a)
    return high, a - high


def _polynomial(x: Any, coefficients: list[float]) -> Any:
    """By Horner's rule, the coefficient of the highest power first."""
    value = x * 0.0 + coefficients[0]
    for one in coefficients[1:]:
        value = value * x + one
    return value
