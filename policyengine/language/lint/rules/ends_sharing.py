"""a rule that ends the sharing of results

Pods that look the same to a policy share their columns of verdicts and scores, so that the hundredth replica of a
Deployment costs next to nothing. Every pod has its own `pod.name` and `pod.uid`, and its own `random()`: a rule that
reads them is computed for every pod anew, and so is the order in which it stands.
"""

from __future__ import annotations

from policyengine.language import ir
from policyengine.language.ir.ir_walk import walk
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule

_OWN = frozenset({("pod", "name"), ("pod", "uid")})


@rule("PE3701", Severity.INFO, __doc__)
def ends_sharing(subject: Subject) -> Findings:
    """What filters and scores read, through lets too. Texts are made for refusals only."""
    for place in subject.places:
        if isinstance(place.member, ir.Score | ir.Filter | ir.Require) and place.what != "otherwise":
            reading = subject.readings.of(place.expr)
            if "random" in reading.functions or not _OWN.isdisjoint(reading.paths):
                part, name = next((part, own) for part in walk(place.expr, subject.let_value) if (own := _own(part)))
                span = part.span if subject.holds(part.span) else place.expr.span
                yield Finding(f"`{name}` is another one for every pod: none shares what is computed here", span)


def _own(part: ir.Expr) -> str:
    if isinstance(part, ir.Field) and part.path in _OWN:
        return ".".join(part.path)
    return "random()" if isinstance(part, ir.Call) and part.function == "random" else ""
