"""Comparisons that are not put together row by row answer what the oracle answers, and what their parts would."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyengine.compiler.columns.column import Column
from policyengine.compiler.columns.frame import Frame
from policyengine.compiler.columns.logic_kernels import Operand, conjunction
from policyengine.language import ir
from policyengine.language.types import BOOL, CPU, INT, MEMORY, STRING, Type
from tests.compiler.lower.test_vector import FAILED, alike, columns, expected, explain, quick
from tests.compiler.typed import bools, call, const, field, index, int_optionals, ints, label, logic, quantities, text
from tests.compiler.worlds import GPU, KEYS, WORDS, PlainNode, PlainPod, World, plain_pods, worlds

SIGNS = ("_<_", "_<=_", "_>_", "_>=_", "_==_", "_!=_")
SAME_FOR_ALL: dict[str, st.SearchStrategy[ir.Expr]] = {
    "string": st.one_of(
        st.sampled_from(WORDS).map(text), st.sampled_from(KEYS).map(lambda key: label("pod", key, False))
    ),
    "int": st.one_of(
        st.sampled_from((0, 1, 2, -1, 2**63 - 1, -(2**63))).map(lambda value: const(value, INT)),
        st.just(field("pod", "priority")),
        st.just(call("_/_", INT, const(1, INT), field("pod", "priority"))),
    ),
}
HELD: dict[str, st.SearchStrategy[ir.Expr]] = {
    "string": st.one_of(
        st.sampled_from(KEYS).map(lambda key: label("node", key)),
        st.sampled_from(("note", "cost")).map(
            lambda key: index(field("node", "annotations"), text(key), STRING, optional=True)
        ),
    ),
    "int": int_optionals(1),
}


def agrees(expr: ir.Expr, world: World, pod: PlainPod) -> None:
    got, want = columns(expr, world, pod), expected(expr, world, pod)
    assert len(got) == len(want) and all(map(alike, got, want)), explain(got, want)


@pytest.mark.parametrize("kind", ["string", "int"])
@quick
@given(data=st.data(), sign=st.sampled_from(SIGNS), mirrored=st.booleans(), world=worlds(), pod=plain_pods())
def test_an_optional_with_its_default(
    kind: str, data: st.DataObject, sign: str, mirrored: bool, world: World, pod: PlainPod
) -> None:
    type_ = {"string": STRING, "int": INT}[kind]
    default, other = data.draw(SAME_FOR_ALL[kind]), data.draw(SAME_FOR_ALL[kind])
    whole = call("orValue", type_, data.draw(HELD[kind]), default)
    agrees(call(sign, BOOL, *((other, whole) if mirrored else (whole, other))), world, pod)


@pytest.mark.parametrize("type_", [INT, CPU, MEMORY], ids=str)
@quick
@given(data=st.data(), sign=st.sampled_from(SIGNS), mirrored=st.booleans(), world=worlds(), pod=plain_pods())
def test_a_sum_with_a_term_that_is_the_same_for_all_nodes(
    type_: Type, data: st.DataObject, sign: str, mirrored: bool, world: World, pod: PlainPod
) -> None:
    amounts = ints(1) if type_ is INT else quantities(type_, 1)
    terms = SAME_FOR_ALL["int"] if type_ is INT else st.one_of(_amounts(type_), _requested(type_))
    whole = call(data.draw(st.sampled_from(("_+_", "_-_"))), type_, data.draw(amounts), data.draw(terms))
    other = data.draw(terms)
    agrees(call(sign, BOOL, *((other, whole) if mirrored else (whole, other))), world, pod)


def _amounts(type_: Type) -> st.SearchStrategy[ir.Expr]:
    return st.sampled_from((0, 1, 1000, 2**30, 2**62, 2**63 - 1, -(2**63))).map(lambda value: const(value, type_))


def _requested(type_: Type) -> st.SearchStrategy[ir.Expr]:
    return st.just(field("pod", "requests", type_.kind.value))


EDGE = 2**63 - 1


@pytest.mark.parametrize(
    ("function", "term", "other", "value"),
    [
        ("_-_", -EDGE, 0, FAILED),
        ("_+_", EDGE, 0, FAILED),
        ("_+_", EDGE - 5, EDGE - 1, True),
        ("_-_", 1, EDGE, False),
        ("_-_", 1, -EDGE - 1, True),
    ],
)
def test_what_overflows_still_has_no_value(function: str, term: int, other: int, value: Any) -> None:
    pods = [PlainPod(f"p{number}") for number in range(5)]
    world = World([PlainNode("a", pods=pods)])
    whole = call(function, INT, field("node", "podCount"), const(term, INT))
    assert columns(call("_>=_", BOOL, whole, const(other, INT)), world, PlainPod()) == [value]


def test_rows_without_a_value_are_answered_by_the_default() -> None:
    world = World([PlainNode("a", {"tier": "gold"}), PlainNode("b"), PlainNode("c", {"tier": "x"})])
    tier = call("orValue", STRING, label("node", "tier"), text("x"))
    assert columns(call("_==_", BOOL, tier, text("x")), world, PlainPod()) == [False, True, True]
    assert columns(call("_!=_", BOOL, tier, text("gold")), world, PlainPod()) == [False, True, True]
    gpus = call("orValue", INT, index(field("node", "free"), text(GPU), INT, optional=True), const(0, INT))
    assert columns(call("_<_", BOOL, gpus, const(1, INT)), world, PlainPod()) == [True, True, True]


# `&&` and `||`


def _never(frame: Frame) -> Column:
    raise AssertionError("asked")


@pytest.mark.parametrize(("decisive", "values"), [(False, [False, False]), (True, [True, True])])
def test_what_costs_much_is_not_asked_where_every_row_is_decided(decisive: bool, values: list[bool]) -> None:
    decided = Operand(lambda frame: Column(np.array(values)), is_single=False)
    joined = conjunction((decided, Operand(_never, is_single=False, is_dear=True)), decisive)
    assert joined(Frame(World([PlainNode("a"), PlainNode("b")]).snapshot().nodes, None, ())).values.tolist() == values


@pytest.mark.parametrize("faults", [None, np.array([0, 1], np.uint8)])
def test_it_is_asked_where_a_row_is_open(faults: Any) -> None:
    first = Operand(lambda frame: Column(np.array([False, faults is None]), faults), is_single=False)
    joined = conjunction((first, Operand(_never, is_single=False, is_dear=True)), decisive=False)
    with pytest.raises(AssertionError, match="asked"):
        joined(Frame(World([PlainNode("a"), PlainNode("b")]).snapshot().nodes, None, ()))


@pytest.mark.parametrize("op", ["&&", "||"])
@quick
@given(data=st.data(), world=worlds(), pod=plain_pods())
def test_whatever_stands_before_and_behind_what_costs_much(
    op: str, data: st.DataObject, world: World, pod: PlainPod
) -> None:
    pattern = call("startsWith", BOOL, field("node", "name"), text("n"))
    agrees(logic(op, data.draw(bools(1)), pattern, data.draw(bools(1))), world, pod)
