"""Kubernetes quantities: `100m`, `1.5Gi`, `1e3` as exact numbers.

Grammar and rounding are those of apimachinery's `resource.Quantity`: a number, then a decimal or binary suffix
or a decimal exponent; nothing finer than a billionth is kept, it is rounded away from zero; a number with a
binary suffix is capped at 2**63 - 1. Where Go's arithmetic would overflow an int64, ours stays at the limit.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

MAX_INT64 = 2**63 - 1

_NANO = 10**9
_MAX_LENGTH = 64
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_PATTERN = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:([KMGTPE]i)|[eE]([+-]?[0-9]{1,9})|([numkMGTPE]?))", re.ASCII)
_OTHER_UNIT = re.compile(r"([0-9]+(?:\.[0-9]+)?) *([kmgtpe])(i?)b?", re.ASCII)
"""As in `8GB`, `8 Gi`, `8gb`: what people write of memory."""
_EXPONENT_LIMIT = 100
"""Beyond this power of ten every quantity is at its cap or at one billionth anyway."""

Scalar = str | int | float
"""What JSON and YAML authors write for a quantity."""


class QuantityError(ValueError):
    """The text is no quantity; the message is one sentence that quotes it."""


def parse(text: Scalar) -> Fraction:
    """The exact value; raises `QuantityError`."""
    return Fraction(nanos(text), _NANO)


def milli_value(text: Scalar) -> int:
    """Thousandths, rounded away from zero, within int64: millicores of a cpu. Raises `QuantityError`."""
    return _rounded(nanos(text), 10**6)


def value(text: Scalar) -> int:
    """Whole units, rounded away from zero, within int64: bytes of a memory. Raises `QuantityError`."""
    return _rounded(nanos(text), _NANO)


def amount(resource: str, text: Scalar) -> int:
    """Millicores of `cpu`, whole units of any other resource. Raises `QuantityError`."""
    return milli_value(text) if resource == "cpu" else value(text)


def nanos(text: Scalar) -> int:
    """Billionths, exact: the finest grain a quantity has. Raises `QuantityError`."""
    if type(text) is str:
        return _parse_text(text)
    if isinstance(text, bool) or not isinstance(text, int | float):
        raise QuantityError(f"`{text}` is not a quantity; write a number such as 100m or 2Gi")
    return _parse_text(str(text))


def nanos_or_0(text: Scalar | None) -> int:
    """Billionths; 0 where nothing is written, or what is no quantity."""
    try:
        return 0 if text is None else nanos(text)
    except QuantityError:
        return 0


def format_cpu(milli: int) -> str:
    """Millicores in Kubernetes' canonical form: `250m`, `2`."""
    return _decimal(milli, ("m", "", "k", "M", "G", "T", "P", "E"))


def format_count(number: int) -> str:
    """A whole number in Kubernetes' canonical decimal form: `110`, `2k`."""
    return _decimal(number, ("", "k", "M", "G", "T", "P", "E"))


def format_bytes(number: int) -> str:
    """Bytes in Kubernetes' canonical binary form: `2Gi`, `1536`; below 1024 the decimal one."""
    if -1024 < number < 1024:
        return format_count(number)
    suffix = ""
    for larger in _BINARY:
        if number % 1024:
            break
        number //= 1024
        suffix = larger
    return f"{number}{suffix}"


def format_amount(resource: str, number: int) -> str:
    """An amount in the grain of `amount` in the resource's canonical form: `250m`, `2Gi`, `3`."""
    if resource == "cpu":
        return format_cpu(number)
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        return format_bytes(number)
    return format_count(number)


@lru_cache(maxsize=1 << 16)
def _parse_text(text: str) -> int:
    match = _PATTERN.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if match is None or not (match[2] or match[3]):
        shown = text if len(text) <= _MAX_LENGTH else text[:_MAX_LENGTH] + "…"
        raise QuantityError(f"`{shown}` is not a quantity; write {meant(text) or 'a number such as 100m or 2Gi'}")
    sign, whole, fraction, binary, exponent, suffix = match.groups(default="")
    digits = int((whole + fraction) or "0")
    if binary:
        result = min(_scaled(digits << _BINARY[binary], -len(fraction)), MAX_INT64 * _NANO)
    else:
        result = _scaled(digits, (int(exponent) if exponent else _DECIMAL[suffix]) - len(fraction))
    return -result if sign == "-" else result


def meant(text: str) -> str | None:
    """What to write for a text that is no quantity, quoted: `8G` for `8GB`; None where nobody knows."""
    parts = _OTHER_UNIT.fullmatch(text.lower())
    if parts is None:
        return None
    number, letter, binary = parts.groups()
    return f"`{number}{letter.upper() if letter != 'k' or binary else letter}{binary}`"


def _scaled(digits: int, exponent: int) -> int:
    """`digits` times ten to the `exponent`, in billionths, rounded up."""
    power = exponent + 9
    if digits == 0:
        return 0
    if power < -_EXPONENT_LIMIT:
        return 1
    if power >= 0:
        return int(digits * 10 ** min(power, _EXPONENT_LIMIT))
    return -(-digits // int(10**-power))


def _rounded(billionths: int, unit: int) -> int:
    size = min(-(-abs(billionths) // unit), MAX_INT64)
    return size if billionths >= 0 else -size


def _decimal(number: int, suffixes: tuple[str, ...]) -> str:
    if number == 0:
        return "0"
    place = 0
    while number % 1000 == 0 and place < len(suffixes) - 1:
        number //= 1000
        place += 1
    return f"{number}{suffixes[place]}"
