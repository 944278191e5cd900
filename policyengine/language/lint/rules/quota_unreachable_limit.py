"""a quota whose limit is never reached

Over `guarantee` a pod is admitted only where the quota may `borrow`. Without it the guarantee is the limit, and a
higher `limit` changes nothing. Write `borrow: true`, or leave the limit out.
"""

from __future__ import annotations

from policyengine.language import ir
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule


@rule("PE3401", Severity.WARNING, __doc__)
def quota_unreachable_limit(subject: Subject) -> Findings:
    """Quotas that never borrow, with a limit above the guarantee."""
    for quota in subject.own(subject.policy.quotas):
        never = quota.borrow is None or (isinstance(quota.borrow, ir.Const) and quota.borrow.value is False)
        guarantee = dict(quota.guarantee)
        above = any(amount > guarantee[name] for name, amount in quota.limit or () if name in guarantee)
        if never and above:
            message = f"`{quota.name}` does not borrow, so its limit above the guarantee is never reached"
            yield Finding(message, quota.span)
