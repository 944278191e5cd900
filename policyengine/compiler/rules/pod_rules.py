"""Rules about pods alone: `queue { order by … fair by … }`, `gang`, `quota` and `preempt`.

`order by` gives a key; the smallest is popped first, and every order is total. A key is a flat tuple: for each
expression whether it is missing and its value, negated or reversed for `desc`; then when the pod was queued, then its
UID. A missing value (an error, an empty optional, a double that is not finite) sorts behind all others, or before
them with `missing first`, whatever the direction.

| without a value | counts as |
|---|---|
| `when` of a gang or quota | true |
| `when`, `victims` of preempt | false: the rule has nothing to say, the victim stays |
| `fair by` | the tenant "" |
| key of a gang | no member |
| `min` (or below 1) | 1; it is at most 2^31 - 1 |
| `timeout` (or not positive) | the default |
| `waits` | none; one that is not positive is nothing |
| `borrow` | false |

What a quota refuses is waited for at the quota's pods: one that goes, asks for less, or matches no more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import total_ordering
from typing import Any

from policyengine.cluster.events import ActionType, ClusterEvent, Resource
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.requests import EPHEMERAL_STORAGE
from policyengine.cluster.view import ClusterView, Snapshot
from policyengine.compiler.columns.column import content_of
from policyengine.compiler.columns.frame import Decision
from policyengine.compiler.lower.scope import Scope
from policyengine.compiler.rules.node_rule import Decisions, Signature
from policyengine.compiler.rules.requeue_events import events_of, own_update, paths_read
from policyengine.framework.events import ClusterEventWithHint, QueueingHint
from policyengine.framework.profile import FairShare, QueueKey, by_priority
from policyengine.framework.quota import Quotas
from policyengine.language import ir
from policyengine.language.types import Kind

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
    """The key function of a queue's order; without keys kube-scheduler's: priority, then time, then UID."""
    if not order:
        return by_priority
    parts = key_parts(order, scope)

    def key(pod: PodInfo, queued_at: float, attempts: int = 0) -> tuple[Any, ...]:
        decision = Decision(pod, queued_at=queued_at, attempts=attempts)
        decision.of_pod = decisions.about(pod).of_pod
        return (*flat_key(parts, decision), queued_at, pod.uid)

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


class RulePreempt:
    """The preempt rule of a policy."""

    def __init__(self, rule: ir.Preempt, scope: Scope, decisions: Decisions) -> None:
        self._when = scope.condition(rule.when, failed=False)
        self._victims = scope.condition(rule.victims, failed=False)
        self._order = key_parts(rule.order, scope)
        self._most = scope.value(rule.max_victims)
        self._decisions = decisions

    def about(self, pod: PodInfo, view: ClusterView) -> RuleVictims | None:
        """What the rule says for this pod, valid until the view changes; None where it has nothing to say."""
        decision = self._decisions.about(pod, view.snapshot())
        if not self._when(decision):
            return None
        return RuleVictims(self._most(decision), self._victims, self._order, decision)


@dataclass(frozen=True, slots=True)
class RuleVictims:
    """What the preempt rule of a policy says for one pod. `most`: how many victims a node may take."""

    most: int | None
    victims: Callable[[Decision], bool]
    order: Sequence[Part]
    decision: Decision

    def may_go(self, victim: PodInfo) -> bool:
        """Whether the victim may have to leave for the pod."""
        return self.victims(self.decision.about_victim(victim))

    def turn(self, victim: PodInfo) -> tuple[Any, ...]:
        """The victim's key in the order of going; () where the rule gives none."""
        return flat_key(self.order, self.decision.about_victim(victim))


_OWN = ClusterEvent(Resource.UNSCHEDULED_POD, ActionType.UPDATE)
_LESS = ClusterEvent(Resource.POD, ActionType.DELETE | ActionType.UPDATE)
"""Pending pods too: room may have been made for them."""
_NAMES = {"storage": EPHEMERAL_STORAGE}


class RuleQuota:
    """A quota rule of a policy."""

    def __init__(self, rule: ir.Quota, scope: Scope, decisions: Decisions) -> None:
        self.name = rule.name
        self.guarantee: Mapping[str, int] = _amounts(rule.guarantee)
        self.limit: Mapping[str, int] = _amounts(rule.limit or ())
        self._when = scope.condition(rule.when, failed=True)
        self._borrow = scope.condition(rule.borrow, failed=False, absent=False)
        self._decisions = decisions
        borrow = () if rule.borrow is None else (rule.borrow,)
        self._signature = Signature(None, (rule.when, *borrow), scope, decisions)
        self._events = (
            ClusterEventWithHint(_LESS, self._is_less),
            ClusterEventWithHint(_OWN, own_update),
            *events_of(borrow, scope, reads_node=False),
        )

    def matches(self, pod: PodInfo) -> bool:
        """Whether the pod counts in this quota."""
        return self._when(self._decisions.about(pod))

    def may_borrow(self, pod: PodInfo, snapshot: Snapshot) -> bool:
        """Whether the pod may have what exceeds the guarantee."""
        return self._borrow(self._decisions.about(pod, snapshot))

    def signature(self, pod: PodInfo) -> Hashable:
        """What the rule reads of the pod, and what the pod asks for."""
        return self._signature.of(pod), pod.shape.amounts

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """A pod of the quota that goes or asks for less, a change of the pod itself, and what `borrow` reads."""
        return self._events

    def _is_less(self, refused: Any, old: Any, new: Any) -> QueueingHint:
        """Whether the quota's pods use less than before."""
        if old is None or not self.matches(old):
            return QueueingHint.SKIP
        if new is None or not self.matches(new):
            return QueueingHint.QUEUE
        is_less = any(new.shape.requests.get(name) < amount for name, amount in old.shape.amounts)
        return QueueingHint.QUEUE if is_less else QueueingHint.SKIP


def _amounts(written: ir.Amounts) -> dict[str, int]:
    return {_NAMES.get(name, name): amount for name, amount in written}


_OF_POD = {
    **{name: name for name in ("name", "namespace", "uid", "labels", "annotations", "priority")},
    **dict.fromkeys(("namespaceLabels", "namespaceAnnotations"), "home"),
    "owner": "owner_references",
    "createdAt": "created_at",
}
"""A field of a pod -> the attribute of `PodInfo` that it follows from; the others follow from its shape."""


def quotas(rules: Sequence[ir.Quota], scope: Scope, decisions: Decisions) -> Quotas:
    """The quotas of a policy."""
    read = {path[1] for path in paths_read([rule.when for rule in rules], scope) if path[0] == "pod"}
    if "podGroup" in read:
        read.add("labels")
    attributes = sorted({_OF_POD.get(name, "shape") for name in read})
    return Quotas(
        (RuleQuota(rule, scope, decisions) for rule in rules),
        lambda pod: tuple(getattr(pod, attribute) for attribute in attributes),
    )
