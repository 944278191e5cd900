"""a permit whose delay outlasts its timeout

At `timeout` a pod that is still held is refused. A `delay` that is longer never ends in time: every pod the permit
holds is refused.
"""

from __future__ import annotations

from policyengine.language.lint.rule import Finding, Findings, Related, Severity, Subject, rule


@rule("PE3306", Severity.WARNING, __doc__)
def permit_delay_over_timeout(subject: Subject) -> Findings:
    """Permits with both, of which the delay is surely the longer."""
    for permit in subject.own(subject.policy.permits):
        if permit.delay is None or permit.timeout is None:
            continue
        if subject.bounds.of(permit.delay).low >= subject.bounds.of(permit.timeout).high:
            related = (Related(permit.timeout.span, "refused here"),)
            yield Finding("the pod is refused before the delay is over", permit.delay.span, None, related)
