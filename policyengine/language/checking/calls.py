"""Calls and operators: of the function table, of the policy's own functions, and what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import chain

from policyengine.language import ir, syntax
from policyengine.language.checking import foreign_words
from policyengine.language.checking.cluster_aggregates import check_cost, check_method, field_at
from policyengine.language.checking.context import Context
from policyengine.language.checking.field_access import library_of, not_in_library
from policyengine.language.checking.findings import error_at
from policyengine.language.checking.function_calls import check_function_call
from policyengine.language.checking.literal_types import is_flexible
from policyengine.language.checking.overloads import EQUALITIES, overload_for
from policyengine.language.diagnostics import replacing, wrapped
from policyengine.language.functions import FUNCTIONS, Function, Style
from policyengine.language.functions.moments import zone
from policyengine.language.functions.table import is_open, substitute, unify
from policyengine.language.functions.text import compiled
from policyengine.language.functions.type_conversions import DIMENSIONS
from policyengine.language.ir.ir_walk import extent, free_locals, is_error
from policyengine.language.schema import HISTORY, METHODS, NAMED_GROUPS, PLACED, POD_GROUP
from policyengine.language.syntax import Span
from policyengine.language.types import (
    BOOL,
    DOUBLE,
    DURATION,
    INT,
    STRING,
    Kind,
    Reach,
    Shape,
    Type,
    list_of,
    optional_of,
)
from policyengine.language.values import EvaluationError

_SHOWN_SIGNATURES = 4
_DYNAMIC = {
    "value": "a policy has no `.value()`; write `.orValue(…)`",
    "type": "a policy has no `type()`: its types are known when it loads",
}
"""What is said of functions that only `policyengine.evaluate` has."""


def check_call(context: Context, node: syntax.Call, expected: Type | None) -> ir.Expr:
    """`f(x)` or `x.f(y)` of the function table, or `f(x)` and `safe.f(x)` of the policy's own; no macros."""
    name, target = node.function, node.target
    library = library_of(context, target)
    own = context.names.function(f"{library}.{name}" if library else name) if library or target is None else None
    if own is not None:
        return check_function_call(context, node, own)
    if library is not None:
        check_all(context, node.args)
        return not_in_library(context, library, name, node.function_span)
    if isinstance(target, syntax.Name) and target.name == "optional" and "optional" not in context.locals:
        name, target = f"optional.{name}", None
    if name in _OF_THEIR_OWN and target is None:
        return _OF_THEIR_OWN[name](context, node)
    args = node.args if target is None else (target, *node.args)
    function = FUNCTIONS.get(name)
    if function is None or function.style is Style.OPERATOR or "/" in name:
        return _unknown(context, node, name, args)
    misuse = _misuse(function, target is not None)
    if misuse is not None:
        check_all(context, args)
        return context.failed(*misuse, node.function_span)
    result = resolve(context, function, args, node.span, expected)
    return _literals_checked(context, function, result) if function.literals else result


def check_all(context: Context, args: Sequence[syntax.Expr]) -> None:
    """Looks at the arguments of a call that means nothing, for what is wrong with them."""
    for arg in args:
        context.check(arg)


def _misuse(function: Function, is_method: bool) -> tuple[str, str] | None:
    """Why a function may not be called like this: a code and a message; None if it may."""
    name = function.name
    if function.style is not Style.BOTH and (function.style is Style.METHOD) != is_method:
        right = f"x.{name}(…)" if function.style is Style.METHOD else f"{name}(…)"
        return "PE1003", f"`{name}` is written `{right}`"
    if function.is_dynamic:
        other = f"a policy has no `{name}()`: it is for device selectors; write quantities as `2Gi`"
        return "PE1008", _DYNAMIC.get(name, other)
    return None


def _unknown(context: Context, node: syntax.Call, name: str, args: Sequence[syntax.Expr]) -> ir.Expr:
    if node.target is not None and name in METHODS:
        found = check_method(context, node)
        if found is not None:
            return found
    remedy = foreign_words.function(name)
    check_all(context, args[:1] if "(x, …)" in remedy else args)
    names = context.names
    if node.target is None and name in names.visible:
        if names.let(name) is None and names.param(name) is None:
            return error_at(node.span)  # it was reported
        return context.failed("PE1003", f"`{name}` is no function", node.function_span)
    built_in = (row.name for row in FUNCTIONS.values() if row.style is not Style.OPERATOR and "/" not in row.name)
    own = (*names.functions, *(names.outer.functions if names.outer is not None else ()))
    known = chain(built_in, own, ("toQuantity", "has", "all", "exists", "filter", "map", "optMap"))
    message = f"no function is called `{name}`"
    if remedy:
        fix = replacing(node.function_span, "!", safe=True) if name == "not" and len(args) == 1 else None
        return context.failed("PE1003", message + remedy, node.function_span, fix)
    return context.report.unknown("PE1003", message, node.function_span, name, known, fix=None)


def resolve(
    context: Context, function: Function, args: Sequence[syntax.Expr], span: Span, expected: Type | None
) -> ir.Expr:
    """The call of the overload that fits: first by arguments that have a type, then by what literals may become."""
    typed = list[ir.Expr | None]()
    for arg in args:
        meant = _meant(function, arg, typed, expected)
        typed.append(None if is_flexible(arg) else context.check(arg, meant))
    wrong = is_error(*(arg for arg in typed if arg is not None))
    best = None if wrong else overload_for(function, args, typed, expected)
    wanted = best.types if best is not None else (None,) * len(args)
    done = [
        context.check(written, type_) if checked is None else checked
        for written, checked, type_ in zip(args, typed, wanted, strict=True)
    ]
    if is_error(*done):
        return error_at(span)
    if best is None:
        return _no_overload(context, function, done, span)
    result = best.result
    if is_open(result):
        variables: dict[str, Type] = {}
        if expected is None or not unify(result, expected, variables):
            return context.failed("PE1015", "nothing here says what the optional holds", span)
        result = substitute(result, variables)
    values = [arg.value for arg in done if isinstance(arg, ir.Const)]
    if args and len(values) == len(args):
        try:
            best.overload.implementation(*values)
        except EvaluationError as error:
            return context.failed("PE1006", str(error), span)
    call = ir.Call(type=result, span=span, **extent(*done), function=function.name, args=tuple(done))
    return check_cost(context, call) if function.name == "@in" else call


def _meant(
    function: Function, arg: syntax.Expr, before: Sequence[ir.Expr | None], expected: Type | None
) -> Type | None:
    """What an argument is, that no literal decides: a value looked up in a map's literal, a word beside text."""
    if not before:
        return expected if function.name == "orValue" and isinstance(arg, syntax.Index) else None
    if function.name not in EQUALITIES or before[0] is None or before[0].type != STRING:
        return None
    if isinstance(arg, syntax.ListLiteral):
        return list_of(STRING)
    return STRING if isinstance(arg, syntax.Name) else None


# --- what is wrong ---------------------------------------------------------------------------------------


def _no_overload(context: Context, function: Function, args: Sequence[ir.Expr], span: Span) -> ir.Expr:
    name = function.name.strip("_@") if function.style is Style.OPERATOR else function.name
    types = [arg.type for arg in args]
    message = f"`{name}` does not take {_and(types)}"
    if {INT, DOUBLE} <= set(types) and len(types) == 2:
        fix = wrapped(args[types.index(INT)].span, "double(", ")")
        return context.failed("PE1004", f"{message}; write `double(…)` around the int", span, fix)
    literal = _misquoted(args) if len(args) == 2 else None
    if literal is not None:
        place, instead, why = literal
        return context.failed("PE1004", f"{message}; {why}: `{instead}`", place.span, replacing(place.span, instead))
    optional = next((arg for arg in args if arg.type.kind is Kind.OPTIONAL), None)
    if optional is not None and name not in ("orValue", "or"):
        hint = "; an optional may be empty: add `.orValue(…)`"
        return context.failed("PE1004", message + hint, optional.span)
    return context.failed("PE1004", message + _hint(function, types), span)


_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([KMGTPE]i|[mkMGTP]|ms|s|min|h|d)?")


def _misquoted(args: Sequence[ir.Expr]) -> tuple[ir.Expr, str, str] | None:
    """A literal in quotes beside what is no text, or without them beside text; what to write instead, and why."""
    for arg, other in (args, args[::-1]):
        value = arg.value if isinstance(arg, ir.Const) else None
        if (
            other.type == STRING
            and isinstance(value, int)
            and not isinstance(other, ir.Const)
            and arg.type in (INT, BOOL)
        ):
            return arg, f'"{str(value).lower()}"', "text stands in quotes"
        if not isinstance(value, str) or other.type == STRING:
            continue
        if other.type == BOOL and value in ("true", "false"):
            return arg, value, "write it without quotes"
        if (other.type.is_number or other.type.is_quantity or other.type == DURATION) and _NUMBER.fullmatch(value):
            is_minutes = other.type == DURATION and value.endswith("m")
            return arg, f"{value}in" if is_minutes else value, "a number stands without quotes"
    return None


_ORDERING = frozenset({"_<_", "_<=_", "_>_", "_>=_"})


def _operator_hint(function: Function, types: Sequence[Type]) -> str:
    """What else an operator was meant to be: a chain, a negation of more, a list asked, a number in a text."""
    kinds = [type_.kind for type_ in types]
    if function.name in _ORDERING and kinds[0] is Kind.BOOL:
        return "; two comparisons are written `a < b && b < c`"
    if function.name == "!_" and kinds[0] is Kind.STRING:
        return "; `!` binds tighter than `==` and `in`: write `!(a in b)`"
    if function.name in ("_==_", "_!=_") and kinds[1] is Kind.LIST and types[1].args[0] == types[0]:
        return "; whether a list has a value is asked by `in`"
    if function.name == "_+_" and Kind.STRING in kinds:
        return "; write `string(…)` around what is no text"
    return ""


def _hint(function: Function, types: Sequence[Type]) -> str:
    if function.name == "contains" and types[0].kind in (Kind.LIST, Kind.MAP):
        return "; write `x in y`"
    if function.name == "ratio" and len(types) == 1:
        return "; write `ratio(a, b)`"
    if function.name == "orValue" and Kind.STRING in {arg.kind for arg in types[0].args} and types[-1].is_number:
        return "; text becomes a number by `toInt(…).orValue(0)`"
    if function.name == "or":
        return "; a default is given by `.orValue(…)`"
    if function.style is not Style.OPERATOR:
        return f"; it takes {_signatures(function, types)}"
    if hint := _operator_hint(function, types):
        return hint
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


def _literals_checked(context: Context, function: Function, call: ir.Expr) -> ir.Expr:
    """Patterns and zones are literals, and are tried when the policy loads."""
    if is_error(call):
        return call
    assert isinstance(call, ir.Call)
    attempt: Callable[[str], object] = compiled if function.name == "matches" else zone
    for at in function.literals:
        if at >= len(call.args):
            continue
        arg = call.args[at]
        if not isinstance(arg, ir.Const) or not isinstance(arg.value, str):
            what = "pattern" if function.name == "matches" else "time zone"
            return context.failed("PE1012", f"the {what} of `{function.name}` is a literal", arg.span)
        try:
            attempt(arg.value)
        except EvaluationError as error:
            return context.failed("PE1006", str(error), arg.span)
    return call


def _to_quantity(context: Context, node: syntax.Call) -> ir.Expr:
    """`toQuantity(s, cpu)`: the second argument names a dimension."""
    dimension = node.args[1] if len(node.args) == 2 else None
    if not isinstance(dimension, syntax.Name) or dimension.name not in DIMENSIONS:
        message = "`toQuantity` takes a string and a dimension: `toQuantity(s, cpu)`; there are cpu, memory, storage"
        return context.failed("PE1004", message, node.span)
    return resolve(context, FUNCTIONS[f"toQuantity/{dimension.name}"], node.args[:1], node.span, None)


def _random(context: Context, node: syntax.Call) -> ir.Expr:
    """`random()`, `random("b")`: the call names what its numbers follow from."""
    stream = context.check(node.args[0]) if node.args else ir.Const(type=STRING, span=node.span, value="")
    if is_error(stream):
        return error_at(node.span)
    if len(node.args) > 1 or not isinstance(stream, ir.Const) or stream.type != STRING:
        return context.failed("PE1012", 'a stream of `random` is a literal: `random("b")`', node.span)
    args = (
        field_at(("pod", "uid"), node.span),
        field_at(("node", "name"), node.span),
        ir.Const(type=STRING, span=node.span, value=context.rule),
        stream,
    )
    return ir.Call(type=DOUBLE, span=node.span, shape=Shape.NODE, reach=Reach.NODE_FIXED, function="random", args=args)


def _history(context: Context, node: syntax.Call) -> ir.Expr:
    """`history(key)`, `history(key, smoothing)`: the call names whose history it is, and by what it is learnt."""
    args = [context.check(arg, type_) for arg, type_ in zip(node.args, (STRING, DOUBLE), strict=False)]
    if is_error(*args):
        return error_at(node.span)
    types = [arg.type for arg in args]
    if len(node.args) != len(args) or types not in ([STRING], [STRING, DOUBLE]):
        message = '`history` takes the key of a label, "" for all pods, and at will a smoothing: `history("app", 0.01)`'
        return context.failed("PE1004", message, node.span)
    for arg in args:
        if arg.reach is not Reach.CONSTANT or free_locals(arg):
            return context.failed("PE1012", "what `history` takes is a literal or a param", arg.span)
    smoothing = args[1] if len(args) == 2 else ir.Const(type=DOUBLE, span=node.span, value=0.0)
    if isinstance(smoothing, ir.Const) and not 0 <= float(str(smoothing.value)) <= 1:
        return context.failed("PE1006", f"a smoothing is from 0 to 1, not {smoothing.value}", smoothing.span)
    placed = ir.Field(type=HISTORY, span=node.span, reach=Reach.CLUSTER, path=PLACED)
    whole = (placed, field_at(("pod", "labels"), node.span), args[0], smoothing)
    return ir.Call(type=HISTORY, span=node.span, **extent(*whole), function="history", args=whole)


def _pod_group(context: Context, node: syntax.Call) -> ir.Expr:
    """`podGroup(name)`: the call names the groups that there are, and the namespace that the group is in."""
    args = [context.check(arg, STRING) for arg in node.args]
    if is_error(*args):
        return error_at(node.span)
    if [arg.type for arg in args] != [STRING]:
        message = '`podGroup` takes the name of a PodGroup: `podGroup("a")`'
        is_empty = len(args) == 1 and args[0].type.kind is Kind.OPTIONAL
        hint = "; an optional may be empty: add `.orValue(…)`" if is_empty else ""
        return context.failed("PE1004", message + hint, node.span)
    groups = ir.Field(type=POD_GROUP, span=node.span, reach=Reach.CLUSTER, path=NAMED_GROUPS)
    whole = (groups, field_at(("pod", "namespace"), node.span), *args)
    return ir.Call(type=optional_of(POD_GROUP), span=node.span, **extent(*whole), function="podGroup", args=whole)


_OF_THEIR_OWN = {"random": _random, "history": _history, "podGroup": _pod_group, "toQuantity": _to_quantity}
"""Functions with arguments of their own kind."""
