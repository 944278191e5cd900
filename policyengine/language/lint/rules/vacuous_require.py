"""a require that is always true

Whatever the node and the pod are, the condition holds: the `require` refuses nothing, so the filter does not do what
it is there for. Often a comparison looks in the wrong direction, or `||` stands where `&&` was meant:
`zone != "a" || zone != "b"` is true of every zone.
"""

from __future__ import annotations

from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule


@rule("PE3002", Severity.WARNING, __doc__)
def vacuous_require(subject: Subject) -> Findings:
    """Requires that hold by themselves, or by their filter's `when`."""
    for filter_ in subject.own(subject.policy.filters):
        given = [filter_.when] if filter_.when is not None else []
        if given and subject.truth.impossible(*given):
            continue
        for require in filter_.requires:
            condition = require.condition
            if not subject.truth.may_fail(condition) and subject.truth.implied(condition, *given):
                by_when = not subject.truth.implied(condition)
                why = "wherever `when` is, so it refuses nothing" if by_when else "so it refuses nothing"
                yield Finding(f"this is always true{' ' if by_when else ', '}{why}", condition.span)
