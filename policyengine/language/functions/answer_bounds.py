"""Bounds of numbers: intervals, and how each function gets those of its answer from those of its arguments.

For example `clamp(x, 0, 10)` lies within 0..10 whatever x is, and `a + b` within the sums of both ends.

A bound is a proof. An end is computed by the operation that computes the value, which never falls where its argument
grows, or is rounded outwards where the value is rounded more than once. A double may also be NaN, which lies in no
interval: `Interval.nan` says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from policyengine.language.types import DOUBLE, Kind, Type


class Interval(NamedTuple):
    """Bounds of a value in its grain; infinite where nothing is known. Of an optional: of its content; of a list: of
    each of its elements."""

    low: float
    high: float
    nan: bool = False
    """Whether a double may be NaN instead."""

    @property
    def is_finite(self) -> bool:
        """Whether both ends are."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def may_be_infinite(self) -> bool:
        """Whether an end is infinite."""
        return math.isinf(self.low) or math.isinf(self.high)

    @property
    def may_be_zero(self) -> bool:
        """Whether 0 lies within."""
        return self.low <= 0 <= self.high


class Unbounded(NamedTuple):
    """A function whose answer has no bounds, and why."""

    reason: str


class Arguments(NamedTuple):
    """The arguments of one call."""

    types: tuple[Type, ...]
    bounds: tuple[Interval, ...]
    result: Type


Rule = Callable[[Arguments], Interval]
Bounds = Interval | Rule | Unbounded
"""The same interval for every call, one computed for each call, or none."""

EVERYTHING = Interval(-math.inf, math.inf, nan=True)
NOT_NEGATIVE = Interval(0, math.inf)
UNIT = Interval(0.0, 1.0)
NO_NUMBER = Unbounded("its answer is no number")
ANY_NUMBER = Unbounded("its answer may be any number")
NO_POLICY = Unbounded("only `policyengine.evaluate` has it")
_ROUNDINGS = 4


def of_numbers(compute: Callable[..., Interval]) -> Rule:
    """A rule from the bounds of the arguments; nothing is known of lists. NaN in gives NaN out."""

    def rule(call: Arguments) -> Interval:
        return EVERYTHING if call.types[0].kind is Kind.LIST else _with_nan_of(call.bounds, compute(*call.bounds))

    return rule


def of_list(each: Callable[[Interval], Interval], otherwise: Callable[..., Interval] | None = None) -> Rule:
    """A rule from the bounds of a list's elements; `otherwise` where the arguments are numbers."""

    def rule(call: Arguments) -> Interval:
        compute = each if call.types[0].kind is Kind.LIST else otherwise
        return EVERYTHING if compute is None else _with_nan_of(call.bounds, compute(*call.bounds))

    return rule


def _with_nan_of(arguments: Iterable[Interval], result: Interval) -> Interval:
    if math.isnan(result.low) or math.isnan(result.high):
        return EVERYTHING
    return result._replace(nan=result.nan or any(argument.nan for argument in arguments))


def of_kind(kind: Kind, bounds: Interval) -> Rule:
    """Bounds that hold where the first argument is of a kind."""
    return lambda call: bounds if call.types[0].kind is kind else EVERYTHING


def hull(parts: Iterable[Interval]) -> Interval:
    """The least interval around all of them."""
    lows, highs, nans = zip(*parts, strict=True)
    return Interval(min(lows), max(highs), any(nans))


def outwards(low: float, high: float) -> Interval:
    """The interval with its ends moved outwards, by more than what a few roundings make."""
    for _ in range(_ROUNDINGS):
        low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    return Interval(low, high)


def floor(value: float) -> float:
    """The next whole number below; an infinity is itself."""
    return math.floor(value) if math.isfinite(value) else value


def ceil(value: float) -> float:
    """The next whole number above; an infinity is itself."""
    return math.ceil(value) if math.isfinite(value) else value


def add(a: Interval, b: Interval) -> Interval:
    """`a + b`; NaN where infinities of both signs meet."""
    nan = (a.high == math.inf == -b.low) or (b.high == math.inf == -a.low)
    return Interval(a.low + b.low, a.high + b.high, nan)


def negative(a: Interval) -> Interval:
    """`-a`."""
    return Interval(-a.high, -a.low, a.nan)


def product(a: Interval, b: Interval) -> Interval:
    """`a * b`; NaN where 0 meets an infinity."""
    ends = [0.0 if 0 in (x, y) else x * y for x in a[:2] for y in b[:2]]
    nan = (a.may_be_zero and b.may_be_infinite) or (b.may_be_zero and a.may_be_infinite)
    return Interval(min(ends), max(ends), nan)


def quotient(call: Arguments) -> Interval:
    """`a / b`; anything where b may be 0. NaN where infinities meet. Between ints the ends are exact."""
    a, b = call.bounds
    if b.may_be_zero:
        return EVERYTHING
    pairs = [(x, y) for x in a[:2] for y in b[:2] if not (math.isinf(x) and math.isinf(y))]
    exact = call.result != DOUBLE
    ends: list[float] = []
    for x, y in pairs:
        ends += [x // y, -(-x // y)] if exact and isinstance(x, int) and isinstance(y, int) else [x / y]
    nan = a.nan or b.nan or (a.may_be_infinite and b.may_be_infinite)
    return Interval(min(ends), max(ends), nan) if ends else EVERYTHING


def remainder(a: Interval, b: Interval) -> Interval:
    """`a % b`, with the sign of a."""
    size = max(abs(b.low), abs(b.high))
    return Interval(-size if a.low < 0 else 0, size if a.high > 0 else 0)


def least(*parts: Interval) -> Interval:
    """`min(a, b, …)`."""
    return Interval(min(part.low for part in parts), min(part.high for part in parts))


def greatest(*parts: Interval) -> Interval:
    """`max(a, b, …)`."""
    return Interval(max(part.low for part in parts), max(part.high for part in parts))


def clamp(value: Interval, low: Interval, high: Interval) -> Interval:
    """`clamp(value, low, high)`."""
    return least(greatest(value, low), high)


def share(a: Interval, b: Interval) -> Interval:
    """`ratio(a, b)`; NaN where infinities meet."""
    return UNIT._replace(nan=a.may_be_infinite and b.may_be_infinite)


def absolute(a: Interval) -> Interval:
    """`abs(a)`."""
    ends = sorted(map(abs, a[:2]))
    return Interval(0 if a.may_be_zero else ends[0], ends[1])


def rising(compute: Callable[[float], float]) -> Rule:
    """A function that never falls."""
    return of_numbers(lambda a: Interval(compute(a.low), compute(a.high)))


def total(each: Interval) -> Interval:
    """`list.sum()`, of any number of elements, of none too."""
    nan = each.low == -math.inf and each.high == math.inf
    return Interval(-math.inf if each.low < 0 else 0, math.inf if each.high > 0 else 0, nan)


_LARGEST_SUMMED = 1e290
"""The sum of 2**31 doubles of this size is finite."""


def mean(each: Interval) -> Interval:
    """`list.avg()`, 0 of nothing. Sum and quotient are rounded once each: the mean of equal values may be off by so
    much. It is infinite where the sum is."""
    low = -math.inf if each.low < -_LARGEST_SUMMED else min(each.low, 0.0)
    high = math.inf if each.high > _LARGEST_SUMMED else max(each.high, 0.0)
    return outwards(low, high)._replace(nan=total(each).nan)


_LARGEST_SQUARED = 1e140
"""The sum of the squares of 2**31 doubles of this size is finite."""
_SLACK = 1e-12
"""More than what rounding changes, relative to the largest value."""


def deviation(each: Interval) -> Interval:
    """`list.stddev()`: at most half of what lies between the ends; all of it, and a slack, so as not to lose a
    rounding."""
    size = max(abs(each.low), abs(each.high))
    if size > _LARGEST_SQUARED:
        return Interval(0.0, math.inf, each.may_be_infinite or size > _LARGEST_SUMMED)
    return Interval(0.0, (each.high - each.low) * (1 + _SLACK) + size * _SLACK)


def root(a: Interval) -> Interval:
    """`sqrt(a)`; NaN of what is negative."""
    return Interval(math.sqrt(max(a.low, 0.0)), math.sqrt(max(a.high, 0.0)), a.low < 0)


def logarithm(a: Interval) -> Interval:
    """`ln(a)`; NaN of what is negative."""
    low, high = (math.log(end) if end > 0 else -math.inf for end in a[:2])
    return outwards(low, high)._replace(nan=a.low < 0)


def exponential(a: Interval) -> Interval:
    """`exp(a)`."""
    low, high = map(_exponential, a[:2])
    ends = outwards(low, high)
    return Interval(max(ends.low, 0.0), ends.high)


def _exponential(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf
