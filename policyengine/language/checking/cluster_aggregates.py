"""Lists of the cluster's nodes and pods: `node.domain(k)`, what may be done with such lists, and what would cost
nodes times nodes."""

from __future__ import annotations

from collections.abc import Iterator

from policyengine.language import ir, syntax
from policyengine.language.checking.check_codes import CROSSWISE, NO_OVERLOAD, NOT_AGGREGATED, OUT_OF_REACH
from policyengine.language.checking.context import Checks, Context, error_at
from policyengine.language.ir.ir_walk import (
    AGGREGATES,
    aggregated,
    children,
    element_shape,
    extent,
    free_locals,
    is_cluster_list,
    is_error,
    owner_of,
    source_of,
    walk,
)
from policyengine.language.schema import DOMAIN, NODE, Attribute, object_info
from policyengine.language.types import STRING, Kind, Shape, Type

_WAYS = "`.size()`, `.exists(x, …)`, `.map(x, …).sum()`"


# --- methods of objects ----------------------------------------------------------------------------------


def check_method(checks: Checks, node: syntax.Call, context: Context) -> ir.Expr | None:
    """`node.domain(k)`; None where the target has no such method."""
    assert node.target is not None
    target = checks.check(node.target, context)
    if is_error(target):
        return error_at(node.span)
    info = object_info(target.type)
    method = info.methods.get(node.function) if info is not None else None
    if method is None:
        return None
    key = checks.check(node.args[0], context, STRING) if len(node.args) == 1 else None
    if key is None or key.type != STRING:
        if key is not None and is_error(key):
            return error_at(node.span)
        message = f'`{node.function}` takes the key of a label: `node.{node.function}("topology.kubernetes.io/zone")`'
        return checks.report.failed(NO_OVERLOAD, message, node.span)
    if key.shape is not Shape.SCALAR:
        return checks.report.failed(OUT_OF_REACH, "the key of a domain is the same for all nodes", key.span)
    return _domain(_below(target, method, node), key, node)


def _below(target: ir.Expr, method: Attribute, node: syntax.Expr) -> ir.Expr:
    """A member of an object, without its arguments."""
    if isinstance(target, ir.Field):
        return ir.Field(
            type=method.type,
            span=node.span,
            shape=target.shape,
            reach=max(target.reach, method.reach),
            path=(*target.path, method.name),
        )
    return ir.Select(
        type=method.type, span=node.span, shape=target.shape, reach=target.reach, operand=target, name=method.name
    )


def _domain(member: ir.Expr, key: ir.Expr, node: syntax.Expr) -> ir.Call:
    """`domain` of a member and a key: the member's path says what is read of the domain."""
    return ir.Call(type=member.type, span=node.span, **extent(member, key), function="domain", args=(member, key))


def check_domain_field(operand: ir.Expr, known: Attribute, node: syntax.Select) -> ir.Expr | None:
    """`.pods` or `.nodes` of a domain; None where the operand is none."""
    if operand.type != DOMAIN or not isinstance(operand, ir.Call):
        return None
    member, key = operand.args
    return _domain(_below(member, known, node), key, node)


# --- what lists of the cluster are good for ----------------------------------------------------------------


def check_use(checks: Checks, expr: ir.Expr) -> ir.Expr:
    """The expression, unless it uses a list of the cluster as if it were a value."""
    for part in children(expr):
        if part.type.kind is Kind.LIST and is_cluster_list(part, checks.names.let_value) and not _consumes(expr, part):
            return refused_list(checks, part)
    return expr


def refused_list(checks: Checks, part: ir.Expr) -> ir.Expr:
    """Reports a list of the cluster that stands where a value is wanted."""
    what = "nodes" if part.type.args[0] == NODE else "pods"
    source = source_of(part, checks.names.let_value)
    if source is not None:
        what = "nodes" if element_shape(source) is Shape.NODE else "pods"
    message = f"a list of {what} is long and has no order: make one value of it, as {_WAYS} do"
    return checks.report.failed(NOT_AGGREGATED, message, part.span)


def _consumes(expr: ir.Expr, part: ir.Expr) -> bool:
    match expr:
        case ir.Comprehension():
            return part is expr.source
        case ir.Call(function="@in" | "domain" as name):
            return part is expr.args[1 if name == "@in" else 0]
        case ir.Call():
            return expr.function in AGGREGATES and len(expr.args) == 1
        case _:
            return False


def check_cost(checks: Checks, expr: ir.Expr) -> ir.Expr:
    """The aggregate or macro, unless it would look at every node or pod once for each of many others."""
    parts = tuple(_asked_of_each(expr))
    if isinstance(expr, ir.Comprehension):
        for part in parts:
            message = _nested(checks, expr, part)
            if message is not None:
                return checks.report.failed(CROSSWISE, message, expr.span)
        whole = expr.source
    else:
        whole = children(expr)[1]
    source = source_of(whole, checks.names.let_value) if whole.type.kind is Kind.LIST else None
    if source is not None and any(_reads_the_node(checks, expr, part, source) for part in parts):
        return checks.report.failed(CROSSWISE, _across(source), expr.span)
    return expr


def _asked_of_each(expr: ir.Expr) -> Iterator[ir.Expr]:
    """What is asked of each element of a list."""
    if isinstance(expr, ir.Comprehension):
        yield from (expr.condition, expr.body) if expr.condition is not None else (expr.body,)
    elif isinstance(expr, ir.Call) and expr.function == "@in":
        yield expr.args[0]


def _nested(checks: Checks, expr: ir.Comprehension, part: ir.Expr) -> str | None:
    """What is wrong where, for each element, another list of the cluster is gone through."""
    (name,) = expr.variables
    of_nodes = expr.source.type.args[0] == NODE
    for inner in walk(part):
        whole = aggregated(inner, checks.names.let_value)
        if whole is None or name not in free_locals(inner):
            continue
        if of_nodes and _is_own(checks, inner, whole, name):
            continue
        return (
            f"for each `{name}` this goes through a list of the cluster again, which is too much; take what you need "
            "of the inner list outside, or turn the two round"
        )
    return None


def _is_own(checks: Checks, inner: ir.Expr, whole: ir.Expr, name: str) -> bool:
    """Whether the list is the very node's (`n.pods`), or its domain's without asking more of the node."""
    source = source_of(whole, checks.names.let_value)
    assert source is not None
    owner = owner_of(source)
    if isinstance(owner, ir.Local):
        return owner.name == name
    return name in free_locals(source) and not any(name in free_locals(one) for one in _all_asked(inner, checks))


def _all_asked(expr: ir.Expr, checks: Checks) -> Iterator[ir.Expr]:
    """What is asked of each element in an aggregate, the filters and maps before it included."""
    yield from _asked_of_each(expr)
    whole = aggregated(expr, checks.names.let_value)
    while isinstance(whole, ir.Comprehension):
        yield from _asked_of_each(whole)
        whole = whole.source


def _reads_the_node(checks: Checks, expr: ir.Expr, part: ir.Expr, source: ir.Expr) -> bool:
    """Whether what is asked of each element differs from node to node, and the list is not that node's own."""
    owner = owner_of(source)
    if isinstance(owner, ir.Field):
        return False
    if any(path[0] == "node" for path in checks.names.reads(part)):
        return True
    own = frozenset(expr.variables) if isinstance(expr, ir.Comprehension) else frozenset()
    if isinstance(owner, ir.Local):
        own |= {owner.name}
    return any(
        isinstance(inner, ir.Local) and inner.shape is Shape.NODE and inner.name not in own and inner.name in free
        for free in (free_locals(part),)
        for inner in walk(part)
    )


def _across(source: ir.Expr) -> str:
    what = "pods" if element_shape(source) is Shape.POD else "nodes"
    better = "`node.pods`, or " if what == "pods" else ""
    return (
        f"this would go through all those {what} once for every node; write {better}"
        f'`node.domain("topology.kubernetes.io/zone").{what}` for those that share a label with the node, or compare '
        "with a value that is the same for all nodes"
    )


def element(name: str, type_: Type, source: ir.Expr, checks: Checks) -> ir.Local:
    """The variable that stands for each element of a list."""
    found = source_of(source, checks.names.let_value) if source.type.kind is Kind.LIST else None
    shape = source.shape if found is None else element_shape(found)
    return ir.Local(type=type_, span=source.span, shape=shape, reach=source.reach, name=name)
