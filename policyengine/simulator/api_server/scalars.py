"""Canonical forms of the API's scalar strings: quantities and times as the real server writes them back, Go durations.

A quantity keeps its family of suffixes and loses everything redundant: `1000m` is `1`, `1024Mi` is `1Gi`, `0.5` is
`500m` (resource.Quantity's CanonicalizeBytes). Times become whole seconds, micro times six digits, both in UTC.
"""

import re
from datetime import UTC, datetime
from functools import lru_cache

from policyengine import quantity
from policyengine.language import values

_SUFFIXES = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
"""Of a decimal quantity, from a billionth upwards in steps of a thousand."""
_EXPONENT = re.compile(r"[eE][+-]?\d+$")
_SIX_DIGITS = re.compile(r"\.\d{6}(Z|[+-]\d\d:\d\d)$", re.ASCII)


class ScalarError(ValueError):
    """A string that is no quantity or time; the message is the real server's."""


@lru_cache(maxsize=8192)
def canonical_quantity(text: str) -> str:
    """The quantity as the real server writes it; raises ScalarError."""
    try:
        number = quantity.nanos(text)
    except quantity.QuantityError as error:
        expected = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
        raise ScalarError(f"quantities must match the regular expression '{expected}'") from error
    if text.endswith("i") and abs(number) >= 1024 * 10**9:
        return quantity.format_bytes(quantity.value(text))
    # The largest power of a thousand that leaves a whole number.
    place = 0 if number else 3
    while number and number % 1000 == 0 and place < len(_SUFFIXES) - 1:
        number //= 1000
        place += 1
    if not _EXPONENT.search(text):
        return f"{number}{_SUFFIXES[place]}"
    return f"{number}e{3 * place - 9}" if place != 3 else str(number)


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
    return _instant(text, "2006-01-02T15:04:05Z07:00").strftime("%Y-%m-%dT%H:%M:%SZ")


def canonical_micro_time(text: str) -> str:
    """RFC 3339 in UTC with six digits; raises ScalarError."""
    if not _SIX_DIGITS.search(text):
        # Go's layout asks for exactly six; a time without them is refused, as clients learn the hard way.
        rest = text[19:] or text
        raise ScalarError(
            f'parsing time "{text}" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "{rest}" as ".000000"'
        )
    return _instant(text, "2006-01-02T15:04:05.000000Z07:00").strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_duration(text: str) -> float:
    """Seconds; raises ValueError in the words of Go's `time.ParseDuration`, also for a text of over 64 characters."""
    try:
        return values.parse_duration(text.replace("μ", "µ")) / 1e9  # Go takes either letter
    except values.EvaluationError:
        what = "missing unit in" if re.fullmatch(r"[+-]?[\d.]+", text) else "invalid"
        raise ValueError(f'time: {what} duration "{text}"') from None
