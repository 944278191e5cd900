"""Comparisons, `&& || ?:` and optionals over columns: which rows are true, which err, which errors an answer absorbs.

Comparisons are strict and answer a bool column; `NaN` is unequal to everything and on no side of anything. Strings are
compared once an entry of the dictionary.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from policyengine.compiler.columns.column import Array, Column, Fault, Faults, Mask, compact, first_fault, recoded
from policyengine.compiler.columns.frame import Frame, Vector
from policyengine.language.types import QUANTITIES, Kind, Type, content_of

Comparison = Callable[[Any, Any], Any]
Pair = Callable[[Column, Column], Column]
ORDERINGS: dict[str, Comparison] = {
    "_<_": operator.lt,
    "_<=_": operator.le,
    "_>_": operator.gt,
    "_>=_": operator.ge,
}
_PLAIN = QUANTITIES | {Kind.BOOL, Kind.INT, Kind.DOUBLE, Kind.DURATION, Kind.TIMESTAMP}


def ordering(function: str, left: Type, right: Type) -> Pair | None:
    """The kernel of `< <= > >=` for operands of these types; None where it is computed by value."""
    compared = _compared(ORDERINGS[function], left.kind, right.kind)
    if compared is None:
        return None
    return lambda a, b: Column(compared(a, b), first_fault(a.faults, b.faults))


def equality(left: Type, right: Type) -> Pair | None:
    """The kernel of `==` for operands of these types, optionals too; None where it is computed by value."""
    kinds = (content_of(left).kind, content_of(right).kind)
    compared = _same_texts if kinds == (Kind.STRING, Kind.STRING) else _compared(operator.eq, *kinds)
    if compared is None:
        return None
    return lambda a, b: Column(_with_presence(compared(a, b), a, b), first_fault(a.faults, b.faults))


def _compared(compare: Comparison, left: Kind, right: Kind) -> Callable[[Column, Column], Mask] | None:
    if left is right and left in _PLAIN:
        return lambda a, b: np.asarray(compare(a.values, b.values))
    return None


def _with_presence(same: Mask, a: Column, b: Column) -> Mask:
    if a.present is None and b.present is None:
        return same
    here = np.True_ if a.present is None else a.present
    there = np.True_ if b.present is None else b.present
    return np.where(here & there, same, here == there)


def _same_texts(a: Column, b: Column) -> Mask:
    if a.is_single:
        a, b = b, a
    a, b = compact(a), compact(b)
    assert a.dictionary is not None and b.dictionary is not None
    if b.is_single:
        wanted = b.dictionary[int(b.values)]
        return np.asarray(np.array([entry == wanted for entry in a.dictionary], np.bool_)[a.values])
    (left, right), _ = recoded((a, b))
    return np.asarray(left == right)


# --- && || ?: --------------------------------------------------------------------------------------------


class Operand(NamedTuple):
    """One of several joined by `&&` or `||`."""

    vector: Vector
    is_single: bool
    """Whether it is one value for all rows."""


def conjunction(operands: Sequence[Operand], decisive: bool) -> Vector:
    """`&&` (decisive False) or `||` (decisive True).

    The single values go first: one that decides spares the columns. Which fault is reported follows the order
    written; that is why evaluation keeps it among the columns.
    """
    singles = tuple(operand.vector for operand in operands if operand.is_single)

    def vector(frame: Frame) -> Column:
        for early in singles:
            column = early(frame)
            if column.faults is None and bool(column.values) is decisive:
                return column
        columns = [operand.vector(frame) for operand in operands]
        if any(column.faults is not None for column in columns):
            return _with_faults(columns, decisive)
        return Column(reduce(np.bitwise_or if decisive else np.bitwise_and, [column.values for column in columns]))

    return vector


def _with_faults(columns: Sequence[Column], decisive: bool) -> Column:
    """Decided where an operand decides, failed where one failed and none decides."""
    decided: Array = np.array(False)
    faults: Faults | None = None
    for column in columns:
        says = column.values if decisive else ~column.values
        if column.faults is not None:
            says = says & (column.faults == 0)
        decided = decided | says
        faults = first_fault(faults, column.faults)
    assert faults is not None
    left = np.where(decided, np.uint8(0), faults)
    return Column(decided if decisive else ~decided, left if left.any() else None)


def conditional(condition: Vector, then: Vector, otherwise: Vector) -> Vector:
    """`?:`: only the branch taken can fail a row."""

    def vector(frame: Frame) -> Column:
        asked = condition(frame)
        if asked.is_single and asked.faults is None:
            return then(frame) if asked.values else otherwise(frame)
        return chosen(asked, then(frame), otherwise(frame))

    return vector


def chosen(condition: Column, then: Column, otherwise: Column) -> Column:
    """Row by row one of two columns; a failed condition fails the row."""
    which = condition.values
    values: Sequence[Array] = (then.values, otherwise.values)
    dictionary: Sequence[Any] | None = None
    if then.dictionary is not None and otherwise.dictionary is not None:
        values, dictionary = recoded((then, otherwise))
    faults = picked(which, then.faults, otherwise.faults, np.uint8(0))
    present = picked(which, then.present, otherwise.present, np.True_)
    return Column(np.where(which, *values), first_fault(condition.faults, faults), present, dictionary)


def picked(which: Array, left: Array | None, right: Array | None, missing: np.generic) -> Array | None:
    """Row by row one of two masks; None, where there is none, stands for `missing` in every row."""
    if left is None and right is None:
        return None
    return np.where(which, missing if left is None else left, missing if right is None else right)


# --- optionals -------------------------------------------------------------------------------------------


def has_value(optional: Column) -> Column:
    """`o.hasValue()`."""
    return Column(np.array(True) if optional.present is None else optional.present, optional.faults)


def value_of(optional: Column, fault: Fault = Fault.ABSENT) -> Column:
    """`o.value()`: a row fails where nothing is held."""
    if optional.present is None:
        return optional
    absent = np.where(optional.present, np.uint8(0), np.uint8(fault))
    return optional.held().with_faults(absent if absent.any() else None)


def or_value(optional: Column, default: Column) -> Column:
    """`o.orValue(d)`: the default's faults show only where it is taken."""
    if optional.present is None:
        return optional
    return chosen(
        Column(optional.present), Column(optional.values, dictionary=optional.dictionary), default
    ).with_faults(optional.faults)


def or_optional(first: Column, second: Column) -> Column:
    """`o.or(p)`: the first where it holds a value, else the second."""
    if first.present is None:
        return first
    return chosen(Column(first.present, first.faults), first, second)
