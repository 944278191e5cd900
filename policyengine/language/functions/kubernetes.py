"""Kubernetes' own CEL libraries, as far as device selectors need them: exact quantities and semantic versions.

Source: apiserver's pkg/cel/library (quantity, semver), v1.36. A policy has quantities with dimensions instead
(`2Gi`, `toQuantity`), so every overload here is dynamic.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar

from policyengine import quantity
from policyengine.language.functions.table import Function, Implementation, Style, of_evaluate
from policyengine.language.values import INT64_MAX, INT64_MIN, EvaluationError, kind_of, shortened

_NANO = 10**9
_Kind = TypeVar("_Kind")


@dataclass(frozen=True, slots=True)
class ExactQuantity:
    """A `resource.Quantity`, without dimension."""

    nanos: int
    """Billionths: the finest grain a quantity has."""


_CORE = r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
_IDENTIFIER = r"(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION = re.compile(
    rf"{_CORE}(?:-({_IDENTIFIER}(?:\.{_IDENTIFIER})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?", re.ASCII
)
_LONGEST = 256


@dataclass(frozen=True, slots=True)
class Semver:
    """A semantic version (semver.org 2.0.0). Equal where neither precedes the other: build metadata does not count."""

    numbers: tuple[int, int, int]
    pre_release: tuple[tuple[int, int, str], ...]
    """Identifiers by precedence: numbers (0, n, "") before words (1, 0, word); none for a release."""

    @property
    def precedence(self) -> tuple[object, ...]:
        """Versions are ordered as these are."""
        return (*self.numbers, not self.pre_release, self.pre_release)


@lru_cache(maxsize=4096)
def to_quantity(text: str) -> ExactQuantity:
    """`quantity('10Gi')`. Raises EvaluationError: the text is no quantity."""
    try:
        return ExactQuantity(quantity.nanos(text))
    except quantity.QuantityError as error:
        raise EvaluationError(str(error)) from None


@lru_cache(maxsize=4096)
def to_semver(text: str, normalize: bool = False) -> Semver:
    """`semver('1.2.3-rc.1')`; normalised, `v1.02` counts as `1.2.0`. Raises EvaluationError: the text is no such
    version."""
    match = _VERSION.fullmatch(_normalized(text) if normalize else text) if len(text) <= _LONGEST else None
    if match is None:
        raise EvaluationError(f"`{shortened(text)}` is not a semantic version; write it as `1.2.3`")
    words = match[4].split(".") if match[4] else []
    pre_release = tuple((0, int(word), "") if word.isdecimal() else (1, 0, word) for word in words)
    return Semver((int(match[1]), int(match[2]), int(match[3])), pre_release)


def _normalized(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for place, part in enumerate(parts):
        if len(part) > 1:
            rest = part.lstrip("0")
            parts[place] = rest if rest[:1].isdecimal() else f"0{rest}"
    if len(parts) < 3 and not parts[-1].isdecimal():
        return text
    return ".".join((*parts, "0", "0")[:3])


def _compare(a: object, b: object) -> int:
    if isinstance(a, ExactQuantity) and isinstance(b, ExactQuantity):
        return (a.nanos > b.nanos) - (a.nanos < b.nanos)
    if isinstance(a, Semver) and isinstance(b, Semver):
        return (a.precedence > b.precedence) - (a.precedence < b.precedence)
    raise EvaluationError(f"two quantities or two versions are compared, not {_named(a)} and {_named(b)}")


def _wanted(value: object, kind: type[_Kind]) -> _Kind:
    if isinstance(value, kind):
        return value
    raise EvaluationError(f"{_NOUNS[kind]} is wanted, this is {_named(value)}")


_NOUNS: dict[type, str] = {ExactQuantity: "a quantity", Semver: "a version"}


def _named(value: object) -> str:
    return _NOUNS.get(type(value)) or kind_of(value).value


def _nanos(value: object) -> int:
    return _wanted(value, ExactQuantity).nanos


def _added(a: object, b: object, sign: int) -> ExactQuantity:
    if isinstance(b, int) and not isinstance(b, bool):
        return ExactQuantity(_nanos(a) + sign * int(b) * _NANO)
    return ExactQuantity(_nanos(a) + sign * _nanos(b))


def _is_integer(value: object) -> bool:
    whole, rest = divmod(_nanos(value), _NANO)
    return rest == 0 and INT64_MIN <= whole <= INT64_MAX


def _as_integer(value: object) -> int:
    if not _is_integer(value):
        raise EvaluationError("cannot convert value to integer")
    return _nanos(value) // _NANO


def _as_float(value: object) -> float:
    try:
        return float(Fraction(_nanos(value), _NANO))
    except OverflowError:
        return float("inf") if _nanos(value) > 0 else float("-inf")


def _sign(value: object) -> int:
    return (_nanos(value) > 0) - (_nanos(value) < 0)


def _is(convert: Implementation, *arguments: object) -> bool:
    try:
        convert(*arguments)
    except EvaluationError:
        return False
    return True


def _method(name: str, doc: str, text: str, compute: Implementation) -> Function:
    return of_evaluate(name, Style.METHOD, doc, {text: compute})


FUNCTIONS: tuple[Function, ...] = (
    of_evaluate("quantity", Style.GLOBAL, "a Kubernetes quantity", {"string -> T": to_quantity}),
    of_evaluate(
        "isQuantity",
        Style.GLOBAL,
        "whether the text is a quantity",
        {"string -> bool": lambda text: _is(to_quantity, text)},
    ),
    of_evaluate(
        "semver", Style.GLOBAL, "a semantic version", {"string -> T": to_semver, "string, bool -> T": to_semver}
    ),
    of_evaluate(
        "isSemver",
        Style.GLOBAL,
        "whether the text is a semantic version",
        dict.fromkeys(("string -> bool", "string, bool -> bool"), lambda *arguments: _is(to_semver, *arguments)),
    ),
    _method("compareTo", "-1, 0 or 1: before, as, after the other", "T, V -> int", _compare),
    _method("isGreaterThan", "whether it is after the other", "T, V -> bool", lambda a, b: _compare(a, b) > 0),
    _method("isLessThan", "whether it is before the other", "T, V -> bool", lambda a, b: _compare(a, b) < 0),
    _method("add", "the sum", "T, V -> T", lambda a, b: _added(a, b, 1)),
    _method("sub", "the difference", "T, V -> T", lambda a, b: _added(a, b, -1)),
    of_evaluate("sign", Style.BOTH, "-1, 0 or 1", {"T -> int": _sign}),
    _method("isInteger", "whether `asInteger` has an answer", "T -> bool", _is_integer),
    _method("asInteger", "the quantity as an int", "T -> int", _as_integer),
    _method("asApproximateFloat", "the quantity as a double", "T -> double", _as_float),
    _method("major", "the first number", "T -> int", lambda version: _wanted(version, Semver).numbers[0]),
    _method("minor", "the second number", "T -> int", lambda version: _wanted(version, Semver).numbers[1]),
    _method("patch", "the third number", "T -> int", lambda version: _wanted(version, Semver).numbers[2]),
)
