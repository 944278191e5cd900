"""Functions of a policy or library: checked once for what they declare, and again wherever they are called.

A call means the function's body with the arguments in the place of its parameters: an argument may be a column, a
path keeps its meaning, a guard holds. An argument is evaluated where the body needs it, and once: one that is more
than a name becomes a let nobody wrote, and so does the call itself, so equal calls are one. Only what depends on
the variable of a macro around it is put in as it stands. What that could blow up has a limit.
"""

from __future__ import annotations

from collections.abc import Hashable, Set
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from policyengine.language import ir, syntax
from policyengine.language.checking.check_codes import NO_OVERLOAD, OVER_BUDGET, WRONG_TYPE
from policyengine.language.checking.context import Checks, Context, Declared, Names, Report, error_at, taken
from policyengine.language.checking.param_checks import check_type
from policyengine.language.checking.resolved_names import MOST_CALLS, Definitions
from policyengine.language.ir.ir_walk import children, free_locals, is_error, key, respanned, walk
from policyengine.language.schema import CLUSTER_POD, CONTAINER, NODE, POD
from policyengine.language.syntax import Span
from policyengine.language.types import Kind, Type
from policyengine.language.values import with_article

OBJECT_TYPES = {"pod": POD, "node": NODE, "container": CONTAINER}
"""What a function may take besides values. A `pod` is the pod being placed, or one of the cluster."""
MOST_PARTS = 1000
"""How large what one call stands for may become."""
MOST_LEVELS = 96


def declared(checks: Checks, member: syntax.Function, name: str) -> Declared:
    """A function after its check; what is wrong with it is reported here, once."""
    types = [check_type(checks, parameter.type, OBJECT_TYPES) for parameter in member.parameters]
    result = check_type(checks, member.result, OBJECT_TYPES)
    places = Context(rule=name)
    locals_: list[ir.Local] = []
    good = True
    for parameter, type_ in zip(member.parameters, types, strict=True):
        if taken(checks, parameter.name, places) or type_ is None:
            good = False
            continue
        local = ir.Local(type=type_, span=parameter.name.span, name=parameter.name.text)
        locals_.append(local)
        places = places.binding(local)
    function = Declared(name, member, tuple(locals_), result, checks.names)
    if not good or result is None:
        return replace(function, result=None)
    return function if _body_holds(checks, function, result) else replace(function, result=None)


def _body_holds(checks: Checks, function: Declared, result: Type) -> bool:
    """Whether the body has the type it is declared with; reported otherwise. A pod in it may be one of the cluster."""
    trials = [function.parameters]
    if any(_with_pods(local.type) != local.type for local in function.parameters):
        trials.append(tuple(replace(local, type=_with_pods(local.type)) for local in function.parameters))
    found: list[Report] = []
    for locals_ in trials:
        report = checks.report.apart()
        _body(checks.on(report, checks.names), function, {local.name: local for local in locals_}, result)
        if not report.diagnostics:
            return True
        found.append(report)
    checks.report.diagnostics += found[0].diagnostics
    return False


def _body(checks: Checks, function: Declared, arguments: dict[str, ir.Expr], result: Type) -> ir.Expr:
    written = function.member.body
    context = Context(locals=arguments, rule=function.name, prefix=f"{function.name}.")
    body = checks.check(written, context, result)
    if is_error(body) or fits(body.type, result):
        return body
    message = f"`{function.name}` is declared to give {with_article(result)}, and this is {body.type}"
    return checks.report.failed(WRONG_TYPE, message, written.span)


def _with_pods(type_: Type) -> Type:
    """The type with pods of the cluster in the place of the pod being placed."""
    return CLUSTER_POD if type_ == POD else replace(type_, args=tuple(map(_with_pods, type_.args)))


def fits(actual: Type, wanted: Type) -> bool:
    """Whether a value of the one type may stand for the other."""
    return actual == wanted or _with_pods(actual) == _with_pods(wanted)


# --- calls -----------------------------------------------------------------------------------------------


def check_function_call(checks: Checks, node: syntax.Call, function: Declared, context: Context) -> ir.Expr:
    """The call of a function that the policy or a library declares."""
    parameters = function.parameters
    if len(node.args) != len(function.member.parameters):
        for written in node.args:
            checks.check(written, context)
        count = len(function.member.parameters)
        message = f"`{function.name}` takes {count} argument{'s' * (count != 1)}, not {len(node.args)}"
        return checks.report.failed(NO_OVERLOAD, f"{message}: `{function.signature}`", node.span)
    if function.result is None:
        for written in node.args:
            checks.check(written, context)
        return error_at(node.span)
    args = [checks.check(written, context, local.type) for written, local in zip(node.args, parameters, strict=True)]
    wrong = False
    for arg, local in zip(args, parameters, strict=True):
        if not is_error(arg) and not fits(arg.type, local.type):
            message = f"`{local.name}` of `{function.name}` is {with_article(local.type)}, this is {arg.type}"
            checks.report.error(NO_OVERLOAD, message, arg.span)
            wrong = True
    if wrong or is_error(*args):
        return error_at(node.span)
    return _called(checks, node.span, function, args, function.result)


def _called(checks: Checks, span: Span, function: Declared, args: list[ir.Expr], result: Type) -> ir.Expr:
    definitions = checks.names.definitions
    passed = [_passed(definitions, arg, function) for arg in args]
    call: Hashable = (function.name, *map(key, passed))
    known = definitions.result(call)
    if known is not None:
        return replace(known, span=span)
    definitions.calls += 1
    if definitions.calls > MOST_CALLS:
        message = f"functions are called more than {MOST_CALLS:,} times, calls in functions counted each time"
        return checks.report.failed(OVER_BUDGET, message, span)
    report = Report(checks.report.file)
    arguments = {local.name: arg for local, arg in zip(function.parameters, passed, strict=True)}
    body = _body(checks.on(report, Called(function.names, definitions)), function, arguments, result)
    for finding in report.diagnostics[:1]:
        return checks.report.failed(finding.code, f"in `{function.name}`: {finding.message}", span)
    if is_error(body):
        return error_at(span)
    if _is_large(body):
        message = f"what this call of `{function.name}` stands for is too large: give parts of it names with `let`"
        return checks.report.failed(OVER_BUDGET, message, span)
    body = respanned(body, span)
    if not _is_name(body) and not _holds_object(body.type) and not free_locals(body):
        body = definitions.once(body, f"{function.name}(…)")
    definitions.remember(call, body)
    return body


def _passed(definitions: Definitions, arg: ir.Expr, function: Declared) -> ir.Expr:
    """The argument, under a name where it is more than one."""
    if _is_name(arg) or _holds_object(arg.type) or free_locals(arg):
        return arg
    return definitions.once(arg, f"{function.name}(…)")


def _is_name(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Const | ir.Field | ir.LetRef | ir.ParamRef | ir.Local)


def _holds_object(type_: Type) -> bool:
    return type_.kind is Kind.OBJECT or any(map(_holds_object, type_.args))


def _is_large(expr: ir.Expr) -> bool:
    if len(list(islice(walk(expr), MOST_PARTS + 1))) > MOST_PARTS:
        return True
    level, below = 0, [expr]
    while below:
        level, below = level + 1, [part for one in below for part in children(one)]
    return level > MOST_LEVELS


class Called(Struct, frozen=True):
    """The names of a function's body where it is called: words mean what they mean in its own block, and full names
    what they mean to the caller. Implements `context.Names`."""

    own: Names
    definitions: Definitions

    def let(self, name: str) -> ir.Let | None:
        """A let by the name that is written."""
        return self.own.let(name)

    def param(self, name: str) -> ir.Param | None:
        """A param by the name that is written."""
        return self.own.param(name)

    def function(self, name: str) -> Declared | None:
        """A function by the name that is written."""
        return self.own.function(name)

    def is_library(self, name: str) -> bool:
        """Whether a word is the name of a library."""
        return self.own.is_library(name)

    def not_in_library(self, library: str, name: str, span: Span) -> ir.Expr:
        """Reports what an imported library does not have."""
        return self.own.not_in_library(library, name, span)

    def visible(self) -> Set[str]:
        """The words that mean something."""
        return self.own.visible()

    def let_value(self, name: str) -> ir.Expr | None:
        """The value of a let by its full name."""
        return self.definitions.let_value(name)

    def let_facts(self, name: str, truth: bool) -> frozenset[tuple[str, Hashable, Hashable]]:
        """What is there wherever the let is `truth`."""
        return self.definitions.let_facts(name, truth)

    def reads(self, expr: ir.Expr) -> frozenset[tuple[str, ...]]:
        """The paths an expression reads."""
        return self.definitions.reads(expr)
