"""Expressions without a column kernel: evaluated once for each distinct combination of the values they read.

Parts that take no comprehension variable from inside become holes: columns evaluated first, whose values then stand in
for them. For example `node.taints.exists(t, t.key == "gpu")` is evaluated once for each different list of taints in the
cluster, not once a node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyengine.compiler.columns.column import Column, Failed, Fault, attempt, column_of, single
from policyengine.compiler.columns.frame import Decision, Frame, Scalar, Vector
from policyengine.compiler.lower.hoists import Hoists
from policyengine.compiler.lower.scope import Scope
from policyengine.language import ir
from policyengine.language.ir.ir_walk import children, free_locals
from policyengine.language.types import Kind
from policyengine.language.values import optional

_NOBODY: Any = None


def by_distinct_values(expr: ir.Expr, scope: Scope, hoists: Hoists) -> Vector:
    """The column closure of an expression: its single value for each distinct combination of its parts' values."""
    holes = list(_holes(expr))
    names = [f"${place}" for place in range(len(holes))]
    inner = scope.with_holes({id(hole): name for hole, name in zip(holes, names, strict=True)})
    scalar = inner.closure(expr)
    vectors = [scope.lower(hole, hoists) for hole in holes]
    optionals = [hole.type.kind is Kind.OPTIONAL for hole in holes]
    type_ = expr.type

    def vector(frame: Frame) -> Column:
        columns = [vector(frame) for vector in vectors]
        first, places = _distinct(columns, frame.count)
        table = [_evaluated(scalar, names, optionals, columns, int(row)) for row in first]
        if places is None:
            return single(table[0], type_)
        return column_of(table, type_).take(places)

    return vector


def _holes(expr: ir.Expr) -> Iterator[ir.Expr]:
    for part in children(expr):
        if isinstance(part, ir.Const | ir.ParamRef):
            continue
        if isinstance(part, ir.Local) or free_locals(part):
            yield from _holes(part)
        else:
            yield part


def _evaluated(
    scalar: Scalar, names: Sequence[str], optionals: Sequence[bool], columns: Sequence[Column], row: int
) -> Any:
    decision = Decision(_NOBODY)
    for name, is_optional, column in zip(names, optionals, columns, strict=True):
        value = column.at(row)
        decision.locals[name] = optional(value) if is_optional and not isinstance(value, Failed) else value
    return attempt(scalar, decision)


def _distinct(columns: Sequence[Column], rows: int) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Rows that stand for all others, and the place among them of each row; (a row, None): all rows are alike."""
    keys = [key for column in columns for key in _keys(column)]
    if not keys:
        return np.zeros(1, np.int64), None
    if rows == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    combined, size = keys[0]
    for key, of in keys[1:]:
        if size * of > _MOST:
            combined, size = _numbered(combined)
        combined, size = combined * np.int64(of) + key, size * of
    _, standing, places = np.unique(combined, return_index=True, return_inverse=True)
    return standing, places


_MOST = 1 << 40
"""No combination of keys may have more numbers."""


def _keys(column: Column) -> Iterator[tuple[NDArray[Any], int]]:
    """Numbers that together tell the values of a column's rows apart, and what they are all below."""
    values = column.values
    if values.ndim:
        if values.dtype == np.bool_:
            yield values.astype(np.uint8), 2
        elif column.dictionary is not None:
            yield values + np.int64(1), len(column.dictionary) + 1  # an absent row's code may be -1
        else:
            # Doubles by their bits.
            yield _numbered(values.view(np.int64) if values.dtype == np.float64 else values)
    if column.faults is not None and column.faults.ndim:
        yield column.faults, len(Fault) + 1
    if column.present is not None and column.present.ndim:
        yield column.present.astype(np.uint8), 2


def _numbered(values: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """The place of each value among the different ones, and how many those are."""
    different, places = np.unique(values, return_inverse=True)
    return places, len(different)
