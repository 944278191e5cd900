"""Functions of numbers: `ratio clamp min max abs floor ceil round sqrt ln exp pow`, list aggregates.

`min` and `max` answer the first of equal values. `ln`, `exp` and `pow` are `elementary`'s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from policyengine import elementary
from policyengine.language.functions import answer_bounds
from policyengine.language.functions.answer_bounds import (
    ANY_NUMBER,
    Bounds,
    Interval,
    of_list,
    of_numbers,
    rising,
)
from policyengine.language.functions.arithmetic import in_range, whole
from policyengine.language.functions.table import Cost, Function, Implementation, Signatures, Style, function

_MOST_ARGUMENTS = 8


def ratio(a: float, b: float) -> float:
    """a / b kept within 0..1; 0 where b is 0. NaN stays NaN."""
    if b == 0:
        return 0.0
    value = a / b
    return value if math.isnan(value) else min(max(value, 0.0), 1.0) + 0.0


def clamp(value: float, low: float, high: float) -> float:
    """The value kept within low..high; `high` where low is above it."""
    return smaller(larger(value, low), high)


def smaller(first: float, *others: float) -> float:
    """The least; NaN where one is NaN."""
    return _extreme(first, others, lambda a, b: a < b)


def larger(first: float, *others: float) -> float:
    """The greatest; NaN where one is NaN."""
    return _extreme(first, others, lambda a, b: a > b)


def _extreme(best: float, others: Sequence[float], better: Callable[[float, float], bool]) -> float:
    for value in others:
        if best != best:
            return best
        if value != value or better(value, best):
            best = value
    return best


def half_away(value: float) -> float:
    """`round(d)` of a finite double: the nearest whole number, halves away from zero."""
    if abs(value - math.trunc(value)) != 0.5:
        return round(value)
    return math.trunc(value) + math.copysign(1.0, value)


def root(value: float) -> float:
    """The square root; NaN of what is negative."""
    return math.sqrt(value) if value >= 0 else math.nan


def total(values: Sequence[float]) -> float:
    """The exactly rounded sum of doubles: no order of them shows, and no sign of a zero."""
    if not all(map(math.isfinite, values)):
        return sum(value for value in values if not math.isfinite(value))
    try:
        return math.fsum(values) + 0.0
    except OverflowError:  # on the way, or in the end
        exact = sum(map(Fraction, values), Fraction(0))
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def mean(values: Sequence[float]) -> float:
    """The mean, 0 of nothing."""
    return total(values) / len(values) if values else 0.0


def deviation(values: Sequence[float]) -> float:
    """The population standard deviation, 0 of nothing."""
    middle = mean(values)
    return math.sqrt(mean([(value - middle) * (value - middle) for value in values]))


def _extremes(compute: Callable[..., float]) -> Signatures:
    """Of 2 to 8 values, or of a list: which of two zeros it holds first does not show, as `-0.0 + 0` is 0."""
    several = (", ".join(["comparable"] * count) for count in range(2, _MOST_ARGUMENTS + 1))
    of_several: dict[str, Implementation] = {f"{parameters} -> comparable": compute for parameters in several}
    of_list = {"list(comparable) -> optional(comparable)": lambda items: compute(*items) + 0 if items else None}
    return of_several | of_list


def _averages(compute: Callable[[Sequence[float]], float]) -> Signatures:
    return {
        "list(double) -> double": compute,
        "list(int) -> double": compute,
        "list(scalable) -> scalable": lambda items: whole(float(round(compute(items)))),
    }


def _of_double(name: str, doc: str, compute: Callable[..., float], limits: Bounds, *, arguments: int = 1) -> Function:
    overloads = {f"{', '.join(['double'] * arguments)} -> double": compute}
    return function(name, Style.GLOBAL, doc, overloads, bounds=limits, cost=Cost("root"))


def _to_int(name: str, doc: str, compute: Callable[[float], float], limits: Bounds, mutants: Sequence[str]) -> Function:
    overloads: Signatures = {
        "double -> int": lambda value: whole(compute(value) if math.isfinite(value) else value),
        "int -> int": lambda value: value,
    }
    return function(name, Style.GLOBAL, doc, overloads, bounds=limits, cost=Cost("bound"), mutants=mutants)


def _of_list(name: str, doc: str, limits: Callable[[Interval], Interval], overloads: Signatures) -> Function:
    return function(name, Style.METHOD, doc, overloads, bounds=of_list(limits), cost=Cost("text"))


FUNCTIONS: tuple[Function, ...] = (
    function(
        "ratio",
        Style.GLOBAL,
        "a / b kept within 0..1, 0 where b is 0",
        dict.fromkeys(("counted, counted -> double", "double, double -> double"), ratio),
        bounds=of_numbers(answer_bounds.share),
        cost=Cost("divide"),
    ),
    function(
        "clamp",
        Style.GLOBAL,
        "the value kept within two bounds",
        {"comparable, comparable, comparable -> comparable": clamp},
        bounds=of_numbers(answer_bounds.clamp),
        cost=Cost("bound"),
    ),
    function(
        "min",
        Style.BOTH,
        "the least; of a list an optional",
        _extremes(smaller),
        bounds=of_list(lambda each: each, answer_bounds.least),
        cost=Cost("bound"),
        mutants=["max"],
    ),
    function(
        "max",
        Style.BOTH,
        "the greatest; of a list an optional",
        _extremes(larger),
        bounds=of_list(lambda each: each, answer_bounds.greatest),
        cost=Cost("bound"),
        mutants=["min"],
    ),
    _of_list(
        "sum",
        "the sum of a list, 0 of nothing",
        answer_bounds.total,
        {"list(double) -> double": total, "list(counted) -> counted": in_range(sum)},
    ),
    _of_list("avg", "the mean of a list, 0 of nothing", answer_bounds.mean, _averages(mean)),
    _of_list("stddev", "the population standard deviation of a list", answer_bounds.deviation, _averages(deviation)),
    function(
        "abs",
        Style.GLOBAL,
        "the absolute value",
        {"counted -> counted": in_range(abs), "double -> double": abs},
        bounds=of_numbers(answer_bounds.absolute),
        cost=Cost("add"),
    ),
    _to_int("floor", "the next int below", math.floor, rising(answer_bounds.floor), ["ceil"]),
    _to_int("ceil", "the next int above", math.ceil, rising(answer_bounds.ceil), ["floor"]),
    _to_int(
        "round",
        "the nearest int, halves away from zero",
        half_away,
        of_numbers(lambda a: Interval(answer_bounds.floor(a.low), answer_bounds.ceil(a.high))),
        [],
    ),
    _of_double("sqrt", "the square root", root, of_numbers(answer_bounds.root)),
    _of_double("ln", "the natural logarithm", elementary.ln, of_numbers(answer_bounds.logarithm)),
    _of_double("exp", "e to the power", elementary.exp, of_numbers(answer_bounds.exponential)),
    _of_double("pow", "a to the power b", elementary.power, ANY_NUMBER, arguments=2),
)
