"""an order in which a pod may wait for ever

The first key of the order is a property of the pod that never changes. While pods with a better one keep coming, and
the cluster is full, those with a worse one are never served. Let time count in the first key:
`order by pod.createdAt - 10min * pod.priority` lets a pod rise by one priority every ten minutes. kube-scheduler's own
order, `pod.priority desc`, has no ageing either.
"""

from __future__ import annotations

from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule

_AGE = frozenset({("pod", "createdAt"), ("pod", "queuedAt"), ("pod", "attempts")})


@rule("PE3201", Severity.INFO, __doc__)
def no_ageing(subject: Subject) -> Findings:
    """The first key of an order that is written out."""
    order = subject.order
    if not order or subject.policy.queue.fair_by is not None:
        return
    if _AGE.isdisjoint(subject.readings.of(order[0].value).paths):
        yield Finding("nothing in the first key grows with waiting: a pod may wait for ever", order[0].span)
