"""Calls and operators: of the function table, of the policy's own functions, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from policyengine.language import ir, syntax
from policyengine.language.checking.check_codes import (
    NO_OVERLOAD,
    NOT_A_LITERAL,
    NOT_IN_POLICIES,
    UNKNOWN_FUNCTION,
    UNKNOWN_TYPE,
    WRONG_LITERAL,
)
from policyengine.language.checking.cluster_aggregates import check_cost, check_method
from policyengine.language.checking.context import Checks, Context, error_at, wrapped
from policyengine.language.checking.field_access import library_of
from policyengine.language.checking.function_calls import check_function_call
from policyengine.language.checking.literal_types import is_flexible
from policyengine.language.checking.overloads import Choice, overload_for
from policyengine.language.functions import FUNCTIONS, Function, Style
from policyengine.language.functions.moments import zone
from policyengine.language.functions.table import is_open, substitute, unify
from policyengine.language.functions.text import compiled
from policyengine.language.functions.type_conversions import DIMENSIONS
from policyengine.language.ir.ir_walk import extent, is_error
from policyengine.language.schema import METHODS, attribute
from policyengine.language.syntax import Span
from policyengine.language.types import DOUBLE, INT, STRING, Kind, Reach, Shape, Type
from policyengine.language.values import EvaluationError

_SHOWN_SIGNATURES = 4


def check_call(checks: Checks, node: syntax.Call, context: Context, expected: Type | None) -> ir.Expr:
    """`f(x)` or `x.f(y)` of the function table, or `f(x)` and `safe.f(x)` of the policy's own; no macros."""
    name, target = node.function, node.target
    library = library_of(checks, target, context)
    own = checks.names.function(f"{library}.{name}" if library else name) if library or target is None else None
    if own is not None:
        return check_function_call(checks, node, own, context)
    if library is not None:
        return _not_in_library(checks, node, library, context)
    if isinstance(target, syntax.Name) and target.name == "optional" and "optional" not in context.locals:
        name, target = f"optional.{name}", None
    if name == "random" and target is None:
        return _random(checks, node, context)
    if name == "toQuantity" and target is None:
        return _to_quantity(checks, node, context)
    function = FUNCTIONS.get(name)
    if function is None or function.style is Style.OPERATOR or "/" in name:
        return _unknown(checks, node, name, context)
    args = node.args if target is None else (target, *node.args)
    if (function.style is Style.METHOD) != (target is not None) and function.style is not Style.BOTH:
        right = f"x.{name}(…)" if function.style is Style.METHOD else f"{name}(…)"
        return _checked_all(checks, args, context, UNKNOWN_FUNCTION, f"`{name}` is written `{right}`", node)
    if all(overload.dynamic for overload in function.overloads):
        if name == "value":
            message = f"a policy has no `.{name}()`; write `.orValue(…)`"
        elif name == "type":
            message = "a policy has no `type()`: its types are known when it loads"
        else:
            message = f"a policy has no `{name}()`: it is for device selectors; write quantities as `2Gi`"
        return _checked_all(checks, args, context, NOT_IN_POLICIES, message, node)
    result = resolve(checks, function, args, node.span, context, expected)
    return _literals_checked(checks, function, result) if function.literals else result


def _not_in_library(checks: Checks, node: syntax.Call, library: str, context: Context) -> ir.Expr:
    for arg in node.args:
        checks.check(arg, context)
    return checks.names.not_in_library(library, node.function, node.function_span)


def _checked_all(
    checks: Checks, args: Sequence[syntax.Expr], context: Context, code: str, message: str, node: syntax.Call
) -> ir.Expr:
    """Reports the call; its arguments are looked at all the same."""
    for arg in args:
        checks.check(arg, context)
    return checks.report.failed(code, message, node.function_span)


def _unknown(checks: Checks, node: syntax.Call, name: str, context: Context) -> ir.Expr:
    args = node.args if node.target is None or name.startswith("optional.") else (node.target, *node.args)
    if node.target is not None and name in METHODS:
        found = check_method(checks, node, context)
        if found is not None:
            return found
    if node.target is None and name in checks.names.visible():
        return _no_function(checks, args, context, name, node)
    known = [row.name for row in FUNCTIONS.values() if row.style is not Style.OPERATOR and "/" not in row.name]
    own = [word for word in checks.names.visible() if checks.names.function(word) is not None]
    close = checks.report.closest(name, [*known, *own, "toQuantity", "has", "all", "exists", "filter", "map", "optMap"])
    hint = f"; did you mean `{close}`?" if close else ""
    return _checked_all(checks, args, context, UNKNOWN_FUNCTION, f"no function is called `{name}`{hint}", node)


def _no_function(
    checks: Checks, args: Sequence[syntax.Expr], context: Context, name: str, node: syntax.Call
) -> ir.Expr:
    """A name of the block that is no function; silent where it was reported."""
    if checks.names.let(name) is not None or checks.names.param(name) is not None:
        return _checked_all(checks, args, context, UNKNOWN_FUNCTION, f"`{name}` is no function", node)
    for arg in args:
        checks.check(arg, context)
    return error_at(node.span)


def resolve(
    checks: Checks,
    function: Function,
    args: Sequence[syntax.Expr],
    span: Span,
    context: Context,
    expected: Type | None,
) -> ir.Expr:
    """The call of the overload that fits: first by arguments that have a type, then by what literals may become."""
    typed = [None if is_flexible(arg) else checks.check(arg, context) for arg in args]
    if is_error(*[arg for arg in typed if arg is not None]):
        for at, arg in enumerate(typed):
            if arg is None:
                checks.check(args[at], context)
        return error_at(span)
    best = overload_for(function, args, typed, expected)
    if best is None:
        return _no_overload(checks, function, args, typed, span, context, expected)
    filled = [
        checks.check(written, context, wanted) if checked is None else checked
        for written, checked, wanted in zip(args, typed, best.types, strict=True)
    ]
    return _call(checks, function, best, filled, span, expected)


def _call(
    checks: Checks, function: Function, best: Choice, args: list[ir.Expr], span: Span, expected: Type | None
) -> ir.Expr:
    if is_error(*args):
        return error_at(span)
    result = best.result
    if best.is_open:
        variables: dict[str, Type] = {}
        if expected is None or not unify(result, expected, variables):
            return checks.report.failed(UNKNOWN_TYPE, "nothing here says what the optional holds", span)
        result = substitute(result, variables)
    values = [arg.value for arg in args if isinstance(arg, ir.Const)]
    if args and len(values) == len(args):
        try:
            best.overload.implementation(*values)
        except EvaluationError as error:
            return checks.report.failed(WRONG_LITERAL, str(error), span)
    call = ir.Call(type=result, span=span, **extent(*args), function=function.name, args=tuple(args))
    return check_cost(checks, call) if function.name == "@in" else call


# --- what is wrong ---------------------------------------------------------------------------------------


def symbol(function: Function) -> str:
    """A function as it is written."""
    return function.name.strip("_@") if function.style is Style.OPERATOR else function.name


def _no_overload(
    checks: Checks,
    function: Function,
    args: Sequence[syntax.Expr],
    typed: Sequence[ir.Expr | None],
    span: Span,
    context: Context,
    expected: Type | None,
) -> ir.Expr:
    done = [arg or checks.check(args[at], context, None) for at, arg in enumerate(typed)]
    if is_error(*done):
        return error_at(span)
    name, types = symbol(function), [arg.type for arg in done]
    message = f"`{name}` does not take {_and(types)}"
    if {INT, DOUBLE} <= set(types) and len(types) == 2:
        number = done[types.index(INT)]
        fix = wrapped(number.span, "double(", ")", "write `double(…)`")
        return checks.report.failed(NO_OVERLOAD, f"{message}; write `double(…)` around the int", span, fix)
    optional = next((arg for arg in done if arg.type.kind is Kind.OPTIONAL), None)
    if optional is not None and name not in ("orValue", "or"):
        hint = "; an optional may be empty: add `.orValue(…)`"
        return checks.report.failed(NO_OVERLOAD, message + hint, optional.span)
    return checks.report.failed(NO_OVERLOAD, message + _hint(function, types), span)


def _hint(function: Function, types: Sequence[Type]) -> str:
    if function.style is not Style.OPERATOR:
        return f"; it takes {_signatures(function, types)}"
    if len(types) == 2 and all(type_.is_quantity for type_ in types):
        if types[0] == types[1]:
            return "; a quantity is scaled by a number"
        return "; both sides need one dimension"
    if any(type_.is_quantity for type_ in types) and INT in types and function.name != "_%_":
        return "; an int has no dimension: scale a quantity, as in `n * 1Gi`"
    if any(type_.kind is Kind.OBJECT for type_ in types):
        return "; compare its fields"
    return ""


def _signatures(function: Function, types: Sequence[Type]) -> str:
    """What the function takes, the signatures that begin as the call does, else those of as many arguments, first."""
    all_ = [overload.parameters for overload in function.overloads if not overload.dynamic]
    begun = [parameters for parameters in all_ if types and parameters and unify(parameters[0], types[0], {})]
    as_many = [parameters for parameters in begun or all_ if len(parameters) == len(types)]
    shown = list(dict.fromkeys(_and(parameters, types) for parameters in as_many or begun or all_))
    return "; ".join(shown[:_SHOWN_SIGNATURES]) + ("; …" if len(shown) > _SHOWN_SIGNATURES else "")


def _and(types: Sequence[Type], actual: Sequence[Type] = ()) -> str:
    """`int`, `int and double`, `int, int and int`, in words. The actual types tell what variables stand for."""
    variables: dict[str, Type] = {}
    for parameter, type_ in zip(types, actual, strict=False):
        unify(parameter, type_, variables)
    known = [substitute(type_, variables) for type_ in types]
    words = [("anything" if is_open(type_) and not type_.args else str(type_)) for type_ in known]
    if len(words) < 2:
        return words[0] if words else "nothing"
    return f"{', '.join(words[:-1])} and {words[-1]}"


# --- functions with arguments of their own kind --------------------------------------------------------


def _literals_checked(checks: Checks, function: Function, call: ir.Expr) -> ir.Expr:
    """Patterns and zones are literals, and are tried when the policy loads."""
    if not isinstance(call, ir.Call):
        return call
    attempt: Callable[[str], object] = compiled if function.name == "matches" else zone
    for at in function.literals:
        arg = call.args[at] if at < len(call.args) else None
        if arg is None:
            continue
        if not isinstance(arg, ir.Const) or not isinstance(arg.value, str):
            what = "pattern" if function.name == "matches" else "time zone"
            return checks.report.failed(NOT_A_LITERAL, f"the {what} of `{function.name}` is a literal", arg.span)
        try:
            attempt(arg.value)
        except EvaluationError as error:
            return checks.report.failed(WRONG_LITERAL, str(error), arg.span)
    return call


def _to_quantity(checks: Checks, node: syntax.Call, context: Context) -> ir.Expr:
    """`toQuantity(s, cpu)`: the second argument names a dimension."""
    dimension = node.args[1] if len(node.args) == 2 else None
    if not isinstance(dimension, syntax.Name) or dimension.name not in DIMENSIONS:
        message = "`toQuantity` takes a string and a dimension: `toQuantity(s, cpu)`; there are cpu, memory, storage"
        return checks.report.failed(NO_OVERLOAD, message, node.span)
    return resolve(checks, FUNCTIONS[f"toQuantity/{dimension.name}"], node.args[:1], node.span, context, None)


def _random(checks: Checks, node: syntax.Call, context: Context) -> ir.Expr:
    """`random()`, `random("b")`: the call names what its numbers follow from."""
    stream = checks.check(node.args[0], context) if node.args else ir.Const(type=STRING, span=node.span, value="")
    if is_error(stream):
        return error_at(node.span)
    if len(node.args) > 1 or not isinstance(stream, ir.Const) or stream.type != STRING:
        return checks.report.failed(NOT_A_LITERAL, 'a stream of `random` is a literal: `random("b")`', node.span)
    args = (
        _path(("pod", "uid"), node.span),
        _path(("node", "name"), node.span),
        ir.Const(type=STRING, span=node.span, value=context.rule),
        stream,
    )
    return ir.Call(type=DOUBLE, span=node.span, shape=Shape.NODE, reach=Reach.NODE_FIXED, function="random", args=args)


def _path(path: tuple[str, ...], span: Span) -> ir.Field:
    known = attribute(path)
    assert known is not None
    return ir.Field(type=known.type, span=span, shape=known.shape, reach=known.reach, path=path)
