"""The CEL specification's conformance cases as columns: what a policy may write of them answers as the suite says.

Every literal and every binding is made a column of the node table, so that nothing is folded and every function runs in
its column form. Cases the strict checker refuses (mixed types, null, what policies leave out) are none of a policy's.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from policyengine.cluster.view import ClusterView
from policyengine.compiler.columns import row_columns
from policyengine.compiler.columns.column import Column, Failed, column_of
from policyengine.compiler.columns.frame import Decision, Frame
from policyengine.compiler.lower.scope import Hoists, Scope
from policyengine.compiler.lower.vector import column_closure
from policyengine.language import ir
from policyengine.language.functions import FUNCTIONS
from policyengine.language.ir.ir_walk import children, rebuilt
from policyengine.language.types import Kind, Reach, Shape, Type
from policyengine.language.values import parse_duration
from tests.builders import make_node, make_pod
from tests.language.checking import checked
from tests.language.test_conformance import cases, plain, same

ROWS = 3
VALUES = {"bool", "int", "double", "string", "duration"}
MOST_REFUSED = 0.25


def literal(value: Any) -> str:
    """A bound value as text."""
    return json.dumps(value) if not isinstance(value, float) else repr(value)


NUMBER = re.compile(r"(?:(?<![\w.)\]'\" ])-)?(?<![\w.'\"])\d+(?:\.\d+)?(?![\w.'\"])")


def typed(case: dict[str, Any]) -> ir.Expr | None:
    """The checked tree of a case, its bindings as lets; None where a policy may not write it."""
    lets = {name: literal(plain(value)) for name, value in case.get("bindings", {}).items()}
    return _checked(case["expr"], lets) or _with_named_numbers(case["expr"], lets)


def _with_named_numbers(text: str, lets: dict[str, str]) -> ir.Expr | None:
    """What a policy may not write as literals, since it can be told to fail, it may write of values."""
    numbers: dict[str, str] = {}

    def name(match: re.Match[str]) -> str:
        numbers[f"number{len(numbers)}"] = match[0]
        return list(numbers)[-1]

    named = NUMBER.sub(name, text)
    return _checked(named, {**lets, **numbers}) if numbers else None


def _checked(text: str, lets: dict[str, str]) -> ir.Expr | None:
    members = "\n".join(f"let {name} = {value}" for name, value in lets.items())
    try:
        policies, findings, _ = checked(f'policy "p" {{\n{members}\nlet it = {text}\n}}')
    except AssertionError:  # it does not parse as a policy's expression
        return None
    if findings:
        return None
    named = {let.name: let.value for let in policies[0].lets}
    return _inlined(named["it"], named)


def _inlined(expr: ir.Expr, lets: dict[str, ir.Expr]) -> ir.Expr:
    if isinstance(expr, ir.LetRef):
        return lets[expr.name]
    parts = children(expr)
    return rebuilt(expr, [_inlined(part, lets) for part in parts]) if parts else expr


class Columns:
    """The literals of one expression, as columns of a table of nodes."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, ...], Column] = {}

    def spread(self, expr: ir.Expr) -> ir.Expr:
        """The expression with a column in the place of every literal."""
        if isinstance(expr, ir.Const):
            return self._column(expr)
        if isinstance(expr, ir.Local):
            return replace(expr, shape=Shape.NODE)
        parts = children(expr)
        if not parts:
            return expr
        fixed = FUNCTIONS[expr.function].literals if isinstance(expr, ir.Call) else frozenset()
        inner = [part if at in fixed else self.spread(part) for at, part in enumerate(parts)]
        return replace(rebuilt(expr, inner), shape=Shape.NODE, reach=Reach.NODE_FIXED)

    def _column(self, expr: ir.Const) -> ir.Expr:
        path = (f"literal{len(self.found)}",)
        self.found[path] = column_of([expr.value] * ROWS, expr.type)
        return ir.Field(type=expr.type, span=expr.span, shape=Shape.NODE, reach=Reach.NODE_FIXED, path=("node", *path))


def answers(expr: ir.Expr, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    columns = Columns()
    spread = columns.spread(expr)
    for path, column in columns.found.items():
        monkeypatch.setitem(row_columns.NODE_COLUMNS, path, lambda frame, column=column: column)
    view = ClusterView()
    for number in range(ROWS):
        view.add_or_update_node(make_node(f"n{number}").build())
    hoists = Hoists()
    vector = Scope(column_closure).lower(spread, hoists)
    with np.errstate(all="ignore"):
        snapshot = view.snapshot()
        frame = Frame(snapshot.nodes, None, hoists.columns(Decision(make_pod().info(), snapshot)))
        return vector(frame).to_list(ROWS)


def of_kind(case: dict[str, Any]) -> bool:
    values = [*case.get("bindings", {}).values(), *([case["value"]] if "value" in case else [])]
    return all(set(value) <= VALUES for value in values)


CASES = [case for case in cases() if of_kind(case.values[0])]


def expected(case: dict[str, Any], type_: Type) -> Any:
    value = plain(case["value"])
    return parse_duration(value) if type_.kind is Kind.DURATION and isinstance(value, str) else value


@pytest.mark.parametrize("case", CASES)
def test_a_case_answers_as_a_column(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    expr = typed(case)
    if expr is None:
        return  # counted below
    got = answers(expr, monkeypatch)
    if case.get("error"):
        assert all(isinstance(value, Failed) for value in got)
    else:
        assert all(same(value, expected(case, expr.type)) for value in got), (case["expr"], got, case["value"])


def test_a_good_part_of_the_cases_is_a_policys_too() -> None:
    if not CASES:
        pytest.skip("the shared conformance cases are not there")
    allowed = sum(typed(case.values[0]) is not None for case in CASES)
    assert allowed > (1 - MOST_REFUSED) * len(CASES), f"{allowed} of {len(CASES)}"
