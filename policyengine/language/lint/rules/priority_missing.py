"""an order without priority beside preemption

Preemption makes room for pods of higher `pod.priority`, and the order of the queue does not look at it: a pod with a
high priority waits behind others, and those of a low one may take the room that preemption freed for it. Put
`pod.priority desc` into the order, or `disable DefaultPreemption` where priorities are not used.
"""

from __future__ import annotations

from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule

_PRIORITY = frozenset({("pod", "priority"), ("pod", "priorityClass")})
_PREEMPTION = "DefaultPreemption"


@rule("PE3203", Severity.INFO, __doc__)
def priority_missing(subject: Subject) -> Findings:
    """Orders that are written out, where preemption is on."""
    policy = subject.policy
    used = any(use.name == _PREEMPTION for use in policy.uses)
    on = used or (policy.base != "none" and _PREEMPTION not in policy.disabled)
    order = subject.order
    if not on or not order:
        return
    reads = {path for one in order for path in subject.readings.of(one.value).paths}
    if not reads & _PRIORITY:
        span = order[0].span.to(order[-1].span)
        yield Finding("the order does not look at `pod.priority`, and preemption goes by it", span)
