"""Expressions of the checked tree -> column closures: one `singledispatch`, a short function an expression.

What is SCALAR is hoisted (`Hoists`): evaluated once for the pod, met in the frame as a column of one value. What has a
column kernel runs on whole columns. Everything else is evaluated once for each distinct combination of the values it
reads (`distinct_values`), never once a row.

For example in `node.free.cpu >= pod.requests.cpu && node.name.startsWith("gpu")` the request is hoisted, `>=` and `&&`
are kernels, and `startsWith` is evaluated once a node name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, singledispatch
from typing import Any

from policyengine.compiler.columns.column import Column
from policyengine.compiler.columns.frame import Frame, Vector
from policyengine.compiler.columns.kernels import kernel_of, random_kernel
from policyengine.compiler.columns.logic_kernels import Operand, conditional, conjunction
from policyengine.compiler.columns.node_columns import MAPS, MapReader, entry_column, node_binding, required
from policyengine.compiler.columns.pod_columns import pod_binding, request_column
from policyengine.compiler.lower.distinct_values import by_distinct_values
from policyengine.compiler.lower.hoists import Hoists
from policyengine.compiler.lower.list_aggregates import aggregate, opt_map
from policyengine.compiler.lower.scope import Scope
from policyengine.language import ir
from policyengine.language.ir.ir_walk import aggregated, walk
from policyengine.language.types import Shape

AMOUNTS = frozenset(("node", kind) for kind in ("capacity", "allocatable", "used", "free"))


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
    return pod_binding(expr.path[1:]) if expr.path[0] == "victim" else node_binding(expr.path[1:])


@_lower.register
def _(expr: ir.LetRef, scope: Scope, hoists: Hoists) -> Vector:
    name, body = expr.name, scope.lower(scope.lets[expr.name].value, hoists)

    def let(frame: Frame) -> Column:
        column = frame.memo.get(name)
        if column is None:
            column = frame.memo[name] = body(frame)
        return column

    return let


@_lower.register
def _(expr: ir.Index, scope: Scope, hoists: Hoists) -> Vector:
    found = _entry(expr, scope, hoists)
    if found is None:
        return by_distinct_values(expr, scope, hoists)
    return found if expr.optional else lambda frame: required(found(frame))


def _entry(expr: ir.Index, scope: Scope, hoists: Hoists) -> Vector | None:
    """`node.labels[?key]`, `node.free[?key]`, `p.requests[?key]` with a key that is the same for all rows."""
    if not isinstance(expr.operand, ir.Field) or expr.key.shape is not Shape.SCALAR:
        return None
    path, key = expr.operand.path, scope.lower(expr.key, hoists)
    if path in MAPS:
        read, _ = MAPS[path]
        return lambda frame: _with_key(frame, key(frame), read)
    if path in AMOUNTS:
        kind = path[1]
        return lambda frame: _with_key(frame, key(frame), lambda inner, name: entry_column(kind, name)(inner))
    if path == ("victim", "requests"):
        return lambda frame: _with_key(frame, key(frame), request_column)
    return None


def _with_key(frame: Frame, key: Column, read: MapReader) -> Column:
    assert key.dictionary is not None
    name: str = key.dictionary[int(key.values)]
    return read(frame, name).with_faults(key.faults)


def _map_of(expr: ir.Expr) -> tuple[MapReader, MapReader] | None:
    """How keys of a map of the row are read, None for what is none."""
    return MAPS.get(expr.path) if isinstance(expr, ir.Field) else None


@_lower.register
def _(expr: ir.Has, scope: Scope, hoists: Hoists) -> Vector:
    readers = _map_of(expr.operand)
    if readers is None:
        return by_distinct_values(expr, scope, hoists)
    name, is_there = expr.name, readers[1]
    return lambda frame: is_there(frame, name)


@_lower.register
def _(expr: ir.Select, scope: Scope, hoists: Hoists) -> Vector:
    readers = _map_of(expr.operand)
    if readers is None:
        return by_distinct_values(expr, scope, hoists)
    name, read = expr.name, readers[0]
    if expr.optional:
        return lambda frame: read(frame, name)
    return lambda frame: required(read(frame, name))


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
    readers = _map_of(expr.args[1]) if expr.function == "@in" else None
    if readers is None or expr.args[0].shape is not Shape.SCALAR:
        return None
    key, is_there = scope.lower(expr.args[0], hoists), readers[1]
    return lambda frame: _with_key(frame, key(frame), is_there)


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
    if any(aggregated(part, scope.let_value) is not None for part in walk(expr.body, scope.let_value)):
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
