"""preemption narrowed without an order

The rule says who may be a victim, and not who goes first: kube-scheduler's order (lowest priority, then the most
recently started) decides, which may not be what the rule is about. `order by victim.priority, victim.startedAt desc`
says it.
"""

from __future__ import annotations

from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule


@rule("PE3402", Severity.INFO, __doc__)
def preempt_without_order(subject: Subject) -> Findings:
    """A `preempt` that leaves out `order by`."""
    preempt = subject.policy.preempt
    if preempt is not None and not preempt.order and subject.holds(preempt.span):
        yield Finding("nothing says which victims go first", preempt.span)
