"""`== != < <= > >= in ! size`: equality across types, exact comparison of ints with doubles.

Without checked types (`policyengine.evaluate`) values of different kinds are unequal, numbers compare by value
and NaN is unequal to itself. A policy compares values of one type only.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from policyengine.language.functions.answer_bounds import NO_NUMBER, NOT_NEGATIVE
from policyengine.language.functions.table import Cost, Function, Signatures, Style, function, of_evaluate
from policyengine.language.types import Kind
from policyengine.language.values import Optional, kind_of, to_key, type_of

_NUMBERS = frozenset({Kind.INT, Kind.DOUBLE})


def equal(a: object, b: object) -> bool:
    """`a == b`: by value within numbers, by content within lists, maps and optionals, else by kind and value."""
    kind, other = kind_of(a), kind_of(b)
    if kind is not other:
        return kind in _NUMBERS and other in _NUMBERS and a == b
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return len(a) == len(b) and all(key in b and equal(value, b[key]) for key, value in a.items())
    if isinstance(a, Optional) and isinstance(b, Optional):
        return a.present == b.present and (not a.present or equal(a.content, b.content))
    return bool(a == b)


def contains(value: object, items: Any) -> bool:
    """`value in items` of a list, or of a map's keys."""
    if isinstance(items, Mapping):
        return is_key(value) and to_key(value) in items
    return any(equal(value, item) for item in items)


def is_key(value: object) -> bool:
    """Whether a map may be asked for the value: a bool, a string or a number."""
    return kind_of(value) in (Kind.BOOL, Kind.INT, Kind.STRING, Kind.DOUBLE)


def _comparison(
    name: str, doc: str, mutants: Sequence[str], overloads: Signatures, dynamic: Signatures | None = None
) -> Function:
    return function(
        name, Style.OPERATOR, doc, overloads, dynamic=dynamic, bounds=NO_NUMBER, cost=Cost("compare"), mutants=mutants
    )


def _ordering(name: str, doc: str, mutants: Sequence[str], compare: Callable[[Any, Any], bool]) -> Function:
    # Python compares an int and a double exactly, without rounding the int.
    mixed: Signatures = {"int, double -> bool": compare, "double, int -> bool": compare}
    return _comparison(name, doc, mutants, {"ordered, ordered -> bool": compare}, mixed)


FUNCTIONS: tuple[Function, ...] = (
    of_evaluate("type", Style.GLOBAL, "the type of a value", {"T -> type": type_of}),
    _comparison("_==_", "whether both are the same", ["_!=_"], {"T, T -> bool": equal}),
    _comparison("_!=_", "whether they differ", ["_==_"], {"T, T -> bool": lambda a, b: not equal(a, b)}),
    _ordering("_<_", "whether the left is less", ["_<=_", "_>=_"], operator.lt),
    _ordering("_<=_", "whether the left is not more", ["_<_", "_>_"], operator.le),
    _ordering("_>_", "whether the left is more", ["_>=_", "_<=_"], operator.gt),
    _ordering("_>=_", "whether the left is not less", ["_>_", "_<_"], operator.ge),
    _comparison(
        "@in",
        "whether a list has the value, or a map the key",
        [],
        {"T, list(T) -> bool": contains, "K, map(K, V) -> bool": contains},
    ),
    function(
        "!_",
        Style.OPERATOR,
        "the opposite",
        {"bool -> bool": operator.not_},
        bounds=NO_NUMBER,
        cost=Cost("logic"),
    ),
    function(
        "size",
        Style.BOTH,
        "how many characters, items or entries there are",
        {"string -> int": len, "list(T) -> int": len, "map(K, V) -> int": len},
        bounds=NOT_NEGATIVE,
        cost=Cost("text"),
    ),
)
