"""The rules of a policy: filters, scores, gangs, permits and preemption."""

from __future__ import annotations

from collections.abc import Sequence

from policyengine.language import ir, syntax
from policyengine.language.checking.context import Context
from policyengine.language.checking.policy_scope import (
    PolicyScope,
    check_order_key,
    check_template,
    check_when,
    reading_only,
    reading_the_pod,
    typed,
)
from policyengine.language.checking.setting_checks import LARGEST_WEIGHT, only
from policyengine.language.diagnostics import wrapped
from policyengine.language.ir.ir_walk import is_error
from policyengine.language.schema import attribute
from policyengine.language.syntax import Span
from policyengine.language.types import BOOL, DURATION, INT, STRING, Shape, Type, content_of


def check_filter(scope: PolicyScope, member: syntax.Filter) -> ir.Filter:
    """A filter: each require may rely on those before it."""
    if not member.requires:
        scope.report.error("PE2010", "the filter has no `require`, so it refuses nothing", member.name.span)
    context = scope.inside(member.name.text)
    when = check_when(scope, member.when, context)
    context = context.behind(when)
    requires: list[ir.Require] = []
    for written in member.requires:
        require = _require(scope, written, context)
        requires.append(require)
        context = context.behind(require.condition)
    return ir.Filter(name=member.name.text, when=when, requires=tuple(requires), span=member.span, file=scope.file)


def _require(scope: PolicyScope, written: syntax.Require, context: Context) -> ir.Require:
    condition = typed(context, written.condition, BOOL, "a `require`")
    otherwise = on_error = None
    if written.otherwise is not None:
        otherwise = check_template(written.otherwise, context.behind(condition, False))
    if written.on_error is not None:
        on_error = typed(context, written.on_error, BOOL, "`on error` of a require")
    parts = [condition] if on_error is None else [condition, on_error]
    read = [attribute(path) for part in parts for path in context.definitions.reads(part)]
    return ir.Require(
        condition=condition,
        otherwise=otherwise,
        on_error=on_error,
        evictable=any(known is not None and known.evictable for known in read),
        reads_node=any(part.shape is Shape.NODE for part in parts),
        text=scope.source.slice(written.condition.span),
        span=written.span,
    )


def check_score(scope: PolicyScope, member: syntax.Score) -> ir.Score:
    """A score: a number, which is normalised or has bounds."""
    context = scope.inside(member.name.text)
    when = check_when(scope, member.when, context)
    context = context.behind(when)
    values = [_score_value(scope, one, context, member) for one in (member.value, member.on_error) if one is not None]
    return ir.Score(
        name=member.name.text,
        weight=None if member.weight is None else check_weight(scope, member.weight),
        when=when,
        normalize=ir.Normalize(member.normalize.method) if member.normalize else ir.Normalize.NONE,
        reverse=member.normalize is not None and member.normalize.reverse,
        value=values[0],
        on_error=values[1] if member.on_error is not None else None,
        span=member.span,
        file=scope.file,
    )


def _score_value(scope: PolicyScope, written: syntax.Expr, context: Context, member: syntax.Score) -> ir.Expr:
    value = context.check(written)
    if is_error(value):
        return value
    content = content_of(value.type)
    if not content.is_number:
        hint = "; divide by a quantity, or take its `double(…)`" if content.is_quantity else ""
        message = f"a score is an int or a double, or an optional of one; this is {value.type}{hint}"
        return context.failed("PE1005", message, written.span)
    if member.normalize or scope.intervals.of(value).is_finite:
        return value
    message = "the score has no bounds that can be told: keep it within some by `clamp`, or `normalize` it"
    fix = wrapped(written.span, "clamp(", ", 0, 100)") if content == value.type else None
    return context.failed("PE2006", message, written.span, fix)


def check_weight(scope: PolicyScope, written: syntax.Expr, smallest: int = 1) -> int | ir.ParamRef:
    """A weight: an int literal or an int param, at least `smallest`; any number where it was reported."""
    checked = scope.context.check(written)
    ends = scope.ends_of(checked)
    if is_error(checked):
        return smallest
    if not ends:
        scope.report.error("PE2005", "a weight is an int literal or an int param", written.span)
        return smallest
    least, most = min(ends), max(ends)
    if not smallest <= least <= most <= LARGEST_WEIGHT:
        wrong = least if least < smallest else most
        message = f"a weight lies within {smallest} and {LARGEST_WEIGHT}, this may be {wrong}"
        scope.report.error("PE2005", message, written.span)
    return checked if isinstance(checked, ir.ParamRef) else least


def check_gang(scope: PolicyScope, member: syntax.Gang) -> ir.Gang:
    """A gang: all of it reads what stays while the pod waits."""
    context = scope.inside(member.name.text)
    when = check_when(scope, member.when, context)
    if when is not None:
        when = reading_the_pod(context, when, "a gang's `when`")
    context = context.behind(when)

    def field(name: str, written: syntax.Expr | None, wanted: Type) -> ir.Expr:
        if written is None:
            return context.failed("PE2008", f"the gang has no `{name}`", member.name.span)
        value = typed(context, written, wanted, f"`{name}`")
        return _positive(context, reading_the_pod(context, value, f"`{name}`"), name, written.span)

    return ir.Gang(
        name=member.name.text,
        when=when,
        key=field("key", member.key, STRING),
        min=field("min", member.min, INT),
        timeout=field("timeout", member.timeout, DURATION),
        waits=field("waits", member.waits, DURATION) if member.waits is not None else None,
        counts_finished=_is_word(context, member.counts, "counts", "finished"),
        any_scheduler=_is_word(context, member.any_scheduler, "anyScheduler", "true"),
        span=member.span,
    )


def _is_word(context: Context, written: syntax.Expr | None, field: str, word: str) -> bool:
    """Whether the field is given: with the one word that it takes, or it is reported."""
    match written:
        case None:
            return False
        case syntax.Name(name=name) if name == word:
            return True
        case syntax.Literal(value=True) if word == "true":
            return True
    context.failed("PE1005", f"`{field}` takes one word: write `{field}: {word}`, or leave it out", written.span)
    return False


def _positive(context: Context, value: ir.Expr, name: str, span: Span) -> ir.Expr:
    if isinstance(value, ir.Const) and isinstance(value.value, int) and value.value <= 0:
        least = "at least 1" if value.type == INT else "longer than nothing"
        return context.failed("PE2009", f"`{name}` is {least}", span)
    return value


def check_permit(scope: PolicyScope, member: syntax.Permit) -> ir.Permit:
    """A permit: all of it may read the node that was chosen."""
    context = scope.inside(member.name.text)
    when = check_when(scope, member.when, context, node=True)
    context = context.behind(when)

    def duration(name: str, written: syntax.Expr | None) -> ir.Expr | None:
        if written is None:
            return None
        return _positive(context, typed(context, written, DURATION, f"`{name}`"), name, written.span)

    delay, timeout = duration("delay", member.delay), duration("timeout", member.timeout)
    if (member.delay is None) == (member.until is None):
        what = "both `delay` and `until`: give one of them" if member.delay else "neither `delay` nor `until`"
        context.failed("PE2008", f"the permit has {what}", member.name.span)
    ends = [one.value for one in (delay, timeout) if isinstance(one, ir.Const) and isinstance(one.value, int)]
    if len(ends) == 2 and ends[0] >= ends[1] and member.timeout is not None:
        message = "the timeout comes no later than the delay ends, so every pod would be refused"
        context.failed("PE2009", message, member.timeout.span)
    return ir.Permit(
        name=member.name.text,
        when=when,
        delay=delay,
        until=typed(context, member.until, BOOL, "`until`") if member.until is not None else None,
        timeout=timeout,
        span=member.span,
    )


_ABOUT_VICTIMS = frozenset({"victim", "pod", "podGroup", "now", "policy"})


def check_preempt(scope: PolicyScope, members: Sequence[syntax.Member]) -> ir.Preempt | None:
    """The policy's `preempt`: which running pods may make room, which go first, how many at most; None without one."""
    member = only(scope.report, members, syntax.Preempt, "preempt")
    if member is None:
        return None
    if member.victims is None and not member.order and member.max_victims is None:
        message = "the `preempt` has none of `victims`, `order by` and `maxVictims`, so it changes nothing"
        scope.report.error("PE2008", message, member.keyword_span)
        return None
    when = check_when(scope, member.when, scope.inside("preempt"))
    context = scope.inside("preempt", victim=True).behind(when)

    def about_victims(expr: ir.Expr, what: str) -> ir.Expr:
        words = "victim, pod, podGroup, now and params"
        return reading_only(context, expr, what, lambda path: path[0] in _ABOUT_VICTIMS, words)

    victims = None
    if member.victims is not None:
        victims = about_victims(typed(context, member.victims, BOOL, "`victims`"), "`victims`")
    return ir.Preempt(
        when=when,
        victims=victims,
        order=tuple(
            check_order_key(key, context, lambda value: about_victims(value, "a key of `preempt`"))
            for key in member.order
        ),
        max_victims=_max_victims(scope, member.max_victims) if member.max_victims is not None else None,
        span=member.span,
    )


def _max_victims(scope: PolicyScope, written: syntax.Expr) -> ir.Expr:
    """An int of at least 1: a literal, or a param."""
    checked = scope.context.check(written, INT)
    if is_error(checked):
        return checked
    ends = scope.ends_of(checked)
    if not ends:
        return scope.report.error("PE1005", "`maxVictims` is an int literal or an int param", written.span)
    if min(ends) < 1:
        message = f"`maxVictims` is at least 1, this may be {min(ends)}; to keep all pods write "
        return scope.report.error("PE2016", message + "`disable DefaultPreemption`", written.span)
    return checked
