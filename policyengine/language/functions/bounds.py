"""Bounds of numbers: intervals, and how each function gets those of its answer from those of its arguments.

For example `clamp(x, 0, 10)` lies within 0..10 whatever x is, and `a + b` within the sums of both ends.
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

    @property
    def is_finite(self) -> bool:
        """Whether both ends are."""
        return math.isfinite(self.low) and math.isfinite(self.high)


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

EVERYTHING = Interval(-math.inf, math.inf)
NOT_NEGATIVE = Interval(0.0, math.inf)
UNIT = Interval(0.0, 1.0)
NO_NUMBER = Unbounded("its answer is no number")
ANY_NUMBER = Unbounded("its answer may be any number")
NO_POLICY = Unbounded("only `policyengine.evaluate` has it")
_ROUNDINGS = 4


def of_numbers(compute: Callable[..., Interval]) -> Rule:
    """A rule from the bounds of the arguments; nothing is known of lists."""

    def rule(call: Arguments) -> Interval:
        return EVERYTHING if call.types[0].kind is Kind.LIST else compute(*call.bounds)

    return rule


def of_list(each: Callable[[Interval], Interval], otherwise: Callable[..., Interval] | None = None) -> Rule:
    """A rule from the bounds of a list's elements; `otherwise` where the arguments are numbers."""

    def rule(call: Arguments) -> Interval:
        if call.types[0].kind is Kind.LIST:
            return each(*call.bounds)
        return EVERYTHING if otherwise is None else otherwise(*call.bounds)

    return rule


def of_kind(kind: Kind, bounds: Interval) -> Rule:
    """Bounds that hold where the first argument is of a kind."""
    return lambda call: bounds if call.types[0].kind is kind else EVERYTHING


def outwards(rule: Rule) -> Rule:
    """The rule for a function that rounds integers and quantities, by less than one grain."""

    def rounded(call: Arguments) -> Interval:
        bounds = rule(call)
        return bounds if call.result == DOUBLE else Interval(floor(bounds.low), ceil(bounds.high))

    return rounded


def hull(parts: Iterable[Interval]) -> Interval:
    """The least interval around all of them."""
    lows, highs = zip(*parts, strict=True)
    return Interval(min(lows), max(highs))


def floor(value: float) -> float:
    """The next whole number below; an infinity is itself."""
    return math.floor(value) if math.isfinite(value) else value


def ceil(value: float) -> float:
    """The next whole number above; an infinity is itself."""
    return math.ceil(value) if math.isfinite(value) else value


def product(a: Interval, b: Interval) -> Interval:
    """`a * b`."""
    ends = [0.0 if 0 in (x, y) else x * y for x in a for y in b]
    return Interval(min(ends), max(ends))


def quotient(a: Interval, b: Interval) -> Interval:
    """`a / b`; anything where b may be 0."""
    return EVERYTHING if b.low <= 0 <= b.high else product(a, Interval(1 / b.high, 1 / b.low))


def remainder(a: Interval, b: Interval) -> Interval:
    """`a % b`, with the sign of a."""
    size = max(abs(b.low), abs(b.high))
    return Interval(-size if a.low < 0 else 0.0, size if a.high > 0 else 0.0)


def least(*parts: Interval) -> Interval:
    """`min(a, b, …)`."""
    return Interval(min(part.low for part in parts), min(part.high for part in parts))


def greatest(*parts: Interval) -> Interval:
    """`max(a, b, …)`."""
    return Interval(max(part.low for part in parts), max(part.high for part in parts))


def clamp(value: Interval, low: Interval, high: Interval) -> Interval:
    """`clamp(value, low, high)`."""
    return least(greatest(value, low), high)


def absolute(a: Interval) -> Interval:
    """`abs(a)`."""
    ends = sorted(map(abs, a))
    return Interval(0.0 if a.low <= 0 <= a.high else ends[0], ends[1])


def rising(compute: Callable[[float], float]) -> Rule:
    """A function that never falls."""
    return of_numbers(lambda a: Interval(compute(a.low), compute(a.high)))


def total(each: Interval) -> Interval:
    """`list.sum()`, of any number of elements, of none too."""
    return Interval(-math.inf if each.low < 0 else 0.0, math.inf if each.high > 0 else 0.0)


def mean(each: Interval) -> Interval:
    """`list.avg()`, 0 of nothing. Sum and quotient are rounded once each: the mean of equal values may be off by so
    much."""
    low, high = min(each.low, 0.0), max(each.high, 0.0)
    for _ in range(_ROUNDINGS):
        low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    return Interval(low, high)


def deviation(each: Interval) -> Interval:
    """`list.stddev()`: at most half of what lies between the ends; all of it, so as not to lose a rounding."""
    return Interval(0.0, each.high - each.low)


def exponential(value: float) -> float:
    """`exp(value)` of a bound."""
    return math.exp(value) if value < 700 else math.inf


def logarithm(value: float) -> float:
    """`ln(value)` of a bound."""
    return math.log(value) if value > 0 else -math.inf
