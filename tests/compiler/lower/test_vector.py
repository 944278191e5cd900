"""Columns answer what a naive interpreter answers node by node, and what the language's own evaluator answers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policyengine.compiler.columns.column import Failed
from policyengine.compiler.columns.frame import Decision, Frame
from policyengine.compiler.lower.scope import Hoists, Scope
from policyengine.compiler.lower.vector import column_closure
from policyengine.language import ir
from policyengine.language.types import BOOL, DOUBLE, INT, MEMORY, STRING, Type
from tests.compiler import naive
from tests.compiler.naive import Place
from tests.compiler.naive_functions import NOTHING, NoValue, Some
from tests.compiler.typed import ANY, call, conditional, const, field, index, label, logic, text
from tests.compiler.worlds import PlainNode, PlainPod, World, plain_pods, worlds

FAILED = object()


def columns(expr: ir.Expr, world: World, pod: PlainPod, rows: np.ndarray[Any, Any] | None = None) -> list[Any]:
    """The lowered expression's values, a row each; `FAILED` where a row has none, None where an optional is empty."""
    snapshot = world.snapshot()
    hoists = Hoists()
    vector = Scope(column_closure).lower(expr, hoists)
    frame = Frame(snapshot.nodes, rows, hoists.columns(Decision(pod.info(), snapshot)))
    with np.errstate(all="ignore"):
        values = vector(frame).to_list(frame.count)
    return [FAILED if isinstance(value, Failed) else value for value in values]


def expected(expr: ir.Expr, world: World, pod: PlainPod) -> list[Any]:
    return [naively(expr, node, pod) for node in world.nodes]


def naively(expr: ir.Expr, node: PlainNode, pod: PlainPod) -> Any:
    try:
        value = naive.evaluate(expr, Place(pod, node, {}, {}))
    except NoValue:
        return FAILED
    if value == NOTHING:
        return None
    return value.value if isinstance(value, Some) else value


def alike(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (math.isnan(a) and math.isnan(b))
    return type(a) is type(b) and a == b


def explain(got: list[Any], want: list[Any]) -> str:
    return f"columns say {got}, the oracle {want}"


quick = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("type_", sorted(ANY))
@quick
@given(data=st.data())
def test_columns_agree_with_the_naive_interpreter(type_: str, data: st.DataObject) -> None:
    expr = data.draw(ANY[type_](3))
    world, pod = data.draw(worlds()), data.draw(plain_pods())
    got, want = columns(expr, world, pod), expected(expr, world, pod)
    assert len(got) == len(want)
    assert all(map(alike, got, want)), explain(got, want)


@quick
@given(expr=ANY["bool"](3), world=worlds(), pod=plain_pods(), data=st.data())
def test_some_rows_get_the_values_they_have_among_all_rows(
    expr: ir.Expr, world: World, pod: PlainPod, data: st.DataObject
) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(world.nodes) - 1), unique=True)) if world.nodes else []
    rows = np.array(sorted(chosen), dtype=np.int64)
    everything = columns(expr, world, pod)
    assert columns(expr, world, pod, rows) == [everything[row] for row in rows]


def one(name: str = "n", **more: Any) -> World:
    return World([PlainNode(name, **more)])


ERROR = call(
    "_==_",
    BOOL,
    call("_/_", INT, const(1, INT), call("_-_", INT, field("node", "podCount"), field("node", "podCount"))),
    const(1, INT),
)
TRUE = call("_>=_", BOOL, field("node", "podCount"), const(0, INT))
FALSE = call("_<_", BOOL, field("node", "podCount"), const(0, INT))


@pytest.mark.parametrize(
    ("op", "operands", "value"),
    [
        ("&&", (ERROR, FALSE), False),
        ("&&", (FALSE, ERROR), False),
        ("&&", (ERROR, TRUE), FAILED),
        ("&&", (TRUE, ERROR), FAILED),
        ("||", (ERROR, TRUE), True),
        ("||", (TRUE, ERROR), True),
        ("||", (ERROR, FALSE), FAILED),
        ("||", (FALSE, ERROR, TRUE), True),
    ],
)
def test_a_decided_answer_absorbs_errors_in_either_order(op: str, operands: tuple[ir.Expr, ...], value: Any) -> None:
    assert columns(logic(op, *operands), one(), PlainPod()) == [value]


def test_only_the_branch_taken_can_fail() -> None:
    expr = conditional(field("node", "ready"), const(True, BOOL), ERROR)
    world = World([PlainNode("a", ready=True), PlainNode("b", ready=False)])
    assert columns(expr, world, PlainPod()) == [True, FAILED]


@pytest.mark.parametrize(
    ("function", "a", "b", "value"),
    [
        ("_+_", 2**63 - 1, 1, FAILED),
        ("_+_", 2**63 - 2, 1, 2**63 - 1),
        ("_-_", -(2**63), 1, FAILED),
        ("_*_", 2**32, 2**31, FAILED),
        ("_*_", -(2**32), 2**31, -(2**63)),
        ("_*_", -1, -(2**63), FAILED),
        ("_/_", -(2**63), -1, FAILED),
        ("_/_", -7, 2, -3),
        ("_%_", -7, 2, -1),
        ("_%_", 7, 0, FAILED),
    ],
)
def test_integers_never_wrap_around(function: str, a: int, b: int, value: Any) -> None:
    # Adding the node's pod count, which is 0, makes a column of the constant.
    column = call("_+_", INT, field("node", "podCount"), const(a, INT))
    assert columns(call(function, INT, column, const(b, INT)), one(), PlainPod()) == [value]


def test_an_int_and_a_double_compare_without_rounding() -> None:
    large = call("_+_", INT, field("node", "podCount"), const(2**53 + 1, INT))
    assert columns(call("_>_", BOOL, large, const(2.0**53, DOUBLE)), one(), PlainPod()) == [True]
    assert columns(call("_==_", BOOL, large, const(2.0**53, DOUBLE)), one(), PlainPod()) == [False]
    assert columns(call("_<_", BOOL, large, const(math.inf, DOUBLE)), one(), PlainPod()) == [True]
    assert columns(call("_<=_", BOOL, const(math.nan, DOUBLE), large), one(), PlainPod()) == [False]


def test_a_label_that_is_absent_fails_only_where_it_is_read_without_asking() -> None:
    world = World([PlainNode("a", labels={"app": "x"}), PlainNode("b")])
    assert columns(label("node", "app", optional=False), world, PlainPod()) == ["x", FAILED]
    assert columns(label("node", "app"), world, PlainPod()) == ["x", None]


def test_a_label_key_may_come_from_the_pod() -> None:
    world = World([PlainNode("a", labels={"x": "1"}), PlainNode("b", labels={"y": "2"})])
    key = call("orValue", STRING, label("pod", "app"), text("y"))
    expr = index(field("node", "labels"), key, STRING, optional=True)
    assert columns(expr, world, PlainPod(labels={"app": "x"})) == ["1", None]
    assert columns(expr, world, PlainPod()) == [None, "2"]


def test_a_double_sum_of_quantities_is_rounded_once() -> None:
    memory: Type = MEMORY
    third = call("_/_", memory, call("_+_", memory, field("node", "used", "memory"), const(10, memory)), const(4, INT))
    assert columns(third, one(), PlainPod()) == [2]


def test_random_numbers_are_the_function_tables() -> None:
    from policyengine.language.functions.probability import random

    expr = call("random", DOUBLE, field("pod", "uid"), field("node", "name"), text("rule"), text(""))
    world = World([PlainNode("a"), PlainNode("b")])
    assert columns(expr, world, PlainPod("p")) == [random("p", name, "rule", "") for name in ("a", "b")]


@pytest.mark.parametrize("function", ["ln", "exp", "sqrt"])
def test_a_value_worked_out_once_and_one_of_a_column_agree_to_the_last_bit(function: str) -> None:
    world = World([PlainNode(f"n{i}") for i in range(5)])
    for value in (0.1, 2.0, 3.7, 1e-300, 123456.789):
        alone = call(
            function,
            DOUBLE,
            call("_*_", DOUBLE, const(value, DOUBLE), call("double", DOUBLE, field("pod", "priority"))),
        )
        column = call(
            function,
            DOUBLE,
            call("_+_", DOUBLE, call("double", DOUBLE, field("node", "podCount")), const(value, DOUBLE)),
        )
        assert columns(alone, world, PlainPod(priority=1)) == columns(column, world, PlainPod())


def test_no_nodes_give_an_empty_column() -> None:
    assert columns(TRUE, World([]), PlainPod()) == []


def test_what_has_no_kernel_is_asked_once_a_distinct_value(monkeypatch: pytest.MonkeyPatch) -> None:
    from policyengine.compiler.lower import vector

    asked: list[int] = []
    evaluated = vector._evaluated
    monkeypatch.setattr(vector, "_evaluated", lambda *args: (asked.append(args[-1]), evaluated(*args))[1])
    nodes = [PlainNode(f"n{i}", taints=(("gpu", "", "NoSchedule"),) if i % 2 else ()) for i in range(20)]
    expr = call("size", INT, field("node", "taints"))
    assert columns(expr, World(nodes), PlainPod()) == [i % 2 for i in range(20)]
    assert len(asked) == 2


def test_a_scalar_that_decides_spares_the_columns() -> None:
    world, pod = one(), PlainPod(priority=0)
    decides = call("_>_", BOOL, field("pod", "priority"), const(5, INT))
    assert columns(logic("&&", ERROR, decides), world, pod) == [False]
