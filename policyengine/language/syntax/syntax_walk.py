"""Walking the syntax tree of an expression."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

from policyengine.language import syntax


def children(expr: syntax.Expr) -> tuple[syntax.Expr, ...]:
    """The direct parts of an expression, in the order they are written."""
    parts = _PARTS.get(type(expr))
    return parts(expr) if parts is not None else ()


_PARTS: dict[type[syntax.Node], Callable[[Any], tuple[syntax.Expr, ...]]] = {
    syntax.Select: lambda expr: (expr.operand,),
    syntax.Index: attrgetter("operand", "key"),
    syntax.Call: lambda expr: expr.args if expr.target is None else (expr.target, *expr.args),
    syntax.Unary: lambda expr: (expr.operand,),
    syntax.Binary: attrgetter("left", "right"),
    syntax.Conditional: attrgetter("condition", "then", "otherwise"),
    syntax.ListLiteral: lambda expr: tuple(item.value for item in expr.items),
    syntax.MapLiteral: lambda expr: tuple(part for entry in expr.entries for part in (entry.key, entry.value)),
}


def walk(expr: syntax.Expr) -> Iterator[syntax.Expr]:
    """The expression and all its parts, depth first."""
    pending = [expr]
    while pending:
        expr = pending.pop()
        yield expr
        pending += reversed(children(expr))


def names_in(expr: syntax.Expr) -> frozenset[str]:
    """Every name that stands alone in the expression, variables of macros included."""
    return frozenset(part.name for part in walk(expr) if isinstance(part, syntax.Name))
