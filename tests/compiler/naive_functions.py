"""What the functions and operators of the language answer, in the plainest Python, one value at a time.

An optional is `Some(v)` or `NOTHING`; what has no value raises `NoValue`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from fractions import Fraction
from hashlib import blake2b
from typing import Any
from zoneinfo import ZoneInfo

import re2

from policyengine.language.types import Kind, Type
from tests.compiler.naive_text import (
    EPOCH,
    UNITS,
    ascii_case,
    char_at,
    converted,
    index_of,
    last_index_of,
    part,
    read_text,
    replaced,
    split,
    trailing,
)
from tests.compiler.naive_values import NOTHING, SMALLEST, NoValue, Some, fits

QUANTITIES = (Kind.CPU, Kind.MEMORY, Kind.STORAGE, Kind.DURATION)


def apply(name: str, values: list[Any], types: list[Type]) -> Any:
    """What a function whose arguments are all evaluated answers."""
    kinds = [one.kind for one in types]
    if name in ("sum", "avg", "min", "max", "stddev") and kinds[0] is Kind.LIST:
        return of_list(name, values[0], types[0].args[0].kind)
    if name in ("_+_", "_-_", "_*_", "_/_", "_%_", "-_"):
        return arithmetic(name, values, kinds)
    if name.startswith("get") and kinds[0] is Kind.DURATION:
        return part_of_duration(name, values[0])
    if name in ("int", "double", "string", "bool", "duration", "timestamp"):
        return converted(name, values[0], types[0])
    if name.startswith("to") and name[2].isupper():
        return read_text(name, values[0])
    return FUNCTIONS[name](*values)


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


# --- time ------------------------------------------------------------------------------------------------------


def part_of_duration(name: str, nanoseconds: int) -> int:
    """Whole hours, minutes or seconds; the milliseconds within the second."""
    unit = {"getHours": UNITS["h"], "getMinutes": UNITS["m"], "getSeconds": UNITS["s"]}.get(name)
    if unit is not None:
        return math.trunc(Fraction(nanoseconds, unit))
    rest = nanoseconds - math.trunc(Fraction(nanoseconds, 10**9)) * 10**9
    return math.trunc(Fraction(rest, 10**6))


def of_clock(read: Callable[[datetime], int]) -> Callable[..., int]:
    def part_of(nanoseconds: int, zone: str = "UTC") -> int:
        offset = re.fullmatch(r"([+-]?)(\d\d):(\d\d)", zone)
        if offset:
            minutes = (int(offset[2]) * 60 + int(offset[3])) * (-1 if offset[1] == "-" else 1)
            return read(
                (EPOCH + timedelta(seconds=nanoseconds // 10**9)).astimezone(timezone(timedelta(minutes=minutes)))
            )
        return read((EPOCH + timedelta(seconds=nanoseconds // 10**9)).astimezone(ZoneInfo(zone)))

    return part_of


# --- numbers ---------------------------------------------------------------------------------------------------


def exponential(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def logarithm(value: float) -> float:
    if value == 0:
        return -math.inf
    return math.log(value) if value > 0 else math.nan


def power(base: float, exponent: float) -> float:
    """IEEE 754's pow."""
    if exponent == 0 or base == 1:
        return 1.0
    if math.isnan(base) or math.isnan(exponent):
        return math.nan
    odd = abs(exponent) < 2**53 and exponent % 2 == 1
    if base == 0 and exponent < 0:
        return math.copysign(math.inf, base) if odd else math.inf
    if base < 0 and math.isfinite(base) and math.isfinite(exponent) and exponent != math.floor(exponent):
        return math.nan
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and odd else math.inf


def root(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


def beta(x: float, a: float, b: float) -> float:
    """For whole shapes a and b: the chance of a or more hits in a + b - 1 throws."""
    if not (a > 0 and b > 0):
        raise NoValue
    if math.isnan(x) or math.isinf(a) or math.isinf(b):
        return math.nan
    if not 0 < x < 1:
        return 0.0 if x <= 0 else 1.0
    assert a == int(a), "the oracle knows whole shapes only"
    assert b == int(b), "the oracle knows whole shapes only"
    throws, hit = int(a + b - 1), Fraction(x)
    return float(sum(math.comb(throws, n) * hit**n * (1 - hit) ** (throws - n) for n in range(int(a), throws + 1)))


def hashed(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def draw(uid: str, node: str, rule: str, stream: str) -> float:
    """Two hashes mixed as splitmix64 does it, and the upper 53 bits of that."""
    value = ((hashed(f"{uid}\0{rule}\0{stream}") ^ hashed(node)) + 0x9E3779B97F4A7C15) % 2**64
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        value = (value ^ value >> shift) * factor % 2**64
    return (value >> 11) / 2**53


def same(a: Any, b: Any) -> bool:
    if isinstance(a, Some) and isinstance(b, Some):
        return same(a.value, b.value)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(value, b[key]) for key, value in a.items())
    return bool(a == b)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "_==_": same,
    "_!=_": lambda a, b: not same(a, b),
    "_<_": lambda a, b: a < b,
    "_<=_": lambda a, b: a <= b,
    "_>_": lambda a, b: a > b,
    "_>=_": lambda a, b: a >= b,
    "!_": lambda a: not a,
    "@in": lambda item, items: any(same(item, one) for one in items),
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
    "pow": power,
    "betaCdf": beta,
    "hash": lambda text: hashed(text) >> 1,
    "random": draw,
    "size": len,
    "startsWith": lambda text, part: text[: len(part)] == part,
    "endsWith": lambda text, part: part == "" or text[-len(part) :] == part,
    "contains": lambda text, part: text.find(part) >= 0,
    "matches": lambda text, pattern: bool(re2.search(pattern, text)),
    "lowerAscii": lambda text: ascii_case(text, "A", "Z", 32),
    "upperAscii": lambda text: ascii_case(text, "a", "z", -32),
    "trim": str.strip,
    "replace": replaced,
    "split": split,
    "join": lambda items, separator="": separator.join(items),
    "substring": part,
    "charAt": char_at,
    "indexOf": index_of,
    "lastIndexOf": last_index_of,
    "trailingInt": trailing,
    "optional.of": Some,
    "optional.none": lambda: NOTHING,
    "optional.ofNonZeroValue": lambda value: Some(value) if value else NOTHING,
    "getFullYear": of_clock(lambda t: t.year),
    "getMonth": of_clock(lambda t: t.month - 1),
    "getDate": of_clock(lambda t: t.day),
    "getDayOfMonth": of_clock(lambda t: t.day - 1),
    "getDayOfWeek": of_clock(lambda t: (t.weekday() + 1) % 7),
    "getDayOfYear": of_clock(lambda t: (t.date() - t.date().replace(month=1, day=1)).days),
    "getHours": of_clock(lambda t: t.hour),
    "getMinutes": of_clock(lambda t: t.minute),
    "getSeconds": of_clock(lambda t: t.second),
    "getMilliseconds": lambda nanoseconds, zone="UTC": nanoseconds % 10**9 // 10**6,
}
