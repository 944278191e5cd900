"""`hash`, `random` and the beta distribution.

`random` takes what it depends on as arguments, so the expression says what it reads: the pod's uid, the node's name,
the rule and the stream. It mixes two hashes (splitmix64's finaliser), which columns can do in one go. So a number
looks random, and is the same on every machine and in every replay.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from policyengine.elementary import ONE_VALUE, Lanes, exp, ln, ln_gamma, ln_of_rest
from policyengine.language.functions.answer_bounds import NOT_NEGATIVE, UNIT, of_numbers
from policyengine.language.functions.table import Cost, Function, Style, function
from policyengine.language.values import EvaluationError

_MASK = 2**64 - 1


@lru_cache(maxsize=1 << 16)
def hash64(text: str) -> int:
    """BLAKE2b of the UTF-8 text, 8 bytes, little-endian: 0..2**64 - 1."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def hash_string(text: str) -> int:
    """`hash(s)`: 0..2**63 - 1."""
    return hash64(text) >> 1


def mix(value: int) -> int:
    """The finaliser of splitmix64 (Steele, Lea, Flood 2014) on 64 bits."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def stream_of(uid: str, rule: str, stream: str) -> int:
    """What one rule's stream of random numbers starts from, for one pod: 0..2**64 - 1."""
    return hash64("\0".join((uid, rule, stream)))


def random(uid: str, node: str, rule: str, stream: str) -> float:
    """A double in [0, 1): the upper 53 bits of the mixed hashes of the stream and of the node's name."""
    return (mix(stream_of(uid, rule, stream) ^ hash64(node)) >> 11) * 2.0**-53


# --- the regularised incomplete beta function -------------------------------------------------------------
# By its continued fraction (DLMF 8.17.22, modified Lentz's method). One algorithm serves single values and columns, as
# in `elementary`. A lane keeps its value once its fraction has converged.

_TINY = 1e-300
_PRECISION = 3e-16
_MOST_STEPS = 10_000
_LEAST_SHAPE, _GREATEST_SHAPE = 1e-300, 1e300
"""Shapes beyond these count as these: `ln_gamma` and the fraction are doubles for all between them."""
_GREATEST_EXPONENT = 700.0
"""Its `exp` is a double; no exponent is as large but by rounding, where shapes are very large."""


def beta_cdf(x: Any, a: Any, b: Any, lanes: Lanes = ONE_VALUE) -> Any:
    """The share of the beta distribution with shapes a, b > 0 that lies below x: doubles in 0..1.

    NaN where x is NaN, or a or b is infinite or not positive.
    """
    choose = lanes.choose
    known = (x == x) & (a > 0.0) & (b > 0.0) & (a < math.inf) & (b < math.inf)
    inside = known & (x > 0.0) & (x < 1.0)
    x_in, a_in, b_in = choose(inside, x, 0.5), _shape(inside, a, choose), _shape(inside, b, choose)
    # The fraction converges fast only below the mean; above it the mirror image does.
    mirrored = x_in > (a_in + 1.0) / (a_in + b_in + 2.0)
    share = _below_mean(
        choose(mirrored, 1.0 - x_in, x_in), choose(mirrored, b_in, a_in), choose(mirrored, a_in, b_in), lanes
    )
    share = choose(mirrored, 1.0 - share, share)
    share = choose(share < 0.0, 0.0, choose(share > 1.0, 1.0, share))
    edge = choose(x >= 1.0, 1.0, 0.0)
    return choose(inside, share, choose(known, edge, math.nan))


def _shape(inside: Any, shape: Any, choose: Callable[[Any, Any, Any], Any]) -> Any:
    shape = choose(inside, shape, 1.0)
    shape = choose(shape > _LEAST_SHAPE, shape, _LEAST_SHAPE)
    return choose(shape < _GREATEST_SHAPE, shape, _GREATEST_SHAPE)


def _below_mean(x: Any, a: Any, b: Any, lanes: Lanes) -> Any:
    front = ln_gamma(a + b, lanes) - ln_gamma(a, lanes) - ln_gamma(b, lanes)
    front = front + a * ln(x, lanes) + b * ln_of_rest(x, lanes)
    front = lanes.choose(front < _GREATEST_EXPONENT, front, _GREATEST_EXPONENT)
    return exp(front, lanes) / (a * _fraction(x, a, b, lanes))


def _fraction(x: Any, a: Any, b: Any, lanes: Lanes) -> Any:
    choose = lanes.choose
    value, c, d = x * 0.0 + 1.0, 1.0, 0.0
    is_done = x != x
    for step in range(1, _MOST_STEPS):
        term = _term(step, x, a, b)
        d = 1.0 + term * d
        c = 1.0 + term / c
        d = 1.0 / choose(abs(d) > _TINY, d, _TINY)
        c = choose(abs(c) > _TINY, c, _TINY)
        change = c * d
        value = choose(is_done, value, value * change)
        is_done = is_done | (abs(change - 1.0) < _PRECISION)
        if lanes.all(is_done):
            break
    return value


def _term(step: int, x: Any, a: Any, b: Any) -> Any:
    """The step's coefficient (DLMF 8.17.23)."""
    m = step // 2
    if step % 2 == 0:
        return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
    return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))


def _beta(x: float, a: float, b: float) -> float:
    if not (a > 0 and b > 0):
        raise EvaluationError("betaCdf wants positive a and b")
    return float(beta_cdf(x, a, b))


FUNCTIONS: tuple[Function, ...] = (
    function(
        "hash",
        Style.GLOBAL,
        "a number for a string, never negative, the same everywhere",
        {"string -> int": hash_string},
        bounds=NOT_NEGATIVE,
        cost=Cost("draw", 20),
    ),
    function(
        "random",
        Style.GLOBAL,
        'a double in [0, 1) from pod UID, node and rule name; `random("b")` is another stream',
        {"string, string, string, string -> double": random},
        bounds=UNIT,
        cost=Cost("draw", 30),
        added=3,
    ),
    function(
        "betaCdf",
        Style.GLOBAL,
        "the beta distribution's share below x",
        {"double, double, double -> double": _beta},
        bounds=of_numbers(lambda x, a, b: UNIT._replace(nan=a.may_be_infinite or b.may_be_infinite)),
        cost=Cost("curve", 100),
    ),
)
