"""`== != < <= > >= in ! size`: equality across types, exact comparison of ints with doubles.

Without checked types (`policyengine.evaluate`) values of different kinds are unequal, numbers compare by value
and NaN is unequal to itself. A policy compares values of one type only.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from policyengine.language.functions.bounds import NO_NUMBER, NO_POLICY, NOT_NEGATIVE
from policyengine.language.functions.table import Cost, Function, K, Overload, Style, T, V, function
from policyengine.language.types import (
    BOOL,
    CPU,
    DOUBLE,
    DURATION,
    INT,
    MEMORY,
    QOS,
    STORAGE,
    STRING,
    TIMESTAMP,
    Kind,
    Type,
    list_of,
    map_of,
)
from policyengine.language.values import Optional, kind_of, to_key, type_of

ORDERED = (INT, DOUBLE, STRING, BOOL, CPU, MEMORY, STORAGE, DURATION, TIMESTAMP, QOS)
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


def _comparison(name: str, doc: str, mutants: Sequence[str], *overloads: Overload) -> Function:
    return function(name, Style.OPERATOR, doc, *overloads, bounds=NO_NUMBER, cost=Cost("compare"), mutants=mutants)


def _ordering(name: str, doc: str, mutants: Sequence[str], compare: Callable[[Any, Any], bool]) -> Function:
    same = (Overload((type_, type_), BOOL, compare) for type_ in ORDERED)
    return _comparison(name, doc, mutants, *same, *_mixed(compare))


def _mixed(compare: Callable[[Any, Any], bool]) -> Iterator[Overload]:
    """An int against a double: Python compares the two exactly, without rounding the int."""
    yield Overload((INT, DOUBLE), BOOL, compare, dynamic=True)
    yield Overload((DOUBLE, INT), BOOL, compare, dynamic=True)


FUNCTIONS: tuple[Function, ...] = (
    function(
        "type",
        Style.GLOBAL,
        "the type of a value",
        Overload((T,), Type(Kind.TYPE), type_of, dynamic=True),
        bounds=NO_POLICY,
        cost=Cost("text"),
        mutants=[],
    ),
    _comparison("_==_", "whether both are the same", ["_!=_"], Overload((T, T), BOOL, equal)),
    _comparison("_!=_", "whether they differ", ["_==_"], Overload((T, T), BOOL, lambda a, b: not equal(a, b))),
    _ordering("_<_", "whether the left is less", ["_<=_", "_>=_"], operator.lt),
    _ordering("_<=_", "whether the left is not more", ["_<_", "_>_"], operator.le),
    _ordering("_>_", "whether the left is more", ["_>=_", "_<=_"], operator.gt),
    _ordering("_>=_", "whether the left is not less", ["_>_", "_<_"], operator.ge),
    _comparison(
        "@in",
        "whether a list has the value, or a map the key",
        [],
        Overload((T, list_of(T)), BOOL, contains),
        Overload((K, map_of(K, V)), BOOL, contains),
    ),
    function(
        "!_",
        Style.OPERATOR,
        "the opposite",
        Overload((BOOL,), BOOL, operator.not_),
        bounds=NO_NUMBER,
        cost=Cost("logic"),
        mutants=[],
    ),
    function(
        "size",
        Style.BOTH,
        "how many characters, items or entries there are",
        Overload((STRING,), INT, len),
        Overload((list_of(T),), INT, len),
        Overload((map_of(K, V),), INT, len),
        bounds=NOT_NEGATIVE,
        cost=Cost("text"),
        mutants=[],
    ),
)
