"""Functions of a policy or library: checked once for what they declare, and again wherever they are called.

A call means the function's body with the arguments in the place of its parameters: an argument may be a column, a
path keeps its meaning, a guard holds. An argument is evaluated where the body needs it, and once: one that is more
than a name becomes a let nobody wrote, and so does the call itself, so equal calls are one. Only what depends on
the variable of a macro around it is put in as it stands. What that could blow up has a limit.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import islice

from msgspec.structs import replace

from policyengine.language import ir, syntax
from policyengine.language.attributes import CONTAINER
from policyengine.language.checking.context import Context, Declared
from policyengine.language.checking.definitions import MOST_CALLED, MOST_CALLS, Definitions
from policyengine.language.checking.findings import Report, error_at
from policyengine.language.checking.param_checks import check_type
from policyengine.language.ir.ir_walk import children, free_locals, is_error, key, respanned, walk
from policyengine.language.schema import CLUSTER_POD, NODE, POD
from policyengine.language.syntax import Span
from policyengine.language.types import Shape, Type, holds_object
from policyengine.language.values import with_article

OBJECT_TYPES = {"pod": POD, "node": NODE, "container": CONTAINER}
"""What a function may take besides values. A `pod` is the pod being placed, or one of the cluster."""
MOST_PARTS = 1000
"""How large what one call stands for may become."""
MOST_LEVELS = 96
MOST_CALLERS = 16
"""How many functions may stand around a call, each called by the one before: each is checked inside its caller's check.
"""


def declared(context: Context, member: syntax.Function, name: str) -> Declared:
    """A function after its check; what is wrong with it is reported here, once."""
    types = [check_type(context, parameter.type, OBJECT_TYPES) for parameter in member.parameters]
    result = check_type(context, member.result, OBJECT_TYPES)
    place = replace(context, rule=name)
    locals_: list[ir.Local] = []
    for parameter, type_ in zip(member.parameters, types, strict=True):
        if not place.is_taken(parameter.name) and type_ is not None:
            local = ir.Local(type=type_, span=parameter.name.span, name=parameter.name.text)
            locals_.append(local)
            place = place.binding(local)
    size = sum(1 for _ in syntax.expression_nodes.walk(member.body))
    function = Declared(name, member, tuple(locals_), result, context.names, size)
    if result is None or len(locals_) < len(types) or not _body_holds(context, function, result):
        return replace(function, result=None)
    return function


def _body_holds(context: Context, function: Declared, result: Type) -> bool:
    """Whether the body has the type it is declared with; reported otherwise. A pod in it may be one of the cluster."""
    of_cluster = tuple(replace(local, type=_with_pods(local.type)) for local in function.parameters)
    found: list[Report] = []
    for locals_ in dict.fromkeys((function.parameters, of_cluster)):
        report = context.report.apart()
        body = _body(replace(context, report=report), function, {local.name: local for local in locals_}, result)
        if not report.diagnostics and not is_error(body):
            return True
        found.append(report)
    context.report.diagnostics += found[0].diagnostics
    return False


def _body(context: Context, function: Declared, arguments: dict[str, ir.Expr], result: Type) -> ir.Expr:
    """The body with the arguments in the place of its parameters. Words mean what they mean in its own block, full
    names what they mean in the context."""
    written = function.member.body
    inside = Context(
        report=context.report,
        names=function.names,
        definitions=context.definitions,
        checker=context.checker,
        rule=function.name,
        locals=arguments,
        prefix=f"{function.name}.",
        callers=context.callers + 1,
    )
    body = inside.check(written, result)
    if is_error(body) or fits(body.type, result):
        return body
    message = f"`{function.name}` is declared to give {with_article(result)}, and this is {body.type}"
    return inside.failed("PE1005", message, written.span)


def _with_pods(type_: Type) -> Type:
    """The type with pods of the cluster in the place of the pod being placed."""
    return CLUSTER_POD if type_ == POD else replace(type_, args=tuple(map(_with_pods, type_.args)))


def fits(actual: Type, wanted: Type) -> bool:
    """Whether a value of the one type may stand for the other."""
    return actual == wanted or _with_pods(actual) == _with_pods(wanted)


def check_function_call(context: Context, node: syntax.Call, function: Declared) -> ir.Expr:
    """The call of a function that the policy or a library declares."""
    count = len(function.member.parameters)
    if function.result is None or len(node.args) != count:
        for written in node.args:
            context.check(written)
        if len(node.args) == count:
            return error_at(node.span)
        message = f"`{function.name}` takes {count} argument{'s' * (count != 1)}, not {len(node.args)}"
        parameters = ", ".join(f"{local.name}: {local.type}" for local in function.parameters)
        return context.failed("PE1004", f"{message}: `{function.name}({parameters})`", node.span)
    args: list[ir.Expr] = []
    for written, local in zip(node.args, function.parameters, strict=True):
        arg = context.check(written, local.type)
        if not is_error(arg) and not fits(arg.type, local.type):
            message = f"`{local.name}` of `{function.name}` is {with_article(local.type)}, this is {arg.type}"
            arg = context.failed("PE1004", message, arg.span)
        args.append(arg)
    return error_at(node.span) if is_error(*args) else _called(context, node.span, function, args, function.result)


def _called(context: Context, span: Span, function: Declared, args: list[ir.Expr], result: Type) -> ir.Expr:
    definitions, label = context.definitions, f"{function.name}(…)"
    passed = [_shared(definitions, arg, label) for arg in args]
    call: Hashable = (function.name, *map(key, passed))
    known = definitions.results.get(call)
    if known is not None:
        return replace(known, span=span)
    definitions.calls += 1
    definitions.called += function.size
    if definitions.calls > MOST_CALLS:
        message = f"functions are called more than {MOST_CALLS:,} times, calls in functions counted each time"
        return context.failed("PE2019", message, span)
    if definitions.called > MOST_CALLED:
        message = f"all calls of functions together stand for more than {MOST_CALLED:,} parts, calls in functions too"
        return context.failed("PE2019", f"{message}; give what is repeated a name with `let`", span)
    if context.callers >= MOST_CALLERS:
        message = f"functions call each other more than {MOST_CALLERS} deep; put the bodies of some of them together"
        return context.failed("PE2019", message, span)
    report = Report(context.report.file)
    arguments = {local.name: arg for local, arg in zip(function.parameters, passed, strict=True)}
    body = _body(replace(context, report=report), function, arguments, result)
    for finding in report.diagnostics[:1]:
        return context.failed(finding.code, f"in `{function.name}`: {finding.message}", span)
    if is_error(body):
        return error_at(span)
    if _is_large(body):
        message = f"what this call of `{function.name}` stands for is too large: give parts of it names with `let`"
        return context.failed("PE2019", message, span)
    definitions.results[call] = body = _shared(definitions, respanned(body, span), label)
    return body


def _shared(definitions: Definitions, expr: ir.Expr, label: str) -> ir.Expr:
    """The expression, under a name where it is more than one; not what depends on the variable of a macro, or on the
    victim."""
    if isinstance(expr, ir.Const | ir.Field | ir.LetRef | ir.ParamRef | ir.Local):
        return expr
    is_for_each = expr.shape is Shape.POD or free_locals(expr)
    return expr if holds_object(expr.type) or is_for_each else definitions.unnamed(expr, label)


def _is_large(expr: ir.Expr) -> bool:
    if len(list(islice(walk(expr), MOST_PARTS + 1))) > MOST_PARTS:
        return True
    level, below = 0, [expr]
    while below:
        level, below = level + 1, [part for one in below for part in children(one)]
    return level > MOST_LEVELS
