"""What a policy's rules cost in one decision over 5,000 nodes, by what each operation was measured to take.

A rule is arithmetic over columns, so its time is the sum of its operations', each a pass over a column. What reads no
node is computed once a decision and costs nothing here. A let is evaluated once a decision, whoever names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policyengine.language import ir
from policyengine.language.functions import FUNCTIONS
from policyengine.language.ir.ir_walk import LetOf, children
from policyengine.language.syntax import Span
from policyengine.language.types import Kind, Shape

NODES: Final = 5_000
PODS_A_NODE: Final = 30
"""How many elements a list of a node's pods is taken to have; the table's `pods` was measured with four."""
_PODS_MEASURED: Final = 4
MACHINE: Final = "Two virtual CPUs of an AMD EPYC shared with other work, CPython 3.11; CPU time, medians of five runs"
"""Where the table was measured. `compare` is what a comparison adds to its `||`."""
MICROSECONDS: Final[dict[str, float]] = {
    "add": 2.0,
    "multiply": 2.4,
    "divide": 3.0,
    "compare": 0.5,
    "logic": 3.8,
    "choose": 6.5,
    "bound": 6.4,
    "root": 7.5,
    "text": 0.5,
    "lookup": 1.5,
    "convert": 150.0,
    "matches": 62.0,
    "curve": 610.0,
    "pods": 170.0,
    "draw": 28.0,
    "rule": 7.0,
}
"""Operation -> microseconds a pass over the columns of `NODES` nodes."""

_TEXT = frozenset({Kind.STRING, Kind.LIST, Kind.MAP})


_OPERATIONS: Final[dict[type[ir.Expr], str]] = {
    ir.Index: "lookup",
    ir.Select: "lookup",
    ir.Has: "lookup",
    ir.Logic: "logic",
    ir.Conditional: "choose",
    ir.OptMap: "choose",
    ir.Comprehension: "pods",
}


def operation(expr: ir.Expr) -> str:
    """Which row of the table an expression's own work is; '' for none."""
    if not isinstance(expr, ir.Call):
        return _OPERATIONS.get(type(expr), "")
    row = FUNCTIONS.get(expr.function)
    named = "text" if row is None else row.cost.operation
    return "text" if named == "compare" and any(arg.type.kind in _TEXT for arg in expr.args) else named


def expression_cost(expr: ir.Expr, let_of: LetOf, seen: set[str]) -> float:
    """Microseconds of an expression; a let that is not among those seen is added to both."""
    spent, pending = 0.0, [expr]
    while pending:
        part = pending.pop()
        if isinstance(part, ir.LetRef):
            value = let_of(part.name)
            if part.name not in seen and value is not None:
                seen.add(part.name)
                pending.append(value)
            continue
        if part.shape is not Shape.SCALAR:
            times = (len(part.operands) - 1) if isinstance(part, ir.Logic) else 1
            elements: float = PODS_A_NODE if part.shape is Shape.POD else 1
            if isinstance(part, ir.Comprehension):
                elements = PODS_A_NODE / _PODS_MEASURED
            spent += MICROSECONDS.get(operation(part), 0.0) * times * elements
        pending += children(part)
    return spent


def rule_costs(policy: ir.Policy, let_of: LetOf) -> Iterator[tuple[str, Span, float]]:
    """The name, the place and the microseconds of each filter and score; a let counts where it is named first."""
    seen: set[str] = set()
    for filter_ in policy.filters:
        spent = sum(expression_cost(require.condition, let_of, seen) for require in filter_.requires)
        yield filter_.name, filter_.span, spent + MICROSECONDS["rule"]
    for score in policy.scores:
        yield score.name, score.span, expression_cost(score.value, let_of, seen) + MICROSECONDS["rule"]
