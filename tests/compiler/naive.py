"""A naive interpreter of the typed tree: one node at a time, over plain data, in the plainest Python.

The second oracle beside the language's own evaluator. It shares no code with `compiler` or `language.evaluator`
and reads nothing but the tree. What functions and operators answer: `naive_functions`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from policyengine.language import ir
from tests.compiler.naive_functions import NOTHING, NoValue, Some, apply
from tests.compiler.worlds import GPU, ZONE, PlainNode, PlainPod, World


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
    return NODE_FIELDS[path[1]](node) if len(path) == 2 and path[1] in NODE_FIELDS else read_amounts(path[1:], node, at)


NODE_FIELDS: dict[str, Callable[[PlainNode], Any]] = {
    "name": lambda node: node.name,
    "labels": lambda node: node.labels,
    "annotations": lambda node: node.annotations,
    "zone": lambda node: node.labels.get(ZONE, ""),
    "pods": lambda node: [ThePod(pod, node) for pod in node.pods],
    "podCount": lambda node: len(node.pods),
    "unschedulable": lambda node: node.unschedulable,
    "ready": lambda node: node.ready,
    "taints": lambda node: [dict(zip(("key", "value", "effect"), taint, strict=True)) for taint in node.taints],
}


def read_amounts(path: tuple[str, ...], node: PlainNode, at: Place) -> Any:
    if path == ("nominated",):
        waiting = at.world.pending if at.world is not None else []
        return [ThePod(pod, None) for pod in waiting if pod.nominated == node.name and pod.name != at.pod.name]
    offered = {"cpu": node.cpu, "memory": node.memory, "storage": 0, GPU: node.gpus}
    used = {name: sum(getattr(pod, name) for pod in node.pods) for name in ("cpu", "memory")}
    used |= {"storage": 0, GPU: sum(pod.gpus or 0 for pod in node.pods)}
    amounts = {"used": used, "free": {name: offered[name] - used[name] for name in used}}.get(path[0], offered)
    if len(path) == 2:
        return amounts[path[1]]
    return {GPU: amounts[GPU]} if node.gpus or used[GPU] else {}


POD_FIELDS: dict[tuple[str, ...], Callable[[PlainPod], Any]] = {
    ("name",): lambda pod: pod.name,
    ("namespace",): lambda pod: pod.namespace,
    ("labels",): lambda pod: pod.labels,
    ("priority",): lambda pod: pod.priority,
    ("images",): lambda pod: list(pod.images),
    ("requests", "cpu"): lambda pod: pod.cpu,
    ("requests", "memory"): lambda pod: pod.memory,
    ("requests",): lambda pod: {} if pod.gpus is None else {GPU: pod.gpus},
}


def read_pod(path: tuple[str, ...], pod: PlainPod) -> Any:
    return POD_FIELDS[path](pod)


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


def call(expr: ir.Call, go: Callable[..., Any]) -> Any:
    name, args = expr.function, expr.args
    if name == "orValue":
        held = go(args[0])
        return held.value if isinstance(held, Some) else go(args[1])
    if name == "or":
        held = go(args[0])
        return held if isinstance(held, Some) else go(args[1])
    return apply(name, [go(arg) for arg in args], [arg.type for arg in args])
