"""`on POINT log "…"` and `bind { annotations: {…} }`: texts written at a point, and with the binding."""

from __future__ import annotations

import re
from collections.abc import Sequence

from policyengine.language import ir, syntax
from policyengine.language.checking.check_codes import DUPLICATE_NAME, WRONG_WORD
from policyengine.language.checking.context import Context, replacing
from policyengine.language.checking.policy_scope import PolicyScope, check_template, check_when
from policyengine.language.checking.setting_checks import only

POINTS = ("preEnqueue", "preFilter", "postFilter", "reserve", "permit", "preBind", "postBind")
"""The extension points at which a line can be logged: those that a pod passes once an attempt, not once a node."""
_WITH_NODE = frozenset({"reserve", "permit", "preBind", "postBind"})
"""The points at which a node is chosen."""

_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_LONGEST_PREFIX = 253


def check_on(scope: PolicyScope, member: syntax.OnLog) -> ir.OnLog | None:
    """A line to log, None (reported) where anything in it is wrong."""
    point = member.point.text
    known = point in POINTS
    if not known:
        _unknown_point(scope, member.point)
    node = point in _WITH_NODE or not known
    context = Context(rule=f"on {point}")
    when, good = check_when(scope, member.when, context, node=node)
    message = check_template(scope, member.message, scope.known(context, when))
    if message is None or not good or not known:
        return None
    if not node and not _no_node(scope, message, point):
        return None
    return ir.OnLog(point=point, when=when, message=message, span=member.span)


def _unknown_point(scope: PolicyScope, point: syntax.NameText) -> None:
    close = scope.report.closest(point.text, POINTS)
    hint = f"; did you mean `{close}`?" if close else ""
    message = f"`{point.text}` is no point to log at; there are {', '.join(f'`{name}`' for name in POINTS)}{hint}"
    scope.report.error(WRONG_WORD, message, point.span, replacing(point.span, close) if close else None)


def _no_node(scope: PolicyScope, message: ir.Template, point: str) -> bool:
    parts = [part for part in message.parts if isinstance(part, ir.Expr)]
    return all(scope.reads_no_node(part, f"the text of `on {point}`") for part in parts)


def check_bind(scope: PolicyScope, members: Sequence[syntax.Member]) -> tuple[ir.BindAnnotation, ...]:
    """The annotations written with the binding; wrong ones are reported and left out."""
    member = only(scope.report, members, syntax.BindAnnotations, "bind")
    found: list[ir.BindAnnotation] = []
    seen: set[str] = set()
    for key, written in member.annotations if member is not None else ():
        value = check_template(scope, written, Context(rule="bind"))
        wrong = wrong_key(key.text)
        if wrong is not None:
            scope.report.error(WRONG_WORD, f"`{key.text}` is no annotation key: {wrong}", key.span)
        elif key.text in seen:
            scope.report.error(DUPLICATE_NAME, f"`{key.text}` is given twice", key.span)
        elif value is not None:
            span = syntax.Span(key.span.start, written.span.end)
            found.append(ir.BindAnnotation(key=key.text, value=value, span=span))
        seen.add(key.text)
    return tuple(found)


def wrong_key(key: str) -> str | None:
    """Why a text is no key of an annotation, None for one that is (apimachinery, validation.IsQualifiedName)."""
    prefix, slash, name = key.rpartition("/")
    if not _NAME.fullmatch(name):
        return "a name has 1 to 63 letters, digits, `-`, `_` and `.`, with a letter or digit at either end"
    if slash and (len(prefix) > _LONGEST_PREFIX or not _PREFIX.fullmatch(prefix)):
        return "what stands before `/` is a DNS name in lower case, such as `example.com`"
    return None
