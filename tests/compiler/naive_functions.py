"""What the functions and operators of the language answer, in the plainest Python, one value at a time.

An optional is `Some(v)` or `NOTHING`; what has no value raises `NoValue`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from policyengine.language.types import Kind, Type

LARGEST, SMALLEST = 2**63 - 1, -(2**63)
QUANTITIES = (Kind.CPU, Kind.MEMORY, Kind.STORAGE, Kind.DURATION)


class NoValue(Exception):
    """Overflow, division by zero, an absent key."""


@dataclass(frozen=True)
class Some:
    value: Any


@dataclass(frozen=True)
class Nothing:
    pass


NOTHING = Nothing()


def apply(name: str, values: list[Any], types: list[Type]) -> Any:
    """What a function whose arguments are all evaluated answers."""
    kinds = [one.kind for one in types]
    if name in ("sum", "avg", "min", "max", "stddev") and kinds[0] is Kind.LIST:
        return of_list(name, values[0], types[0].args[0].kind)
    if name in ("_+_", "_-_", "_*_", "_/_", "_%_", "-_"):
        return arithmetic(name, values, kinds)
    if name == "double" and kinds[0] is Kind.CPU:
        return values[0] / 1000
    return FUNCTIONS[name](*values)


def fits(number: int) -> int:
    if not SMALLEST <= number <= LARGEST:
        raise NoValue("overflow")
    return number


def nearest(exact: Fraction) -> int:
    """To a whole number, halves to the even one."""
    low = math.floor(exact)
    rest = exact - low
    if rest == Fraction(1, 2):
        return low if low % 2 == 0 else low + 1
    return low if rest < Fraction(1, 2) else low + 1


def from_double(value: float) -> int:
    if math.isnan(value) or math.isinf(value):
        raise NoValue("not finite")
    return fits(nearest(Fraction(value)))


def divided(a: float, b: float) -> float:
    if b == 0:
        sign = math.copysign(1, a) * math.copysign(1, b)
        return math.nan if a == 0 or math.isnan(a) else sign * math.inf
    return a / b


def arithmetic(name: str, values: list[Any], kinds: list[Kind]) -> Any:
    if name == "-_":
        return -values[0] if kinds[0] is Kind.DOUBLE else fits(-values[0])
    a, b = values
    if name == "_+_":
        return a + b if kinds[0] in (Kind.DOUBLE, Kind.STRING, Kind.LIST) else fits(a + b)
    if name == "_-_":
        return a - b if kinds[0] is Kind.DOUBLE else fits(a - b)
    if name == "_*_":
        return times(a, b, kinds)
    if name == "_/_":
        return over(a, b, kinds)
    if b == 0 or (a == SMALLEST and b == -1):
        raise NoValue
    return int(math.copysign(1, a)) * (abs(a) % abs(b))


def of_list(name: str, values: list[Any], kind: Kind) -> Any:
    """Aggregates of a list: exact fractions, rounded once."""
    if name in ("min", "max"):
        if not values:
            return NOTHING
        return Some(next((v for v in values if v != v), (min if name == "min" else max)(values)))
    if name == "sum":
        return float_sum(values) if kind is Kind.DOUBLE else fits(sum(values))
    if not values:
        return 0 if kind in QUANTITIES else 0.0
    result = mean([float(value) for value in values])
    if name == "stddev":
        squares = [(float(value) - result) * (float(value) - result) for value in values]
        middle = mean(squares)
        result = math.sqrt(middle) if middle >= 0 else math.nan
    return from_double(result) if kind in QUANTITIES else result


def float_sum(values: list[float]) -> float:
    if any(map(math.isnan, values)) or {math.inf, -math.inf} <= set(values):
        return math.nan
    endless = [value for value in values if math.isinf(value)]
    if endless:
        return endless[0]
    exact = sum(map(Fraction, values), Fraction(0))
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def mean(values: list[float]) -> float:
    return float_sum(values) / len(values)


def times(a: Any, b: Any, kinds: list[Kind]) -> Any:
    if kinds == [Kind.DOUBLE, Kind.DOUBLE]:
        return a * b
    if Kind.DOUBLE in kinds:
        return from_double(float(a) * float(b))
    return fits(a * b)


def over(a: Any, b: Any, kinds: list[Kind]) -> Any:
    if kinds == [Kind.DOUBLE, Kind.DOUBLE]:
        return divided(a, b)
    if b == 0:
        raise NoValue("division by zero")
    if kinds[0] in QUANTITIES and kinds[1] is Kind.DOUBLE:
        return from_double(float(a) / b)
    if kinds[0] in QUANTITIES and kinds[1] is Kind.INT:
        return fits(nearest(Fraction(a, b)))
    if kinds[0] in QUANTITIES:
        return float(Fraction(a, b))
    return fits(math.trunc(Fraction(a, b)))


def ratio(a: Any, b: Any) -> float:
    if b == 0:
        return 0.0
    share = a / b
    return share if math.isnan(share) else sorted((0.0, share, 1.0))[1]


def least(*values: Any) -> Any:
    return next((value for value in values if value != value), min(values))


def most(*values: Any) -> Any:
    return next((value for value in values if value != value), max(values))


def to_whole(rounding: Callable[[Fraction], int]) -> Callable[[float], int]:
    def convert(value: float) -> int:
        if isinstance(value, int):
            return value
        if math.isnan(value) or math.isinf(value):
            raise NoValue
        return fits(rounding(Fraction(value)))

    return convert


def away(exact: Fraction) -> int:
    return math.floor(exact + Fraction(1, 2)) if exact >= 0 else -math.floor(-exact + Fraction(1, 2))


def to_int(text: str | Some | Nothing) -> Some | Nothing:
    if isinstance(text, Nothing):
        return NOTHING
    words = text.value if isinstance(text, Some) else text
    digits = words.removeprefix("-").removeprefix("+")
    if not digits.isascii() or not digits.isdigit() or words.startswith(("-+", "+-")):
        return NOTHING
    number = int(words)
    return Some(number) if SMALLEST <= number <= LARGEST else NOTHING


def to_double(text: Any) -> float:
    try:
        return float(text)
    except ValueError:
        raise NoValue from None


def if_finite(text: str | Some | Nothing) -> Some | Nothing:
    try:
        value = to_double(text.value if isinstance(text, Some) else text)
    except (NoValue, TypeError):
        return NOTHING
    return Some(value) if math.isfinite(value) else NOTHING


def exponential(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def logarithm(value: float) -> float:
    if value == 0:
        return -math.inf
    return math.log(value) if value > 0 else math.nan


def truncated(value: float) -> int:
    if not -(2.0**63) < value < 2.0**63:
        raise NoValue
    return math.trunc(value)


def root(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


def text_of(number: int) -> str:
    return str(number)


def same(a: Any, b: Any) -> bool:
    return bool(a == b)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "_==_": same,
    "_!=_": lambda a, b: not same(a, b),
    "_<_": lambda a, b: a < b,
    "_<=_": lambda a, b: a <= b,
    "_>_": lambda a, b: a > b,
    "_>=_": lambda a, b: a >= b,
    "!_": lambda a: not a,
    "@in": lambda item, items: item in items,
    "hasValue": lambda held: isinstance(held, Some),
    "ratio": ratio,
    "min": least,
    "max": most,
    "clamp": lambda value, low, high: least(most(value, low), high),
    "abs": lambda a: abs(a) if isinstance(a, float) else fits(abs(a)),
    "floor": to_whole(math.floor),
    "ceil": to_whole(math.ceil),
    "round": to_whole(away),
    "sqrt": root,
    "exp": exponential,
    "ln": logarithm,
    "int": truncated,
    "double": to_double,
    "toDouble": if_finite,
    "string": text_of,
    "size": len,
    "startsWith": lambda text, part: text[: len(part)] == part,
    "endsWith": lambda text, part: part == "" or text[-len(part) :] == part,
    "contains": lambda text, part: text.find(part) >= 0,
    "lowerAscii": lambda text: text.lower(),
    "toInt": to_int,
    "optional.of": Some,
}
