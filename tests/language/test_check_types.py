"""Source -> type, shape, reach: what the checker makes of expressions that are right."""

import pytest

from policyengine.language import ir
from policyengine.language.types import Reach, Shape
from tests.language.checking import let, policy

TYPES = [
    # literals take the dimension they meet
    ("1", "int"),
    ("1.5", "double"),
    ('"a"', "string"),
    ("500m", "cpu"),
    ("2Gi", "memory"),
    ("90s", "duration"),
    ("-90s", "duration"),
    ("node.free.memory - 2G", "memory"),
    ("node.free.storage - 1", "storage"),
    ("node.free.cpu - -(-1)", "cpu"),
    ("node.free.cpu * -(-1.5)", "cpu"),
    ("2 + 500m", "cpu"),
    ("1 - ratio(1, 2)", "double"),
    ("100 * ratio(node.used.cpu, node.allocatable.cpu)", "double"),
    ("pod.priority > 100 ? 1 : 2", "int"),
    ("pod.priority > 100 ? 0 : ratio(1, 2)", "double"),
    ("pod.priority > 100 ? 4 : pod.requests.cpu", "cpu"),
    ("clamp(ratio(1, 2), 0, 1)", "double"),
    ("pod.limits.?cpu.orValue(4)", "cpu"),
    ("[1, 2]", "list(int)"),
    ("[1, ratio(1, 2)]", "list(double)"),
    ('{"a": 1}', "map(string, int)"),
    # dimensions
    ("node.free.cpu / 2", "cpu"),
    ("node.free.cpu / 1m", "double"),
    ("node.free.memory / 1M", "double"),
    ('node.free[?"hugepages-2Mi"].orValue(0)', "memory"),
    ('pod.requests[?"vendor/x"].orValue(0)', "int"),
    ("node.free.memory / node.allocatable.memory", "double"),
    ("2 * pod.requests.memory", "memory"),
    ("pod.requests.memory * 1.5", "memory"),
    ("3 * 1s", "duration"),
    ("1h / 2", "duration"),
    ("1h / 90s", "double"),
    ("now - pod.createdAt", "duration"),
    ("now - 5min", "timestamp"),
    ("now - pod.createdAt > 5min", "bool"),
    ("node.free.cpu > 4", "bool"),
    ("node.free.cpu > 0.5", "bool"),
    ("-node.free.cpu", "cpu"),
    ("double(node.free.cpu)", "double"),
    ("max(node.free.cpu, 1)", "cpu"),
    ("node.podCount + 1", "int"),
    # optionals
    ('pod.labels[?"x"]', "optional(string)"),
    ('pod.labels[?"x"].orValue("")', "string"),
    ("pod.labels.?x", "optional(string)"),
    ('toInt(pod.labels[?"x"])', "optional(int)"),
    ('toInt(pod.labels[?"x"]).orValue(0)', "int"),
    ('toQuantity("1Gi", memory)', "optional(memory)"),
    ('toQuantity(pod.labels[?"x"], cpu).orValue(500m)', "cpu"),
    ("pod.owner.?kind", "optional(string)"),
    ("pod.owner.kind", "optional(string)"),
    ("pod.owner.optMap(o, o.kind + o.name)", "optional(string)"),
    ("pod.limits.?cpu", "optional(cpu)"),
    ('pod.requests[?"nvidia.com/gpu"]', "optional(int)"),
    ("pod.images[?0]", "optional(string)"),
    ('pod.labels[?"x"].hasValue()', "bool"),
    ("pod.volumes.map(v, v.claim)", "list(optional(string))"),
    ("pod.priority > 0 ? optional.of(1) : optional.none()", "optional(int)"),
    ('pod.labels[?"a"].or(pod.labels[?"b"])', "optional(string)"),
    # quality of service
    ("pod.qos", "qos"),
    ('pod.qos == "Guaranteed"', "bool"),
    ('pod.qos >= "Burstable"', "bool"),
    ('pod.qos in ["Guaranteed", "Burstable"]', "bool"),
    ("string(pod.qos)", "string"),
    # macros
    ('pod.tolerations.exists(t, t.key == "gpu")', "bool"),
    ("pod.containers.map(c, c.image)", "list(string)"),
    ("pod.containers.filter(c, c.ports.size() > 0).size()", "int"),
    ("pod.containers.map(c, c.requests.?cpu.orValue(0)).sum()", "cpu"),
    ('node.taints.all(t, t.effect != "NoExecute")', "bool"),
    ("pod.labels.all(k, pod.labels[k] != k)", "bool"),
    # functions
    ('trailingInt("node9").orValue(0)', "int"),
    ("random()", "double"),
    ('now.getHours("Europe/Berlin")', "int"),
    ('"a,b".split(",")', "list(string)"),
    ("min(1, 2, 3)", "int"),
    ("sqrt(4)", "double"),
    ("betaCdf(ratio(1, 2), 2, 3)", "double"),
    ('duration("90s")', "duration"),
    ("cluster.nodeCount", "int"),
]


@pytest.mark.parametrize(("source", "type_"), TYPES)
def test_an_expression_has_the_type(source: str, type_: str) -> None:
    assert str(let(source).type) == type_


SHAPES = [
    ("1", Shape.SCALAR, Reach.CONSTANT),
    ("pod.requests.cpu", Shape.SCALAR, Reach.POD),
    ("now", Shape.SCALAR, Reach.CLUSTER),
    ("cluster.nodeCount + pod.priority", Shape.SCALAR, Reach.CLUSTER),
    ("node.labels", Shape.NODE, Reach.NODE_FIXED),
    ("node.allocatable.cpu - pod.requests.cpu", Shape.NODE, Reach.NODE_FIXED),
    ("node.free.cpu", Shape.NODE, Reach.NODE_CHANGING),
    ("pod.tolerations.exists(t, t.key == node.zone)", Shape.NODE, Reach.NODE_FIXED),
    ("random()", Shape.NODE, Reach.NODE_FIXED),
    ("policy.name", Shape.SCALAR, Reach.CONSTANT),
]


@pytest.mark.parametrize(("source", "shape", "reach"), SHAPES)
def test_an_expression_has_the_shape_and_reach_of_its_largest_part(source: str, shape: Shape, reach: Reach) -> None:
    value = let(source)
    assert (value.shape, value.reach) == (shape, reach)


GRAINS = [
    ("4 + node.free.cpu", 4000),
    ("0.5 + node.free.cpu", 500),
    ("1.5Gi + node.free.memory", 3 * 2**29),
    ("1G + node.free.memory", 10**9),
    ("4 + node.free.memory", 4),
    ("250ms + (now - now)", 250_000_000),
    ("1d + (now - now)", 86400 * 10**9),
    ("0.0001 + node.free.cpu", 1),
]


@pytest.mark.parametrize(("source", "value"), GRAINS)
def test_a_literal_is_held_in_the_grain_of_what_it_meets(source: str, value: int) -> None:
    expr = let(source)
    assert isinstance(expr, ir.Call)
    assert isinstance(expr.args[0], ir.Const)
    assert expr.args[0].value == value


GUARDED = [
    '"x" in pod.labels && pod.labels["x"] == "a"',
    '"x" in pod.labels && pod.labels.x == "a"',
    'has(pod.labels.x) && pod.labels["x"] == "a"',
    '!("x" in pod.labels) || pod.labels["x"] == "a"',
    '"x" in pod.labels ? pod.labels["x"] : ""',
    '!has(pod.labels.x) ? "" : pod.labels["x"]',
    'pod.labels[?"x"].hasValue() && pod.labels["x"] == "a"',
    'pod.labels[?"x"].orValue("") != "" && pod.labels["x"] == "a"',
    'pod.labels[?"x"].orValue("") == "a" && pod.labels["x"] == "a"',
    'pod.priority > 0 && "x" in pod.labels && pod.labels["x"] == "a"',
    '("x" in pod.labels && "y" in pod.labels) ? pod.labels["x"] + pod.labels["y"] : ""',
    'pod.labels.exists(k, k.startsWith("a") && pod.labels[k] == "b")',
    "has(pod.limits.cpu) && pod.limits.cpu > 2",
    "pod.images.size() > 1 && pod.images[1] == pod.images[0]",
    "size(pod.images) != 0 ? pod.images[0] : ''",
    'node.zone in pod.labels && pod.labels[node.zone] == "a"',
]


@pytest.mark.parametrize("source", GUARDED)
def test_a_guarded_lookup_compiles(source: str) -> None:
    let(source)


def test_a_when_guards_the_rule_and_a_require_the_next() -> None:
    policy("""
        filter "f" when "x" in pod.labels {
          require "y" in node.labels else "no y for {pod.labels['x']}"
          require pod.labels["x"] == node.labels["y"]
        }
    """)


def test_a_let_guards_as_its_value_does() -> None:
    policy('let known = "x" in pod.labels\nlet x = known ? pod.labels["x"] : ""')


def test_lets_come_after_those_they_name() -> None:
    lets = policy("let a = b + c\nlet b = c + 1\nlet c = 1").lets
    assert [one.name for one in lets] == ["c", "b", "a"]


def test_five_thousand_lets_in_a_chain_are_checked_and_bounded_without_recursion() -> None:
    count = 5_000
    chain = "\n".join(f"let x{at} = x{at + 1}" for at in range(count))
    assert len(policy(f'{chain}\nlet x{count} = 1\nscore "s" weight 1 = x0').lets) == count + 1


def test_another_name_for_a_path_is_the_path() -> None:
    value = policy("let asked = pod.requests\nlet it = asked.cpu").lets[-1].value
    assert isinstance(value, ir.Field)
    assert value.path == ("pod", "requests", "cpu")


def test_random_names_what_it_follows_from() -> None:
    score = policy('score "s" weight 1 = random("b")').scores[0].value
    assert isinstance(score, ir.Call)
    assert [getattr(arg, "value", None) or ".".join(getattr(arg, "path", ())) for arg in score.args] == [
        "pod.uid",
        "node.name",
        "s",
        "b",
    ]
