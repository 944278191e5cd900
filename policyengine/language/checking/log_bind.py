"""`on POINT log "…"` and `bind { annotations: {…} }`: texts written at a point, and with the binding."""

from __future__ import annotations

import re
from collections.abc import Sequence

from policyengine.language import ir, syntax
from policyengine.language.checking.check_codes import DUPLICATE_NAME, WRONG_WORD
from policyengine.language.checking.policy_scope import PolicyScope, check_template, check_when, without_node
from policyengine.language.checking.setting_checks import only

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
        message = f"`{point}` is no point to log at; there are {', '.join(f'`{name}`' for name in POINTS)}"
        scope.report.unknown(WRONG_WORD, message, member.point.span, point, POINTS)
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
            scope.report.error(WRONG_WORD, f"`{key.text}` is no annotation key: {wrong}", key.span)
        elif key.text in found:
            scope.report.error(DUPLICATE_NAME, f"`{key.text}` is given twice", key.span)
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
