"""A column: one value of an expression a row, with the rows in which it failed and those in which it is absent.

Rules of this file:
1. The arrays of a column are never written to; every operation makes new ones (they may alias the node table).
2. `values` in a row that failed or is absent are arbitrary, but valid: a code points into its dictionary.
3. A column of one value for all rows holds zero-dimensional arrays; numpy spreads them where they meet rows.
4. The arrays of a column have one shape. Its constructor sees to it: a single value beside faults by row becomes a
   value of every row, and a single fault beside values by row a fault of every row.

For example `node.pods.map(p, 1 / p.priority).max().hasValue()` is true of every node that has a pod, and fails where a
pod's priority is 0: `true` is a value of every row beside these faults.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyengine.language.types import Kind, Type, content_of
from policyengine.language.values import EvaluationError, Optional

Array = NDArray[Any]
Faults = NDArray[np.uint8]
Mask = NDArray[np.bool_]

INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)
ENCODED = frozenset({Kind.STRING, Kind.LIST, Kind.MAP, Kind.OBJECT, Kind.OPTIONAL, Kind.TYPE, Kind.NULL})
"""Kinds held as codes into a dictionary of Python values; OPTIONAL as the content of another optional."""


class Fault(IntEnum):
    """Why an expression has no value; 0 in a mask means it has one."""

    text: str
    """What happened, for a person."""

    def __new__(cls, number: int, text: str = "") -> Fault:
        """A member with its text."""
        fault = int.__new__(cls, number)
        fault._value_, fault.text = number, text
        return fault

    OVERFLOW = 1, "integer overflow"
    DIVISION = 2, "division by zero"
    NOT_FINITE = 3, "not a finite number"
    NO_KEY = 4, "no such key"
    INDEX = 5, "index out of range"
    NO_DOMAIN = 6, "the node has no label for the domain"
    ABSENT = 7, "the optional value is empty"
    CONVERSION = 8, "the value cannot be converted"
    FAILED = 9, "the expression has no value"


_FAULTS = {fault.text: fault for fault in Fault} | {
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

    def __post_init__(self) -> None:
        if self.faults is not None or self.present is not None:
            self._agree()

    def _agree(self) -> None:
        """Give the arrays one shape."""
        values, faults, present = self.values, self.faults, self.present
        shape = values.shape
        if faults is not None:
            shape = shape or faults.shape
        if present is not None:
            shape = shape or present.shape
        if shape:
            self.values = values if values.ndim else np.broadcast_to(values, shape)
            if faults is not None and not faults.ndim:
                self.faults = np.broadcast_to(faults, shape)
            if present is not None and not present.ndim:
                self.present = np.broadcast_to(present, shape)

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
            faults=None if self.faults is None else self.faults[index],
            present=None if self.present is None else self.present[index],
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
        place = () if self.is_single else row
        fault = 0 if self.faults is None else int(self.faults[place])
        if fault:
            return Failed(Fault(fault))
        if self.present is not None and not self.present[place]:
            return None
        value = self.values[place]
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


def single(value: Any, type_: Type) -> Column:
    """One Python value (a `Failed`, None for an empty optional) as a column of all rows."""
    kind = content_of(type_).kind
    dtype = dtype_of(kind)
    value = plain(value)
    if dtype is np.int64 and _is_wide(value):
        value = Failed(Fault.OVERFLOW)
    dictionary = (value,) if kind in ENCODED else None
    if isinstance(value, Failed):
        return Column(np.zeros((), dtype), faults=np.array(value.fault, np.uint8), dictionary=dictionary)
    if value is None and type_.kind is Kind.OPTIONAL:
        return Column(np.zeros((), dtype), present=np.array(False), dictionary=dictionary)
    return Column(np.array(value if dictionary is None else 0, dtype), dictionary=dictionary)


def plain(value: Any) -> Any:
    """An optional's content, None where it is empty; anything else as it is."""
    if isinstance(value, Optional):
        return value.content if value.present else None
    return value


def column_of(values: Sequence[Any], type_: Type) -> Column:
    """Python values, a row each (a `Failed`, None for an empty optional), as a column."""
    kind, present = content_of(type_).kind, None
    dtype = dtype_of(kind)
    if type_.kind is Kind.OPTIONAL:
        values = [plain(value) for value in values]
        held = [value is not None for value in values]
        present = None if all(held) else np.array(held, np.bool_)
    if dtype is np.int64:
        values = [Failed(Fault.OVERFLOW) if _is_wide(value) else value for value in values]
    wrong = [value.fault if isinstance(value, Failed) else 0 for value in values]
    faults = np.array(wrong, np.uint8) if any(wrong) else None
    if kind in ENCODED:
        codes, dictionary = encode(values)
        return Column(codes, faults, present, dictionary)
    filled = [0 if value is None or isinstance(value, Failed) else value for value in values]
    return Column(np.array(filled, dtype), faults, present)


def _is_wide(value: Any) -> bool:
    return isinstance(value, int) and not INT64_MIN <= value <= INT64_MAX


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
    short = [compact(column) for column in columns]
    entries = [column.dictionary or () for column in short]
    table, merged = encode([entry for dictionary in entries for entry in dictionary])
    ends = np.cumsum([len(dictionary) for dictionary in entries])
    tables = np.split(table, ends[:-1])
    return [own[column.values] for own, column in zip(tables, short, strict=True)], merged
