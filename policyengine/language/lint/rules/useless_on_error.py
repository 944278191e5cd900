"""an `on error` for what cannot fail

The expression has a value for every pod and node: nothing in it divides by what may be zero, converts, or asks for a
domain. `on error` is never used. `--fix` removes it.
"""

from __future__ import annotations

from policyengine.language import ir
from policyengine.language.ir.ir_walk import walk
from policyengine.language.lint.rule import Edit, Finding, Findings, Fix, Severity, Subject, rule
from policyengine.language.syntax import Span

_SAFE = frozenset(
    {"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in", "!_", "orValue", "or", "hasValue", "startsWith", "endsWith"}
    | {"contains", "matches", "size", "ratio", "clamp", "min", "max", "toInt", "toDouble", "lowerAscii", "upperAscii"}
)
"""Functions that have a value whatever they are given. Arithmetic is not among them: it may overflow."""


@rule("PE3404", Severity.INFO, __doc__)
def useless_on_error(subject: Subject) -> Findings:
    """Requires and scores of which no part can fail."""
    for filter_ in subject.own(subject.policy.filters):
        for require in filter_.requires:
            if require.on_error is not None and _has_a_value(subject, require.condition):
                yield _finding(subject, require.on_error)
    for score in subject.own(subject.policy.scores):
        if score.on_error is not None and _has_a_value(subject, score.value):
            yield _finding(subject, score.on_error)


def _has_a_value(subject: Subject, expr: ir.Expr) -> bool:
    return all(
        isinstance(part, ir.Const | ir.Field | ir.LetRef | ir.ParamRef | ir.Logic | ir.Conditional | ir.ListExpr)
        or (isinstance(part, ir.Index | ir.Select) and part.optional)
        or (isinstance(part, ir.Call) and part.function in _SAFE)
        for part in walk(expr, subject.let_value)
    )


def _finding(subject: Subject, on_error: ir.Expr) -> Finding:
    text = subject.source.text
    start = text.rfind("on", 0, on_error.span.start)
    fix = None
    if text[start : on_error.span.start].split() == ["on", "error"]:
        start = len(text[:start].rstrip(" \t"))
        fix = Fix("remove `on error`", (Edit(Span(start, on_error.span.end), ""),), safe=True)
    return Finding("nothing here can fail, so this is never used", on_error.span, fix)
