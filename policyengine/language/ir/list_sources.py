"""Lists of the cluster's nodes and pods: which expressions are one, and what makes a single value of it.

Such a list is long and has no order. It is filtered and mapped, and in the end aggregated; nothing else is done with
it. Its elements are rows: of the pod table (shape POD), or of the node table (shape NODE).
"""

from __future__ import annotations

from typing import Final

from policyengine.language import ir
from policyengine.language.ir.ir_walk import LetOf
from policyengine.language.schema_objects import CLUSTER_POD, NODE
from policyengine.language.types import Kind, Shape, list_of

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
