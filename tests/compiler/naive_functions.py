"""What the functions and operators of the language answer, in the plainest Python, one value at a time.

An optional is `Some(v)` or `NOTHING`; what has no value raises `NoValue`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from hashlib import blake2b
from typing import Any
from zoneinfo import ZoneInfo

import re2

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
    if name.startswith("get") and kinds[0] is Kind.DURATION:
        return part_of_duration(name, values[0])
    if name in ("int", "double", "string", "bool", "duration", "timestamp"):
        return converted(name, values[0], types[0])
    if name.startswith("to") and name[2].isupper():
        return read_text(name, values[0])
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


# --- text ------------------------------------------------------------------------------------------------------

BINARY = {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", 1)}
DECIMAL = {
    letter: Fraction(1000) ** power for power, letter in zip(range(-3, 7), ["n", "u", "m", "", *"kMGTPE"], strict=True)
}
UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
LONGEST = 64
"""Characters of a quantity, a duration or a time."""


def quantity_of(text: str | int) -> Fraction | None:
    """A Kubernetes quantity, exactly; None where the text is none."""
    found = re.fullmatch(r"([+-]?)(\d+\.?\d*|\.\d+)([KMGTPE]i|[numkMGTPE]?|[eE][+-]?\d+)", str(text), re.ASCII)
    if found is None or len(str(text)) > LONGEST:
        return None
    sign, number, suffix = found.groups()
    scale = BINARY.get(suffix) or DECIMAL.get(suffix)
    exact = Fraction(number) * (Fraction(10) ** int(suffix[1:]) if scale is None else scale)
    return -exact if sign == "-" else exact


def duration_of(text: str) -> int:
    parts = re.findall(r"(\d+\.?\d*|\.\d+)(ns|us|ms|s|m|h)", text, re.ASCII)
    written = text[1:] if text[:1] in ("+", "-") else text
    if (written != "0" and ("".join(a + b for a, b in parts) != written or not parts)) or len(text) > LONGEST:
        raise NoValue(text)
    total = math.trunc(sum((Fraction(number) * UNITS[unit] for number, unit in parts), Fraction(0)))
    return fits(-total if text[0] == "-" else total)


def timestamp_of(text: str) -> int:
    form = r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(\.\d{1,9})?([Zz]|[+-]\d\d:[0-5]\d)"
    found = re.fullmatch(form, text, re.ASCII)
    if found is None:
        raise NoValue(text)
    day, time, fraction, zone = found.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{time}{zone.upper().replace('Z', '+00:00')}")
    except ValueError:
        raise NoValue(text) from None
    return fits((moment - EPOCH) // timedelta(seconds=1) * 10**9 + int(Fraction(fraction or 0) * 10**9))


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def integer_of(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,19}", text, re.ASCII):
        raise NoValue(text)
    return fits(int(text))


def double_of(text: str) -> float:
    form = r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity|nan)"
    if not re.fullmatch(form, text, re.ASCII | re.IGNORECASE):
        raise NoValue(text)
    return float(text)


def finite_of(text: str) -> float:
    value = double_of(text)
    if not math.isfinite(value):
        raise NoValue(text)
    return value


def amount_of(text: str, grain: int) -> int:
    """A quantity in its grain, rounded away from zero."""
    exact = quantity_of(text)
    if exact is None:
        raise NoValue(text)
    size = math.ceil(abs(exact) * grain)
    return max(min(-size if exact < 0 else size, LARGEST), SMALLEST)


READERS: dict[str, Callable[[str], Any]] = {
    "toInt": integer_of,
    "toDouble": finite_of,
    "toDuration": duration_of,
    "toTimestamp": timestamp_of,
    "toQuantity/cpu": lambda text: amount_of(text, 1000),
    "toQuantity/memory": lambda text: amount_of(text, 1),
    "toQuantity/storage": lambda text: amount_of(text, 1),
}


def read_text(name: str, text: str | Some | Nothing) -> Some | Nothing:
    if isinstance(text, Nothing):
        return NOTHING
    try:
        return Some(READERS[name](text.value if isinstance(text, Some) else text))
    except NoValue:
        return NOTHING


def truth_of(text: str) -> bool:
    for truth, words in ((True, "1 t T true True TRUE"), (False, "0 f F false False FALSE")):
        if text in words.split():
            return truth
    raise NoValue(text)


def converted(name: str, value: Any, of: Type) -> Any:
    """`int(x)`, `double(x)` and the other conversions that may fail."""
    kind = of.kind
    if name == "string":
        return shown(value, of)
    if kind is Kind.STRING:
        readers = {"int": integer_of, "double": double_of, "bool": truth_of}
        return (readers | {"duration": duration_of, "timestamp": timestamp_of})[name](value)
    if name == "int" and kind in (Kind.TIMESTAMP, Kind.DURATION):
        return value // 10**9 if kind is Kind.TIMESTAMP else math.trunc(Fraction(value, 10**9))
    if name == "int" and kind is Kind.DOUBLE:
        return truncated(value)
    if name == "timestamp" and kind is Kind.INT:
        return fits(value * 10**9)
    if name == "double" and kind is not Kind.DOUBLE:
        return value / 1000 if kind is Kind.CPU else float(value)
    return value


def truncated(value: float) -> int:
    if not -(2.0**63) < value < 2.0**63:
        raise NoValue
    return math.trunc(value)


# --- as text ---------------------------------------------------------------------------------------------------

QUALITIES = ("BestEffort", "Burstable", "Guaranteed")


def shown(value: Any, of: Type) -> str:
    """A value as `string()` and texts write it."""
    if isinstance(value, Some):
        return shown(value.value, of.args[0])
    if isinstance(value, Nothing):
        return "none"
    if of.kind is Kind.LIST:
        return f"[{', '.join(shown(item, of.args[0]) for item in value)}]"
    if of.kind is Kind.MAP:
        return f"{{{', '.join(f'{shown(k, of.args[0])}: {shown(v, of.args[1])}' for k, v in value.items())}}}"
    if of.name == "qos":
        return QUALITIES[value]
    if of.kind is Kind.BOOL:
        return "true" if value else "false"
    if of.kind is Kind.CPU:
        return scaled(value, ["m", "", *"kMGTPE"], 1000)
    if of.kind in (Kind.MEMORY, Kind.STORAGE):
        small = abs(value) < 1024
        return scaled(value, ["", *"kMGTPE"], 1000) if small else scaled(value, ["", *BINARY], 1024)
    if of.kind is Kind.DURATION:
        return seconds_text(value) + "s"
    if of.kind is Kind.TIMESTAMP:
        whole = EPOCH + timedelta(seconds=value // 10**9)
        fraction = seconds_text(value % 10**9).partition(".")[2]
        return f"{whole.year:04}-{whole:%m-%dT%H:%M:%S}{'.' + fraction if fraction else ''}Z"
    return double_text(value) if of.kind is Kind.DOUBLE else str(value)


def scaled(number: int, suffixes: list[str], step: int) -> str:
    place = 0
    while number and number % step == 0 and place + 1 < len(suffixes):
        number, place = number // step, place + 1
    return "0" if number == 0 else f"{number}{suffixes[place]}"


def seconds_text(nanoseconds: int) -> str:
    text = f"{abs(nanoseconds) // 10**9}.{abs(nanoseconds) % 10**9:09}".rstrip("0").rstrip(".")
    return f"-{text}" if nanoseconds < 0 else text


def double_text(value: float) -> str:
    """The shortest text that is read back as the same double."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    sign, digits, power = Decimal(repr(value)).normalize().as_tuple()
    place, number = len(digits) - 1 + int(power), "".join(map(str, digits))
    minus = "-" if sign else ""
    if not value:
        return f"{minus}0"
    if -4 <= place < 0:
        return f"{minus}0.{'0' * (-place - 1)}{number}"
    whole = place + 1 if 0 <= place < 21 else 1
    number = number.ljust(whole, "0")
    text = f"{minus}{number[:whole]}{'.' + number[whole:] if number[whole:] else ''}"
    return text if 0 <= place < 21 else f"{text}e{'-' if place < 0 else '+'}{abs(place):02}"


# --- strings ---------------------------------------------------------------------------------------------------


def part(text: str, start: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if not 0 <= start <= end <= len(text):
        raise NoValue
    return "".join(text[place] for place in range(start, end))


def char_at(text: str, place: int) -> str:
    if place == len(text):
        return ""
    return part(text, place, place + 1)


def places(text: str, wanted: str) -> list[int]:
    return [place for place in range(len(text) + 1) if text[place : place + len(wanted)] == wanted]


def index_of(text: str, wanted: str, start: int = 0) -> int:
    if not 0 <= start <= len(text):
        raise NoValue
    return min((place for place in places(text, wanted) if place >= start), default=-1)


def last_index_of(text: str, wanted: str, start: int | None = None) -> int:
    if start is not None and not 0 <= start <= len(text):
        raise NoValue
    return max((place for place in places(text, wanted) if start is None or place <= start), default=-1)


def split(text: str, separator: str, limit: int = -1) -> list[str]:
    found: list[str] = []
    if limit == 0:
        return found
    while limit < 0 or len(found) + 1 < limit:
        place = text.find(separator, 1 if not separator else 0)
        if place < 0 or (not separator and place >= len(text)):
            break
        found, text = [*found, text[:place]], text[place + len(separator) :]
    return [*found, text] if text or separator else found


def replaced(text: str, old: str, new: str, limit: int = -1) -> str:
    return text.replace(old, new, limit)


def trailing(text: str | Some | Nothing) -> Some | Nothing:
    if isinstance(text, Nothing):
        return NOTHING
    found = re.search(r"[0-9]+$", text.value if isinstance(text, Some) else text)
    return Some(int(found[0])) if found and int(found[0]) <= LARGEST else NOTHING


def ascii_case(text: str, first: str, last: str, by: int) -> str:
    return "".join(chr(ord(letter) + by) if first <= letter <= last else letter for letter in text)


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
