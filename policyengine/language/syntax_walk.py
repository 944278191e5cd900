"""Walking the syntax tree of an expression."""

from __future__ import annotations

from collections.abc import Iterator

from policyengine.language import syntax


def children(expr: syntax.Expr) -> tuple[syntax.Expr, ...]:
    """The direct parts of an expression, in the order they are written."""
    match expr:
        case syntax.Select():
            return (expr.operand,)
        case syntax.Index():
            return (expr.operand, expr.key)
        case syntax.Call():
            return expr.args if expr.target is None else (expr.target, *expr.args)
        case syntax.Unary():
            return (expr.operand,)
        case syntax.Binary():
            return (expr.left, expr.right)
        case syntax.Conditional():
            return (expr.condition, expr.then, expr.otherwise)
        case syntax.ListLiteral():
            return tuple(item.value for item in expr.items)
        case syntax.MapLiteral():
            return tuple(part for entry in expr.entries for part in (entry.key, entry.value))
        case _:
            return ()


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
