"""a gang that may hold room for a long time

Until `timeout` the members placed so far keep what they have reserved, whether the rest comes or not. With more than
15 minutes, the longest that kube-scheduler lets a pod wait at Permit, or with a `timeout` that the author of a pod
sets without a bound, a group that never completes keeps nodes from all others. Bound it by `min(…, 10min)`.
"""

from __future__ import annotations

import math

from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule

LONGEST = 15 * 60 * 10**9
"""Nanoseconds: maxTimeout of kube-scheduler (pkg/scheduler/framework/runtime/framework.go)."""


@rule("PE3303", Severity.WARNING, __doc__)
def long_gang_timeout(subject: Subject) -> Findings:
    """Timeouts whose bounds go beyond 15 minutes. A PodGroup's is set by who may write PodGroups."""
    for gang in subject.own(subject.policy.gangs):
        longest = subject.bounds.of(gang.timeout).high
        reads = {path[0] for path in subject.readings.of(gang.timeout).paths}
        if longest > LONGEST and (math.isfinite(longest) or "pod" in reads):
            bound = "has no bound" if math.isinf(longest) else f"may be {longest / 60e9:g} minutes"
            yield Finding(f"`timeout` {bound}: the gang holds what it reserved as long", gang.timeout.span)
