"""Quota rules: which pods count together, and how much they may have.

| without a value | counts as |
|---|---|
| `when` | true |
| `by` | the key ""; an empty optional is no quota |
| an amount (or below 0) | 0; an empty optional is none |
| `borrow` | false |

What a quota refuses is waited for at the quota's pods: one that goes, asks for less, or counts there no more.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, cast

from policyengine.cluster.events import ActionType, ClusterEvent, Resource
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_requests import EPHEMERAL_STORAGE
from policyengine.cluster.view import Snapshot
from policyengine.compiler.columns.column import Failed, attempt, plain
from policyengine.compiler.columns.frame import Decision
from policyengine.compiler.lower.scope import Scope
from policyengine.compiler.rules.node_rule import Decisions, Signature
from policyengine.compiler.rules.requeue_events import events_of, namespace_events, own_update, paths_read
from policyengine.framework.events import ClusterEventWithHint, QueueingHint
from policyengine.framework.quota import Quota, Quotas
from policyengine.language import ir
from policyengine.language.types import Reach

_OWN = ClusterEvent(Resource.UNSCHEDULED_POD, ActionType.UPDATE)
_LESS = ClusterEvent(Resource.POD, ActionType.DELETE | ActionType.UPDATE)
"""Pending pods too: room may have been made for them."""
_NAMES = {"storage": EPHEMERAL_STORAGE}


def _asks_otherwise(refused: Any, old: Any, new: Any) -> QueueingHint:
    """Whether the pod itself asks for something else. Its status alone, which tells of the refusal, helps nothing: the
    pod, and its gang with it, would be tried again each time that is written."""
    is_same = old is not None and new is not None and old.shape is new.shape
    return QueueingHint.SKIP if is_same else own_update(refused, old, new)


class RuleQuota:
    """A quota rule of a policy."""

    def __init__(self, rule: ir.Quota, scope: Scope, decisions: Decisions) -> None:
        self.name = rule.name
        self._when = scope.condition(rule.when, failed=True)
        self._by = None if rule.by is None else scope.closure(rule.by)
        self._guarantee, self._limit = _Amounts(rule.guarantee, scope), _Amounts(rule.limit or (), scope)
        self._borrow = scope.condition(rule.borrow, failed=False, absent=False)
        self._decisions = decisions
        borrow = () if rule.borrow is None else (rule.borrow,)
        own = _about_pods(rule)
        self._signature = Signature(None, (*own, *borrow), scope, decisions)
        self._events = (
            ClusterEventWithHint(_LESS, self._is_less),
            ClusterEventWithHint(_OWN, _asks_otherwise),
            *events_of((*own, *borrow), scope, reads_node=False),
            *namespace_events(own, scope),
        )

    def of(self, pod: PodInfo) -> Quota | None:
        """The quota that the pod counts in. Without a value `by` is the key "", an empty one is none."""
        decision = self._decisions.about(pod)
        if not self._when(decision):
            return None
        key = None if self._by is None else plain(attempt(self._by, decision))
        if self._by is not None and key is None:
            return None
        key = "" if isinstance(key, Failed) else key
        return Quota(self, key, self._guarantee.about(decision), self._limit.about(decision))

    @property
    def fixed(self) -> Quota | None:
        """The one quota that the rule makes, where it is the same for all pods."""
        guarantee, limit = self._guarantee.fixed, self._limit.fixed
        if self._by is not None or guarantee is None or limit is None:
            return None
        return Quota(self, None, guarantee, limit)

    def may_borrow(self, pod: PodInfo, snapshot: Snapshot) -> bool:
        """Whether the pod may have what exceeds the guarantee."""
        return self._borrow(self._decisions.about(pod, snapshot))

    def signature(self, pod: PodInfo) -> Hashable:
        """What the rule reads of the pod, and what the pod asks for."""
        return self._signature.of(pod), pod.shape.amounts

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """A pod of the quota that goes or asks for less, a change of the pod itself, of the namespaces that the rule
        reads, and of what `borrow` reads."""
        return self._events

    def _is_less(self, refused: Any, old: Any, new: Any) -> QueueingHint:
        """Whether the quota's pods use less than before."""
        quota = self.of(refused)
        if old is None or quota is None or not self._counts(old, quota):
            return QueueingHint.SKIP
        if new is None or not self._counts(new, quota):
            return QueueingHint.QUEUE
        is_less = any(new.shape.requests.get(name) < amount for name, amount in old.shape.amounts)
        return QueueingHint.QUEUE if is_less else QueueingHint.SKIP

    def _counts(self, pod: PodInfo, quota: Quota) -> bool:
        found = self.of(pod)
        return found is not None and found.key == quota.key


class _Amounts:
    """What a rule says of a quota's amounts: those that are the same for all pods are worked out once."""

    def __init__(self, written: ir.Amounts, scope: Scope) -> None:
        self._values = [(_NAMES.get(name, name), scope.closure(amount)) for name, amount in written]
        of_nobody = Decision(cast(PodInfo, None))
        is_fixed = all(amount.reach is Reach.CONSTANT for _, amount in written)
        self.fixed = self._read(of_nobody) if is_fixed else None
        """The amounts, where they are the same for all pods."""

    def about(self, decision: Decision) -> Mapping[str, int]:
        """The amounts for a pod."""
        return self._read(decision) if self.fixed is None else self.fixed

    def _read(self, decision: Decision) -> Mapping[str, int]:
        """An empty optional is no amount; one without a value, or below 0, is 0."""
        found = ((name, plain(attempt(value, decision))) for name, value in self._values)
        return {name: 0 if isinstance(one, Failed) else max(one, 0) for name, one in found if one is not None}


def _about_pods(rule: ir.Quota) -> tuple[ir.Expr, ...]:
    """What says in which quota a pod counts, and how much that is."""
    amounts = (amount for _, amount in (*rule.guarantee, *(rule.limit or ())))
    return tuple(expr for expr in (rule.when, rule.by, *amounts) if expr is not None)


_OF_POD = {
    **{name: name for name in ("name", "namespace", "uid", "labels", "annotations", "priority")},
    **dict.fromkeys(("namespaceLabels", "namespaceAnnotations"), "home"),
    "owner": "owner_references",
    "createdAt": "created_at",
}
"""A field of a pod -> the attribute of `PodInfo` that it follows from; the others follow from its shape."""


def quotas(rules: Sequence[ir.Quota], scope: Scope, decisions: Decisions) -> Quotas:
    """The quotas of a policy."""
    expressions = [expr for rule in rules for expr in _about_pods(rule)]
    read = {path[1] for path in paths_read(expressions, scope) if path[0] == "pod"}
    if "podGroup" in read:
        read.add("labels")
    attributes = sorted({_OF_POD.get(name, "shape") for name in read})
    return Quotas(
        (RuleQuota(rule, scope, decisions) for rule in rules),
        lambda pod: tuple(getattr(pod, attribute) for attribute in attributes),
    )
