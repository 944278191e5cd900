"""The checker of expressions: syntax in, typed tree out, every finding reported.

Types flow upwards; only literals are steered from above, by what they meet. An expression that was reported has
the type ERROR, and nothing that depends on it is reported again.
"""

from __future__ import annotations

from typing import Literal as OneOf

from policyengine.language import ir, syntax
from policyengine.language.checking.calls import check_call, resolve
from policyengine.language.checking.cluster_aggregates import check_use
from policyengine.language.checking.context import Context
from policyengine.language.checking.field_access import check_has, check_index, check_name, check_select, shown_path
from policyengine.language.checking.findings import error_at
from policyengine.language.checking.foreign_words import NO_NULL, key_text, split_key
from policyengine.language.checking.literal_types import (
    converted,
    empty,
    is_bare,
    is_flexible,
    is_number,
    signed_number,
)
from policyengine.language.checking.macros import check_macro, is_macro
from policyengine.language.diagnostics import replacing, wrapped
from policyengine.language.functions import FUNCTIONS
from policyengine.language.ir.ir_walk import extent, is_error
from policyengine.language.schema import ROOTS
from policyengine.language.syntax import Span
from policyengine.language.types import BOOL, DOUBLE, ERROR, INT, Kind, Type, list_of, map_of

_LEFT_OUT = {syntax.BytesLiteral: "bytes", syntax.UintLiteral: "uint"}
_KEYS = frozenset({Kind.BOOL, Kind.INT, Kind.STRING})


def check_expression(context: Context, expr: syntax.Expr, expected: Type | None = None) -> ir.Expr:
    """The typed tree of an expression. `expected` steers literals only; the caller compares types."""
    checked = check_use(context, _checked(context, expr, expected))
    if checked.type.kind is not Kind.ERROR:
        context.report.types.setdefault(expr.span, checked.type)
    return checked


def _checked(context: Context, expr: syntax.Expr, expected: Type | None) -> ir.Expr:
    match expr:  # the most frequent first
        case syntax.Literal(value=None):
            return context.failed("PE1008", NO_NULL, expr.span)
        case syntax.Literal() | syntax.QuantityLiteral() | syntax.DurationLiteral():
            return converted(context.report, expr, expected)
        case syntax.Binary(op="&&" | "||" as op):
            return _logic(context, expr, op)
        case syntax.Binary(op="/") if (key := check_split_key(context, expr)) is not None:
            return key
        case syntax.Binary():
            function = FUNCTIONS["@in" if expr.op == "in" else f"_{expr.op}_"]
            passed_on = expected if expr.op in "+-*/" else None
            return resolve(context, function, (expr.left, expr.right), expr.span, passed_on)
        case syntax.Name():
            return check_name(context, expr, expected)
        case syntax.Select():
            return check_select(context, expr)
        case syntax.Index():
            return check_index(context, expr, expected)
        case syntax.Call(function="has", target=None):
            return check_has(context, expr)
        case syntax.Call():
            return check_macro(context, expr) if is_macro(expr) else check_call(context, expr, expected)
        case syntax.Unary(op="-", operand=operand) if is_number(operand) or is_bare(operand):
            number, is_negative = signed_number(expr)
            return converted(context.report, number, expected, is_negative)
        case syntax.Unary():
            function = FUNCTIONS["!_" if expr.op == "!" else "-_"]
            return resolve(context, function, (expr.operand,), expr.span, expected)
        case syntax.Conditional():
            return _conditional(context, expr, expected)
        case syntax.ListLiteral():
            return _list(context, expr, expected)
        case syntax.MapLiteral():
            return _map(context, expr, expected)
        case _:
            return context.failed("PE1008", f"a policy has no {_LEFT_OUT[type(expr)]}", expr.span)


def _logic(context: Context, expr: syntax.Binary, op: OneOf["&&", "||"]) -> ir.Expr:
    """A chain of one operator: each part may rely on what the parts before it established."""
    operands: list[ir.Expr] = []
    for part in _chain(expr):
        of_text = '; whether a value is one of several is asked by `x in ["a", "b"]`'
        operand = context.check_bool(part, f"`{op}` takes bools", of_text)
        operands.append(operand)
        context = context.behind(operand, op == "&&")
    if is_error(*operands):
        return error_at(expr.span)
    flat = [inner for part in operands for inner in _flattened(part, op)]
    return ir.Logic(type=BOOL, span=expr.span, **extent(*flat), op=op, operands=tuple(flat))


def _chain(expr: syntax.Binary) -> list[syntax.Expr]:
    """The parts of `a && b && c`, from the left."""
    parts: list[syntax.Expr] = []
    left: syntax.Expr = expr
    while isinstance(left, syntax.Binary) and left.op == expr.op:
        parts.append(left.right)
        left = left.left
    return [left, *reversed(parts)]


def _flattened(part: ir.Expr, op: str) -> tuple[ir.Expr, ...]:
    return part.operands if isinstance(part, ir.Logic) and part.op == op else (part,)


def _conditional(context: Context, expr: syntax.Conditional, expected: Type | None) -> ir.Expr:
    condition = context.check_bool(expr.condition, "the condition of `?:` is a bool")
    branches = [(context.behind(condition, True), expr.then), (context.behind(condition, False), expr.otherwise)]
    done: dict[int, ir.Expr] = {}
    for at in sorted((0, 1), key=lambda at: -_weight(branches[at][1])):
        place, written = branches[at]
        done[at] = place.check(written, expected)
        expected = expected if is_error(done[at]) else done[at].type
    then, otherwise = done[0], done[1]
    if is_error(condition, then, otherwise):
        return error_at(expr.span)
    if then.type != otherwise.type:
        fix = None
        if {then.type, otherwise.type} == {INT, DOUBLE}:
            fix = wrapped((then if then.type == INT else otherwise).span, "double(", ")")
        message = f"the branches of `?:` differ: {then.type} and {otherwise.type}"
        return context.failed("PE1004", message, expr.span, fix)
    return ir.Conditional(
        type=then.type,
        span=expr.span,
        **extent(condition, then, otherwise),
        condition=condition,
        then=then,
        otherwise=otherwise,
    )


def _list(context: Context, expr: syntax.ListLiteral, expected: Type | None) -> ir.Expr:
    if not expr.items:
        return empty(context.report, expr, expected)
    wanted = expected.args[0] if expected is not None and expected.kind is Kind.LIST else None
    done: dict[int, ir.Expr] = {}
    for at in sorted(range(len(expr.items)), key=lambda at: -_weight(expr.items[at].value)):
        item = expr.items[at]
        done[at] = checked = context.check(item.value, wanted)
        if not is_error(checked) and not item.optional and (wanted is None or not is_flexible(item.value)):
            wanted = checked.type
    items = [(done[at], item.optional) for at, item in enumerate(expr.items)]
    if is_error(*done.values()):
        return error_at(expr.span)
    types = [_content(context, item, optional) for item, optional in items]
    if ERROR in types:
        return error_at(expr.span)
    for (value, _), type_ in zip(items, types, strict=True):
        if type_ != types[0]:
            message = f"the items of a list have one type: {types[0]}, and this is {type_}"
            return context.failed("PE1004", message, value.span)
    return ir.ListExpr(type=list_of(types[0]), span=expr.span, **extent(*done.values()), items=tuple(items))


def _content(context: Context, item: ir.Expr, optional: bool) -> Type:
    """The type of an item; of `?item` the content's."""
    if not optional:
        return item.type
    if item.type.kind is Kind.OPTIONAL:
        return item.type.args[0]
    return context.failed("PE1005", f"`?` is for optionals, this is {item.type}", item.span).type


def _map(context: Context, expr: syntax.MapLiteral, expected: Type | None) -> ir.Expr:
    if not expr.entries:
        return empty(context.report, expr, expected)
    if (wrong := check_keys(context, expr)) is not None:
        return wrong
    wanted = expected.args if expected is not None and expected.kind is Kind.MAP else (None, None)
    entries = [
        (context.check(entry.key, wanted[0]), context.check(entry.value, wanted[1]), entry.optional)
        for entry in expr.entries
    ]
    if any(is_error(key, value) for key, value, _ in entries):
        return error_at(expr.span)
    key_type, value_type = entries[0][0].type, _content(context, *entries[0][1:])
    for key, value, optional in entries:
        if key.type.kind not in _KEYS or key.type != key_type:
            message = f"the keys of a map are all int, string or bool; this is {key.type}"
            return context.failed("PE1004", message, key.span)
        if _content(context, value, optional) != value_type:
            message = f"the values of a map have one type: {value_type}, and this is {value.type}"
            return context.failed("PE1004", message, value.span)
    parts = [part for key, value, _ in entries for part in (key, value)]
    return ir.MapExpr(type=map_of(key_type, value_type), span=expr.span, **extent(*parts), entries=tuple(entries))


def _weight(expr: syntax.Expr) -> int:
    """How much an expression decides what a literal beside it is: an expression, a suffix, a double, an int."""
    if not is_flexible(expr):
        return 3
    return 1 if is_bare(expr) else 2


def check_split_key(context: Context, node: syntax.Binary) -> ir.Expr | None:
    """Reports `node.labels.kubernetes.io/arch`; None for a division."""
    found = split_key(node)
    if found is None or not isinstance(node.right, syntax.Name) or not _is_unknown(context, node.right.name):
        return None
    operand, key, start = found
    if is_error(context.check(operand)):
        return error_at(node.span)
    message = f'a key with `.` or `/` stands in quotes: `{shown_path(operand)}[?"{key}"].orValue(…)`'
    return context.failed("PE1002", message, node.span, replacing(Span(start, node.span.end), f'[?"{key}"]'))


def check_keys(context: Context, node: syntax.MapLiteral) -> ir.Expr | None:
    """Reports a key such as `nvidia.com/gpu`; None where all are expressions."""
    for entry in node.entries:
        text = key_text(entry.key)
        names = [one.name for one in syntax.expression_nodes.walk(entry.key) if isinstance(one, syntax.Name)]
        if text is not None and names and _is_unknown(context, names[0]):
            instead = f'"{text}"'
            message = f"a key with `/` or `-` stands in quotes: `{instead}`"
            return context.failed("PE1001", message, entry.key.span, replacing(entry.key.span, instead, safe=True))
    return None


def _is_unknown(context: Context, name: str) -> bool:
    return name not in ROOTS and name not in context.locals and name not in context.names.visible
