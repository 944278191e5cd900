"""a score that uses only a sliver of 0 to 100

A score counts in whole points from 0 to 100. One that stays within a few of them hardly ranks: `ratio(a, b)` lies
between 0 and 1, so it is 0 for every node but a full one. Write `100 * ratio(a, b)`, or `normalize minmax`.
"""

from __future__ import annotations

from policyengine.language import ir
from policyengine.language.lint.rule import Edit, Finding, Findings, Fix, Severity, Subject, rule
from policyengine.language.syntax import Span

_NARROW = 5.0
"""Points: less than this is a sliver."""


@rule("PE3102", Severity.WARNING, __doc__)
def sliver_score(subject: Subject) -> Findings:
    """Scores without `normalize` whose bounds lie close together, within 0 and 100."""
    for score in subject.own(subject.policy.scores):
        low, high = subject.bounds.of(score.value)
        low, high = max(low, 0.0), min(high, 100.0)
        if score.normalize is not ir.Normalize.NONE or not 0 < high - low < _NARROW:
            continue
        message = f"`{score.name}` lies within {low:g} and {high:g} of 0 to 100, and counts in whole points"
        yield Finding(message, score.value.span, _hundredfold(score.value, low, high))


def _hundredfold(value: ir.Expr, low: float, high: float) -> Fix | None:
    if not (low == 0 and high == 1 and isinstance(value, ir.Call) and value.function in ("ratio", "betaCdf")):
        return None
    return Fix("write `100 * …`", (Edit(Span(value.span.start, value.span.start), "100 * "),))
