"""The settings of a policy: `scheduler base share queue`; and the texts it writes at a point, `on POINT log "…"`, and
with the binding, `bind { annotations: {…} }`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import nan
from typing import Literal as OneOf
from typing import TypeVar

from msgspec.structs import replace

from policyengine.language import ir, syntax
from policyengine.language.checking.cluster_aggregates import field_at
from policyengine.language.checking.findings import Report
from policyengine.language.checking.param_checks import constant
from policyengine.language.checking.policy_scope import (
    PolicyScope,
    check_order_key,
    check_template,
    check_when,
    reading_the_pod,
    typed,
    without_node,
)
from policyengine.language.diagnostics import Related, listed, replacing
from policyengine.language.syntax import Span
from policyengine.language.types import DOUBLE, DURATION, INT, STRING

Base = OneOf["kubernetes", "filters", "none"]
BASES: tuple[Base, ...] = ("kubernetes", "filters", "none")
DEFAULT_SCHEDULER = "policy-scheduler"
LARGEST_WEIGHT = 1_000_000
"""So that no sum of weighted scores comes near 64 bits."""
MOST_TIERS = 4
"""Each counts a hundred times what all that counts less comes to: more would not fit in 64 bits."""
_M = TypeVar("_M", bound=syntax.Member)


def only(report: Report, members: Sequence[syntax.Member], kind: type[_M], keyword: str) -> _M | None:
    """The one member of a kind; further ones are reported."""
    found = [member for member in members if isinstance(member, kind)]
    for member in found[1:]:
        first = Related(_keyword(found[0]), "given here first")
        report.error("PE2001", f"`{keyword}` is given twice", _keyword(member), related=(first,))
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
    why = wrong_key(name)
    if why is not None:
        message = f"`{name[:80]}` is no scheduler name: {why}; an API server takes no events of such a scheduler"
        report.error("PE2012", message, member.name.span)
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
    report.error("PE2012", message, member.name.span, replacing(member.name.span, close) if close else None)
    return "kubernetes"


def check_share(scope: PolicyScope, members: Sequence[syntax.Member]) -> int:
    """How many pods are served in turn."""
    member = only(scope.report, members, syntax.Share, "share")
    share = constant(scope.context, member.value, INT).value if member is not None else 1
    if member is None or not isinstance(share, int):
        return 1
    if not 1 <= share <= 1000:
        scope.report.error("PE2005", "a share lies within 1 and 1000", member.value.span)
    return share


def check_queue(scope: PolicyScope, members: Sequence[syntax.Member]) -> ir.Queue:
    """The queue's order and times; kube-scheduler's where nothing is said."""
    member = only(scope.report, members, syntax.Queue, "queue")
    if member is None:
        return ir.Queue(order=(_by_priority(scope, Span(0, 0)),))
    context = scope.inside("queue")
    order = tuple(
        check_order_key(key, context, lambda value: reading_the_pod(context, value, "a queue key"))
        for key in member.order
    )
    fair_by = None
    if member.fair is not None:
        fair_by = reading_the_pod(context, typed(context, member.fair, STRING, "`fair by`"), "`fair by`")
    queue = ir.Queue(
        order=order or (_by_priority(scope, member.span),),
        fair_by=fair_by,
        fair_weights=_fair_weights(scope, member.fair_weights),
    )
    if member.backoff is not None:
        first, last = (_seconds(scope, end) for end in member.backoff)
        if first > last:
            span = member.backoff[0].span.to(member.backoff[1].span)
            scope.report.error("PE2009", "the first backoff is longer than the last", span)
        written = (("initial_backoff", member.backoff[0].span), ("max_backoff", member.backoff[1].span))
        queue = replace(queue, initial_backoff=first, max_backoff=last, written=written)
    if member.flush is not None:
        flush = _seconds(scope, member.flush)
        if flush == 0.0:
            scope.report.error("PE2009", "`flush` is longer than nothing", member.flush.span)
        queue = replace(queue, flush_after=flush, written=(*queue.written, ("flush_after", member.flush.span)))
    return queue


def _by_priority(scope: PolicyScope, span: Span) -> ir.OrderKey:
    """`pod.priority desc`, the order of kube-scheduler."""
    return ir.OrderKey(value=field_at(("pod", "priority"), span), descending=True, missing_first=False, span=span)


def _fair_weights(scope: PolicyScope, written: syntax.MapLiteral | None) -> tuple[tuple[str, float], ...]:
    """The weights by tenant."""
    found: dict[str, float] = {}
    for entry in written.entries if written is not None else ():
        tenant = constant(scope.context, entry.key, STRING).value
        weight = constant(scope.context, entry.value, DOUBLE).value
        if not isinstance(tenant, str) or not isinstance(weight, float):
            continue
        if not 0.0 < weight <= LARGEST_WEIGHT:
            scope.report.error("PE2005", f"a tenant's weight is above 0 and at most {LARGEST_WEIGHT}", entry.value.span)
        elif tenant in found:
            scope.report.error("PE2002", f"the tenant `{tenant}` is given twice", entry.key.span)
        found.setdefault(tenant, weight)
    return tuple(found.items())


def _seconds(scope: PolicyScope, written: syntax.Expr) -> float:
    """A constant duration; NaN where it was reported."""
    value = constant(scope.context, written, DURATION).value
    if not isinstance(value, int):
        return nan
    if value < 0:
        scope.report.error("PE2009", "a time is not negative", written.span)
        return nan
    return value / 10**9


POINTS = ("preEnqueue", "preFilter", "postFilter", "reserve", "permit", "preBind", "postBind")
"""The extension points at which a line can be logged: those that a pod passes once an attempt, not once a node."""
_WITH_NODE = frozenset({"reserve", "permit", "preBind", "postBind"})
"""The points at which a node is chosen."""

_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_LONGEST_PREFIX = 253


def check_on(scope: PolicyScope, member: syntax.OnLog) -> ir.OnLog:
    """A line to log."""
    point = member.point.text
    if point not in POINTS:
        message = f"`{point}` is no point to log at; there are {listed(POINTS)}"
        scope.report.unknown("PE2012", message, member.point.span, point, POINTS)
    node = point in _WITH_NODE or point not in POINTS
    context = scope.inside(f"on {point}")
    when = check_when(scope, member.when, context, node=node)
    text = check_template(member.message, context.behind(when))
    for part in text.parts:
        if not node and isinstance(part, ir.Expr):
            without_node(context, part, f"the text of `on {point}`")
    return ir.OnLog(point=point, when=when, message=text, span=member.span)


def check_bind(scope: PolicyScope, members: Sequence[syntax.Member]) -> tuple[ir.BindAnnotation, ...]:
    """The annotations written with the binding."""
    member = only(scope.report, members, syntax.BindAnnotations, "bind")
    found: dict[str, ir.BindAnnotation] = {}
    for key, written in member.annotations if member is not None else ():
        wrong = wrong_key(key.text)
        if wrong is not None:
            scope.report.error("PE2012", f"`{key.text}` is no annotation key: {wrong}", key.span)
        elif key.text in found:
            scope.report.error("PE2002", f"`{key.text}` is given twice", key.span)
        value = check_template(written, scope.inside("bind"))
        span = syntax.Span(key.span.start, written.span.end)
        found.setdefault(key.text, ir.BindAnnotation(key=key.text, value=value, span=span))
    return tuple(found.values())


def wrong_key(key: str) -> str | None:
    """Why a text is no key of an annotation, None for one that is (apimachinery, validation.IsQualifiedName)."""
    prefix, slash, name = key.rpartition("/")
    if not _NAME.fullmatch(name):
        return "a name has 1 to 63 letters, digits, `-`, `_` and `.`, with a letter or digit at either end"
    if slash and (len(prefix) > _LONGEST_PREFIX or not _PREFIX.fullmatch(prefix)):
        return "what stands before `/` is a DNS name in lower case, such as `example.com`"
    return None
