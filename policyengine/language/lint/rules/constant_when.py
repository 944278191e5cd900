"""a `when` that is always true or never

A rule whose `when` is never true does not run; one whose `when` is always true does not need it. Mostly a comparison
contradicts another one: `when pod.priority > 100 && pod.priority < 10`.
"""

from __future__ import annotations

from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule


@rule("PE3004", Severity.WARNING, __doc__)
def constant_when(subject: Subject) -> Findings:
    """The `when` of every rule."""
    for place in subject.places:
        if place.what != "when":
            continue
        if subject.truth.impossible(place.expr):
            yield Finding("`when` is never true, so the rule never runs", place.expr.span)
        elif not subject.truth.may_fail(place.expr) and subject.truth.implied(place.expr):
            yield Finding("`when` is always true: leave it out", place.expr.span)
