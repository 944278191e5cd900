"""a gang whose `min` can exceed its size

`min` comes from what the author of a pod writes, and nothing bounds it: a label of 1000000 makes its group wait for
members that never come, and one of 0 or less means nothing. Bound it by what a group may be:
`clamp(toInt(pod.labels[?"minAvailable"]).orValue(1), 1, 100)`.
"""

from __future__ import annotations

from policyengine.language import ir
from policyengine.language.lint.rule import Edit, Finding, Findings, Fix, Severity, Subject, rule
from policyengine.language.syntax import Span

_LARGEST = 10_000


@rule("PE3302", Severity.INFO, __doc__)
def gang_min_unbounded(subject: Subject) -> Findings:
    """`min` that reads the pod's own text and has no bounds. A PodGroup's is validated by the API server."""
    for gang in subject.own(subject.policy.gangs):
        low, high = subject.bounds.of(gang.min)
        reads = {path[0] for path in subject.readings.of(gang.min).paths}
        if "pod" in reads and (high > _LARGEST or low < 0):
            yield Finding("nothing bounds `min`: it can exceed the gang's size", gang.min.span, _clamped(gang.min))


def _clamped(value: ir.Expr) -> Fix:
    edits = (
        Edit(Span(value.span.start, value.span.start), "clamp("),
        Edit(Span(value.span.end, value.span.end), ", 1, 100)"),
    )
    return Fix("write `clamp(…, 1, 100)`", edits)
