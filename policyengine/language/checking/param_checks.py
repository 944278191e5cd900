"""Params: their types, defaults and bounds, all constants known when the policy loads."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from policyengine.language import ir, syntax
from policyengine.language.checking import foreign_words
from policyengine.language.checking.context import Context
from policyengine.language.checking.findings import error_at
from policyengine.language.diagnostics import listed, replacing
from policyengine.language.functions.relations import equal
from policyengine.language.ir.ir_walk import is_error, walk
from policyengine.language.scalar_evaluator import evaluated
from policyengine.language.syntax.expression_nodes import names_in
from policyengine.language.types import BOOL, INT, QUANTITIES, STRING, Kind, Type
from policyengine.language.values import EvaluationError, display, with_article

_SCALARS = (Kind.INT, Kind.DOUBLE, Kind.BOOL, Kind.STRING, Kind.TIMESTAMP, Kind.DURATION, *QUANTITIES)
NAMED_TYPES = {"count": INT, **{kind.value: Type(kind) for kind in _SCALARS}}
_MADE_TYPES = {"list": (Kind.LIST, 1), "map": (Kind.MAP, 2), "optional": (Kind.OPTIONAL, 1)}
_KEYS = (STRING, INT, BOOL)
_READING = ir.Field | ir.Comprehension | ir.LetRef | ir.ParamRef
_RANGED = QUANTITIES | {Kind.INT, Kind.DOUBLE, Kind.TIMESTAMP, Kind.DURATION}


def check_type(
    context: Context, written: syntax.TypeRef, objects: Mapping[str, Type] = MappingProxyType({})
) -> Type | None:
    """The type that is written, None (reported) for none. `objects`: types that are no values."""
    name, args = written.name, written.args
    named = {**NAMED_TYPES, **objects}
    if name in named and not args:
        return named[name]
    if name in _MADE_TYPES:
        kind, count = _MADE_TYPES[name]
        inner = [check_type(context, arg, objects) for arg in args]
        types = tuple(type_ for type_ in inner if type_ is not None)
        if len(args) != count:
            example = {"list": "list(string)", "map": "map(string, int)", "optional": "optional(int)"}[name]
            message = f"`{name}` takes {count} type{'s' * (count > 1)}: `{example}`"
            context.report.error("PE2012", message, written.span)
            return None
        if kind is Kind.MAP and types and types[0] not in _KEYS:
            context.report.error("PE1005", "the keys of a map are string, int or bool", args[0].span)
            return None
        return Type(kind, types) if len(types) == count else None
    known, fix = (*named, *_MADE_TYPES), None if args else "{}"
    message, meant = f"no type is called `{name}`", foreign_words.TYPES.get(name)
    if meant is not None:
        context.failed("PE2012", f"{message}; write `{meant}`", written.span, replacing(written.span, meant))
        return None
    there = f"; there are {listed(known)}"
    context.report.unknown("PE2012", message, written.span, name, known, fix=fix, otherwise=there)
    return None


def check_param(context: Context, member: syntax.Param, name: str, file: str) -> ir.Param | None:
    """A param by its full name, None (reported) where its type or default is wrong. `file`: as in `ir.Param`."""
    type_ = check_type(context, member.type)
    if type_ is None:
        return None
    default = constant(context, member.default, type_)
    bounds = [constant(context, bound, type_) for bound in member.range or ()]
    values = [constant(context, value, type_) for value in member.values or ()]
    if bounds and type_.kind not in _RANGED:
        context.report.error("PE2007", f"{with_article(type_)} has no range; list its `values`", member.span)
        return None
    if is_error(default, *bounds, *values):
        return None
    param = ir.Param(
        name=name,
        type=type_,
        default=default.value,
        minimum=bounds[0].value if bounds else None,
        maximum=bounds[1].value if bounds else None,
        values=tuple(value.value for value in values) if member.values is not None else None,
        span=member.span,
        file=file,
    )
    wrong = outside(param, param.default)
    if wrong:
        context.report.error("PE2007", wrong, member.default.span)
    return param


def outside(param: ir.Param, value: object) -> str | None:
    """Why a value is not one the param takes, None if it takes it. For overrides too."""
    shown = display(value, param.type)
    if param.values is not None and not any(equal(value, allowed) for allowed in param.values):
        values = listed(display(allowed, param.type) for allowed in param.values)
        return f"`{shown}` is not among the values of `{param.name}`: {values or 'there are none'}"
    low, high = param.minimum, param.maximum
    if not (isinstance(low, int | float) and isinstance(high, int | float) and isinstance(value, int | float)):
        return None
    span = f"[{display(low, param.type)}, {display(high, param.type)}]"
    if low > high:
        return f"the range {span} is empty: its ends are the wrong way round"
    return None if low <= value <= high else f"`{shown}` is outside the range {span} of `{param.name}`"


def reads_nothing(expr: ir.Expr) -> bool:
    """Whether an expression is a constant."""
    return not any(isinstance(part, _READING) for part in walk(expr))


def constant(context: Context, expr: syntax.Expr, type_: Type) -> ir.Const:
    """A constant of a type; of type ERROR and value None, reported, for what is none."""
    report = context.report
    if not names_in(expr).isdisjoint(context.names.visible):
        return report.error("PE1011", "a constant is wanted: it reads no let and no param", expr.span)
    checked = context.check(expr, type_)
    if is_error(checked):
        return error_at(expr.span)
    if checked.type != type_:
        is_text = checked.type == STRING and type_.kind not in (Kind.LIST, Kind.MAP, Kind.OPTIONAL)
        hint = "; write it without quotes" if is_text else ""
        return report.error("PE1005", f"{with_article(type_)} is wanted, this is {checked.type}{hint}", expr.span)
    if not reads_nothing(checked):
        return report.error("PE1011", "a constant is wanted: it reads nothing", expr.span)
    try:
        return ir.Const(type=type_, span=expr.span, value=evaluated(checked))
    except EvaluationError as error:
        return report.error("PE1006", str(error), expr.span)
