"""a score that is cut at 0 or 100

What a score has below 0 counts as 0, and above 100 as 100: nodes beyond are all the same to it. Scale the score, or
`normalize` it; where the cut is meant, say so with `clamp(…, 0, 100)`.
"""

from __future__ import annotations

from policyengine.language import ir
from policyengine.language.lint.rule import Edit, Finding, Findings, Fix, Severity, Subject, rule
from policyengine.language.syntax import Span
from policyengine.language.types import Kind


@rule("PE3103", Severity.WARNING, __doc__)
def cut_score(subject: Subject) -> Findings:
    """Scores without `normalize` whose bounds go beyond 0 to 100."""
    for score in subject.own(subject.policy.scores):
        low, high = subject.bounds.of(score.value)
        if score.normalize is not ir.Normalize.NONE or (low >= 0 and high <= 100) or low == high:
            continue
        message = f"`{score.name}` lies within {low:g} and {high:g}: it is cut to 0 to 100"
        yield Finding(message, score.value.span, _clamped(score.value))


def _clamped(value: ir.Expr) -> Fix | None:
    if value.type.kind is Kind.OPTIONAL:
        return None
    start, end = value.span.start, value.span.end
    edits = (Edit(Span(start, start), "clamp("), Edit(Span(end, end), ", 0, 100)"))
    return Fix("write `clamp(…, 0, 100)`", edits)
