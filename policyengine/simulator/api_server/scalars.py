"""Canonical forms of the API's scalar strings: quantities and times as the real server writes them back, Go durations.

A quantity keeps its family of suffixes and loses everything redundant: `1000m` is `1`, `1024Mi` is `1Gi`, `0.5` is
`500m` (resource.Quantity's CanonicalizeBytes). Times become whole seconds, micro times six digits, both in UTC.
"""

import re
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache

_QUANTITY = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"": 0, "Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_SECONDS = re.compile(r"\d{4}-[01]\d-[0-3]\dT[012]\d:[0-5]\d:[0-5]\dZ", re.ASCII)
_MICROS = re.compile(r"\d{4}-[01]\d-[0-3]\dT[012]\d:[0-5]\d:[0-5]\d\.\d{6}Z", re.ASCII)
_SIX_DIGITS = re.compile(r"\.\d{6}(Z|[+-]\d\d:\d\d)$", re.ASCII)
_LARGEST = Fraction(2**63 - 1)


class ScalarError(ValueError):
    """A string that is no quantity or time; the message is the real server's."""


def _split(text: str) -> tuple[Fraction, str]:
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise ScalarError("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
    sign, number, suffix = found.groups(default="")
    value = Fraction(number.rstrip(".") or "0")
    if suffix in _BINARY and suffix:
        value *= 2 ** _BINARY[suffix]
    elif suffix in _DECIMAL:
        value *= Fraction(10) ** _DECIMAL[suffix]
    else:
        exponent = int(suffix[1:])
        value *= Fraction(10) ** max(-40, min(40, exponent))
    return min(value, _LARGEST) * (-1 if sign == "-" else 1), suffix


@lru_cache(maxsize=8192)
def quantity_value(text: str) -> Fraction:
    """The exact value; raises ScalarError."""
    return _split(text)[0]


def _ceil(value: Fraction) -> int:
    """Away from zero, as Quantity rounds."""
    whole = -(-abs(value.numerator) // value.denominator)
    return whole if value >= 0 else -whole


def _thousands(value: Fraction) -> tuple[int, int]:
    """`(number, exponent)` with the largest exponent, a multiple of three, that keeps the number whole."""
    nanos = _ceil(value * 10**9)
    exponent = -9
    if nanos == 0:
        return 0, 0
    while nanos % 1000 == 0 and exponent < 18:
        nanos //= 1000
        exponent += 3
    return nanos, exponent


@lru_cache(maxsize=8192)
def canonical_quantity(text: str) -> str:
    """The quantity as the real server writes it; raises ScalarError."""
    value, suffix = _split(text)
    if suffix.endswith("i") and not -1024 < value < 1024:
        number, step = _ceil(value), 0
        while number % 1024 == 0 and step < 60:
            number //= 1024
            step += 10
        return f"{number}{next(s for s, bits in _BINARY.items() if bits == step)}"
    number, exponent = _thousands(value)
    if suffix[:1] in ("e", "E") and len(suffix) > 1:
        return f"{number}e{exponent}" if exponent else str(number)
    return f"{number}{_DECIMAL_SUFFIX[exponent]}"


def _instant(text: str, layout: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
        if "T" not in text or found.tzinfo is None:
            raise ValueError(text)
        return found.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ScalarError(f'parsing time "{text}" as "{layout}": cannot parse "{text}" as "2006"') from error


def canonical_time(text: str) -> str:
    """RFC 3339 in UTC, whole seconds; raises ScalarError."""
    if _SECONDS.fullmatch(text):
        return text
    return _instant(text, "2006-01-02T15:04:05Z07:00").strftime("%Y-%m-%dT%H:%M:%SZ")


def canonical_micro_time(text: str) -> str:
    """RFC 3339 in UTC with six digits; raises ScalarError."""
    if _MICROS.fullmatch(text):
        return text
    if not _SIX_DIGITS.search(text):
        # Go's layout asks for exactly six; a time without them is refused, as clients learn the hard way.
        rest = text[19:] or text
        raise ScalarError(
            f'parsing time "{text}" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "{rest}" as ".000000"'
        )
    return _instant(text, "2006-01-02T15:04:05.000000Z07:00").strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def format_time(seconds: float) -> str:
    """Seconds since the epoch as the API's time."""
    return _format_second(int(seconds))


@lru_cache(maxsize=64)
def _format_second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_seconds(text: object) -> float | None:
    """An API time as seconds since the epoch; None for none or nonsense."""
    if not isinstance(text, str) or not text:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_duration(text: str) -> float:
    """Seconds; raises ValueError in the words of Go's `time.ParseDuration`."""
    bare = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
    if bare == "0":
        return 0.0
    seconds, at = 0.0, 0
    while at < len(bare):
        part = _PART.match(bare, at)
        if part is None:
            break
        seconds += float(part.group(1)) * _UNITS[part.group(2)]
        at = part.end()
    if not bare or at < len(bare):
        unitless = bool(re.fullmatch(r"[\d.]+", bare))
        raise ValueError(f'time: {"missing unit in" if unitless else "invalid"} duration "{text}"')
    return -seconds if text.startswith("-") else seconds
