"""Lists of the cluster's nodes and pods: `node.domain(k)`, what may be done with such lists, and what would cost
nodes times nodes."""

from __future__ import annotations

from collections.abc import Iterator

from policyengine.language import ir, syntax
from policyengine.language.attributes import Attribute
from policyengine.language.checking.context import Context
from policyengine.language.checking.findings import error_at
from policyengine.language.ir.ir_walk import (
    AGGREGATES,
    aggregated,
    children,
    element_shape,
    extent,
    free_locals,
    is_error,
    owner_of,
    source_of,
    walk,
)
from policyengine.language.schema import DOMAIN, NODE, attribute, object_info
from policyengine.language.syntax import Span
from policyengine.language.types import STRING, Kind, Shape, Type

_WAYS = "`.size()`, `.exists(x, …)`, `.map(x, …).sum()`"


def check_method(context: Context, node: syntax.Call) -> ir.Expr | None:
    """`node.domain(k)`; None where the target has no such method."""
    assert node.target is not None
    target = context.check(node.target)
    if is_error(target):
        return error_at(node.span)
    info = object_info(target.type)
    method = info.methods.get(node.function) if info is not None else None
    if method is None:
        return None
    key = context.check(node.args[0], STRING) if len(node.args) == 1 else None
    if key is None or key.type != STRING:
        if key is not None and is_error(key):
            return error_at(node.span)
        message = f'`{node.function}` takes the key of a label: `node.{node.function}("topology.kubernetes.io/zone")`'
        return context.failed("PE1004", message, node.span)
    if key.shape is not Shape.SCALAR:
        return context.failed("PE1011", "the key of a domain is the same for all nodes", key.span)
    return _domain(member_of(target, method, node.span), key)


def check_domain_field(operand: ir.Expr, known: Attribute, span: Span) -> ir.Expr | None:
    """`.pods` or `.nodes` of a domain; None where the operand is none."""
    if operand.type != DOMAIN or not isinstance(operand, ir.Call):
        return None
    member, key = operand.args
    return _domain(member_of(member, known, span), key)


def _domain(member: ir.Expr, key: ir.Expr) -> ir.Call:
    """`domain` of a member and a key: the member's path says what is read of the domain."""
    return ir.Call(type=member.type, span=member.span, **extent(member, key), function="domain", args=(member, key))


def member_of(operand: ir.Expr, known: Attribute, span: Span) -> ir.Expr:
    """A field of an object, or a method without its arguments: a longer path of a root, or a selection."""
    if isinstance(operand, ir.Field):
        return field_at((*operand.path, known.name), span)
    return ir.Select(type=known.type, span=span, **extent(operand), operand=operand, name=known.name)


def field_at(path: tuple[str, ...], span: Span) -> ir.Field:
    """A path of the schema."""
    known = attribute(path)
    assert known is not None
    return ir.Field(type=known.type, span=span, shape=known.shape, reach=known.reach, path=path)


# --- what lists of the cluster are good for ----------------------------------------------------------------


def check_use(context: Context, expr: ir.Expr) -> ir.Expr:
    """The expression, unless it uses a list of the cluster as if it were a value."""
    for part in children(expr):
        source = _source_of(context, part)
        if source is not None and not _consumes(expr, part):
            message = f"a list of {_rows(source)} is long and has no order: make one value of it, as {_WAYS} do"
            return context.failed("PE1018", message, part.span)
    return expr


def _source_of(context: Context, expr: ir.Expr) -> ir.Expr | None:
    """The nodes or pods that a list is made of; None for anything else."""
    return source_of(expr, context.definitions.let_value) if expr.type.kind is Kind.LIST else None


def _rows(source: ir.Expr) -> str:
    return "pods" if element_shape(source) is Shape.POD else "nodes"


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


def check_cost(context: Context, expr: ir.Expr) -> ir.Expr:
    """The aggregate or macro, unless it would look at every node or pod once for each of many others."""
    parts = tuple(_asked_of_each(expr))
    if isinstance(expr, ir.Comprehension):
        for part in parts:
            message = _nested(context, expr, part)
            if message is not None:
                return context.failed("PE1017", message, expr.span)
        whole = expr.source
    else:
        whole = children(expr)[1]
    source = _source_of(context, whole)
    if source is not None and any(_reads_the_node(context, expr, part, source) for part in parts):
        return context.failed("PE1017", _across(source), expr.span)
    return expr


def _asked_of_each(expr: ir.Expr) -> Iterator[ir.Expr]:
    """What is asked of each element of a list."""
    if isinstance(expr, ir.Comprehension):
        yield from (expr.condition, expr.body) if expr.condition is not None else (expr.body,)
    elif isinstance(expr, ir.Call) and expr.function == "@in":
        yield expr.args[0]


def _nested(context: Context, expr: ir.Comprehension, part: ir.Expr) -> str | None:
    """What is wrong where, for each element, another list of the cluster is gone through."""
    (name,) = expr.variables
    of_nodes = expr.source.type.args[0] == NODE
    for inner in walk(part):
        whole = aggregated(inner, context.definitions.let_value)
        if whole is None or name not in free_locals(inner):
            continue
        if of_nodes and _is_own(context, inner, whole, name):
            continue
        return (
            f"for each `{name}` this goes through a list of the cluster again, which is too much; take what you need "
            "of the inner list outside, or turn the two round"
        )
    return None


def _is_own(context: Context, inner: ir.Expr, whole: ir.Expr, name: str) -> bool:
    """Whether the list is the very node's (`n.pods`), or its domain's without asking more of the node."""
    source = source_of(whole, context.definitions.let_value)
    assert source is not None
    owner = owner_of(source)
    if isinstance(owner, ir.Local):
        return owner.name == name
    return name in free_locals(source) and not any(name in free_locals(one) for one in _all_asked(inner, context))


def _all_asked(expr: ir.Expr, context: Context) -> Iterator[ir.Expr]:
    """What is asked of each element in an aggregate, the filters and maps before it included."""
    yield from _asked_of_each(expr)
    whole = aggregated(expr, context.definitions.let_value)
    while isinstance(whole, ir.Comprehension):
        yield from _asked_of_each(whole)
        whole = whole.source


def _reads_the_node(context: Context, expr: ir.Expr, part: ir.Expr, source: ir.Expr) -> bool:
    """Whether what is asked of each element differs from node to node, and the list is not that node's own."""
    owner = owner_of(source)
    if isinstance(owner, ir.Field):
        return False
    if any(path[0] == "node" for path in context.definitions.reads(part)):
        return True
    others = free_locals(part)
    others -= frozenset(expr.variables) if isinstance(expr, ir.Comprehension) else frozenset()
    others -= {owner.name} if isinstance(owner, ir.Local) else frozenset()
    return any(
        isinstance(inner, ir.Local) and inner.shape is Shape.NODE and inner.name in others for inner in walk(part)
    )


def _across(source: ir.Expr) -> str:
    what = _rows(source)
    better = "`node.pods`, or " if what == "pods" else ""
    return (
        f"this would go through all those {what} once for every node; write {better}"
        f'`node.domain("topology.kubernetes.io/zone").{what}` for those that share a label with the node, or compare '
        "with a value that is the same for all nodes"
    )


def element(name: str, type_: Type, source: ir.Expr, context: Context) -> ir.Local:
    """The variable that stands for each element of a list."""
    found = _source_of(context, source)
    shape = source.shape if found is None else element_shape(found)
    return ir.Local(type=type_, span=source.span, shape=shape, reach=source.reach, name=name)
