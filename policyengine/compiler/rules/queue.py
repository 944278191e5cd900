"""Rules about pods that are queued: `queue { order by … fair by … }` and `gang "name" { … }`.

`order by` gives a key; the smallest is popped first, and every order is total. A key is a flat tuple: for each
expression whether it is missing and its value, negated or reversed for `desc`; then when the pod was queued, then its
UID. A missing value (an error, an empty optional, a double that is not finite) sorts behind all others, or before
them with `missing first`, whatever the direction.

`fair by` gives a tenant; pods whose key has no value share the tenant "".

`gang` says which pods belong together. Every error is settled so that a pod does not wait for members that cannot
come: a key without a value makes the pod no member; a `min` below 1 or without a value counts as 1, and it is at most
2^31 - 1; a `timeout` that is not positive, or without a value, counts as the default; a `waits` without a value as
none, one that is not positive as nothing. A `when` without a value counts as true.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import total_ordering
from typing import TYPE_CHECKING, Any

from policyengine.compiler.columns.column import Failed, attempt
from policyengine.compiler.columns.frame import Decision, Scalar
from policyengine.compiler.lower.scope import Scope
from policyengine.compiler.rules.signature import Decisions
from policyengine.framework.profile import FairShare, QueueKey, by_priority
from policyengine.language import ir
from policyengine.language.ir.ir_walk import fields
from policyengine.language.types import Kind
from policyengine.language.values import Optional

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo


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


def queue_key(order: Sequence[ir.OrderKey], scope: Scope) -> QueueKey:
    """The key function of a queue's order; without keys kube-scheduler's: priority, then time, then UID."""
    if not order:
        return by_priority
    parts = key_parts(order, scope)

    def key(pod: PodInfo, queued_at: float, attempts: int = 0) -> tuple[Any, ...]:
        return (*flat_key(parts, Decision(pod, queued_at=queued_at, attempts=attempts)), queued_at, pod.uid)

    return key


def counts_attempts(order: Sequence[ir.OrderKey], scope: Scope) -> bool:
    """Whether an order reads how often the pod was tried, through lets too."""
    return any(field.path == ("pod", "attempts") for key in order for field in fields(key.value, scope.let_value))


def key_parts(order: Sequence[ir.OrderKey], scope: Scope) -> tuple[Part, ...]:
    """The expressions of an order, each as the part of a key that it makes."""
    return tuple(_part(key, scope) for key in order)


def flat_key(parts: Sequence[Part], decision: Decision) -> tuple[Any, ...]:
    """The parts of a key for one decision, the smallest first."""
    flat: list[Any] = []
    for part in parts:
        flat += part(decision)
    return tuple(flat)


def _part(key: ir.OrderKey, scope: Scope) -> Part:
    value = scope.closure(key.value)
    missing = (-1, 0) if key.missing_first else (1, 0)
    turned = _turned(key)

    def part(decision: Decision) -> tuple[int, Any]:
        found = _present(value, decision)
        return missing if found is None else (0, turned(found))

    return part


def _present(value: Scalar, decision: Decision) -> Any:
    """The value, None where it is missing."""
    found = attempt(value, decision)
    if isinstance(found, Optional):
        found = found.content if found.present else None
    if isinstance(found, Failed) or (isinstance(found, float) and not math.isfinite(found)):
        return None
    return found


def _turned(key: ir.OrderKey) -> Callable[[Any], Any]:
    if not key.descending:
        return lambda value: value
    kind = key.value.type.args[0].kind if key.value.type.kind is Kind.OPTIONAL else key.value.type.kind
    return Reversed if kind is Kind.STRING else lambda value: -value


def fair_share(queue: ir.Queue, scope: Scope, decisions: Decisions) -> FairShare | None:
    """How the queue serves tenants; None where it knows none."""
    if queue.fair_by is None:
        return None
    key = scope.closure(queue.fair_by)

    def tenant(pod: PodInfo) -> str:
        found = attempt(key, decisions.about(pod))
        return found if isinstance(found, str) else ""

    return FairShare(tenant, dict(queue.fair_weights))


DEFAULT_TIMEOUT = 60.0
"""Seconds; the permit wait of scheduler-plugins' Coscheduling."""
MOST_MEMBERS = 2**31 - 1


class RuleGang:
    """A gang rule of a policy."""

    def __init__(self, rule: ir.Gang, scope: Scope, decisions: Decisions) -> None:
        self._name = rule.name
        self._when = None if rule.when is None else scope.closure(rule.when)
        self._key = scope.closure(rule.key)
        self._min = scope.closure(rule.min)
        self._timeout = scope.closure(rule.timeout)
        self._waits = None if rule.waits is None else scope.closure(rule.waits)
        self._decisions = decisions

    @property
    def name(self) -> str:
        """The rule's name, as it appears in refusals."""
        return self._name

    def key(self, pod: PodInfo) -> str | None:
        """The gang the pod is a member of; None where the rule does not apply."""
        decision = self._decisions.about(pod)
        if self._when is not None and attempt(self._when, decision) is False:
            return None
        key = attempt(self._key, decision)
        return key if isinstance(key, str) else None

    def minimum(self, pod: PodInfo) -> int:
        """How many members the pod asks for, 1 or more."""
        wanted = attempt(self._min, self._decisions.about(pod))
        return min(max(wanted, 1), MOST_MEMBERS) if isinstance(wanted, int) else 1

    def timeout(self, pod: PodInfo) -> float:
        """Seconds a partial reservation may last."""
        nanoseconds = attempt(self._timeout, self._decisions.about(pod))
        return nanoseconds / 1e9 if isinstance(nanoseconds, int) and nanoseconds > 0 else DEFAULT_TIMEOUT

    def waits(self, pod: PodInfo) -> float | None:
        """Seconds the gang is to wait for room at most; None where it just waits."""
        if self._waits is None:
            return None
        nanoseconds = attempt(self._waits, self._decisions.about(pod))
        return max(nanoseconds / 1e9, 0.0) if isinstance(nanoseconds, int) else None
