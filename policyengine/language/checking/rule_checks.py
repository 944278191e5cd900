"""The rules of a policy: filters, scores, gangs and permits."""

from __future__ import annotations

from policyengine.language import ir, syntax
from policyengine.language.checking.check_codes import (
    EMPTY_RULE,
    MISSING_FIELD,
    UNBOUNDED_SCORE,
    WRONG_TIME,
    WRONG_TYPE,
    WRONG_WEIGHT,
)
from policyengine.language.checking.context import Context, wrapped
from policyengine.language.checking.policy_scope import PolicyScope, check_template, check_when
from policyengine.language.ir.ir_walk import is_error
from policyengine.language.schema import attribute
from policyengine.language.types import BOOL, DURATION, INT, STRING, Kind, Shape, Type

LARGEST_WEIGHT = 1_000_000
"""So that no sum of weighted scores comes near 64 bits."""


# --- filters ---------------------------------------------------------------------------------------------


def check_filter(scope: PolicyScope, member: syntax.Filter) -> ir.Filter | None:
    """A filter, None (reported) where anything in it is wrong."""
    if not member.requires:
        scope.report.error(EMPTY_RULE, "the filter has no `require`, so it refuses nothing", member.name.span)
    context = Context(rule=member.name.text)
    when, good = check_when(scope, member.when, context)
    context = scope.known(context, when)
    requires: list[ir.Require] = []
    for written in member.requires:
        checked = _require(scope, written, context)
        if checked is not None:
            requires.append(checked)
            context = scope.known(context, checked.condition)
    if not good or len(requires) < len(member.requires) or not requires:
        return None
    return ir.Filter(name=member.name.text, when=when, requires=tuple(requires), span=member.span, file=scope.file)


def _require(scope: PolicyScope, written: syntax.Require, context: Context) -> ir.Require | None:
    condition = scope.typed(written.condition, context, BOOL, "a `require`")
    refused = context if condition is None else context.behind(condition, False, scope.names)
    otherwise, good = None, True
    if written.otherwise is not None:
        otherwise = check_template(scope, written.otherwise, refused)
        good = otherwise is not None
    on_error = None
    if written.on_error is not None:
        on_error = scope.typed(written.on_error, context, BOOL, "`on error` of a require")
        good = good and on_error is not None
    if condition is None or not good:
        return None
    parts = [condition, *([on_error] if on_error is not None else [])]
    return ir.Require(
        condition=condition,
        otherwise=otherwise,
        on_error=on_error,
        evictable=any(_evictable(scope, part) for part in parts),
        reads_node=any(part.shape is Shape.NODE for part in parts),
        text=scope.source.slice(written.condition.span),
        span=written.span,
    )


def _evictable(scope: PolicyScope, expr: ir.Expr) -> bool:
    """Whether an eviction could change the value."""
    found = map(attribute, scope.names.reads(expr))
    return any(known is not None and known.evictable for known in found)


# --- scores ----------------------------------------------------------------------------------------------


def check_score(scope: PolicyScope, member: syntax.Score) -> ir.Score | None:
    """A score, None (reported) where anything in it is wrong."""
    context = Context(rule=member.name.text)
    weight = check_weight(scope, member.weight)
    when, good = check_when(scope, member.when, context)
    context = scope.known(context, when)
    normalize = ir.Normalize(member.normalize.method) if member.normalize else ir.Normalize.NONE
    bounded = normalize is not ir.Normalize.NONE
    value = _score_value(scope, member.value, context, bounded)
    on_error = None
    if member.on_error is not None:
        on_error = _score_value(scope, member.on_error, context, bounded)
        good = good and on_error is not None
    if weight is None or value is None or not good:
        return None
    return ir.Score(
        name=member.name.text,
        weight=weight,
        when=when,
        normalize=normalize,
        reverse=member.normalize is not None and member.normalize.reverse,
        value=value,
        on_error=on_error,
        span=member.span,
        file=scope.file,
    )


def _score_value(scope: PolicyScope, written: syntax.Expr, context: Context, bounded: bool) -> ir.Expr | None:
    value = scope.checker.check(written, context)
    if is_error(value):
        return None
    content = value.type.args[0] if value.type.kind is Kind.OPTIONAL else value.type
    if not content.is_number:
        hint = "; divide by a quantity, or take its `double(…)`" if content.is_quantity else ""
        message = f"a score is an int or a double, or an optional of one; this is {value.type}{hint}"
        scope.report.error(WRONG_TYPE, message, written.span)
        return None
    if bounded or scope.intervals.of(value).is_finite:
        return value
    message = "the score has no bounds that can be told: keep it within some by `clamp`, or `normalize` it"
    fix = None
    if content == value.type:
        fix = wrapped(written.span, "clamp(", ", 0, 100)", "write `clamp(…, 0, 100)`")
    scope.report.error(UNBOUNDED_SCORE, message, written.span, fix)
    return None


def check_weight(scope: PolicyScope, written: syntax.Expr, smallest: int = 1) -> int | ir.ParamRef | None:
    """A weight: an int literal or an int param, at least `smallest`; None (reported) otherwise."""
    checked = scope.checker.check(written, Context())
    if is_error(checked):
        return None
    least: object
    if isinstance(checked, ir.Const) and checked.type == INT:
        least = most = checked.value
    elif isinstance(checked, ir.ParamRef) and checked.type == INT:
        ends = scope.ends_of(checked)
        least, most = min(ends), max(ends)
    else:
        scope.report.error(WRONG_WEIGHT, "a weight is an int literal or an int param", written.span)
        return None
    assert isinstance(least, int) and isinstance(most, int)
    if not smallest <= least <= most <= LARGEST_WEIGHT:
        wrong = least if least < smallest else most
        message = f"a weight lies within {smallest} and {LARGEST_WEIGHT}, this may be {wrong}"
        scope.report.error(WRONG_WEIGHT, message, written.span)
        return None
    return checked if isinstance(checked, ir.ParamRef) else least


# --- gangs -----------------------------------------------------------------------------------------------


def check_gang(scope: PolicyScope, member: syntax.Gang) -> ir.Gang | None:
    """A gang, None (reported) where anything in it is wrong."""
    context = Context(rule=member.name.text)
    when, good = check_when(scope, member.when, context)
    if when is not None and good:
        good = scope.reads_the_pod(when, "a gang's `when`")
    context = scope.known(context, when)
    key = _gang_field(scope, member, "key", member.key, STRING, context)
    least = _gang_field(scope, member, "min", member.min, INT, context)
    timeout = _gang_field(scope, member, "timeout", member.timeout, DURATION, context)
    waits = _gang_field(scope, member, "waits", member.waits, DURATION, context) if member.waits else None
    if key is None or least is None or timeout is None or not good or (member.waits and waits is None):
        return None
    return ir.Gang(name=member.name.text, when=when, key=key, min=least, timeout=timeout, waits=waits, span=member.span)


def _gang_field(
    scope: PolicyScope, member: syntax.Gang, name: str, written: syntax.Expr | None, wanted: Type, context: Context
) -> ir.Expr | None:
    if written is None:
        scope.report.error(MISSING_FIELD, f"the gang has no `{name}`", member.name.span)
        return None
    value = scope.typed(written, context, wanted, f"`{name}`")
    if value is None or not scope.reads_the_pod(value, f"`{name}`"):
        return None
    if wanted != STRING and isinstance(value, ir.Const) and isinstance(value.value, int) and value.value <= 0:
        least = "at least 1" if wanted == INT else "longer than nothing"
        scope.report.error(WRONG_TIME, f"`{name}` is {least}", written.span)
        return None
    return value


# --- permits ----------------------------------------------------------------------------------------------


def check_permit(scope: PolicyScope, member: syntax.Permit) -> ir.Permit | None:
    """A permit, None (reported) where anything in it is wrong. All of it may read the node that was chosen."""
    context = Context(rule=member.name.text)
    when, good = check_when(scope, member.when, context, node=True)
    context = scope.known(context, when)
    delay = _duration(scope, member.delay, "delay", context)
    timeout = _duration(scope, member.timeout, "timeout", context)
    until = scope.typed(member.until, context, BOOL, "`until`") if member.until is not None else None
    if (member.delay is None) == (member.until is None):
        what = "both `delay` and `until`: give one of them" if member.delay else "neither `delay` nor `until`"
        scope.report.error(MISSING_FIELD, f"the permit has {what}", member.name.span)
        return None
    pairs = ((member.delay, delay), (member.timeout, timeout), (member.until, until))
    if not good or any(written is not None and value is None for written, value in pairs):
        return None
    if not _in_time(scope, member, delay, timeout):
        return None
    return ir.Permit(name=member.name.text, when=when, delay=delay, until=until, timeout=timeout, span=member.span)


def _duration(scope: PolicyScope, written: syntax.Expr | None, name: str, context: Context) -> ir.Expr | None:
    if written is None:
        return None
    value = scope.typed(written, context, DURATION, f"`{name}`")
    if isinstance(value, ir.Const) and isinstance(value.value, int) and value.value <= 0:
        scope.report.error(WRONG_TIME, f"`{name}` is longer than nothing", written.span)
        return None
    return value


def _in_time(scope: PolicyScope, member: syntax.Permit, delay: ir.Expr | None, timeout: ir.Expr | None) -> bool:
    """Whether the delay ends before the timeout, where both are known."""
    ends = [one.value for one in (delay, timeout) if isinstance(one, ir.Const) and isinstance(one.value, int)]
    if len(ends) < 2 or ends[0] < ends[1] or member.timeout is None:
        return True
    message = "the timeout comes no later than the delay ends, so every pod would be refused"
    scope.report.error(WRONG_TIME, message, member.timeout.span)
    return False
