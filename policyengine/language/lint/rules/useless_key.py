"""a key of the order that decides nothing

The key is the same for every pod, or repeats one before it, or stands behind one that no two pods share (`pod.uid`,
or `pod.name` after `pod.namespace`). The compiler appends `pod.queuedAt asc, pod.uid asc` by itself.
"""

from __future__ import annotations

from collections.abc import Hashable

from policyengine.language import ir
from policyengine.language.ir.ir_walk import key
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule
from policyengine.language.types import Reach


@rule("PE3202", Severity.WARNING, __doc__)
def useless_key(subject: Subject) -> Findings:
    """The keys of the queue, and of preemption."""
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
