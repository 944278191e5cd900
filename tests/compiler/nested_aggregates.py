"""Aggregates nested in aggregates, held against the naive interpreter over clusters without a label, a pod or a node.

    python -m tests.compiler.nested_aggregates [SECONDS]

draws nests of two to four aggregates for so long; `make fuzz` runs it. For example
`node.pods.map(p1, p1.priority + node.domain("rack").pods.map(p0, p0.priority).max().orValue(0)).sum()`.
"""

from __future__ import annotations

import sys
import time
from random import Random

import numpy as np

from tests.compiler.expressions import alike, columns, expected, typed
from tests.compiler.worlds import PlainNode, PlainPod, World

AGGREGATES = {
    "size": "{list}.size()",
    "filter": "{list}.filter({x}, {inner} > 0).size()",
    "map-if": "{list}.map({x}, {inner} != 1, {own}).sum()",
    "sum": "{list}.map({x}, {own} + {inner}).sum()",
    "min": "{list}.map({x}, {inner}).min().orValue(-1)",
    "max": "{list}.map({x}, {own} + {inner}).max().orValue(0)",
    "has": "({list}.map({x}, {inner}).max().hasValue() ? 1 : 0)",
    "opt-map": "{list}.map({x}, {own}).max().optMap(o{x}, {inner}).orValue(2)",
    "opt-map-has": "({list}.map({x}, {own}).min().optMap(o{x}, {inner}).hasValue() ? 1 : 0)",
    "or": "{list}.map({x}, {own}).max().or({list}.map({x}, {inner}).min()).orValue(3)",
    "avg": "round({list}.map({x}, {inner}).avg())",
    "stddev": "round({list}.map({x}, double({own} + {inner})).stddev())",
    "exists": "({list}.exists({x}, {own} > {inner}) ? 1 : 0)",
    "all": "({list}.all({x}, {inner} >= 0) ? 1 : 0)",
    "exists_one": "({list}.exists_one({x}, {inner} == 1) ? 1 : 0)",
    "in": "(7 in {list}.map({x}, {own} + {inner}) ? 1 : 0)",
}
"""An int each: `{list}` of pods or nodes, `{x}` an element, `{own}` a value of it, `{inner}` another aggregate."""
OWN = {
    "pod": ("{x}.priority", "1 / {x}.priority", "{x}.labels.size()", 'toInt({x}.labels[?"tier"]).orValue(4)'),
    "node": ("{x}.podCount", "7 / {x}.podCount", "{x}.labels.size()", '{x}.free[?"nvidia.com/gpu"].orValue(5)'),
}
ALONE = ("pods", "nodes")
OF_NODE = ("{n}.pods", "{n}.nominated", '{n}.domain("rack").pods', '{n}.domain("rack").nodes')


def nest(rng: Random, aggregates: list[str], around: tuple[str, ...] = ("node",)) -> str:
    """An int expression: the first aggregate around the next one; `around` names the variables, the innermost last."""
    name, *inside = aggregates
    holder = rng.choice([one for one in around if one == "node" or one.startswith("n")])
    listed = rng.choice((*ALONE, *OF_NODE, *OF_NODE)).format(n=holder)
    kind = "node" if listed.endswith("nodes") else "pod"
    element = f"{kind[0]}{len(inside)}"
    own = rng.choice(OWN[kind]).format(x=element)
    if name.startswith("opt-map"):
        inner = nest(rng, inside, around) if inside else f"o{element} + {element[1:]}"
    else:
        inner = nest(rng, inside, (*around, element)) if inside else own
    return AGGREGATES[name].format(list=listed, x=element, own=own, inner=inner)


def pods(*priorities: int, of: str) -> list[PlainPod]:
    labels = ({"app": "a", "tier": "10"}, {})
    return [PlainPod(f"{of}-{i}", labels[i % 2], priority=priority) for i, priority in enumerate(priorities)]


RACK = {"rack": "a"}
WAITING = [PlainPod("q", nominated="a", priority=7), PlainPod("r")]
WORLDS = {
    "no node": World([]),
    "no node, pods that wait": World([], WAITING),
    "no label, no pod": World([PlainNode("a"), PlainNode("b"), PlainNode("c")]),
    "no label": World([PlainNode("a", pods=pods(1, 7, of="a")), PlainNode("b", pods=pods(3, of="b")), PlainNode("c")]),
    "a pod on every node, some say nothing": World(
        [PlainNode("a", pods=pods(0, 7, of="a")), PlainNode("b", pods=pods(1, of="b"))], WAITING
    ),
    "labels, no pod": World([PlainNode("a", RACK), PlainNode("b", RACK, gpus=1)]),
    "some labels": World(
        [
            PlainNode("a", RACK, pods=pods(1, 0, of="a")),
            PlainNode("b", pods=pods(7, 2, 2, of="b")),
            PlainNode("c", {"rack": "b"}, gpus=8),
            PlainNode("d", RACK, pods=pods(5, of="d")),
        ],
        WAITING,
    ),
}


def agrees(text: str) -> bool:
    """Assert that columns answer what the naive interpreter does, in every world, for all rows and for some.

    False: the checker refuses the text.
    """
    expr = typed(text)
    if expr is None:
        return False
    pod = PlainPod("me", priority=1)
    for name, world in WORLDS.items():
        got, want = columns(expr, world, pod), expected(expr, world, pod)
        assert len(got) == len(want), f"{text}, {name}"
        assert all(map(alike, got, want)), f"{text}, {name}: columns say {got}, the oracle {want}"
        some = np.arange(0, len(world.nodes), 2)
        assert all(map(alike, columns(expr, world, pod, some), got[::2])), f"{text}, {name}, every other row"
    return True


def main(seconds: float) -> None:
    rng, ends, taken = Random(time.time_ns()), time.monotonic() + seconds, 0
    while time.monotonic() < ends:
        taken += agrees(nest(rng, rng.choices(list(AGGREGATES), k=rng.randint(2, 4))))
    print(f"{taken} nests of aggregates without a difference")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0)
