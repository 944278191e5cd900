"""`+ - * / %` and unary `-`: checked 64-bit integers, IEEE doubles, quantities and durations that scale.

Integer division truncates and the remainder has the dividend's sign, as in CEL. A quantity over or times a number
is rounded to its grain, halves to even. The column kernels answer the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from policyengine.language.functions import bounds
from policyengine.language.functions.bounds import Interval, of_numbers
from policyengine.language.functions.table import Cost, Function, Implementation, Overload, Style, T, function
from policyengine.language.types import (
    CPU,
    DOUBLE,
    DURATION,
    INT,
    MEMORY,
    STORAGE,
    STRING,
    TIMESTAMP,
    Type,
    list_of,
)
from policyengine.language.values import EvaluationError, in_int64

QUANTITY_TYPES = (CPU, MEMORY, STORAGE)
SCALABLE = (*QUANTITY_TYPES, DURATION)
LONGEST_TEXT = 1 << 20
"""What a string function may make, in characters: lets can double a string as often as there are lets."""
LONGEST_LIST = 1 << 17
"""What `+` of lists may make, in items."""


def add(a: int, b: int) -> int:
    """`a + b`."""
    return in_int64(a + b)


def subtract(a: int, b: int) -> int:
    """`a - b`."""
    return in_int64(a - b)


def multiply(a: int, b: int) -> int:
    """`a * b`."""
    return in_int64(a * b)


def divide(a: int, b: int) -> int:
    """`a / b`, truncated towards zero."""
    if b == 0:
        raise EvaluationError("division by zero")
    quotient = abs(a) // abs(b)
    return in_int64(quotient if (a < 0) == (b < 0) else -quotient)


def remainder(a: int, b: int) -> int:
    """`a % b`, with the sign of a."""
    if b == 0:
        raise EvaluationError("division by zero")
    if b == -1:
        in_int64(-a)
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


def negate(a: int) -> int:
    """`-a`."""
    return in_int64(-a)


def join_texts(a: str, b: str) -> str:
    """`a + b` of strings."""
    if len(a) + len(b) > LONGEST_TEXT:
        raise EvaluationError("the string grows too long")
    return a + b


def join_lists(a: Sequence[object], b: Sequence[object]) -> list[object]:
    """`a + b` of lists."""
    if len(a) + len(b) > LONGEST_LIST:
        raise EvaluationError("the list grows too long")
    return [*a, *b]


def divide_doubles(a: float, b: float) -> float:
    """`a / b` as IEEE has it: an infinity or NaN, never an error."""
    if b != 0.0:
        return a / b
    if a == 0.0 or math.isnan(a) or math.isnan(b):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def scale(a: int, factor: float) -> int:
    """`q * d`, rounded to the grain."""
    return whole(_rounded(float(a) * factor))


def unscale(a: int, divisor: float) -> int:
    """`q / d`, rounded to the grain."""
    if divisor == 0.0:
        raise EvaluationError("division by zero")
    return whole(_rounded(float(a) / divisor))


def divide_to_grain(a: int, b: int) -> int:
    """`q / n`, rounded to the grain."""
    if b == 0:
        raise EvaluationError("division by zero")
    quotient, rest = divmod(abs(a), abs(b))
    left = abs(b) - rest
    quotient += rest > left or (rest == left and quotient % 2 == 1)
    return in_int64(quotient if (a < 0) == (b < 0) else -quotient)


def quotient(a: int, b: int) -> float:
    """`q / q`, the nearest double."""
    if b == 0:
        raise EvaluationError("division by zero")
    return a / b


def whole(value: float) -> int:
    """A whole double as an int.

    Raises:
        EvaluationError: it is not finite, or 64 bits do not hold it.
    """
    if not math.isfinite(value):
        raise EvaluationError("not a finite number")
    return in_int64(int(value))


def _rounded(value: float) -> float:
    return float(round(value)) if math.isfinite(value) else value


def _same(types: tuple[Type, ...], implementation: Implementation) -> Iterator[Overload]:
    return (Overload((type_, type_), type_, implementation) for type_ in types)


def _scaling(implementation: Implementation, by_double: Implementation) -> Iterator[Overload]:
    for type_ in SCALABLE:
        yield Overload((type_, INT), type_, implementation)
        yield Overload((type_, DOUBLE), type_, by_double)


def _scaled_by(type_: Type) -> tuple[Overload, Overload]:
    return (
        Overload((INT, type_), type_, multiply),
        Overload((DOUBLE, type_), type_, lambda factor, a: scale(a, factor)),
    )


FUNCTIONS: tuple[Function, ...] = (
    function(
        "_+_",
        Style.OPERATOR,
        "the sum; of strings and lists, one after the other",
        Overload((INT, INT), INT, add),
        Overload((DOUBLE, DOUBLE), DOUBLE, lambda a, b: a + b),
        Overload((STRING, STRING), STRING, join_texts),
        *_same(SCALABLE, add),
        Overload((TIMESTAMP, DURATION), TIMESTAMP, add),
        Overload((DURATION, TIMESTAMP), TIMESTAMP, add),
        Overload((list_of(T), list_of(T)), list_of(T), join_lists),
        bounds=of_numbers(lambda a, b: Interval(a.low + b.low, a.high + b.high)),
        cost=Cost("add"),
        mutants=["_-_"],
    ),
    function(
        "_-_",
        Style.OPERATOR,
        "the difference",
        Overload((INT, INT), INT, subtract),
        Overload((DOUBLE, DOUBLE), DOUBLE, lambda a, b: a - b),
        *_same(SCALABLE, subtract),
        Overload((TIMESTAMP, DURATION), TIMESTAMP, subtract),
        Overload((TIMESTAMP, TIMESTAMP), DURATION, subtract),
        bounds=of_numbers(lambda a, b: Interval(a.low - b.high, a.high - b.low)),
        cost=Cost("add"),
        mutants=["_+_"],
    ),
    function(
        "_*_",
        Style.OPERATOR,
        "the product; a quantity or duration is scaled by a number",
        Overload((INT, INT), INT, multiply),
        Overload((DOUBLE, DOUBLE), DOUBLE, lambda a, b: a * b),
        *_scaling(multiply, scale),
        *(overload for type_ in SCALABLE for overload in _scaled_by(type_)),
        bounds=bounds.outwards(of_numbers(bounds.product)),
        cost=Cost("multiply"),
        mutants=["_/_"],
    ),
    function(
        "_/_",
        Style.OPERATOR,
        "the quotient: of ints truncated, of two quantities a double",
        Overload((INT, INT), INT, divide),
        Overload((DOUBLE, DOUBLE), DOUBLE, divide_doubles),
        *(Overload((type_, type_), DOUBLE, quotient) for type_ in SCALABLE),
        *_scaling(divide_to_grain, unscale),
        bounds=bounds.outwards(of_numbers(bounds.quotient)),
        cost=Cost("divide"),
        mutants=["_*_"],
    ),
    function(
        "_%_",
        Style.OPERATOR,
        "what a division leaves",
        Overload((INT, INT), INT, remainder),
        bounds=of_numbers(bounds.remainder),
        cost=Cost("divide"),
        mutants=[],
    ),
    function(
        "-_",
        Style.OPERATOR,
        "the opposite",
        Overload((INT,), INT, negate),
        Overload((DOUBLE,), DOUBLE, lambda a: -a),
        *(Overload((type_,), type_, negate) for type_ in SCALABLE),
        bounds=of_numbers(lambda a: Interval(-a.high, -a.low)),
        cost=Cost("add"),
        mutants=[],
    ),
)
