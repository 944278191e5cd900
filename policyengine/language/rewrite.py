"""The rewrite phase: the same meaning, less work.

Constants are folded. The parts of `&&` and `||` are put in order of cost, what reads no node first: errors are
absorbed in either order, so no order shows. What only needs the pod is visible by its reach and shape and is
hoisted by whoever evaluates.
"""

from __future__ import annotations

from operator import is_
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from policyengine.language import ir
from policyengine.language.functions import FUNCTIONS
from policyengine.language.ir.ir_walk import children, extent, rebuilt
from policyengine.language.scalar_evaluator import evaluated
from policyengine.language.schema import CLUSTER_POD, NODE
from policyengine.language.syntax import Span
from policyengine.language.types import QUANTITIES, Kind, Shape
from policyengine.language.values import EvaluationError

_FOLDED = QUANTITIES | {Kind.BOOL, Kind.INT, Kind.DOUBLE, Kind.STRING, Kind.DURATION, Kind.TIMESTAMP}
_LONGEST_FOLDED = 10_000
"""Longer strings are made when they are needed: many of them would fill the memory."""
_TEXT_COST = 8
_FREE = frozenset[type[ir.Expr]]((ir.Const, ir.ParamRef, ir.LetRef, ir.Local))
_OF_SHAPE = (1, 10, 100)
"""By the shape: one value, a column of nodes, one of pods. There are about ten pods a node."""
_PER_ELEMENT = 8
"""How many elements a comprehension is taken to run over."""


_REWRITTEN = ("lets", "queue", "filters", "scores", "gangs", "quotas", "permits", "preempt", "logs", "annotations")


def rewrite(policy: ir.Policy) -> ir.Policy:
    """The policy with every expression of its rules rewritten; tests, params and plugin arguments stay."""
    return replace(policy, **{name: _rewritten(getattr(policy, name)) for name in _REWRITTEN})


def _rewritten(member: Any) -> Any:
    """A member, or anything in one, with its expressions rewritten."""
    if isinstance(member, ir.Expr):
        return simplified(member)
    if isinstance(member, tuple):
        return tuple(map(_rewritten, member))
    if isinstance(member, Struct) and not isinstance(member, Span):
        before = {name: getattr(member, name) for name in member.__struct_fields__}
        after = {name: _rewritten(value) for name, value in before.items()}
        changes = {name: value for name, value in after.items() if value is not before[name]}
        return replace(member, **changes) if changes else member
    return member


def simplified(expr: ir.Expr) -> ir.Expr:
    """The expression with constants folded and cheap conjuncts first; of the same type and meaning."""
    parts = children(expr)
    if not parts:
        return expr
    simpler = list(map(simplified, parts))
    if not all(map(is_, simpler, parts)):
        expr = rebuilt(expr, simpler)
    match expr:
        case ir.Logic():
            return _logic(expr)
        case ir.Conditional(condition=ir.Const(value=bool() as chosen)):
            return expr.then if chosen else expr.otherwise
        case ir.Call():
            return _folded(expr)
        case _:
            return expr


def _folded(expr: ir.Call) -> ir.Expr:
    row = FUNCTIONS.get(expr.function)
    if row is None or expr.type.kind not in _FOLDED:
        return expr
    if not all(isinstance(arg, ir.Const) for arg in expr.args):
        return expr
    try:
        value = evaluated(expr)
    except EvaluationError:
        return expr
    if isinstance(value, str) and len(value) > _LONGEST_FOLDED:
        return expr
    return ir.Const(type=expr.type, span=expr.span, value=value)


def _logic(expr: ir.Logic) -> ir.Expr:
    """`false && e` is false even where e fails; `true && e` is e."""
    deciding = expr.op == "||"
    left: list[ir.Expr] = []
    for part in expr.operands:
        if isinstance(part, ir.Const):
            if part.value is deciding:
                return replace(part, span=expr.span)
            continue
        left.append(part)
    if not left:
        return ir.Const(type=expr.type, span=expr.span, value=not deciding)
    if len(left) == 1:
        return left[0]
    ordered = sorted(left, key=lambda part: (part.shape is not Shape.SCALAR, cost(part)))
    if tuple(ordered) == expr.operands:
        return expr
    return replace(expr, operands=tuple(ordered), **extent(*ordered))


def cost(expr: ir.Expr) -> int:
    """A rough price: what a column of nodes costs counts ten times what one value does, one of pods a hundred times."""
    total, pending = 0, [expr]
    while pending:
        part = pending.pop()
        if part.__class__ in _FREE:
            continue
        if isinstance(part, ir.Comprehension):
            total += _cost_of_all(part)
            continue
        own = _call_cost(part) if isinstance(part, ir.Call) else 1
        total += own * _OF_SHAPE[part.shape]
        pending += children(part)
    return total


def _cost_of_all(expr: ir.Comprehension) -> int:
    source, *asked = map(cost, children(expr))
    # What is asked of all pods or nodes is a column of its own, whose shape makes it expensive enough.
    return source + sum(asked) * (1 if expr.source.type.args[0] in (NODE, CLUSTER_POD) else _PER_ELEMENT)


def _call_cost(call: ir.Call) -> int:
    row = FUNCTIONS.get(call.function)
    if row is not None and row.cost.rank is not None:
        return row.cost.rank
    return _TEXT_COST if any(arg.type.kind is Kind.STRING for arg in call.args) else 1
