"""A naive interpreter of the typed tree: one node at a time, over manifests, in the plainest Python.

The second evaluator beside the language's own. It shares no code with `compiler`, `language.evaluator`, `plugins`,
`scheduler` or lint, and reads nothing but the tree, as it is before `rewrite`. A node of the tree means what its
docstring says, and that is not in question. What the checker does to make the tree is: it puts calls of functions in
their place, brings libraries and overlays together and gives literals their types. So generated policies are compiled
as they are written, and interpreted with all of that written out (`tests.fuzz.writer`).

What functions and operators answer: `naive_functions` and `naive_text`. What fields say: `naive_objects`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from policyengine.language import ir
from tests.compiler.naive_functions import apply
from tests.compiler.naive_objects import TheNode, ThePod
from tests.compiler.naive_values import NOTHING, Nothing, NoValue, Some


@dataclass
class Place:
    """Where an expression is evaluated."""

    pod: ThePod
    node: TheNode | None
    lets: Mapping[str, ir.Expr] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    policy: Mapping[str, str] = field(default_factory=dict)
    gang: Some | Nothing = NOTHING
    victim: ThePod | None = None


def evaluate(expr: ir.Expr, at: Place, names: dict[str, Any] | None = None) -> Any:
    """The value. Raises `NoValue`."""
    names = names or {}
    go = lambda part, more=None: evaluate(part, at, {**names, **more} if more else names)  # noqa: E731
    match expr:
        case ir.Const():
            return expr.value
        case ir.Field():
            return read(expr.path, at)
        case ir.LetRef():
            return evaluate(at.lets[expr.name], at)
        case ir.ParamRef():
            return at.params[expr.name]
        case ir.Local():
            return names[expr.name]
        case ir.Index():
            whole, key = go(expr.operand), go(expr.key)
            return inside(whole, lambda content: look_up(content, key), expr.optional)
        case ir.Select():
            return inside(go(expr.operand), lambda whole: look_up(whole, expr.name), expr.optional)
        case ir.Has():
            return isinstance(inside(go(expr.operand), lambda whole: look_up(whole, expr.name), True), Some)
        case ir.Logic():
            return logic(expr.op, [lambda part=part: go(part) for part in expr.operands])
        case ir.Conditional():
            return go(expr.then) if go(expr.condition) else go(expr.otherwise)
        case ir.ListExpr():
            items = [(go(item), optional) for item, optional in expr.items]
            return [i.value if o else i for i, o in items if not o or isinstance(i, Some)]
        case ir.MapExpr():
            return entries([(go(key), go(value), optional) for key, value, optional in expr.entries])
        case ir.OptMap():
            held = go(expr.operand)
            if not isinstance(held, Some):
                return NOTHING
            found = go(expr.body, {expr.variable: held.value})
            return found if expr.flat else Some(found)
        case ir.Comprehension():
            return comprehension(expr, go)
        case ir.Call(function="domain"):
            return domain(expr, at, go)
        case ir.Call(function="podGroup"):
            return at.pod.cluster.group_named(at.pod["namespace"], go(expr.args[2]))
        case ir.Call(function="orValue" | "or"):
            held = go(expr.args[0])
            if isinstance(held, Some):
                return held.value if expr.function == "orValue" else held
            return go(expr.args[1])
    assert isinstance(expr, ir.Call), expr
    return apply(expr.function, [go(arg) for arg in expr.args], [arg.type for arg in expr.args])


def read(path: tuple[str, ...], at: Place) -> Any:
    """A field of a root."""
    cluster = at.pod.cluster
    cluster.asking = at.pod
    roots: dict[str, Callable[[], Any]] = {
        "pod": lambda: at.pod,
        "node": lambda: at.node,
        "victim": lambda: at.victim,
        "podGroup": lambda: cluster.group_of(at.pod),
        "gang": lambda: at.gang,
        "cluster": lambda: {
            "nodeCount": len(cluster.nodes),
            "podCount": len(cluster.pods),
            "pendingCount": sum(not pod.node for pod in cluster.pods),
        },
        "policy": lambda: at.policy,
        "now": lambda: cluster.now * 10**9,
        "nodes": lambda: cluster.nodes,
        "pods": lambda: cluster.pods,
    }
    found = roots[path[0]]()
    for name in path[1:]:
        found = found[name]
    return found


def look_up(whole: Any, key: Any) -> Any:
    if isinstance(whole, list | tuple) and not 0 <= key < len(whole):
        raise NoValue(key)
    if isinstance(whole, dict) and key not in whole:
        raise NoValue(key)
    return whole[key]


def inside(whole: Any, find: Callable[[Any], Any], optional: bool) -> Any:
    """What is found in a value, or in an optional of one; an optional of an optional is one."""
    if isinstance(whole, Nothing):
        return NOTHING
    try:
        found = find(whole.value if isinstance(whole, Some) else whole)
    except NoValue:
        if optional:
            return NOTHING
        raise
    return Some(found) if optional and not isinstance(found, Some | Nothing) else found


def entries(written: list[tuple[Any, Any, bool]]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for key, value, optional in written:
        if optional and isinstance(value, Nothing):
            continue
        if key in found:
            raise NoValue("a key twice")
        found[key] = value.value if optional else value
    return found


def domain(expr: ir.Call, at: Place, go: Callable[..., Any]) -> list[Any]:
    """`node.domain(key).pods` and `.nodes`."""
    member, label = expr.args[0], go(expr.args[1])
    if isinstance(member, ir.Field):
        wanted, node = member.path[-1], at.node
    else:
        assert isinstance(member, ir.Select)
        assert isinstance(member.operand, ir.Select)
        wanted, node = member.name, go(member.operand.operand)
    assert node is not None
    if label not in node["labels"]:
        raise NoValue("no domain")
    there = [one for one in node.cluster.nodes if one["labels"].get(label) == node["labels"][label]]
    return there if wanted == "nodes" else [pod for one in there for pod in one.pods]


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


def comprehension(expr: ir.Comprehension, go: Callable[..., Any]) -> Any:
    items, (name,) = list(go(expr.source)), expr.variables
    if expr.fold is ir.Fold.FILTER:
        return [item for item in items if go(expr.body, {name: item})]
    if expr.fold is ir.Fold.MAP:
        kept = [item for item in items if expr.condition is None or go(expr.condition, {name: item})]
        return [go(expr.body, {name: item}) for item in kept]
    bodies = [lambda item=item: go(expr.body, {name: item}) for item in items]
    if expr.fold is ir.Fold.EXISTS_ONE:
        return [body() for body in bodies].count(True) == 1
    return logic("&&" if expr.fold is ir.Fold.ALL else "||", bodies)
