"""Which comprehension variables an expression takes from outside, and what a template is filled with."""

from __future__ import annotations

from policyengine.language import ir
from policyengine.language.ir_walk import children


def free_locals(expr: ir.Expr) -> frozenset[str]:
    """The comprehension variables an expression takes from outside itself."""
    if isinstance(expr, ir.Local):
        return frozenset((expr.name,))
    if isinstance(expr, ir.Comprehension):
        inner = free_locals(expr.body) | (free_locals(expr.condition) if expr.condition else frozenset())
        return free_locals(expr.source) | (inner - frozenset(expr.variables))
    if isinstance(expr, ir.OptMap):
        return free_locals(expr.operand) | (free_locals(expr.body) - {expr.variable})
    return frozenset().union(*map(free_locals, children(expr)))


def expressions_of(template: ir.Template | None) -> tuple[ir.Expr, ...]:
    """The expressions filled into a template."""
    return () if template is None else tuple(part for part in template.parts if not isinstance(part, str))
