"""An expression as columns, and by the naive interpreter."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import numpy as np

from policyengine.compiler.columns.column import Column, Failed
from policyengine.compiler.columns.frame import Decision, Frame, Scalar, Vector
from policyengine.compiler.coverage import Coverage
from policyengine.compiler.lower.scope import Hoists, Scope
from policyengine.compiler.lower.vector import column_closure
from policyengine.language import ir
from policyengine.language.types import Type
from tests.compiler.column_rules import check_column
from tests.compiler.naive import Place, evaluate
from tests.compiler.naive_objects import Cluster
from tests.compiler.naive_values import Nothing, NoValue, Some
from tests.compiler.worlds import PlainPod, World
from tests.fuzz.expression_writer import WRITTEN
from tests.fuzz.vocabulary import EVERYTHING, Where
from tests.fuzz.writer import Writer
from tests.language.checking import checked

FAILED = object()
READ = Where(EVERYTHING.roots - {"gang", "policy"})
"""What a column of an expression alone may read."""


def typed(text: str) -> ir.Expr | None:
    """The checked tree; None where the checker refuses it: see `REFUSED`."""
    policies, findings, _ = checked(f'policy "p" {{ let it = {text} }}')
    assert all(finding.code in REFUSED for finding in findings), (text, findings)
    return None if findings else policies[0].lets[-1].value


REFUSED = ("PE1004", "PE1006", "PE1017")
"""Operands that do not go together, a constant without a value, a cost of nodes times nodes."""


def drawn(seed: int, type_: Type | str, depth: int = 3, where: Where = READ) -> tuple[str, ir.Expr]:
    """An expression of a type, and its tree."""
    writer = Writer(Random(seed))
    while True:
        text = writer.resolved(writer.text(type_, where, depth), WRITTEN)
        expr = typed(text)
        if expr is not None:
            return text, expr


class Validation(Coverage):
    """Asserts the rules of `Column` of the column of each expression."""

    def __init__(self) -> None:
        pass

    def scalar(self, expr: ir.Expr, closure: Scalar) -> Scalar:
        return closure

    def vector(self, expr: ir.Expr, vector: Vector) -> Vector:
        def validated(frame: Frame) -> Column:
            column = vector(frame)
            check_column(column, frame.count, expr.type)
            return column

        return validated


def columns(expr: ir.Expr | str, world: World, pod: PlainPod, rows: Any = None) -> list[Any]:
    """The lowered expression's values, a row each; `FAILED` where a row has none, None where an optional is empty."""
    tree = typed(expr) if isinstance(expr, str) else expr
    assert tree is not None
    view = world.view()
    if pod.name not in view.pods:
        view.add_or_update_pod(pod.decode())
    hoists = Hoists()
    vector = Scope(column_closure, watch=Validation()).lower(tree, hoists)
    snapshot = view.snapshot()
    with np.errstate(all="ignore"):
        frame = Frame(snapshot.nodes, rows, hoists.columns(Decision(view.pods[pod.name], snapshot)))
        values = vector(frame).to_list(frame.count)
    return [FAILED if isinstance(value, Failed) else value for value in values]


def expected(expr: ir.Expr, world: World, pod: PlainPod) -> list[Any]:
    """The same by the naive interpreter."""
    cluster = Cluster.of(world, pod.manifest())
    return [_value_at(expr, Place(cluster.pod(pod.name), node)) for node in cluster.nodes]


def _value_at(expr: ir.Expr, at: Place) -> Any:
    try:
        value = evaluate(expr, at)
    except NoValue:
        return FAILED
    if isinstance(value, Nothing):
        return None
    return value.value if isinstance(value, Some) else value


def alike(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (math.isnan(a) and math.isnan(b))
    return type(a) is type(b) and a == b
