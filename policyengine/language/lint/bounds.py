"""Bounds of expressions as a rule may count on them: what Kubernetes says of its fields is known too."""

from __future__ import annotations

import math

from policyengine.language import ir
from policyengine.language.checking.intervals import Intervals
from policyengine.language.functions.bounds import EVERYTHING, Interval

_NOT_NEGATIVE = Interval(0, math.inf)
_AMOUNTS: frozenset[tuple[str, ...]] = frozenset(
    {("node", "allocatable"), ("node", "capacity"), ("node", "used"), ("pod", "requests"), ("pod", "limits")}
)
"""Maps of resources that validation keeps from being negative; `node.free` may be."""
_FIELDS: dict[tuple[str, ...], Interval] = {
    ("node", "podCount"): _NOT_NEGATIVE,
    ("pod", "attempts"): _NOT_NEGATIVE,
    ("pod", "qos"): Interval(0, 2),
    # The highest is system-node-critical's (scheduling/types.go), the lowest what an int32 holds.
    ("pod", "priority"): Interval(-(2**31), 2_000_001_000),
    ("cluster", "nodeCount"): _NOT_NEGATIVE,
    ("cluster", "podCount"): _NOT_NEGATIVE,
    ("cluster", "pendingCount"): _NOT_NEGATIVE,
}


class Bounds(Intervals):
    """`Intervals` that know the fields too."""

    def of(self, expr: ir.Expr) -> Interval:
        """The bounds of an expression in its grain; of an optional: of its content."""
        match expr:
            case ir.Field(path=path):
                return _FIELDS.get(path) or (_NOT_NEGATIVE if path[:2] in _AMOUNTS else EVERYTHING)
            case ir.Index(operand=ir.Field(path=path)) | ir.Select(operand=ir.Field(path=path)):
                return _NOT_NEGATIVE if path in _AMOUNTS else super().of(expr)
            case ir.Conditional(condition=condition) if isinstance(condition, ir.Const):
                return self.of(expr.then if condition.value else expr.otherwise)
            case _:
                return super().of(expr)
