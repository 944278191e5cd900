"""Text of the language in the plainest Python: read, shown, and its functions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from policyengine.language.types import Kind, Type
from tests.compiler.naive_values import LARGEST, NOTHING, SMALLEST, Nothing, NoValue, Some, fits

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
