"""What a naive interpreter answers with besides plain values: optionals, and that there is no value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

LARGEST, SMALLEST = 2**63 - 1, -(2**63)


class NoValue(Exception):
    """Overflow, division by zero, an absent key."""


@dataclass(frozen=True)
class Some:
    value: Any


@dataclass(frozen=True)
class Nothing:
    pass


NOTHING = Nothing()


def fits(number: int) -> int:
    if not SMALLEST <= number <= LARGEST:
        raise NoValue("overflow")
    return number
