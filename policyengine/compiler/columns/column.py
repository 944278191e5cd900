"""A column: one value of an expression a row, with the rows in which it failed and those in which it is absent.

Rules of this file:
1. The arrays of a column are never written to; every operation makes new ones (they may alias the node table).
2. `values` in a row that failed or is absent are arbitrary, but valid: a code points into its dictionary.
3. A column of one value for all rows holds zero-dimensional arrays; numpy spreads them where they meet rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyengine.language.types import Kind, Type
from policyengine.language.values import NONE, EvaluationError, Optional

Array = NDArray[Any]
Faults = NDArray[np.uint8]
Mask = NDArray[np.bool_]

INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)
ENCODED = frozenset({Kind.STRING, Kind.LIST, Kind.MAP, Kind.OBJECT, Kind.OPTIONAL, Kind.TYPE, Kind.NULL})
"""Kinds held as codes into a dictionary of Python values; OPTIONAL as the content of another optional."""


class Fault(IntEnum):
    """Why an expression has no value; 0 in a mask means it has one."""

    OVERFLOW = 1
    DIVISION = 2
    NOT_FINITE = 3
    NO_KEY = 4
    INDEX = 5
    NO_DOMAIN = 6
    ABSENT = 7
    CONVERSION = 8
    FAILED = 9

    @property
    def text(self) -> str:
        """What happened, for a person."""
        return _TEXTS[self]


_TEXTS = {
    Fault.OVERFLOW: "integer overflow",
    Fault.DIVISION: "division by zero",
    Fault.NOT_FINITE: "not a finite number",
    Fault.NO_KEY: "no such key",
    Fault.INDEX: "index out of range",
    Fault.NO_DOMAIN: "the node has no label for the domain",
    Fault.ABSENT: "the optional value is empty",
    Fault.CONVERSION: "the value cannot be converted",
    Fault.FAILED: "the expression has no value",
}


_FAULTS = {text: fault for fault, text in _TEXTS.items()} | {
    "modulus by zero": Fault.DIVISION,
    "remainder by zero": Fault.DIVISION,
}


def fault_of(error: EvaluationError) -> Fault:
    """The fault that stands for a scalar error in a mask."""
    text = str(error)
    known = _FAULTS.get(text)
    if known is not None:
        return known
    return Fault.NO_KEY if text.startswith("no such key") else Fault.FAILED


@dataclass(frozen=True, slots=True)
class Failed:
    """A hoisted scalar that has no value: stands where its value would, until something reads it."""

    fault: Fault
    detail: str = ""


@dataclass(slots=True, eq=False)
class Column:
    """`values[rows]` by kind: bool; int64 for int, quantities (grain), durations and timestamps (nanoseconds);
    float64 for double; int32 codes into `dictionary` for strings, lists, maps and objects.

    Never written to once made; not declared frozen, since making one is what an operation pays for most.
    """

    values: Array
    faults: Faults | None = None
    """`uint8[rows]`, 0 or a `Fault`; None: no row failed."""
    present: Mask | None = None
    """`bool[rows]` of an optional: whether it holds a value; None: every row does (or it is no optional)."""
    dictionary: Sequence[Any] | None = None

    @property
    def is_single(self) -> bool:
        """Whether it is one value for all rows."""
        return self.values.ndim == 0

    def held(self) -> Column:
        """What an optional column holds; in rows where it holds nothing, some value."""
        return Column(self.values, self.faults, None, self.dictionary)

    def with_faults(self, faults: Faults | None) -> Column:
        """The same column, also failing where `faults` say (its own faults first)."""
        return self if faults is None else replace(self, faults=first_fault(self.faults, faults))

    def take(self, index: NDArray[np.integer[Any]]) -> Column:
        """The column whose row i is this one's row `index[i]`."""
        if self.is_single:
            return self
        return replace(
            self,
            values=self.values[index],
            faults=None if self.faults is None else _taken(self.faults, index),
            present=None if self.present is None else _taken(self.present, index),
        )

    def spread(self, rows: int) -> Column:
        """The column with arrays of length `rows` throughout."""
        shape = (rows,)
        return replace(
            self,
            values=np.broadcast_to(self.values, shape),
            faults=None if self.faults is None else np.broadcast_to(self.faults, shape),
            present=None if self.present is None else np.broadcast_to(self.present, shape),
        )

    def at(self, row: int) -> Any:
        """The Python value of a row: a `Failed`, None for an empty optional, else the value."""
        fault = 0 if self.faults is None else int(_at(self.faults, row))
        if fault:
            return Failed(Fault(fault))
        if self.present is not None and not _at(self.present, row):
            return None
        value = _at(self.values, row)
        return value.item() if self.dictionary is None else self.dictionary[int(value)]

    def to_list(self, rows: int) -> list[Any]:
        """The Python values of all rows, as `at` gives them."""
        column = self.spread(rows)
        values: list[Any] = column.values.tolist()
        if column.dictionary is not None:
            values = list(map(column.dictionary.__getitem__, values)) if column.dictionary else [None] * rows
        if column.present is not None:
            for row in np.flatnonzero(~column.present).tolist():
                values[row] = None
        if column.faults is not None:
            for row in np.flatnonzero(column.faults).tolist():
                values[row] = Failed(Fault(int(column.faults[row])))
        return values


def _taken(array: Array, index: NDArray[np.integer[Any]]) -> Array:
    return array if array.ndim == 0 else array[index]


def _at(array: Array, row: int) -> Any:
    return array[()] if array.ndim == 0 else array[row]


def first_fault(left: Faults | None, right: Faults | None) -> Faults | None:
    """The faults of two operands of a strict operation: the left one's where both failed."""
    if left is None:
        return right
    if right is None:
        return left
    return np.where(left != 0, left, right)


def faults_where(failed: Mask, fault: Fault) -> Faults | None:
    """A fault mask, or None when nothing failed."""
    return failed.astype(np.uint8) * np.uint8(fault) if failed.any() else None


def dtype_of(kind: Kind) -> type[np.generic]:
    """How values of a kind are held (rule: one representation a kind)."""
    if kind is Kind.BOOL:
        return np.bool_
    if kind is Kind.DOUBLE:
        return np.float64
    return np.int32 if kind in ENCODED else np.int64


def content_of(type_: Type) -> Type:
    """The type of the values held: an optional's content, else the type itself."""
    return type_.args[0] if type_.kind is Kind.OPTIONAL else type_


def single(value: Any, type_: Type) -> Column:
    """One Python value (a `Failed`, None for an empty optional) as a column of all rows."""
    content = content_of(type_)
    dtype = dtype_of(content.kind)
    value = plain(value)
    if isinstance(value, Failed):
        return Column(np.zeros((), dtype), faults=np.array(value.fault, np.uint8), dictionary=_filler(content))
    if value is None and type_.kind is Kind.OPTIONAL:
        return Column(np.zeros((), dtype), present=np.array(False), dictionary=_filler(content))
    if content.kind in ENCODED:
        return Column(np.zeros((), np.int32), dictionary=(value,))
    if dtype is np.int64:
        if not INT64_MIN <= value <= INT64_MAX:
            return single(Failed(Fault.OVERFLOW), type_)
        return Column(np.array(value, np.int64))
    return Column(np.array(value, dtype))


def plain(value: Any) -> Any:
    """An optional's content, None where it is empty; anything else as it is."""
    if isinstance(value, Optional):
        return value.content if value.present else None
    return value


def _filler(content: Type) -> Sequence[Any] | None:
    return (neutral(content),) if content.kind in ENCODED else None


def neutral(type_: Type) -> Any:
    """A harmless value of the type, standing where a row has none."""
    return _NEUTRAL.get(type_.kind, 0)


_NEUTRAL: dict[Kind, Any] = {
    Kind.BOOL: False,
    Kind.DOUBLE: 0.0,
    Kind.STRING: "",
    Kind.LIST: (),
    Kind.MAP: {},
    Kind.OBJECT: None,
    Kind.OPTIONAL: NONE,
}


def column_of(values: Sequence[Any], type_: Type) -> Column:
    """Python values, a row each (a `Failed`, None for an empty optional), as a column."""
    content = content_of(type_)
    values = [plain(value) for value in values] if type_.kind is Kind.OPTIONAL else values
    faults = _faults_of(values)
    present = _presence_of(values) if type_.kind is Kind.OPTIONAL else None
    filler = neutral(content)
    filled = [filler if value is None or isinstance(value, Failed) else value for value in values]
    if content.kind in ENCODED:
        codes, dictionary = encode(filled)
        return Column(codes, faults, present, dictionary)
    if dtype_of(content.kind) is not np.int64:
        return Column(np.array(filled, dtype_of(content.kind)), faults, present)
    return _whole_numbers(filled, faults, present)


def _whole_numbers(values: Sequence[int], faults: Faults | None, present: Mask | None) -> Column:
    low, high = min(values, default=0), max(values, default=0)
    if low < INT64_MIN or high > INT64_MAX:
        outside = np.array([not INT64_MIN <= value <= INT64_MAX for value in values])
        faults = first_fault(faults, faults_where(outside, Fault.OVERFLOW))
        values = [0 if out else value for value, out in zip(values, outside, strict=True)]
    return Column(np.array(values, np.int64), faults, present)


def _faults_of(values: Sequence[Any]) -> Faults | None:
    faults = [value.fault if isinstance(value, Failed) else 0 for value in values]
    return np.array(faults, np.uint8) if any(faults) else None


def _presence_of(values: Sequence[Any]) -> Mask | None:
    present = [value is not None for value in values]
    return None if all(present) else np.array(present, np.bool_)


def encode(values: Sequence[Any]) -> tuple[NDArray[np.int32], list[Any]]:
    """Codes into a dictionary of the distinct values; equal hashable values share a code, others have their own."""
    dictionary: list[Any] = []
    known: dict[tuple[type, Any], int] = {}
    codes = np.empty(len(values), np.int32)
    for row, value in enumerate(values):
        try:
            code = known.setdefault((type(value), value), len(dictionary))
        except TypeError:
            code = len(dictionary)
        if code == len(dictionary):
            dictionary.append(value)
        codes[row] = code
    return codes, dictionary


def compact(column: Column) -> Column:
    """The column with a dictionary of no more than its rows need, where it has a far longer one.

    So what is asked once an entry costs no more than a few rows do when only a few rows are asked for.
    """
    if column.dictionary is None or len(column.dictionary) <= 2 * max(column.values.size, 1):
        return column
    codes, places = np.unique(column.values, return_inverse=True)
    dictionary = [column.dictionary[int(code)] for code in codes]
    return replace(column, values=places.astype(np.int32).reshape(column.values.shape), dictionary=dictionary)


def attempt(function: Callable[..., Any], *values: Any) -> Any:
    """The function's answer, or a `Failed` when it has none."""
    try:
        return function(*values)
    except EvaluationError as error:
        return Failed(fault_of(error), str(error))


def recoded(columns: Sequence[Column]) -> tuple[list[Array], list[Any]]:
    """The codes of encoded columns over one dictionary common to them all."""
    merged: list[Any] = []
    known: dict[Any, int] = {}
    codes: list[Array] = []
    for column in columns:
        assert column.dictionary is not None
        table = np.array([_code_in(known, merged, value) for value in column.dictionary], np.int32)
        codes.append(table[column.values])
    return codes, merged


def _code_in(known: dict[Any, int], merged: list[Any], value: Any) -> int:
    try:
        code = known.setdefault(value, len(merged))
    except TypeError:
        code = len(merged)
    if code == len(merged):
        merged.append(value)
    return code
