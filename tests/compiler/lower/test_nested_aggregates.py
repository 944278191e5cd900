"""Every aggregate in every other, over clusters that lack a label, a pod or a node."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest

from tests.compiler.nested_aggregates import AGGREGATES, agrees, nest


@pytest.mark.parametrize(
    "text",
    [
        'node.pods.map(v, v.priority + node.domain("rack").pods.map(x, x.priority).max().orValue(0)).sum()',
        "node.pods.exists(p, node.pods.map(q, 1 / q.priority).max().hasValue())",
        'node.pods.filter(p, node.domain("rack").pods.map(q, q.priority).min().optMap(v, v + 1).hasValue()).size()',
        'node.pods.exists(p, node.labels[?"rack"].optMap(v, pods.size() > 2).orValue(true))',
    ],
)
def test_an_aggregate_that_fails_on_some_nodes_stands_inside_another(text: str) -> None:
    assert agrees(text)


@pytest.mark.parametrize("outer", AGGREGATES)
def test_every_aggregate_in_every_other_agrees_with_the_naive_interpreter(outer: str) -> None:
    rng = Random(outer)
    for inner in AGGREGATES:
        drawn = (nest(rng, [outer, inner]) for _ in range(40))
        assert len(list(islice(filter(agrees, drawn), 2))) == 2, f"the checker refuses {outer} around {inner}"
