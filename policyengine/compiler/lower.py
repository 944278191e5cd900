"""IR -> column closures: one `singledispatch`, a short function an expression.

What is SCALAR is hoisted (`Hoists`): worked out once for the pod, met in the frame as a column of one value. What
has a column kernel runs on whole columns. Everything else is worked out by value (`by_value`): once a distinct
combination of what it reads, never once a row.
"""

from __future__ import annotations

from functools import singledispatch

from policyengine.compiler.bindings import MAPS, MapReader, entry_column, node_binding, required
from policyengine.compiler.by_value import lower_by_value
from policyengine.compiler.column import Column
from policyengine.compiler.frame import Frame, Scope, Vector
from policyengine.compiler.hoists import Hoists
from policyengine.compiler.lower_calls import kernel_of
from policyengine.compiler.lower_logic import conditional, conjunction
from policyengine.compiler.random_column import random_column
from policyengine.language import ir
from policyengine.language.types import Shape

AMOUNTS = frozenset({"capacity", "allocatable", "used", "free"})


def lower(expr: ir.Expr, scope: Scope, hoists: Hoists) -> Vector:
    """The column closure of an expression of any shape."""
    if expr.shape is Shape.SCALAR:
        return hoists.hoist(expr, scope)
    return _lower(expr, scope, hoists)


@singledispatch
def _lower(expr: ir.Expr, scope: Scope, hoists: Hoists) -> Vector:
    return _by_value(expr, scope, hoists)


def _by_value(expr: ir.Expr, scope: Scope, hoists: Hoists) -> Vector:
    return lower_by_value(expr, scope, lambda part: lower(part, scope, hoists))


@_lower.register
def _(expr: ir.Field, scope: Scope, hoists: Hoists) -> Vector:
    return node_binding(expr.path[1:])


@_lower.register
def _(expr: ir.LetRef, scope: Scope, hoists: Hoists) -> Vector:
    name, body = expr.name, lower(scope.lets[expr.name].value, scope, hoists)

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
        return _by_value(expr, scope, hoists)
    return found if expr.optional else lambda frame: required(found(frame))


def _entry(expr: ir.Index, scope: Scope, hoists: Hoists) -> Vector | None:
    """`node.labels[?key]` and `node.free[?key]` with a key that is the same for all nodes."""
    if not isinstance(expr.operand, ir.Field) or expr.key.shape is not Shape.SCALAR:
        return None
    path, key = expr.operand.path, lower(expr.key, scope, hoists)
    if len(path) != 2:
        return None
    if path[1] in MAPS:
        read, _ = MAPS[path[1]]
        return lambda frame: _with_key(frame, key(frame), read)
    if path[1] in AMOUNTS:
        kind = path[1]
        return lambda frame: _with_key(frame, key(frame), lambda inner, name: entry_column(kind, name)(inner))
    return None


def _with_key(frame: Frame, key: Column, read: MapReader) -> Column:
    assert key.dictionary is not None
    name: str = key.dictionary[int(key.values)]
    return read(frame, name).with_faults(key.faults)


def _map_of(expr: ir.Expr) -> tuple[MapReader, MapReader] | None:
    """How keys of the node's map are read, None for what is no map of the node."""
    if isinstance(expr, ir.Field) and len(expr.path) == 2 and expr.path[0] == "node":
        return MAPS.get(expr.path[1])
    return None


@_lower.register
def _(expr: ir.Has, scope: Scope, hoists: Hoists) -> Vector:
    readers = _map_of(expr.operand)
    if readers is None:
        return _by_value(expr, scope, hoists)
    name, is_there = expr.name, readers[1]
    return lambda frame: is_there(frame, name)


@_lower.register
def _(expr: ir.Select, scope: Scope, hoists: Hoists) -> Vector:
    readers = _map_of(expr.operand)
    if readers is None:
        return _by_value(expr, scope, hoists)
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
        return _by_value(expr, scope, hoists)
    args = tuple(lower(arg, scope, hoists) for arg in expr.args)
    if len(args) == 2:
        left, right = args
        return lambda frame: kernel(left(frame), right(frame))
    return lambda frame: kernel(*[arg(frame) for arg in args])


def _special_call(expr: ir.Call, scope: Scope, hoists: Hoists) -> Vector | None:
    """`key in node.labels`, and `random()` of the node's name: read from the node table rather than by value."""
    if expr.function == "random":
        return _random(expr, scope, hoists)
    readers = _map_of(expr.args[1]) if expr.function == "@in" else None
    if readers is None or expr.args[0].shape is not Shape.SCALAR:
        return None
    key, is_there = lower(expr.args[0], scope, hoists), readers[1]
    return lambda frame: _with_key(frame, key(frame), is_there)


def _random(expr: ir.Call, scope: Scope, hoists: Hoists) -> Vector | None:
    uid, node, rule, stream = expr.args
    if not (isinstance(node, ir.Field) and node.path == ("node", "name")):
        return None
    names = [lower(part, scope, hoists) for part in (uid, rule, stream)]
    return lambda frame: random_column([name(frame) for name in names], frame.pick(frame.nodes.name_hash))


@_lower.register
def _(expr: ir.Logic, scope: Scope, hoists: Hoists) -> Vector:
    operands = [(lower(part, scope, hoists), part.shape is Shape.SCALAR) for part in expr.operands]
    return conjunction(operands, decisive=expr.op == "||")


@_lower.register
def _(expr: ir.Conditional, scope: Scope, hoists: Hoists) -> Vector:
    parts = (expr.condition, expr.then, expr.otherwise)
    return conditional(*(lower(part, scope, hoists) for part in parts))
