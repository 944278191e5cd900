"""IR -> closures over one decision: everything of a rule that does not differ from node to node.

A short function an expression. A closure answers a value (an `Optional` for optionals) or raises
`EvaluationError`; `&&`, `||` and `?:` decide which errors surface. The functions are those of the language's own
table, so that a policy and `policyengine.evaluate` cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, singledispatch
from typing import Any

from policyengine.compiler.columns.column import Failed, attempt
from policyengine.compiler.columns.frame import Decision, Scalar
from policyengine.compiler.columns.node_columns import scalar_binding
from policyengine.compiler.columns.object_fields import Amounts, entry, field_getter
from policyengine.compiler.lower.scalar_folds import lower_fold
from policyengine.compiler.lower.scalar_functions import scalar_function
from policyengine.compiler.lower.scope import Scope
from policyengine.language import ir
from policyengine.language.ir.list_sources import aggregated
from policyengine.language.types import Kind
from policyengine.language.values import NONE, EvaluationError, Optional, to_key

_ABSENT = object()


def lower_scalar(expr: ir.Expr, scope: Scope) -> Scalar:
    """The closure of an expression; a hole of the scope is read from the decision's locals."""
    known = scope.scalars.get(id(expr))
    if known is not None:
        return known[1]
    hole = scope.holes.get(id(expr))
    if hole is not None:
        return lambda decision: unfailed(decision.locals[hole])
    scalar: Scalar = _form(expr.__class__)(expr, scope)
    if scope.watch is not None:
        scalar = scope.watch.scalar(expr, scalar)
    scope.scalars[id(expr)] = expr, scalar
    return scalar


def unfailed(value: Any) -> Any:
    """The value, unless it stands for an error."""
    if isinstance(value, Failed):
        raise EvaluationError(value.detail or value.fault.text)
    return value


@cache
def _form(kind: type[ir.Expr]) -> Callable[[Any, Scope], Scalar]:
    return _lower.dispatch(kind)


@singledispatch
def _lower(expr: ir.Expr, scope: Scope) -> Scalar:
    raise TypeError(f"no scalar form of {type(expr).__name__}")


@_lower.register
def _(expr: ir.Const, scope: Scope) -> Scalar:
    value = expr.value
    return lambda decision: value


@_lower.register
def _(expr: ir.Field, scope: Scope) -> Scalar:
    read = scalar_binding(expr.path, scope)
    if expr.type.kind is Kind.OPTIONAL:
        return lambda decision: optional(read(decision))
    return read


def optional(value: Any) -> Optional:
    """A value that is None where it is absent, as an optional."""
    return NONE if value is None else Optional(value)


@_lower.register
def _(expr: ir.ParamRef, scope: Scope) -> Scalar:
    value = scope.params[expr.name]
    return lambda decision: value


@_lower.register
def _(expr: ir.LetRef, scope: Scope) -> Scalar:
    name, body = expr.name, lower_scalar(scope.lets[expr.name].value, scope)

    def let(decision: Decision) -> Any:
        value = decision.memo.get(name, _ABSENT)
        if value is _ABSENT:
            value = decision.memo[name] = attempt(body, decision)
        return unfailed(value)

    return let


@_lower.register
def _(expr: ir.Local, scope: Scope) -> Scalar:
    name = expr.name
    return lambda decision: decision.locals[name]


@_lower.register
def _(expr: ir.Select, scope: Scope) -> Scalar:
    operand, name = lower_scalar(expr.operand, scope), expr.name
    read = _field_reader(expr.operand, name)
    if expr.operand.type.kind is Kind.OPTIONAL:
        return lambda decision: _chained(operand(decision), read)
    if expr.optional or (expr.operand.type.kind is Kind.OBJECT and expr.type.kind is Kind.OPTIONAL):
        return lambda decision: _wrapped(read(operand(decision)))
    return lambda decision: _there(read(operand(decision)), name)


def _field_reader(operand: ir.Expr, name: str) -> Callable[[Any], Any]:
    """Reads a field, None where it is absent."""
    type_ = operand.type.args[0] if operand.type.kind is Kind.OPTIONAL else operand.type
    if type_.kind is Kind.OBJECT:
        return field_getter(type_.name, name)
    return lambda mapping: mapping.get(name)


def _there(value: Any, name: str) -> Any:
    if value is None:
        raise EvaluationError(f"no such key `{name}`")
    return value


def _wrapped(value: Any) -> Optional:
    return value if isinstance(value, Optional) else optional(value)


def _chained(value: Optional, read: Callable[[Any], Any]) -> Optional:
    """A step of an optional chain: `a.?b.c` and `a[?k].c` stay empty once they are."""
    return _wrapped(read(value.content)) if value.present else NONE


@_lower.register
def _(expr: ir.Index, scope: Scope) -> Scalar:
    operand, key = lower_scalar(expr.operand, scope), lower_scalar(expr.key, scope)
    if expr.operand.type.kind is Kind.OPTIONAL:
        return lambda decision: _chained_index(operand(decision), key(decision))
    if expr.optional:
        return lambda decision: _wrapped(_found(operand(decision), key(decision)))
    return lambda decision: _indexed(operand(decision), key(decision))


def _found(container: Any, key: Any) -> Any:
    """The entry, None where there is none."""
    if isinstance(container, Mapping):
        return container.get(to_key(key))
    if isinstance(container, Amounts):
        return entry(container, key)
    return container[key] if 0 <= key < len(container) else None


def _chained_index(value: Optional, key: Any) -> Optional:
    return _wrapped(_found(value.content, key)) if value.present else NONE


def _indexed(container: Any, key: Any) -> Any:
    found = _found(container, key)
    if found is None:
        is_list = isinstance(container, list | tuple)
        raise EvaluationError("index out of range" if is_list else f"no such key `{key}`")
    return found


@_lower.register
def _(expr: ir.Has, scope: Scope) -> Scalar:
    operand, read = lower_scalar(expr.operand, scope), _field_reader(expr.operand, expr.name)
    if expr.operand.type.kind is Kind.OPTIONAL:
        return lambda decision: _chained(operand(decision), read).present
    return lambda decision: _wrapped(read(operand(decision))).present


def _of_cluster(expr: ir.Expr, scope: Scope) -> Scalar | None:
    """An aggregate over all nodes or pods, worked out by columns; None for any other expression."""
    if aggregated(expr, scope.let_value) is None:
        return None
    from policyengine.compiler.lower.list_aggregates import scalar_aggregate  # built on this module
    from policyengine.compiler.lower.vector import lower

    return scalar_aggregate(expr, scope, lower)


@_lower.register
def _(expr: ir.Call, scope: Scope) -> Scalar:
    of_cluster = _of_cluster(expr, scope)
    if of_cluster is not None:
        return of_cluster
    args = tuple(lower_scalar(arg, scope) for arg in expr.args)
    if expr.function in _LAZY:
        return _LAZY[expr.function](*args)
    function = scalar_function(expr)
    if len(args) == 1:
        only = args[0]
        return lambda decision: function(only(decision))
    if len(args) == 2:
        left, right = args
        return lambda decision: function(left(decision), right(decision))
    return lambda decision: function(*[arg(decision) for arg in args])


def _or_value(value: Scalar, default: Scalar) -> Scalar:
    def or_value(decision: Decision) -> Any:
        held = value(decision)
        return held.content if held.present else default(decision)

    return or_value


def _or(value: Scalar, other: Scalar) -> Scalar:
    def either(decision: Decision) -> Any:
        held = value(decision)
        return held if held.present else other(decision)

    return either


_LAZY: dict[str, Callable[..., Scalar]] = {"orValue": _or_value, "or": _or}
"""The default of an optional is evaluated only where it is needed."""


@_lower.register
def _(expr: ir.Logic, scope: Scope) -> Scalar:
    operands = tuple(lower_scalar(operand, scope) for operand in expr.operands)
    decisive = expr.op == "||"

    def logic(decision: Decision) -> bool:
        error: EvaluationError | None = None
        for operand in operands:
            try:
                if bool(operand(decision)) is decisive:
                    return decisive
            except EvaluationError as raised:
                error = error or raised
        if error is not None:
            raise error
        return not decisive

    return logic


@_lower.register
def _(expr: ir.Conditional, scope: Scope) -> Scalar:
    condition = lower_scalar(expr.condition, scope)
    then, otherwise = lower_scalar(expr.then, scope), lower_scalar(expr.otherwise, scope)
    return lambda decision: then(decision) if condition(decision) else otherwise(decision)


@_lower.register
def _(expr: ir.ListExpr, scope: Scope) -> Scalar:
    items = tuple((lower_scalar(item, scope), is_optional) for item, is_optional in expr.items)

    def build(decision: Decision) -> list[Any]:
        values: list[Any] = []
        for item, is_optional in items:
            value = item(decision)
            if not is_optional:
                values.append(value)
            elif value.present:
                values.append(value.content)
        return values

    return build


@_lower.register
def _(expr: ir.MapExpr, scope: Scope) -> Scalar:
    entries = tuple((lower_scalar(k, scope), lower_scalar(v, scope), maybe) for k, v, maybe in expr.entries)

    def build(decision: Decision) -> dict[Any, Any]:
        values: dict[Any, Any] = {}
        for key, value, maybe in entries:
            name, held = to_key(key(decision)), value(decision)
            if name in values:
                raise EvaluationError(f"the key `{key(decision)}` is there twice")
            if not maybe:
                values[name] = held
            elif held.present:
                values[name] = held.content
        return values

    return build


@_lower.register
def _(expr: ir.OptMap, scope: Scope) -> Scalar:
    operand, body = lower_scalar(expr.operand, scope), lower_scalar(expr.body, scope)
    variable, flat = expr.variable, expr.flat

    def mapped(decision: Decision) -> Optional:
        held = operand(decision)
        if not held.present:
            return NONE
        value = with_local(decision, variable, held.content, body)
        if flat:
            return _wrapped(value)
        return Optional(value)

    return mapped


def with_local(decision: Decision, name: str, value: Any, body: Scalar) -> Any:
    """The body's value while `name` stands for `value`; an outer variable of the name comes back afterwards."""
    outer = decision.locals.get(name, _ABSENT)
    decision.locals[name] = value
    try:
        return body(decision)
    finally:
        if outer is _ABSENT:
            del decision.locals[name]
        else:
            decision.locals[name] = outer


@_lower.register
def _(expr: ir.Comprehension, scope: Scope) -> Scalar:
    of_cluster = _of_cluster(expr, scope)
    if of_cluster is not None:
        return of_cluster
    source = lower_scalar(expr.source, scope)
    condition = None if expr.condition is None else lower_scalar(expr.condition, scope)
    return lower_fold(expr, source, condition, lower_scalar(expr.body, scope))
