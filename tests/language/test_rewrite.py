"""Rewriting: what is known is worked out, what is cheap comes first, and the meaning stays."""

import pytest

from policyengine.language import ir
from policyengine.language.rewrite import simplified
from policyengine.language.types import Shape
from tests.language.checking import let, policy

FOLDED = [
    ("1 + 2 * 3", 7),
    ("2 * 500m", 1000),
    ('"a" + "b"', "ab"),
    ("true && 1 < 2", True),
    ("pod.priority > 0 && false", False),
    ("1 / pod.priority > 0 || true", True),
    ("true ? 1 : pod.priority", 1),
    ('now.getHours("UTC") < 0 && 2 < 1', False),
]


@pytest.mark.parametrize(("source", "value"), FOLDED)
def test_what_is_known_is_worked_out(source: str, value: object) -> None:
    expr = let(source)
    assert isinstance(expr, ir.Const)
    assert expr.value == value


def test_what_says_nothing_goes() -> None:
    expr = let("true && pod.priority > 0")
    assert isinstance(expr, ir.Call)
    assert expr.function == "_>_"


def test_what_reads_no_node_comes_first_and_what_is_expensive_last() -> None:
    expr = let('node.name.matches("a.*") && node.free.cpu > 1 && pod.priority > 0')
    assert isinstance(expr, ir.Logic)
    assert [part.shape for part in expr.operands] == [Shape.SCALAR, Shape.NODE, Shape.NODE]
    assert [getattr(part, "function", "") for part in expr.operands] == ["_>_", "_>_", "matches"]


def test_rewriting_again_changes_nothing() -> None:
    for source, _ in FOLDED:
        assert simplified(let(source)) == let(source)


BOUNDED = [
    "1",
    "100 * ratio(node.used.cpu, node.allocatable.cpu)",
    "100 - 100 * ratio(node.used.cpu, node.allocatable.cpu)",
    "clamp(node.podCount, 0, 100)",
    "clamp(node.free.cpu / pod.requests.cpu, 0, 100)",
    "min(node.podCount, 10) - min(node.podCount, 20) == 0 ? 1 : 2",
    "now.getHours() * 4",
    "random() * 100",
    'toDouble(pod.labels[?"x"]).optMap(x, clamp(x, 0, 1))',
    "pod.priority % 10",
    "floor(99.5 * ratio(1, 2))",
    "double(now.getHours()) / 2.0",
    "max(0, min(node.podCount, 100))",
    'node.labels[?"x"].optMap(x, ratio(node.used.cpu, node.allocatable.cpu)).orValue(0.0) * 100.0',
    "optional.of(ratio(node.used.cpu, node.allocatable.cpu)).optMap(x, 100.0 * x).orValue(0.0)",
    'toInt(node.labels[?"x"]).optMap(x, clamp(x, 0, 9)).optMap(y, 10 * y).or(optional.of(5))',
    "[1, 2, 3].map(x, 10 * x).max().orValue(0)",
    "share(node.used.cpu, node.allocatable.cpu)",
    'node.labels[?"x"].optMap(x, share(node.used.cpu, node.allocatable.cpu)).orValue(0.0)',
    "node.pods.map(p, 100.0 * ratio(p.requests.cpu, node.allocatable.cpu)).avg()",
]


@pytest.mark.parametrize("source", BOUNDED)
def test_a_score_within_bounds_needs_no_normalize(source: str) -> None:
    share = "function share(a: cpu, b: cpu): double = optional.of(ratio(a, b)).optMap(r, 100.0 * r).orValue(0.0)"
    assert policy(f'{share} score "s" weight 1 = {source}').scores


def test_bounds_come_from_params_and_lets() -> None:
    policy(
        """
        param most: int = 5 range [1, 10]
        param mode: int = 1 values [1, 2]
        let share = ratio(node.used.cpu, node.allocatable.cpu)
        score "s" weight most = most * mode * share
    """.replace("most * mode", "double(most * mode)")
    )


def test_a_filter_knows_whether_it_reads_nodes_and_what_evictions_change() -> None:
    rule = policy("""
        let free = node.free.cpu
        filter "f" {
          require pod.priority >= 0
          require node.ready
          require free > pod.requests.cpu
        }
    """).filters[0]
    assert [(require.reads_node, require.evictable) for require in rule.requires] == [
        (False, False),
        (True, False),
        (True, True),
    ]


def test_a_queue_is_ordered_by_priority_where_nothing_is_said() -> None:
    key = policy("queue { backoff 2s .. 20s flush 10min }").queue
    assert isinstance(key.order[0].value, ir.Field)
    assert (key.order[0].value.path, key.order[0].descending) == (("pod", "priority"), True)
    assert (key.initial_backoff, key.max_backoff, key.flush_after) == (2.0, 20.0, 600.0)
