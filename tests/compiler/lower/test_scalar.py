"""Single values: closures answer what the language's tree evaluator answers, on the same function table."""

from __future__ import annotations

import math
import re
from random import Random
from typing import Any

import pytest
from msgspec import structs

from policyengine.cluster.view import ClusterView
from policyengine.compiler.columns.column import Failed, attempt, column_of, plain, single
from policyengine.compiler.columns.frame import Decision, Frame
from policyengine.compiler.columns.object_fields import _BY_OBJECT, scalar_binding
from policyengine.compiler.columns.row_columns import NODE_COLUMNS, pod_binding
from policyengine.compiler.lower.scope import Scope
from policyengine.compiler.lower.vector import column_closure
from policyengine.framework.evaluator import Evaluator
from policyengine.language import ir
from policyengine.language.scalar_evaluator import Closure, Names, evaluated
from policyengine.language.schema import CLUSTER_POD, NODE, OBJECTS, paths
from policyengine.language.types import INT, STRING, Kind, Type, list_of, optional_of
from policyengine.language.values import NONE, EvaluationError, Optional, optional
from policyengine.policy_compiler import compile_policy
from tests.builders import make_node, make_pod
from tests.compiler.expressions import FAILED, columns, drawn, typed
from tests.compiler.worlds import PlainPod, World, drawn_pod, drawn_world
from tests.fuzz.vocabulary import Where


class OneNode(Names):
    """The names of a policy for one node: each node path read from its column."""

    def __init__(self, world: World, pod: PlainPod, row: int) -> None:
        view, info = world.view(), pod.info()
        view.related.tell(info)
        self.snapshot = view.snapshot()
        self.decision = Decision(info, self.snapshot)
        self.row = row

    def field(self, expr: ir.Field) -> Closure:
        path = expr.path
        if path[0] != "node":
            read = scalar_binding(path, {})
            is_optional = expr.type.kind is Kind.OPTIONAL
            return lambda evaluation: optional(read(self.decision)) if is_optional else read(self.decision)
        if path[1:] in NODE_COLUMNS:
            value = NODE_COLUMNS[path[1:]](Frame(self.snapshot.nodes, None, ())).at(self.row)
            return lambda evaluation: [structs.asdict(taint) for taint in value] if path[1] == "taints" else value
        raise EvaluationError(f"{path}")


OF_POD = Where(frozenset({"pod", "waiting", "now"}))
THINGS = re.compile(r"nvidia|limits|ontainers|tolerations|volumes|owner")
"""What the tree evaluator does not read as it is stored."""


@pytest.mark.parametrize("type_", ["bool", "int", "double", "string", "memory"])
def test_the_tree_evaluator_agrees(type_: str) -> None:
    for seed in range(100):
        text, expr = drawn(seed, type_, 3, OF_POD)
        if THINGS.search(text):
            continue
        world, pod = drawn_world(Random(seed), nodes=1), drawn_pod(Random(seed), "me")
        (got,) = columns(expr, world, pod)
        want = attempt(lambda expr=expr, world=world, pod=pod: evaluated(expr, OneNode(world, pod, 0)))
        if isinstance(want, Failed):
            assert got is FAILED
        else:
            assert got == want or (isinstance(got, float) and math.isnan(got) and math.isnan(want)), text


def value(text: str, pod: Any = None) -> Any:
    expr = typed(text)
    assert expr is not None
    return Scope(column_closure).closure(expr)(Decision((pod or make_pod()).info()))


def test_every_field_of_the_schema_is_bound() -> None:
    policy = {"name": "n", "hash": "h"}
    for path, known in paths():
        if known.optional or known.type in (list_of(CLUSTER_POD), list_of(NODE)):
            continue
        if path[0] == "victim":
            assert all(pod_binding((name,)) for name in OBJECTS["clusterPod"].fields)
        elif path[0] != "node":
            assert scalar_binding(path, policy)
        elif known.type.kind is not Kind.OBJECT:
            assert path[1:] in NODE_COLUMNS, path


def test_every_field_of_things_with_fields_is_bound() -> None:
    roots = {"node", "cluster", "policy", "domain", "usage"}
    waiting = {"queuedAt", "attempts"}
    for name, info in OBJECTS.items():
        if name not in roots:
            assert set(info.fields) - waiting <= set(_BY_OBJECT[name]), name


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ([1, Failed(1), -(2**63)], INT),
        ([None, 3], optional_of(INT)),
        (["a", "b", "a"], STRING),
        ([(1, 2), (1,)], list_of(INT)),
        ([2**63], INT),
        ([None, Optional(Optional(3)), Optional(NONE), NONE], optional_of(optional_of(INT))),
    ],
)
def test_a_column_gives_back_what_went_in(values: list[Any], type_: Type) -> None:
    column = column_of(values, type_)
    for row, put in enumerate(values):
        got = column.at(row)
        alone = single(put, type_).at(0)
        if put == 2**63 or isinstance(put, Failed):
            assert isinstance(got, Failed)
            assert isinstance(alone, Failed)
        else:
            assert got == plain(put) == alone


def test_the_keys_of_a_signature_tell_zeros_apart() -> None:
    from policyengine.compiler.rules.node_rule import key_of

    assert key_of(0.0) != key_of(-0.0)
    assert key_of(optional(None)) != key_of(optional(()))
    assert key_of({"a": [1]}) == key_of({"a": [1]})


def test_a_fault_of_the_first_optional_is_not_forgotten_for_the_second() -> None:
    condition = 'node.labels[?string(1 / pod.priority)].or(pod.labels[?"app"]).hasValue() on error false'
    profile = compile_policy(f'policy "t" {{ base none filter "f" {{ require {condition} }} }}')
    view = ClusterView()
    view.add_or_update_node(make_node("n").build())
    pod = make_pod("p").label("app", "x").priority(0).info()
    assert len(Evaluator(profile).filter(pod, view.snapshot()).feasible) == 0


def test_a_pod_in_no_queue_waits_since_it_was_made() -> None:
    pod = make_pod("p").created("2026-01-01T00:00:00Z")
    assert (value("pod.queuedAt", pod), value("pod.attempts", pod)) == (1767225600 * 10**9, 0)
