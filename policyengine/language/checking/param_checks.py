"""Params: their types, defaults and bounds, all constants known when the policy loads."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from policyengine.language import ir, syntax
from policyengine.language.checking.check_codes import OUT_OF_REACH, PARAM_BOUNDS, WRONG_LITERAL, WRONG_TYPE, WRONG_WORD
from policyengine.language.checking.context import Checks, Context, replacing
from policyengine.language.evaluator import evaluated
from policyengine.language.functions.comparison import equal
from policyengine.language.ir.ir_walk import is_error, walk
from policyengine.language.syntax.expression_nodes import names_in
from policyengine.language.types import (
    BOOL,
    CPU,
    DOUBLE,
    DURATION,
    INT,
    MEMORY,
    STORAGE,
    STRING,
    TIMESTAMP,
    Kind,
    Type,
)
from policyengine.language.values import EvaluationError, display, with_article

NAMED_TYPES = {
    "int": INT,
    "count": INT,
    "double": DOUBLE,
    "bool": BOOL,
    "string": STRING,
    "timestamp": TIMESTAMP,
    "duration": DURATION,
    "cpu": CPU,
    "memory": MEMORY,
    "storage": STORAGE,
}
_MADE_TYPES = {"list": (Kind.LIST, 1), "map": (Kind.MAP, 2), "optional": (Kind.OPTIONAL, 1)}
_KEYS = (STRING, INT, BOOL)
_NONE: Mapping[str, Type] = MappingProxyType({})
_READING = ir.Field | ir.Comprehension | ir.LetRef | ir.ParamRef
_RANGED = (INT, DOUBLE, TIMESTAMP, DURATION, CPU, MEMORY, STORAGE)


def check_type(
    checks: Checks, written: syntax.TypeRef, objects: Mapping[str, Type] = MappingProxyType({})
) -> Type | None:
    """The type that is written, None (reported) for none. `objects`: types that are no values."""
    name, args = written.name, written.args
    named = {**NAMED_TYPES, **objects}
    if name in named and not args:
        return named[name]
    if name in _MADE_TYPES:
        kind, count = _MADE_TYPES[name]
        inner = [check_type(checks, arg, objects) for arg in args]
        types = tuple(type_ for type_ in inner if type_ is not None)
        if len(args) != count:
            example = {"list": "list(string)", "map": "map(string, int)", "optional": "optional(int)"}[name]
            checks.report.error(
                WRONG_WORD, f"`{name}` takes {count} type{'s' * (count > 1)}: `{example}`", written.span
            )
            return None
        if kind is Kind.MAP and types and types[0] not in _KEYS:
            checks.report.error(WRONG_TYPE, "the keys of a map are string, int or bool", args[0].span)
            return None
        return Type(kind, types) if len(types) == count else None
    close = checks.report.closest(name, (*named, *_MADE_TYPES))
    message = f"no type is called `{name}`" + (f"; did you mean `{close}`?" if close else "")
    checks.report.error(
        WRONG_WORD, message, written.span, replacing(written.span, close) if close and not args else None
    )
    return None


def check_param(checks: Checks, member: syntax.Param, name: str) -> ir.Param | None:
    """A param by its full name, None (reported) where its type or default is wrong."""
    type_ = check_type(checks, member.type)
    if type_ is None:
        return None
    default = constant(checks, member.default, type_)
    bounds = [constant(checks, bound, type_) for bound in member.range or ()]
    values = [constant(checks, value, type_) for value in member.values or ()]
    if bounds and type_ not in _RANGED:
        message = f"{with_article(type_)} has no range; list its `values`"
        checks.report.error(PARAM_BOUNDS, message, member.span)
        return None
    if default is None or None in bounds or None in values:
        return None
    low, high = (bound.value for bound in bounds if bound) if bounds else (None, None)
    listed = tuple(value.value for value in values if value) if member.values is not None else None
    param = ir.Param(
        name=name,
        type=type_,
        default=default.value,
        minimum=low,
        maximum=high,
        values=listed,
        span=member.span,
    )
    wrong = outside(param, param.default)
    if wrong:
        checks.report.error(PARAM_BOUNDS, wrong, member.default.span)
    return param


def outside(param: ir.Param, value: object) -> str | None:
    """Why a value is not one the param takes, None if it takes it. For overrides too."""
    shown = display(value, param.type)
    if param.values is not None and not any(equal(value, allowed) for allowed in param.values):
        listed = ", ".join(f"`{display(allowed, param.type)}`" for allowed in param.values)
        return f"`{shown}` is not among the values of `{param.name}`: {listed or 'there are none'}"
    low, high = param.minimum, param.maximum
    if not (isinstance(low, int | float) and isinstance(high, int | float) and isinstance(value, int | float)):
        return None
    span = f"[{display(low, param.type)}, {display(high, param.type)}]"
    if low > high:
        return f"the range {span} is empty: its ends are the wrong way round"
    return None if low <= value <= high else f"`{shown}` is outside the range {span} of `{param.name}`"


def constant(checks: Checks, expr: syntax.Expr, type_: Type) -> ir.Const | None:
    """A constant of a type; None (reported) for what is none."""
    if not names_in(expr).isdisjoint(checks.names.visible()):
        checks.report.error(OUT_OF_REACH, "a constant is wanted: it reads no let and no param", expr.span)
        return None
    checked = checks.check(expr, Context(), type_)
    if is_error(checked):
        return None
    if checked.type != type_:
        checks.report.error(WRONG_TYPE, f"{with_article(type_)} is wanted, this is {checked.type}", expr.span)
        return None
    if any(isinstance(part, _READING) for part in walk(checked)):
        checks.report.error(OUT_OF_REACH, "a constant is wanted: it reads nothing", expr.span)
        return None
    try:
        value = evaluated(checked)
    except EvaluationError as error:
        checks.report.error(WRONG_LITERAL, str(error), expr.span)
        return None
    return ir.Const(type=type_, span=expr.span, value=value)
