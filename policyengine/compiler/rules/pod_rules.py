"""Rules about pods alone: `queue { order by … fair by … }`, `gang` and `preempt`.

`order by` gives a key; the smallest is popped first, of equal ones the pod that came first. A key is a flat tuple: for
each expression whether it is missing and its value, negated or reversed for `desc`; then when the pod was queued. A
missing value (an error, an empty optional, a double that is not finite) sorts behind all others, or before
them with `missing first`, whatever the direction.

| without a value | counts as |
|---|---|
| `when` of a gang | true |
| `when`, `victims` of preempt | false: the rule has nothing to say, the victim stays |
| `fair by` | the tenant "" |
| key of a gang | no member |
| `min` (or below 1) | 1; it is at most 2^31 - 1 |
| `timeout` (or not positive) | the default |
| `waits` | none; one that is not positive is nothing |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import total_ordering
from typing import Any

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import ClusterView
from policyengine.compiler.columns.frame import Decision
from policyengine.compiler.lower.scope import Scope
from policyengine.compiler.rules.node_rule import Decisions
from policyengine.compiler.rules.requeue_events import paths_read
from policyengine.framework.profile import FairShare, PreemptRule, QueueKey, VictimRule, by_priority
from policyengine.language import ir
from policyengine.language.types import Kind, content_of

Part = Callable[[Decision], tuple[int, Any]]


@total_ordering
class Reversed:
    """A value that sorts the other way round; for what cannot be negated."""

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value

    def __lt__(self, other: Reversed) -> bool:
        return other.value < self.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reversed) and other.value == self.value

    def __hash__(self) -> int:
        return hash(self.value)


def queue_key(order: Sequence[ir.OrderKey], scope: Scope, decisions: Decisions) -> QueueKey:
    """The key function of a queue's order; without keys kube-scheduler's: priority, then time."""
    if not order:
        return by_priority
    parts = key_parts(order, scope)

    def key(pod: PodInfo, queued_at: float, attempts: int = 0) -> tuple[Any, ...]:
        decision = Decision(pod, queued_at=queued_at, attempts=attempts)
        decision.of_pod = decisions.about(pod).of_pod
        return (*flat_key(parts, decision), queued_at)

    return key


def counts_attempts(order: Sequence[ir.OrderKey], scope: Scope) -> bool:
    """Whether an order reads how often the pod was tried, through lets too."""
    return ("pod", "attempts") in paths_read([key.value for key in order], scope)


def key_parts(order: Sequence[ir.OrderKey], scope: Scope) -> tuple[Part, ...]:
    """The expressions of an order, each as the part of a key that it makes."""
    return tuple(_part(key, scope) for key in order)


def flat_key(parts: Sequence[Part], decision: Decision) -> tuple[Any, ...]:
    """The parts of a key for one decision, the smallest first."""
    return tuple(one for part in parts for one in part(decision))


def _part(key: ir.OrderKey, scope: Scope) -> Part:
    value = scope.value(key.value)
    missing = (-1, 0) if key.missing_first else (1, 0)
    turned = _turned(key)

    def part(decision: Decision) -> tuple[int, Any]:
        found = value(decision)
        if found is None or (isinstance(found, float) and not math.isfinite(found)):
            return missing
        return 0, turned(found)

    return part


def _turned(key: ir.OrderKey) -> Callable[[Any], Any]:
    if not key.descending:
        return lambda value: value
    return Reversed if content_of(key.value.type).kind is Kind.STRING else lambda value: -value


def fair_share(queue: ir.Queue, scope: Scope, decisions: Decisions) -> FairShare | None:
    """How the queue serves tenants; None where it knows none."""
    if queue.fair_by is None:
        return None
    key = scope.value(queue.fair_by)
    return FairShare(lambda pod: key(decisions.about(pod)) or "", dict(queue.fair_weights))


DEFAULT_TIMEOUT = 60.0
"""Seconds; the permit wait of scheduler-plugins' Coscheduling."""
MOST_MEMBERS = 2**31 - 1


class RuleGang:
    """A gang rule of a policy."""

    def __init__(self, rule: ir.Gang, scope: Scope, decisions: Decisions) -> None:
        self.name = rule.name
        self.counts_finished, self.any_scheduler = rule.counts_finished, rule.any_scheduler
        self._when = scope.condition(rule.when, failed=True)
        self._key, self._min = scope.value(rule.key), scope.value(rule.min)
        self._timeout, self._waits = scope.value(rule.timeout), scope.value(rule.waits)
        self._decisions = decisions

    def key(self, pod: PodInfo) -> str | None:
        """The gang the pod is a member of; None where the rule does not apply."""
        decision = self._decisions.about(pod)
        key: str | None = self._key(decision) if self._when(decision) else None
        return key

    def minimum(self, pod: PodInfo) -> int:
        """How many members the pod asks for, 1 or more."""
        wanted: int | None = self._min(self._decisions.about(pod))
        return 1 if wanted is None else min(max(wanted, 1), MOST_MEMBERS)

    def timeout(self, pod: PodInfo) -> float:
        """Seconds a partial reservation may last."""
        nanoseconds: int = self._timeout(self._decisions.about(pod)) or 0
        return nanoseconds / 1e9 if nanoseconds > 0 else DEFAULT_TIMEOUT

    def waits(self, pod: PodInfo) -> float | None:
        """Seconds the gang is to wait for room at most; None where it just waits."""
        nanoseconds: int | None = self._waits(self._decisions.about(pod))
        return None if nanoseconds is None else max(nanoseconds / 1e9, 0.0)


def preempt_rule(rule: ir.Preempt, scope: Scope, decisions: Decisions) -> PreemptRule:
    """The preempt rule of a policy."""
    when = scope.condition(rule.when, failed=False)
    victims = scope.condition(rule.victims, failed=False)
    order, most = key_parts(rule.order, scope), scope.value(rule.max_victims)

    def about(pod: PodInfo, view: ClusterView) -> VictimRule | None:
        decision = decisions.about(pod, view.snapshot())
        if not when(decision):
            return None
        return VictimRule(
            most(decision),
            lambda victim: victims(decision.about_victim(victim)),
            lambda victim: flat_key(order, decision.about_victim(victim)),
        )

    return about
