"""Columns answer what a naive interpreter answers node by node, and what the language's own evaluator answers."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pytest

from policyengine.compiler.lower import vector
from policyengine.language import ir
from policyengine.language.types import Kind, Type, optional_of
from tests.compiler.expressions import FAILED, READ, alike, columns, drawn, expected, typed
from tests.compiler.worlds import PlainNode, PlainPod, World, drawn_pod, drawn_world
from tests.fuzz.vocabulary import CLUSTER_LISTS, reachable, readable

KINDS = ("bool", "int", "double", "string", "cpu", "memory", "storage", "duration", "timestamp")


@pytest.mark.parametrize("kind", KINDS)
def test_columns_agree_with_the_naive_interpreter_for_all_rows_and_for_some(kind: str) -> None:
    for seed in range(60):
        text, expr = drawn(seed, optional_of(Type(Kind(kind))) if seed % 5 == 0 else kind, 2 + seed % 3)
        chance = Random(seed)
        agree(text, expr, drawn_world(chance), drawn_pod(chance, "me"), chance)


def test_every_field_says_what_the_naive_interpreter_says() -> None:
    texts = [asked for type_, found in readable(READ.roots).items() for text in found for asked in about(text, type_)]
    fields = {text: typed(text) for text in texts}
    # Of these worlds at least one has something in each field that worlds are drawn with.
    for seed in (3, 13, 15, 17):
        chance = Random(seed)
        world, pod = drawn_world(chance, nodes=5), drawn_pod(chance, "me")
        for text, expr in fields.items():
            assert expr is not None, text
            agree(text, expr, world, pod, chance)


def about(text: str, type_: Type) -> Iterator[str]:
    """What is asked of a field: its value; a label of a map; the length of a list, and what its first two items say."""
    if type_.kind is Kind.MAP:
        yield f'{text}[?"{"note" if text.lower().endswith("annotations") else "app"}"]'
    elif type_.kind is not Kind.LIST:
        yield text
    else:
        yield f"{text}.size()"
        thing = type_.args[0]
        parts = reachable(thing.name) if thing.kind is Kind.OBJECT and type_ not in CLUSTER_LISTS else ()
        for path, of in parts:
            if of.kind not in (Kind.MAP, Kind.LIST):
                asked = path.replace("@", "v", 1)
                yield from (f"{text}.map(v, {asked})[?{at}]" for at in range(2))


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


def test_what_has_no_kernel_is_asked_once_a_distinct_value(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    evaluated = vector._evaluated
    monkeypatch.setattr(vector, "_evaluated", lambda *args: (asked.append(args[-1]), evaluated(*args))[1])
    nodes = [PlainNode(f"n{i}", taints=(("gpu", "", "NoSchedule"),) if i % 2 else ()) for i in range(20)]
    assert columns("size(node.taints)", World(nodes), PlainPod()) == [i % 2 for i in range(20)]
    assert len(asked) == 2
