"""A naive interpreter of the typed tree: one node at a time, over plain data, in the plainest Python.

The second oracle beside the language's own evaluator. It shares no code with `compiler` or `language.evaluate_tree`
and reads nothing but the tree. An optional is `Some(v)` or `NOTHING`; an expression without a value raises `NoValue`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from policyengine.language import ir
from policyengine.language.types import Kind
from tests.compiler.worlds import GPU, ZONE, PlainNode, PlainPod, World

LARGEST, SMALLEST = 2**63 - 1, -(2**63)
QUANTITIES = (Kind.CPU, Kind.MEMORY, Kind.STORAGE, Kind.DURATION)


class NoValue(Exception):
    """Overflow, division by zero, an absent key."""


@dataclass(frozen=True)
class Some:
    value: Any


@dataclass(frozen=True)
class Nothing:
    pass


NOTHING = Nothing()


@dataclass
class Place:
    """Where an expression is evaluated."""

    pod: PlainPod
    node: PlainNode | None
    lets: dict[str, ir.Expr]
    params: dict[str, Any]
    world: World | None = None


@dataclass(frozen=True, eq=False)
class ThePod:
    """A pod of the cluster, as the element of a list."""

    pod: PlainPod
    node: PlainNode | None


@dataclass(frozen=True, eq=False)
class TheNode:
    """A node, as the element of a list."""

    node: PlainNode


def evaluate(expr: ir.Expr, at: Place, names: dict[str, Any] | None = None) -> Any:
    names = names or {}
    go = lambda part, more=None: evaluate(part, at, {**names, **(more or {})})  # noqa: E731
    if isinstance(expr, ir.Const):
        return expr.value
    if isinstance(expr, ir.Field):
        return read(expr.path, at)
    if isinstance(expr, ir.LetRef):
        return evaluate(at.lets[expr.name], at)
    if isinstance(expr, ir.ParamRef):
        return at.params[expr.name]
    if isinstance(expr, ir.Local):
        return names[expr.name]
    if isinstance(expr, ir.Index):
        return look_up(go(expr.operand), go(expr.key), expr.optional)
    if isinstance(expr, ir.Select):
        fields, whole = [expr.name], expr.operand
        while isinstance(whole, ir.Select):
            fields, whole = [whole.name, *fields], whole.operand
        thing = go(whole) if isinstance(whole, ir.Local) else None
        if isinstance(thing, ThePod | TheNode):
            return read_thing(tuple(fields), thing, at)
        return look_up(go(expr.operand), expr.name, expr.optional)
    if isinstance(expr, ir.Has):
        return expr.name in go(expr.operand)
    if isinstance(expr, ir.Logic):
        return logic(expr.op, [lambda part=part: go(part) for part in expr.operands])
    if isinstance(expr, ir.Conditional):
        return go(expr.then) if go(expr.condition) else go(expr.otherwise)
    if isinstance(expr, ir.ListExpr):
        return [go(item) for item, _ in expr.items]
    if isinstance(expr, ir.OptMap):
        held = go(expr.operand)
        return Some(go(expr.body, {expr.variable: held.value})) if isinstance(held, Some) else NOTHING
    if isinstance(expr, ir.Comprehension) and expr.fold in (ir.Fold.FILTER, ir.Fold.MAP):
        return picked(expr, go)
    if isinstance(expr, ir.Call) and expr.function == "domain":
        return domain(expr, at, go)
    if isinstance(expr, ir.Comprehension):
        return fold(expr, [lambda item=item: go(expr.body, {expr.variables[0]: item}) for item in go(expr.source)])
    assert isinstance(expr, ir.Call), expr
    return call(expr, go)


def picked(expr: ir.Comprehension, go: Callable[..., Any]) -> list[Any]:
    items, name = go(expr.source), expr.variables[0]
    if expr.fold is ir.Fold.FILTER:
        return [item for item in items if go(expr.body, {name: item})]
    kept = [item for item in items if expr.condition is None or go(expr.condition, {name: item})]
    return [go(expr.body, {name: item}) for item in kept]


def domain(expr: ir.Call, at: Place, go: Callable[..., Any]) -> list[Any]:
    member, label = expr.args[0], go(expr.args[1])
    node, world = at.node, at.world
    if isinstance(member, ir.Field):
        wanted = member.path[-1]
    else:
        assert isinstance(member, ir.Select) and isinstance(member.operand, ir.Select)
        wanted, node = member.name, go(member.operand.operand).node
    assert node is not None and world is not None
    if label not in node.labels:
        raise NoValue("no domain")
    there = [other for other in world.nodes if other.labels.get(label) == node.labels[label]]
    return [TheNode(one) for one in there] if wanted == "nodes" else [ThePod(p, n) for n in there for p in n.pods]


def read_thing(path: tuple[str, ...], thing: ThePod | TheNode, at: Place) -> Any:
    if isinstance(thing, TheNode):
        return read(("node", *path), Place(at.pod, thing.node, at.lets, at.params, at.world))
    if path == ("node",):
        return thing.node.name if thing.node is not None else ""
    return read_pod(path, thing.pod)


def read(path: tuple[str, ...], at: Place) -> Any:
    if path[0] == "pod":
        return read_pod(path[1:], at.pod)
    if path[0] in ("nodes", "pods"):
        assert at.world is not None
        if path[0] == "nodes":
            return [TheNode(node) for node in at.world.nodes]
        standing = [ThePod(pod, node) for node in at.world.nodes for pod in node.pods]
        return standing + [ThePod(pod, None) for pod in at.world.pending]
    node = at.node
    assert node is not None
    used = {
        "cpu": sum(pod.cpu for pod in node.pods),
        "memory": sum(pod.memory for pod in node.pods),
        "storage": 0,
    }
    offered = {"cpu": node.cpu, "memory": node.memory, "storage": 0}
    match path[1:]:
        case ("name",):
            return node.name
        case ("labels",):
            return node.labels
        case ("annotations",):
            return node.annotations
        case ("zone",):
            return node.labels.get(ZONE, "")
        case ("pods",):
            return [ThePod(pod, node) for pod in node.pods]
        case ("nominated",):
            waiting = at.world.pending if at.world is not None else []
            return [ThePod(pod, None) for pod in waiting if pod.nominated == node.name and pod.name != at.pod.name]
        case ("podCount",):
            return len(node.pods)
        case ("unschedulable",):
            return node.unschedulable
        case ("ready",):
            return node.ready
        case ("taints",):
            return [{"key": key, "value": value, "effect": effect} for key, value, effect in node.taints]
        case ("allocatable" | "capacity", resource):
            return offered[resource]
        case ("used", resource):
            return used[resource]
        case ("free", resource):
            return offered[resource] - used[resource]
        case ("allocatable" | "used" | "free" as kind,):
            wanted = sum(pod.gpus or 0 for pod in node.pods)
            amount = {"allocatable": node.gpus, "used": wanted, "free": node.gpus - wanted}[kind]
            return {GPU: amount} if node.gpus or wanted else {}
    raise AssertionError(path)


def read_pod(path: tuple[str, ...], pod: PlainPod) -> Any:
    match path:
        case ("name",):
            return pod.name
        case ("namespace",):
            return pod.namespace
        case ("labels",):
            return pod.labels
        case ("priority",):
            return pod.priority
        case ("images",):
            return list(pod.images)
        case ("requests", "cpu"):
            return pod.cpu
        case ("requests", "memory"):
            return pod.memory
        case ("requests",):
            return {} if pod.gpus is None else {GPU: pod.gpus}
    raise AssertionError(path)


def look_up(container: Any, key: Any, optional: bool) -> Any:
    there = 0 <= key < len(container) if isinstance(container, list) else key in container
    if optional:
        return Some(container[key]) if there else NOTHING
    if not there:
        raise NoValue(key)
    return container[key]


def logic(op: str, parts: list[Callable[[], bool]]) -> bool:
    decisive = op == "||"
    failed = False
    for part in parts:
        try:
            if part() == decisive:
                return decisive
        except NoValue:
            failed = True
    if failed:
        raise NoValue
    return not decisive


def fold(expr: ir.Comprehension, bodies: list[Callable[[], Any]]) -> Any:
    if expr.fold is ir.Fold.ALL:
        return logic("&&", bodies)
    if expr.fold is ir.Fold.EXISTS:
        return logic("||", bodies)
    if expr.fold is ir.Fold.EXISTS_ONE:
        return [body() for body in bodies].count(True) == 1
    assert expr.fold is ir.Fold.MAP
    return [body() for body in bodies]


def fits(number: int) -> int:
    if not SMALLEST <= number <= LARGEST:
        raise NoValue("overflow")
    return number


def nearest(exact: Fraction) -> int:
    """To a whole number, halves to the even one."""
    low = math.floor(exact)
    rest = exact - low
    if rest == Fraction(1, 2):
        return low if low % 2 == 0 else low + 1
    return low if rest < Fraction(1, 2) else low + 1


def from_double(value: float) -> int:
    if math.isnan(value) or math.isinf(value):
        raise NoValue("not finite")
    return fits(nearest(Fraction(value)))


def divided(a: float, b: float) -> float:
    if b == 0:
        sign = math.copysign(1, a) * math.copysign(1, b)
        return math.nan if a == 0 or math.isnan(a) else sign * math.inf
    return a / b


def call(expr: ir.Call, go: Callable[..., Any]) -> Any:
    name, args = expr.function, expr.args
    if name == "orValue":
        held = go(args[0])
        return held.value if isinstance(held, Some) else go(args[1])
    if name == "or":
        held = go(args[0])
        return held if isinstance(held, Some) else go(args[1])
    values = [go(arg) for arg in args]
    kinds = [arg.type.kind for arg in args]
    if name in ("sum", "avg", "min", "max", "stddev") and kinds[0] is Kind.LIST:
        return of_list(name, values[0], args[0].type.args[0].kind)
    if name in ("_+_", "_-_", "_*_", "_/_", "_%_", "-_"):
        return arithmetic(name, values, kinds)
    return FUNCTIONS[name](*values)


def arithmetic(name: str, values: list[Any], kinds: list[Kind]) -> Any:
    if name == "-_":
        return -values[0] if kinds[0] is Kind.DOUBLE else fits(-values[0])
    a, b = values
    if name == "_+_":
        return a + b if kinds[0] in (Kind.DOUBLE, Kind.STRING, Kind.LIST) else fits(a + b)
    if name == "_-_":
        return a - b if kinds[0] is Kind.DOUBLE else fits(a - b)
    if name == "_*_":
        return times(a, b, kinds)
    if name == "_/_":
        return over(a, b, kinds)
    if b == 0 or (a == SMALLEST and b == -1):
        raise NoValue
    return int(math.copysign(1, a)) * (abs(a) % abs(b))


def of_list(name: str, values: list[Any], kind: Kind) -> Any:
    """Aggregates of a list: exact fractions, rounded once."""
    if name in ("min", "max"):
        if not values:
            return NOTHING
        return Some(next((v for v in values if v != v), (min if name == "min" else max)(values)))
    if name == "sum":
        return float_sum(values) if kind is Kind.DOUBLE else fits(sum(values))
    if not values:
        return 0 if kind in QUANTITIES else 0.0
    result = mean([float(value) for value in values])
    if name == "stddev":
        squares = [(float(value) - result) * (float(value) - result) for value in values]
        middle = mean(squares)
        result = math.sqrt(middle) if middle >= 0 else math.nan
    return from_double(result) if kind in QUANTITIES else result


def float_sum(values: list[float]) -> float:
    if any(map(math.isnan, values)) or {math.inf, -math.inf} <= set(values):
        return math.nan
    endless = [value for value in values if math.isinf(value)]
    if endless:
        return endless[0]
    exact = sum(map(Fraction, values), Fraction(0))
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def mean(values: list[float]) -> float:
    return float_sum(values) / len(values)


def times(a: Any, b: Any, kinds: list[Kind]) -> Any:
    if kinds == [Kind.DOUBLE, Kind.DOUBLE]:
        return a * b
    if Kind.DOUBLE in kinds:
        return from_double(float(a) * float(b))
    return fits(a * b)


def over(a: Any, b: Any, kinds: list[Kind]) -> Any:
    if kinds == [Kind.DOUBLE, Kind.DOUBLE]:
        return divided(a, b)
    if b == 0:
        raise NoValue("division by zero")
    if kinds[0] in QUANTITIES and kinds[1] is Kind.DOUBLE:
        return from_double(float(a) / b)
    if kinds[0] in QUANTITIES and kinds[1] is Kind.INT:
        return fits(nearest(Fraction(a, b)))
    if kinds[0] in QUANTITIES:
        return float(Fraction(a, b))
    return fits(math.trunc(Fraction(a, b)))


def ratio(a: Any, b: Any) -> float:
    if b == 0:
        return 0.0
    share = a / b
    return share if math.isnan(share) else sorted((0.0, share, 1.0))[1]


def least(*values: Any) -> Any:
    return next((value for value in values if value != value), min(values))


def most(*values: Any) -> Any:
    return next((value for value in values if value != value), max(values))


def to_whole(rounding: Callable[[Fraction], int]) -> Callable[[float], int]:
    def convert(value: float) -> int:
        if isinstance(value, int):
            return value
        if math.isnan(value) or math.isinf(value):
            raise NoValue
        return fits(rounding(Fraction(value)))

    return convert


def away(exact: Fraction) -> int:
    return math.floor(exact + Fraction(1, 2)) if exact >= 0 else -math.floor(-exact + Fraction(1, 2))


def to_int(text: str | Some | Nothing) -> Some | Nothing:
    if isinstance(text, Nothing):
        return NOTHING
    words = text.value if isinstance(text, Some) else text
    digits = words.removeprefix("-").removeprefix("+")
    if not digits.isascii() or not digits.isdigit() or words.startswith(("-+", "+-")):
        return NOTHING
    number = int(words)
    return Some(number) if SMALLEST <= number <= LARGEST else NOTHING


def root(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


def text_of(number: int) -> str:
    return str(number)


def same(a: Any, b: Any) -> bool:
    return bool(a == b)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "_==_": same,
    "_!=_": lambda a, b: not same(a, b),
    "_<_": lambda a, b: a < b,
    "_<=_": lambda a, b: a <= b,
    "_>_": lambda a, b: a > b,
    "_>=_": lambda a, b: a >= b,
    "!_": lambda a: not a,
    "@in": lambda item, items: item in items,
    "hasValue": lambda held: isinstance(held, Some),
    "ratio": ratio,
    "min": least,
    "max": most,
    "clamp": lambda value, low, high: least(most(value, low), high),
    "abs": lambda a: abs(a) if isinstance(a, float) else fits(abs(a)),
    "floor": to_whole(math.floor),
    "ceil": to_whole(math.ceil),
    "round": to_whole(away),
    "sqrt": root,
    "double": float,
    "double/cpu": lambda milli: milli / 1000,
    "string": text_of,
    "size": len,
    "startsWith": lambda text, part: text[: len(part)] == part,
    "endsWith": lambda text, part: part == "" or text[-len(part) :] == part,
    "contains": lambda text, part: text.find(part) >= 0,
    "lowerAscii": lambda text: text.lower(),
    "toInt": to_int,
    "optional.of": Some,
}
