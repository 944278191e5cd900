"""The settings of a policy: `scheduler base share queue`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal as OneOf
from typing import NamedTuple, TypeVar

from policyengine.language import ir, syntax
from policyengine.language.checking.check_codes import (
    DUPLICATE_MEMBER,
    DUPLICATE_NAME,
    WRONG_TIME,
    WRONG_WEIGHT,
    WRONG_WORD,
)
from policyengine.language.checking.context import Context, Report, replacing
from policyengine.language.checking.param_checks import constant
from policyengine.language.checking.policy_scope import PolicyScope, check_order_key
from policyengine.language.checking.rule_checks import LARGEST_WEIGHT
from policyengine.language.diagnostics import Related
from policyengine.language.syntax import Span
from policyengine.language.types import DOUBLE, DURATION, INT, STRING

Base = OneOf["kubernetes", "filters", "none"]
BASES: tuple[Base, ...] = ("kubernetes", "filters", "none")
DEFAULT_SCHEDULER = "policy-scheduler"
_LONGEST_NAME = 253
_M = TypeVar("_M", bound=syntax.Member)


class Times(NamedTuple):
    """Seconds."""

    initial_backoff: float = 1.0
    max_backoff: float = 10.0
    flush_after: float = 300.0


def only(report: Report, members: Sequence[syntax.Member], kind: type[_M], keyword: str) -> _M | None:
    """The one member of a kind; further ones are reported."""
    found = [member for member in members if isinstance(member, kind)]
    for member in found[1:]:
        first = Related(_keyword(found[0]), "given here first")
        report.error(DUPLICATE_MEMBER, f"`{keyword}` is given twice", _keyword(member), related=(first,))
    return found[0] if found else None


def _keyword(member: syntax.Member) -> Span:
    """The keyword of a member, or the member where the keyword's place is not known."""
    return member.keyword_span if member.keyword_span.end > member.keyword_span.start else member.span


def check_scheduler(report: Report, members: Sequence[syntax.Member]) -> str:
    """The scheduler name that the policy serves."""
    member = only(report, members, syntax.Scheduler, "scheduler")
    if member is None:
        return DEFAULT_SCHEDULER
    name = member.name.text
    if not name.strip() or len(name) > _LONGEST_NAME:
        message = f"a scheduler name has 1 to {_LONGEST_NAME} characters, as in `spec.schedulerName`"
        report.error(WRONG_WORD, message, member.name.span)
    return name


def check_base(report: Report, members: Sequence[syntax.Member]) -> Base:
    """What runs beside the rules."""
    member = only(report, members, syntax.Base, "base")
    if member is None:
        return "kubernetes"
    for base in BASES:
        if member.name.text == base:
            return base
    close = report.closest(member.name.text, BASES)
    message = f"`{member.name.text}` is no base; there are `kubernetes`, `filters` and `none`"
    report.error(WRONG_WORD, message, member.name.span, replacing(member.name.span, close) if close else None)
    return "kubernetes"


def check_share(scope: PolicyScope, members: Sequence[syntax.Member]) -> int:
    """How many pods are served in turn."""
    member = only(scope.report, members, syntax.Share, "share")
    value = constant(scope.checker, member.value, INT) if member is not None else None
    if member is None or value is None:
        return 1
    assert isinstance(value.value, int)
    if not 1 <= value.value <= 1000:
        scope.report.error(WRONG_WEIGHT, "a share lies within 1 and 1000", member.value.span)
    return value.value


# --- queue -----------------------------------------------------------------------------------------------


def check_queue(scope: PolicyScope, members: Sequence[syntax.Member]) -> ir.Queue:
    """The queue's order and times; kube-scheduler's where nothing is said."""
    member = only(scope.report, members, syntax.Queue, "queue")
    if member is None:
        return ir.Queue(order=(_by_priority(scope, Span(0, 0)),))
    context = Context(rule="queue")
    keys = [
        check_order_key(scope, key, context, lambda value: scope.reads_the_pod(value, "a queue key"))
        for key in member.order
    ]
    order = tuple(key for key in keys if key is not None) or (_by_priority(scope, member.span),)
    times = _times(scope, member)
    return ir.Queue(
        order=order,
        initial_backoff=times.initial_backoff,
        max_backoff=times.max_backoff,
        flush_after=times.flush_after,
        fair_by=_fair_by(scope, member.fair),
        fair_weights=_fair_weights(scope, member.fair_weights),
    )


def _by_priority(scope: PolicyScope, span: Span) -> ir.OrderKey:
    """`pod.priority desc`, the order of kube-scheduler."""
    operand = syntax.Name(span=span, name="pod")
    priority = syntax.Select(span=span, operand=operand, field="priority", field_span=span)
    value = scope.checker.check(priority, Context())
    return ir.OrderKey(value=value, descending=True, missing_first=False, span=span)


def _fair_by(scope: PolicyScope, written: syntax.Expr | None) -> ir.Expr | None:
    """The tenant of a pod: a string."""
    if written is None:
        return None
    tenant = scope.typed(written, Context(rule="queue"), STRING, "`fair by`")
    return tenant if tenant is not None and scope.reads_the_pod(tenant, "`fair by`") else None


def _fair_weights(scope: PolicyScope, written: syntax.MapLiteral | None) -> tuple[tuple[str, float], ...]:
    """The weights by tenant; wrong ones are reported and left out."""
    found: dict[str, float] = {}
    for entry in written.entries if written is not None else ():
        key = constant(scope.checker, entry.key, STRING)
        value = constant(scope.checker, entry.value, DOUBLE)
        if key is None or value is None:
            continue
        assert isinstance(key.value, str) and isinstance(value.value, float)
        if not 0.0 < value.value <= LARGEST_WEIGHT:
            message = f"a tenant's weight is above 0 and at most {LARGEST_WEIGHT}"
            scope.report.error(WRONG_WEIGHT, message, entry.value.span)
        elif key.value in found:
            scope.report.error(DUPLICATE_NAME, f"the tenant `{key.value}` is given twice", entry.key.span)
        found.setdefault(key.value, value.value)
    return tuple(found.items())


def _times(scope: PolicyScope, member: syntax.Queue) -> Times:
    times = Times()
    if member.backoff is not None:
        ends = [_seconds(scope, end) for end in member.backoff]
        if None not in ends:
            times = times._replace(initial_backoff=ends[0] or 0.0, max_backoff=ends[1] or 0.0)
        if times.initial_backoff > times.max_backoff:
            span = member.backoff[0].span.to(member.backoff[1].span)
            scope.report.error(WRONG_TIME, "the first backoff is longer than the last", span)
    if member.flush is not None:
        flush = _seconds(scope, member.flush)
        if flush == 0.0:
            scope.report.error(WRONG_TIME, "`flush` is longer than nothing", member.flush.span)
        times = times._replace(flush_after=flush or times.flush_after)
    return times


def _seconds(scope: PolicyScope, written: syntax.Expr) -> float | None:
    value = constant(scope.checker, written, DURATION)
    if value is None:
        return None
    assert isinstance(value.value, int)
    if value.value < 0:
        scope.report.error(WRONG_TIME, "a time is not negative", written.span)
        return None
    return value.value / 10**9
