"""a require that another one implies

A condition before it in the same filter lets nothing through that this one would refuse. One of the two is not what
was meant, or can go: `require node.free.cpu >= 2` behind `require node.free.cpu >= 4` never refuses anything.
"""

from __future__ import annotations

from policyengine.language.lint.rule import Finding, Findings, Related, Severity, Subject, rule

_MOST = 40
"""Requires of one filter that are compared."""


@rule("PE3003", Severity.WARNING, __doc__)
def implied_require(subject: Subject) -> Findings:
    """Each require against those before it."""
    for filter_ in subject.own(subject.policy.filters):
        when = [filter_.when] if filter_.when is not None else []
        requires = filter_.requires[:_MOST]
        for number, require in enumerate(requires):
            condition, before = require.condition, [one.condition for one in requires[:number]]
            if not before or subject.truth.may_fail(condition):
                continue
            if subject.truth.implied(condition, *when) or subject.truth.impossible(*when, *before):
                continue  # PE3002, PE3001
            if subject.truth.implied(condition, *when, *before):
                alone = (one for one in requires[:number] if subject.truth.implied(condition, *when, one.condition))
                by = next(alone, requires[number - 1])
                related = (Related(by.condition.span, "this refuses more"),)
                message = "what is required before implies this, so it refuses nothing"
                yield Finding(message, condition.span, None, related)
