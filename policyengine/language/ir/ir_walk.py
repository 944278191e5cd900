"""Walking the typed tree: the parts of an expression, and what it reads."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, Final, TypedDict

from msgspec.structs import replace

from policyengine.language import ir
from policyengine.language.schema import CLUSTER_POD, NODE
from policyengine.language.syntax import Span
from policyengine.language.types import Kind, Reach, Shape, Type, list_of


def children(expr: ir.Expr) -> tuple[ir.Expr, ...]:
    """The direct parts of an expression, in the order they are written."""
    parts = _PARTS.get(type(expr))
    return parts(expr) if parts is not None else ()


_PARTS: dict[type[ir.Expr], Callable[[Any], tuple[ir.Expr, ...]]] = {
    ir.Select: lambda expr: (expr.operand,),
    ir.Has: lambda expr: (expr.operand,),
    ir.Index: attrgetter("operand", "key"),
    ir.Call: attrgetter("args"),
    ir.Logic: attrgetter("operands"),
    ir.Conditional: attrgetter("condition", "then", "otherwise"),
    ir.ListExpr: lambda expr: tuple(value for value, _ in expr.items),
    ir.MapExpr: lambda expr: tuple(part for key, value, _ in expr.entries for part in (key, value)),
    ir.Comprehension: lambda expr: (expr.source, *((expr.condition,) if expr.condition else ()), expr.body),
    ir.OptMap: attrgetter("operand", "body"),
}


_PLAIN = frozenset({str, int, bool, float, type(None), Span})


def expressions_in(member: Any) -> Iterator[ir.Expr]:
    """The expressions that stand in a policy, or in a member or test of one; not the parts of an expression."""
    pending = [member]
    while pending:
        one = pending.pop()
        if isinstance(one, ir.Expr):
            yield one
        elif isinstance(one, tuple):
            pending += reversed(one)
        else:
            inside = [getattr(one, name) for name in _members(one.__class__)]
            pending += [value for value in inside if value.__class__ not in _PLAIN]


@cache
def _members(kind: type) -> tuple[str, ...]:
    """The fields of what may hold expressions, the last first."""
    return () if kind is Span else tuple(reversed(getattr(kind, "__struct_fields__", ())))


LetOf = Callable[[str], ir.Expr | None]
"""The value of a let by name; None where it is not known."""


def walk(expr: ir.Expr, let_of: LetOf | None = None) -> Iterator[ir.Expr]:
    """The expression and all its parts, depth first; with `let_of` also the values of the lets it names."""
    pending, seen = [expr], set()
    while pending:
        expr = pending.pop()
        yield expr
        parts = _PARTS.get(expr.__class__)
        if parts is not None:
            pending += parts(expr)[::-1]
        elif let_of is not None and isinstance(expr, ir.LetRef) and expr.name not in seen:
            seen.add(expr.name)
            value = let_of(expr.name)
            pending += [value] if value is not None else []


def fields(expr: ir.Expr, let_of: LetOf | None = None) -> Iterator[ir.Field]:
    """The schema fields an expression reads."""
    return (part for part in walk(expr, let_of) if isinstance(part, ir.Field))


def key(expr: ir.Expr, of: Callable[[ir.Expr], Hashable] | None = None) -> Hashable:
    """What two expressions have in common that mean the same: all but their places. `of`: the keys of its parts, where
    these are known otherwise."""
    if isinstance(expr, ir.Const):
        return ("Const", str(expr.type), type(expr.value).__name__, repr(expr.value))
    of = of or key
    result = str(expr.type) if isinstance(expr, ir.Call) else ""
    return (type(expr).__name__, result, *(_each(getattr(expr, name), of) for name in _own_fields(expr.__class__)))


def rebuilt(expr: ir.Expr, parts: Sequence[ir.Expr]) -> ir.Expr:
    """The expression with other direct parts, in the order of `children`; its shape and reach stay."""
    if not parts:
        return expr
    left = iter(parts)
    names = _own_fields(expr.__class__)
    return replace(expr, **{name: _each(getattr(expr, name), lambda _: next(left)) for name in names})


@cache
def _own_fields(kind: type[ir.Expr]) -> tuple[str, ...]:
    """The fields that an expression has and others have not, in the order of `children`."""
    return tuple(name for name in kind.__struct_fields__ if name not in ir.Expr.__struct_fields__)


def _each(value: Any, change: Callable[[ir.Expr], Any]) -> Any:
    """The value of a field with every expression in it changed."""
    if isinstance(value, ir.Expr):
        return change(value)
    return tuple([_each(item, change) for item in value]) if isinstance(value, tuple) else value


def respanned(expr: ir.Expr, span: Span) -> ir.Expr:
    """The expression as if all of it stood in one place."""
    parts = children(expr)
    if parts:
        expr = rebuilt(expr, [respanned(part, span) for part in parts])
    return replace(expr, span=span)


def free_locals(expr: ir.Expr) -> frozenset[str]:
    """The variables of macros and functions that an expression takes from outside itself."""
    if isinstance(expr, ir.Local):
        return frozenset((expr.name,))
    if isinstance(expr, ir.Comprehension):
        inner = free_locals(expr.body) | (free_locals(expr.condition) if expr.condition else frozenset())
        return free_locals(expr.source) | (inner - frozenset(expr.variables))
    if isinstance(expr, ir.OptMap):
        return free_locals(expr.operand) | (free_locals(expr.body) - {expr.variable})
    return frozenset().union(*map(free_locals, children(expr)))


def known_amount(amount: ir.Expr) -> int | None:
    """An amount of a quota that is the same for all pods, whatever the params; None for any other."""
    return amount.value if isinstance(amount, ir.Const) and isinstance(amount.value, int) else None


def known_amounts(amounts: ir.Amounts) -> dict[str, int]:
    """Those amounts of a quota that are the same for all pods, whatever the params, by resource."""
    return {name: known for name, amount in amounts if (known := known_amount(amount)) is not None}


def is_error(*exprs: ir.Expr) -> bool:
    """Whether one of the expressions was reported already."""
    for expr in exprs:
        type_ = expr.type
        if type_.kind is Kind.ERROR or (type_.args and _has_error(type_)):
            return True
    return False


def _has_error(type_: Type) -> bool:
    return type_.kind is Kind.ERROR or (bool(type_.args) and any(map(_has_error, type_.args)))


class Extent(TypedDict):
    """The shape and reach of an expression, as its constructor takes them."""

    shape: Shape
    reach: Reach


def extent(*parts: ir.Expr) -> Extent:
    """The shape and reach of a whole: the largest of its parts'."""
    shape, reach = Shape.SCALAR, Reach.CONSTANT
    for part in parts:
        shape = part.shape if part.shape > shape else shape
        reach = part.reach if part.reach > reach else reach
    return {"shape": shape, "reach": reach}


# --- lists of the cluster's nodes and pods -----------------------------------------------------------------
# Such a list is long and has no order. It is filtered and mapped, and in the end aggregated; nothing else is done
# with it. Its elements are rows: of the pod table (shape POD), or of the node table (shape NODE).

AGGREGATES: Final = frozenset({"size", "sum", "avg", "min", "max", "stddev"})
"""Functions that make one value of a list."""
TESTS: Final = frozenset({ir.Fold.ALL, ir.Fold.EXISTS, ir.Fold.EXISTS_ONE})
"""Macros that make one value of a list."""
_STEPS: Final = frozenset({ir.Fold.FILTER, ir.Fold.MAP})
_SOURCES: Final = (list_of(CLUSTER_POD), list_of(NODE))


def source_of(expr: ir.Expr, let_of: LetOf) -> ir.Expr | None:
    """The nodes or pods that a list is made of by filtering and mapping; None for any other list."""
    while True:
        if isinstance(expr, ir.LetRef):
            value = let_of(expr.name)
            if value is None:
                return None
            expr = value
        elif isinstance(expr, ir.Comprehension) and expr.fold in _STEPS:
            expr = expr.source
        else:
            return expr if expr.type in _SOURCES else None


def is_cluster_list(expr: ir.Expr, let_of: LetOf) -> bool:
    """Whether an expression is a list of nodes or pods of the cluster, or made of one."""
    return expr.type.kind is Kind.LIST and source_of(expr, let_of) is not None


def aggregated(expr: ir.Expr, let_of: LetOf) -> ir.Expr | None:
    """The cluster's list of which an expression makes one value; None where it does no such thing."""
    whole: ir.Expr | None = None
    if isinstance(expr, ir.Comprehension):
        whole = expr.source if expr.fold in TESTS else None
    elif isinstance(expr, ir.Call):
        if expr.function in AGGREGATES and len(expr.args) == 1:
            whole = expr.args[0]
        elif expr.function == "@in":
            whole = expr.args[1]
    return whole if whole is not None and is_cluster_list(whole, let_of) else None


def element_shape(source: ir.Expr) -> Shape:
    """The shape of what holds for each element of a source."""
    return Shape.POD if source.type == list_of(CLUSTER_POD) else Shape.NODE


def owner_of(source: ir.Expr) -> ir.Expr | None:
    """The node whose own list a source is (`node.pods`, `n.nominated`); None for a list that spans nodes."""
    if isinstance(source, ir.Field) and source.path[0] == "node" and len(source.path) == 2:
        return source
    if isinstance(source, ir.Select) and source.operand.type == NODE:
        return source.operand
    return None
