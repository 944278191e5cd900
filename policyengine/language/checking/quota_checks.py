"""The quotas of a policy: which pods count together, and how much they may have."""

from __future__ import annotations

from policyengine.language import ir, syntax
from policyengine.language.checking import foreign_words
from policyengine.language.checking.context import Context
from policyengine.language.checking.literal_types import NotPlainError, key_of
from policyengine.language.checking.param_checks import reads_nothing
from policyengine.language.checking.policy_scope import (
    Path,
    PolicyScope,
    check_when,
    reading_only,
    typed,
    without_node,
)
from policyengine.language.diagnostics import replacing
from policyengine.language.functions.type_conversions import DIMENSIONS
from policyengine.language.ir.ir_walk import is_error, known_amount
from policyengine.language.scalar_evaluator import evaluated
from policyengine.language.types import BOOL, INT, MEMORY, STRING, Type, optional_of
from policyengine.language.values import EvaluationError, display, with_article

_WAITING = frozenset({"queuedAt", "attempts"})
"""What a pod has only while it waits."""
_HUGE_PAGES = "hugepages-"


def check_quota(scope: PolicyScope, member: syntax.Quota) -> ir.Quota:
    """A quota: which pods count together, and how much they may have."""
    context = scope.inside(member.name.text)
    when = check_when(scope, member.when, context)
    when = None if when is None else reading_running(context, when, "a quota's `when`")
    context = context.behind(when)
    by = None if member.by is None else reading_running(context, _text(context, member.by), "a quota's `by`")
    guarantee = _amounts(context, member.guarantee, "guarantee")
    limit = _amounts(context, member.limit, "limit")
    borrow = None
    if member.borrow is not None:
        borrow = without_node(context, typed(context, member.borrow, BOOL, "`borrow`"), "`borrow`")
    if member.guarantee is None and member.limit is None:
        context.failed("PE2008", "the quota has neither `guarantee` nor `limit`", member.name.span)
    _in_order(context, guarantee, limit)
    return ir.Quota(
        name=member.name.text,
        by=by,
        when=when,
        guarantee=tuple(guarantee.items()),
        limit=tuple(limit.items()) if member.limit is not None else None,
        borrow=borrow,
        span=member.span,
        file=scope.file,
    )


def _text(context: Context, by: syntax.Expr) -> ir.Expr:
    """The key: a string, or one that may be absent."""
    checked = context.check(by, STRING)
    if is_error(checked) or checked.type in (STRING, optional_of(STRING)):
        return checked
    return context.failed("PE1005", f"`by` is a string, or one that may be absent; this is {checked.type}", by.span)


def reading_running(context: Context, expr: ir.Expr, what: str) -> ir.Expr:
    """What says which pods a quota is about, and has to read only what running pods have."""
    return reading_only(context, expr, what, _is_running, "what running pods have")


def _is_running(path: Path) -> bool:
    return path[0] == "policy" or (path[0] == "pod" and path[1:2] != () and path[1] not in _WAITING)


def _in_order(context: Context, guarantee: dict[str, ir.Expr], limit: dict[str, ir.Expr]) -> None:
    """No guarantee is above its limit, where both are known."""
    for name in guarantee.keys() & limit.keys():
        owed, most = (known_amount(bounds[name]) for bounds in (guarantee, limit))
        if owed is not None and most is not None and owed > most:
            amounts = (display(amount, _type_of(name)) for amount in (owed, most))
            message = "the guarantee of `{}`, {}, is above its limit, {}".format(name, *amounts)
            context.failed("PE2016", message, guarantee[name].span)


def _amounts(context: Context, written: syntax.MapLiteral | None, field: str) -> dict[str, ir.Expr]:
    """The amounts by resource."""
    found: dict[str, ir.Expr] = {}
    for entry in written.entries if written else ():
        name = _resource(context, entry, field)
        amount = None if name is None else _amount(context, entry.value, _type_of(name))
        if name is None or amount is None:
            continue
        if (known_amount(amount) or 0) < 0:
            context.failed("PE2016", "an amount is not negative", entry.value.span)
        elif name in found:
            context.failed("PE2002", f"`{name}` is given twice in `{field}`", entry.key.span)
        else:
            found[name] = amount
    if written is not None and not written.entries:
        context.failed("PE2008", f"`{field}` names no resource, such as `{{cpu: 4}}`", written.span)
    return found


def _amount(context: Context, written: syntax.Expr, type_: Type) -> ir.Expr | None:
    """An amount, or one that may be absent; None, reported, for what is none. What reads nothing is worked out."""
    checked = context.check(written, type_)
    if is_error(checked):
        return None
    if checked.type not in (type_, optional_of(type_)):
        context.failed("PE1005", f"{with_article(type_)} is wanted, this is {checked.type}", written.span)
        return None
    checked = reading_running(context, checked, "an amount of a quota")
    if is_error(checked):
        return None
    if checked.type == type_ and reads_nothing(checked):
        try:
            return ir.Const(type=type_, span=written.span, value=evaluated(checked))
        except EvaluationError as error:
            context.failed("PE1006", str(error), written.span)
            return None
    return checked


def _resource(context: Context, entry: syntax.MapEntry, field: str) -> str | None:
    try:
        name = key_of(entry)
    except NotPlainError as error:
        error.reported(context.report, "PE2012", f"`{field}` takes names of resources, such as `cpu`")
        return None
    if name in DIMENSIONS or "/" in name.strip("/") or name.startswith(_HUGE_PAGES):
        return name
    message, span = f"no resource is called `{name}`", entry.key.span
    meant = "storage" if name == "ephemeral-storage" else foreign_words.vendors(name)
    if meant is not None:
        context.failed("PE2012", f"{message}; did you mean `{meant}`?", span, replacing(span, meant))
    else:
        known = '; there are `cpu`, `memory`, `storage`, and `"vendor/x"`'
        context.report.unknown("PE2012", message, span, name, DIMENSIONS, otherwise=known)
    return None


def _type_of(resource: str) -> Type:
    return MEMORY if resource.startswith(_HUGE_PAGES) else DIMENSIONS.get(resource, INT)
