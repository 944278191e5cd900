"""Macros: `all exists exists_one filter map` over lists and the keys of maps, `optMap optFlatMap` over optionals."""

from __future__ import annotations

from policyengine.language import ir, syntax
from policyengine.language.checking.cluster_aggregates import check_cost, element
from policyengine.language.checking.context import Context
from policyengine.language.checking.definitions import key_fact
from policyengine.language.checking.findings import error_at
from policyengine.language.ir.ir_walk import extent, is_error
from policyengine.language.types import BOOL, Kind, Type, list_of, optional_of

FOLDS = {
    "all": ir.Fold.ALL,
    "exists": ir.Fold.EXISTS,
    "exists_one": ir.Fold.EXISTS_ONE,
    "existsOne": ir.Fold.EXISTS_ONE,
    "filter": ir.Fold.FILTER,
    "map": ir.Fold.MAP,
}


def is_macro(node: syntax.Call) -> bool:
    """Whether the call is a macro over its target."""
    return node.target is not None and (node.function in FOLDS or node.function in ("optMap", "optFlatMap"))


def check_macro(context: Context, node: syntax.Call) -> ir.Expr:
    """A macro over its target."""
    assert node.target is not None
    source = context.check(node.target)
    most = 3 if node.function == "map" else 2
    if not 2 <= len(node.args) <= most or not isinstance(node.args[0], syntax.Name):
        return context.failed(
            "PE1016", f"`{node.function}` takes a new name and an expression: `.{node.function}(x, …)`", node.span
        )
    variable = syntax.NameText(span=node.args[0].span, text=node.args[0].name)
    if context.is_taken(variable) or is_error(source):
        return error_at(node.span)
    if node.function in FOLDS:
        return _comprehension(context, node, source, context.prefix + variable.text)
    return _opt_map(context, node, source, context.prefix + variable.text)


def _comprehension(context: Context, node: syntax.Call, source: ir.Expr, variable: str) -> ir.Expr:
    if source.type.kind not in (Kind.LIST, Kind.MAP):
        message = f"`{node.function}` runs over a list or a map, not over {source.type}"
        return context.failed("PE1005", message, source.span)
    local = element(variable, source.type.args[0], source, context)
    inner = context.binding(local)
    if source.type.kind is Kind.MAP:
        inner = inner.knowing(key_fact(source, local))
    fold = FOLDS[node.function]
    tests = f"`{node.function}` tests a bool"
    condition = inner.check_bool(node.args[1], tests) if len(node.args) == 3 else None
    if condition is not None and is_error(condition):
        return error_at(node.span)
    inner = inner.behind(condition)
    body = inner.check(node.args[-1]) if fold is ir.Fold.MAP else inner.check_bool(node.args[-1], tests)
    if is_error(body):
        return error_at(node.span)
    asked = (body,) if condition is None else (condition, body)
    whole = ir.Comprehension(
        type=_result(fold, source.type.args[0], body.type),
        span=node.span,
        # What holds for each element is of the element's shape; the whole is as the list it runs over.
        shape=source.shape if local.shape is not source.shape else max(part.shape for part in (source, *asked)),
        reach=max(part.reach for part in (source, *asked)),
        fold=fold,
        source=source,
        variables=(variable,),
        condition=condition,
        body=body,
    )
    return check_cost(context, whole)


def _result(fold: ir.Fold, element: Type, body: Type) -> Type:
    if fold is ir.Fold.MAP:
        return list_of(body)
    return list_of(element) if fold is ir.Fold.FILTER else BOOL


def _opt_map(context: Context, node: syntax.Call, source: ir.Expr, variable: str) -> ir.Expr:
    if source.type.kind is not Kind.OPTIONAL:
        return context.failed("PE1005", f"`{node.function}` is for optionals, this is {source.type}", source.span)
    local = ir.Local(type=source.type.args[0], span=source.span, **extent(source), name=variable)
    body = context.binding(local).check(node.args[1])
    flat = node.function == "optFlatMap"
    if is_error(body):
        return error_at(node.span)
    if flat and body.type.kind is not Kind.OPTIONAL:
        return context.failed("PE1005", f"`optFlatMap` makes an optional, this is {body.type}", body.span)
    return ir.OptMap(
        type=body.type if flat else optional_of(body.type),
        span=node.span,
        **extent(source, body),
        operand=source,
        variable=variable,
        body=body,
        flat=flat,
    )
