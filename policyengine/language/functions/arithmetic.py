"""`+ - * / %` and unary `-`: checked 64-bit integers, IEEE doubles, quantities and durations that scale.

Integer division truncates and the remainder has the dividend's sign, as in CEL. A quantity over or times a number
is rounded to its grain, halves to even. The column kernels answer the same.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence

from policyengine.language.functions import answer_bounds
from policyengine.language.functions.answer_bounds import of_numbers
from policyengine.language.functions.table import Cost, Function, Style, function
from policyengine.language.values import EvaluationError, in_int64

LONGEST_TEXT = 1 << 20
"""What a string function may make, in characters: lets can double a string as often as there are lets."""
LONGEST_LIST = 1 << 17
"""What `+` of lists may make, in items."""


def in_range(compute: Callable[..., int]) -> Callable[..., int]:
    """The operation on ints, an error where 64 bits do not hold the answer."""
    return lambda *values: in_int64(compute(*values))


add, subtract = in_range(operator.add), in_range(operator.sub)
multiply, negate = in_range(operator.mul), in_range(operator.neg)


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
    """A whole double as an int. Raises EvaluationError: it is not finite, or 64 bits do not hold it."""
    if not math.isfinite(value):
        raise EvaluationError("not a finite number")
    return in_int64(int(value))


def _rounded(value: float) -> float:
    return float(round(value)) if math.isfinite(value) else value


FUNCTIONS: tuple[Function, ...] = (
    function(
        "_+_",
        Style.OPERATOR,
        "the sum; of strings and lists, one after the other",
        {
            "int, int -> int": add,
            "double, double -> double": operator.add,
            "string, string -> string": join_texts,
            "scalable, scalable -> scalable": add,
            "timestamp, duration -> timestamp": add,
            "duration, timestamp -> timestamp": add,
            "list(T), list(T) -> list(T)": join_lists,
        },
        bounds=of_numbers(answer_bounds.add),
        cost=Cost("add"),
        mutants=["_-_"],
    ),
    function(
        "_-_",
        Style.OPERATOR,
        "the difference",
        {
            "int, int -> int": subtract,
            "double, double -> double": operator.sub,
            "scalable, scalable -> scalable": subtract,
            "timestamp, duration -> timestamp": subtract,
            "timestamp, timestamp -> duration": subtract,
        },
        bounds=of_numbers(lambda a, b: answer_bounds.add(a, answer_bounds.negative(b))),
        cost=Cost("add"),
        mutants=["_+_"],
    ),
    function(
        "_*_",
        Style.OPERATOR,
        "the product; a quantity or duration is scaled by a number",
        {
            "int, int -> int": multiply,
            "double, double -> double": operator.mul,
            "scalable, int -> scalable": multiply,
            "scalable, double -> scalable": scale,
            "int, scalable -> scalable": multiply,
            "double, scalable -> scalable": lambda factor, a: scale(a, factor),
        },
        bounds=of_numbers(answer_bounds.product),
        cost=Cost("multiply"),
        mutants=["_/_"],
    ),
    function(
        "_/_",
        Style.OPERATOR,
        "the quotient: of ints truncated, of two quantities a double",
        {
            "int, int -> int": divide,
            "double, double -> double": divide_doubles,
            "scalable, scalable -> double": quotient,
            "scalable, int -> scalable": divide_to_grain,
            "scalable, double -> scalable": unscale,
        },
        bounds=answer_bounds.quotient,
        cost=Cost("divide"),
        mutants=["_*_"],
    ),
    function(
        "_%_",
        Style.OPERATOR,
        "what a division leaves",
        {"int, int -> int": remainder},
        bounds=of_numbers(answer_bounds.remainder),
        cost=Cost("divide"),
    ),
    function(
        "-_",
        Style.OPERATOR,
        "the opposite",
        {"int -> int": negate, "double -> double": operator.neg, "scalable -> scalable": negate},
        bounds=of_numbers(answer_bounds.negative),
        cost=Cost("add"),
    ),
)
