"""Columns answer what a naive interpreter answers node by node, and what the language's own evaluator answers."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from policyengine.compiler.lower import vector
from policyengine.language import ir
from policyengine.language.functions.probability import random
from policyengine.language.types import Kind, Type, optional_of
from tests.compiler.expressions import FAILED, alike, columns, drawn, expected, typed
from tests.compiler.worlds import PlainNode, PlainPod, World, drawn_pod, drawn_world

KINDS = ("bool", "int", "double", "string", "cpu", "memory", "storage", "duration", "timestamp")


@pytest.mark.parametrize("kind", KINDS)
def test_columns_agree_with_the_naive_interpreter_for_all_rows_and_for_some(kind: str) -> None:
    for seed in range(60):
        text, expr = drawn(seed, optional_of(Type(Kind(kind))) if seed % 5 == 0 else kind, 2 + seed % 3)
        chance = Random(seed)
        agree(text, expr, drawn_world(chance), drawn_pod(chance, "me"), chance)


def agree(text: str, expr: ir.Expr, world: World, pod: PlainPod, chance: Random) -> None:
    got, want = columns(expr, world, pod), expected(expr, world, pod)
    assert len(got) == len(want)
    assert all(map(alike, got, want)), f"{text}: columns say {got}, the oracle {want}"
    some = [row for row in range(len(got)) if chance.random() < 0.5]
    rows = np.array(some, dtype=np.int64)
    assert all(map(alike, columns(expr, world, pod, rows), [got[row] for row in some])), text


@pytest.mark.parametrize(
    "text",
    [
        'node.pods.map(v, v.priority + node.domain("rack").pods.map(x, x.priority).max().orValue(0)).sum()',
        "node.pods.exists(p, node.pods.map(q, 1 / q.priority).max().hasValue())",
        'node.pods.filter(p, node.domain("rack").pods.map(q, q.priority).min().optMap(v, v + 1).hasValue()).size()',
        'node.pods.exists(p, node.labels[?"rack"].optMap(v, pods.size() > 2).orValue(true))',
        "optional.of(1).optMap(v, nodes.map(n, v).sum()).orValue(0)",
        "[1, 2].map(w, optional.of(w).optMap(v, nodes.map(n, v).sum()).orValue(0)).sum()",
        "[1, pod.priority].map(w, optional.of(w).optMap(v, pods.map(p, v).sum()).orValue(0)).sum()",
    ],
)
def test_an_aggregate_that_fails_on_some_nodes_stands_inside_another(text: str) -> None:
    for number, labels in enumerate(({}, {"rack": "a"})):
        nodes = [PlainNode(name, labels, pods=[PlainPod(f"{name}-p")]) for name in "abc"[: number + 1]]
        expr = typed(text)
        assert expr is not None
        for world in (World([]), World([], [PlainPod("q")]), World([*nodes, PlainNode("d")], [PlainPod("q")])):
            agree(text, expr, world, PlainPod("me", priority=1), Random(number))


def one(name: str = "n", **more: Any) -> World:
    return World([PlainNode(name, **more)])


ERROR, TRUE, FALSE = "1 / (node.podCount - node.podCount) == 1", "node.podCount >= 0", "node.podCount < 0"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (f"{ERROR} && {FALSE}", False),
        (f"{FALSE} && {ERROR}", False),
        (f"{ERROR} && {TRUE}", FAILED),
        (f"{TRUE} && {ERROR}", FAILED),
        (f"{ERROR} || {TRUE}", True),
        (f"{TRUE} || {ERROR}", True),
        (f"{ERROR} || {FALSE}", FAILED),
        (f"{FALSE} || {ERROR} || {TRUE}", True),
        (f"{ERROR} && pod.priority > 5", False),
    ],
)
def test_a_decided_answer_absorbs_errors_in_either_order(text: str, value: Any) -> None:
    assert columns(text, one(), PlainPod()) == [value]


def test_only_the_branch_taken_can_fail() -> None:
    world = World([PlainNode("a", ready=True), PlainNode("b", ready=False)])
    assert columns(f"node.ready ? true : {ERROR}", world, PlainPod()) == [True, FAILED]


@pytest.mark.parametrize(
    ("a", "operator", "b", "value"),
    [
        (2**63 - 1, "+", 1, FAILED),
        (2**63 - 2, "+", 1, 2**63 - 1),
        (-(2**63 - 1), "-", 2, FAILED),
        (2**32, "*", 2**31, FAILED),
        (-(2**32), "*", 2**31, -(2**63)),
        (-(2**62), "/", -1, 2**62),
        (-7, "/", 2, -3),
        (-7, "%", 2, -1),
        (7, "%", 0, FAILED),
    ],
)
def test_integers_never_wrap_around(a: int, operator: str, b: int, value: Any) -> None:
    # Adding the node's pod count, which is 0, makes columns of the constants.
    text = f"(node.podCount + {a}) {operator} (node.podCount + {b})"
    assert columns(text, one(), PlainPod()) == [value]


@pytest.mark.parametrize("text", ["-1 * ({least})", "({least}) * -1", "({least}) / -1", "-({least})", "abs({least})"])
def test_the_least_integer_has_no_negative(text: str) -> None:
    least = "node.podCount - 9223372036854775807 - 1"
    assert columns(least, one(), PlainPod()) == [-(2**63)]
    assert columns(text.format(least=least), one(), PlainPod()) == [FAILED]


def test_a_label_that_is_absent_fails_only_where_it_is_read_without_asking() -> None:
    world = World([PlainNode("a", labels={"app": "x"}), PlainNode("b")])
    for text in ('"app" in node.labels && node.labels["app"] == "x"', 'has(node.labels.app) && node.labels.app == "x"'):
        assert columns(text, world, PlainPod()) == [True, False]
    assert columns('node.labels[?"app"]', world, PlainPod()) == ["x", None]


def test_a_label_key_may_come_from_the_pod() -> None:
    world = World([PlainNode("a", labels={"x": "1"}), PlainNode("b", labels={"y": "2"})])
    text = 'node.labels[?pod.labels[?"app"].orValue("y")]'
    assert columns(text, world, PlainPod(labels={"app": "x"})) == ["1", None]
    assert columns(text, world, PlainPod()) == [None, "2"]
    assert columns("node.labels[?string(1 / pod.priority)]", world, PlainPod()) == [FAILED, FAILED]


def test_a_quotient_of_quantities_is_rounded_to_the_grain_once() -> None:
    assert columns("(node.used.memory + 1Ki) / 2048 * 3", one(), PlainPod()) == [0]
    assert columns("(node.used.memory + 3Ki) / 2048", one(), PlainPod()) == [2]


def test_random_numbers_are_the_function_tables() -> None:
    world = World([PlainNode("a"), PlainNode("b")])
    got = columns("random()", world, PlainPod("p"))
    assert got == [random("p", name, "it", "") for name in ("a", "b")]


@pytest.mark.parametrize("function", ["ln", "exp", "sqrt"])
def test_a_value_worked_out_once_and_one_of_a_column_agree_to_the_last_bit(function: str) -> None:
    world = World([PlainNode(f"n{i}") for i in range(5)])
    for value in ("0.1", "2.0", "3.7", "1e-300", "123456.789"):
        alone = f"{function}({value} * double(pod.priority))"
        column = f"{function}(double(node.podCount) + {value})"
        assert columns(alone, world, PlainPod(priority=1)) == columns(column, world, PlainPod())


def test_no_nodes_give_an_empty_column() -> None:
    assert columns(TRUE, World([]), PlainPod()) == []


def test_what_has_no_kernel_is_asked_once_a_distinct_value(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    evaluated = vector._evaluated
    monkeypatch.setattr(vector, "_evaluated", lambda *args: (asked.append(args[-1]), evaluated(*args))[1])
    nodes = [PlainNode(f"n{i}", taints=(("gpu", "", "NoSchedule"),) if i % 2 else ()) for i in range(20)]
    assert columns("size(node.taints)", World(nodes), PlainPod()) == [i % 2 for i in range(20)]
    assert len(asked) == 2
