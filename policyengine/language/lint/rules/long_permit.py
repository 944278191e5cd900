"""a permit that holds a pod for more than 15 minutes

While a pod is held its room is reserved for it. kube-scheduler lets no plugin hold a pod for longer than 15 minutes,
and refuses it then; so does this scheduler where a permit gives no `timeout`.
"""

from __future__ import annotations

import math

from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule
from policyengine.language.lint.rules.long_gang_timeout import LONGEST


@rule("PE3305", Severity.WARNING, __doc__)
def long_permit(subject: Subject) -> Findings:
    """`delay` and `timeout` whose bounds go beyond it."""
    for permit in subject.own(subject.policy.permits):
        for name, value in (("delay", permit.delay), ("timeout", permit.timeout)):
            longest = subject.bounds.of(value).high if value is not None else 0.0
            if value is not None and longest > LONGEST:
                bound = "has no bound" if math.isinf(longest) else f"may be {longest / 60e9:g} minutes"
                yield Finding(f"`{name}` {bound}; a pod is held for 15 minutes at most", value.span)
