"""The order of the queue and of preemption's victims."""

from __future__ import annotations

from collections.abc import Hashable

from policyengine.language import ir
from policyengine.language.ir.ir_walk import key
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule
from policyengine.language.types import Reach

_AGE = frozenset({("pod", "createdAt"), ("pod", "queuedAt"), ("pod", "attempts")})


@rule("PE3201", Severity.INFO)
def no_ageing(subject: Subject) -> Findings:
    """an order in which a pod may wait for ever

    The first key of the order is a property of the pod that never changes. While pods with a better one keep coming,
    and the cluster is full, those with a worse one are never served. Let time count in the first key: `order by
    pod.createdAt - 10min * pod.priority` lets a pod rise by one priority every ten minutes. kube-scheduler's own order,
    `pod.priority desc`, has no ageing either.
    """
    order = subject.order
    if not order or subject.policy.queue.fair_by is not None:
        return
    if _AGE.isdisjoint(subject.paths_in(order[0].value)):
        yield Finding("nothing in the first key grows with waiting: a pod may wait for ever", order[0].span)


@rule("PE3202", Severity.WARNING)
def useless_key(subject: Subject) -> Findings:
    """a key of the order that decides nothing

    The key is the same for every pod, or repeats one before it, or stands behind one that no two pods share (`pod.uid`,
    or `pod.name` after `pod.namespace`). The compiler appends `pod.queuedAt asc, pod.uid asc` by itself.

    By definition: a key is constant, is written twice, or comes after fields that no two pods of a cluster share.
    """
    preempt = subject.policy.preempt
    for order in (subject.order, preempt.order if preempt is not None else ()):
        yield from _of_order(subject, order)


def _of_order(subject: Subject, order: tuple[ir.OrderKey, ...]) -> Findings:
    seen: set[Hashable] = set()
    read: set[tuple[str, ...]] = set()
    for one in order:
        value = one.value
        while isinstance(value, ir.LetRef) and (named := subject.let_value(value.name)) is not None:
            value = named
        if value.reach is Reach.CONSTANT:
            yield Finding("the key is the same for every pod", one.span)
        elif ("pod", "uid") in read or {("pod", "name"), ("pod", "namespace")} <= read:
            yield Finding("no two pods are equal in the keys before, so this one is never asked", one.span)
        elif key(value) in seen:
            yield Finding("the key stands further in front already", one.span)
        seen.add(key(value))
        read |= {value.path} if isinstance(value, ir.Field) else set()


_PRIORITY = frozenset({("pod", "priority"), ("pod", "priorityClass")})
_PREEMPTION = "DefaultPreemption"


@rule("PE3203", Severity.INFO)
def priority_missing(subject: Subject) -> Findings:
    """an order without priority beside preemption

    Preemption makes room for pods of higher `pod.priority`, and the order of the queue does not look at it: a pod with
    a high priority waits behind others, and those of a low one may take the room that preemption freed for it. Put
    `pod.priority desc` into the order, or `disable DefaultPreemption` where priorities are not used.
    """
    policy = subject.policy
    used = any(use.name == _PREEMPTION for use in policy.uses)
    on = used or (policy.base != "none" and _PREEMPTION not in policy.disabled)
    order = subject.order
    if not on or not order:
        return
    reads = {path for one in order for path in subject.paths_in(one.value)}
    if not reads & _PRIORITY:
        span = order[0].span.to(order[-1].span)
        yield Finding("the order does not look at `pod.priority`, and preemption goes by it", span)


@rule("PE3402", Severity.INFO)
def preempt_without_order(subject: Subject) -> Findings:
    """preemption narrowed without an order

    The rule says who may be a victim, and not who goes first: kube-scheduler's order (lowest priority, then the most
    recently started) decides, which may not be what the rule is about. `order by victim.priority, victim.startedAt
    desc` says it.
    """
    preempt = subject.policy.preempt
    if preempt is not None and not preempt.order and subject.holds(preempt.span):
        yield Finding("nothing says which victims go first", preempt.span)
