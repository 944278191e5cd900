"""`&& || ?:` over columns: which rows err, and which errors a decided answer absorbs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from policyengine.compiler.columns.column import Array, Column, Faults, Mask, first_fault, recoded
from policyengine.compiler.columns.frame import Frame, Vector


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
        return _joined(operands, frame, decisive)

    return vector


def _joined(operands: Sequence[Operand], frame: Frame, decisive: bool) -> Column:
    """The operands' bools joined: decided where one decides, failed where one failed and none decides."""
    columns = [operand.vector(frame) for operand in operands]
    if any(column.faults is not None for column in columns):
        return _with_faults(columns, decisive)
    return Column(reduce(np.bitwise_or if decisive else np.bitwise_and, [column.values for column in columns]))


def _with_faults(columns: Sequence[Column], decisive: bool) -> Column:
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
    values, dictionary = _aligned(then, otherwise)
    faults = _picked(which, then.faults, otherwise.faults, np.uint8(0))
    present = _picked(which, then.present, otherwise.present, np.True_)
    return Column(
        np.where(which, *values),
        first_fault(condition.faults, faults),
        present,
        dictionary,
    )


def _aligned(left: Column, right: Column) -> tuple[tuple[Array, Array], list[object] | None]:
    if left.dictionary is None or right.dictionary is None:
        return (left.values, right.values), None
    (one, other), merged = recoded((left, right))
    return (one, other), merged


def _picked(which: Array, left: Array | None, right: Array | None, neutral: np.generic) -> Array | None:
    if left is None and right is None:
        return None
    return np.where(which, neutral if left is None else left, neutral if right is None else right)


def or_value(optional: Column, default: Column) -> Column:
    """`o.orValue(d)`: the default's faults show only where it is taken."""
    if optional.present is None:
        return optional
    if not optional.present.any():
        return default.with_faults(optional.faults)
    if default.is_single and default.faults is None and default.dictionary is not None:
        return _or_text(optional, optional.present, default.dictionary[int(default.values)])
    content = Column(optional.values, None, None, optional.dictionary)
    return chosen(Column(optional.present), content, default).with_faults(optional.faults)


def _or_text(optional: Column, present: Mask, default: Any) -> Column:
    """One default for all rows: it joins the dictionary, and the rows that hold something keep their codes."""
    known = optional.dictionary or ()
    dictionary = known if isinstance(default, str) and default in known else [*known, default]
    code = np.int32(dictionary.index(default) if dictionary is known else len(known))
    return Column(np.where(present, optional.values, code), optional.faults, None, dictionary)


def or_optional(first: Column, second: Column) -> Column:
    """`o.or(p)`: the first where it holds a value, else the second."""
    if first.present is None:
        return first
    return chosen(Column(first.present, first.faults), first, second)
