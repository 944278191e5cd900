"""Expressions of the checked tree -> column closures: one `singledispatch`, a short function an expression.

What is SCALAR is hoisted (`Hoists`): evaluated once for the pod, met in the frame as a column of one value. What has a
column kernel runs on whole columns. Everything else is evaluated once for each distinct combination of the values it
reads, never once a row: parts that take no comprehension variable from inside become holes, columns evaluated first,
whose values then stand in for them.

For example in `node.free.cpu >= pod.requests.cpu && node.name.startsWith("gpu")` the request is hoisted, `>=` and `&&`
are kernels, and `startsWith` is evaluated once a node name. `node.taints.exists(t, t.key == "gpu")` is evaluated once
for each different list of taints in the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyengine.compiler.columns.column import Column, Failed, Fault, attempt, column_of, single
from policyengine.compiler.columns.frame import Decision, Frame, Scalar, Vector
from policyengine.compiler.columns.kernels import kernel_of, random_kernel
from policyengine.compiler.columns.logic_kernels import Operand, conditional, conjunction, has_value, value_of
from policyengine.compiler.columns.row_columns import MAPS, NODE_COLUMNS, MapReader, pod_binding
from policyengine.compiler.lower.list_aggregates import aggregate, let_of_rows, opt_map
from policyengine.compiler.lower.scope import Hoists, Scope
from policyengine.language import ir
from policyengine.language.ir.ir_walk import children, free_locals
from policyengine.language.types import Kind, Shape
from policyengine.language.values import optional


def column_closure(expr: ir.Expr, scope: Scope, hoists: Hoists) -> Vector:
    """The column closure of an expression that differs by row; its parts are lowered by the scope."""
    return _form(expr.__class__)(expr, scope, hoists)


@cache
def _form(kind: type[ir.Expr]) -> Callable[[Any, Scope, Hoists], Vector]:
    return _lower.dispatch(kind)


@singledispatch
def _lower(expr: ir.Expr, scope: Scope, hoists: Hoists) -> Vector:
    return by_distinct_values(expr, scope, hoists)


@_lower.register
def _(expr: ir.Field, scope: Scope, hoists: Hoists) -> Vector:
    return pod_binding(expr.path[1:]) if expr.path[0] == "victim" else NODE_COLUMNS[expr.path[1:]]


@_lower.register
def _(expr: ir.LetRef, scope: Scope, hoists: Hoists) -> Vector:
    return let_of_rows(expr.name, scope, hoists)


@_lower.register
def _(expr: ir.Index, scope: Scope, hoists: Hoists) -> Vector:
    """`node.labels[?key]`, `node.free[?key]`, `p.requests[?key]` with a key that is the same for all rows."""
    read = _map_of(expr.operand)
    if read is None or expr.key.shape is not Shape.SCALAR:
        return by_distinct_values(expr, scope, hoists)
    entry = _with_key(scope.lower(expr.key, hoists), read)
    return entry if expr.optional else lambda frame: value_of(entry(frame), Fault.NO_KEY)


def _map_of(expr: ir.Expr) -> MapReader | None:
    """How keys of a map of the row are read, None for what is none."""
    return MAPS.get(expr.path) if isinstance(expr, ir.Field) else None


def _with_key(key: Vector, read: MapReader) -> Vector:
    """The entry of a map whose key is one value for all rows."""

    def vector(frame: Frame) -> Column:
        wanted = key(frame)
        assert wanted.dictionary is not None
        name = wanted.dictionary[int(wanted.values)] if wanted.faults is None else ""
        return read(frame, name).with_faults(wanted.faults)

    return vector


@_lower.register
def _(expr: ir.Has, scope: Scope, hoists: Hoists) -> Vector:
    read, name = _map_of(expr.operand), expr.name
    if read is None:
        return by_distinct_values(expr, scope, hoists)
    return lambda frame: has_value(read(frame, name))


@_lower.register
def _(expr: ir.Select, scope: Scope, hoists: Hoists) -> Vector:
    read, name = _map_of(expr.operand), expr.name
    if read is None:
        return by_distinct_values(expr, scope, hoists)
    return lambda frame: read(frame, name) if expr.optional else value_of(read(frame, name), Fault.NO_KEY)


@_lower.register
def _(expr: ir.Call, scope: Scope, hoists: Hoists) -> Vector:
    special = _special_call(expr, scope, hoists)
    if special is not None:
        return special
    kernel = kernel_of(expr)
    if kernel is None:
        return by_distinct_values(expr, scope, hoists)
    args = tuple(scope.lower(arg, hoists) for arg in expr.args)
    if len(args) == 2:
        left, right = args
        return lambda frame: kernel(left(frame), right(frame))
    return lambda frame: kernel(*[arg(frame) for arg in args])


def _special_call(expr: ir.Call, scope: Scope, hoists: Hoists) -> Vector | None:
    """Aggregates, `key in node.labels`, and `random()` of the node's name: by columns rather than by value."""
    if expr.function == "random":
        return _random(expr, scope, hoists)
    whole = aggregate(expr, scope, hoists)
    if whole is not None:
        return whole
    read = _map_of(expr.args[1]) if expr.function == "@in" else None
    if read is None or expr.args[0].shape is not Shape.SCALAR:
        return None
    entry = _with_key(scope.lower(expr.args[0], hoists), read)
    return lambda frame: has_value(entry(frame))


def _random(expr: ir.Call, scope: Scope, hoists: Hoists) -> Vector | None:
    uid, node, rule, stream = expr.args
    if not (isinstance(node, ir.Field) and node.path == ("node", "name")):
        return None
    names = [scope.lower(part, hoists) for part in (uid, rule, stream)]
    return lambda frame: random_kernel([name(frame) for name in names], frame.pick(frame.nodes.name_hash))


@_lower.register
def _(expr: ir.Comprehension, scope: Scope, hoists: Hoists) -> Vector:
    return aggregate(expr, scope, hoists) or by_distinct_values(expr, scope, hoists)


@_lower.register
def _(expr: ir.OptMap, scope: Scope, hoists: Hoists) -> Vector:
    if scope.lets.about(expr.body).aggregates:
        return opt_map(expr, scope, hoists)
    return by_distinct_values(expr, scope, hoists)


@_lower.register
def _(expr: ir.Logic, scope: Scope, hoists: Hoists) -> Vector:
    operands = tuple(Operand(scope.lower(part, hoists), part.shape is Shape.SCALAR) for part in expr.operands)
    return conjunction(operands, decisive=expr.op == "||")


@_lower.register
def _(expr: ir.Conditional, scope: Scope, hoists: Hoists) -> Vector:
    parts = (expr.condition, expr.then, expr.otherwise)
    return conditional(*(scope.lower(part, hoists) for part in parts))


_NOBODY: Any = None


def by_distinct_values(expr: ir.Expr, scope: Scope, hoists: Hoists) -> Vector:
    """The column closure of an expression: its single value for each distinct combination of its parts' values."""
    holes = list(_holes(expr))
    names = [f"${place}" for place in range(len(holes))]
    filled = {id(hole): name for hole, name in zip(holes, names, strict=True)}
    inner = replace(scope, holes=filled, scalars={})
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
