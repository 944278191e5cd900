"""`quota "name" when e { guarantee limit borrow }` as a quota rule.

A `when` without a value counts as true, a `borrow` without one as false. What a pod is refused by is waited for at the
quota's pods: one that goes, asks for less, or matches no more.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from policyengine.cluster.events import ActionType, ClusterEvent, Resource
from policyengine.cluster.requests import EPHEMERAL_STORAGE
from policyengine.compiler.columns.column import attempt
from policyengine.compiler.columns.frame import Decision
from policyengine.compiler.lower.scope import Scope
from policyengine.compiler.rules.requeue_events import events_of, own_update
from policyengine.compiler.rules.signature import Decisions, Signature
from policyengine.framework.events import ClusterEventWithHint, QueueingHint
from policyengine.framework.quota import Quotas
from policyengine.language import ir
from policyengine.language.ir.ir_walk import fields

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.cluster.view import Snapshot

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
        self._when = scope.closure(rule.when)
        self._borrow = None if rule.borrow is None else scope.closure(rule.borrow)
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
        return attempt(self._when, self._decisions.about(pod)) is not False

    def may_borrow(self, pod: PodInfo, snapshot: Snapshot) -> bool:
        """Whether the pod may have what exceeds the guarantee."""
        return self._borrow is not None and attempt(self._borrow, Decision(pod, snapshot)) is True

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


_PARTS: Mapping[str, Callable[[PodInfo], object]] = {
    "name": lambda pod: pod.name,
    "namespace": lambda pod: pod.namespace,
    "uid": lambda pod: pod.uid,
    "labels": lambda pod: pod.labels,
    "annotations": lambda pod: pod.annotations,
    "priority": lambda pod: pod.priority,
    "owner": lambda pod: pod.owner_references,
    "createdAt": lambda pod: pod.created_at,
}
"""Where a field of a pod stands; the others follow from its shape."""


def quotas(rules: Sequence[ir.Quota], scope: Scope, decisions: Decisions) -> Quotas:
    """The quotas of a policy."""
    lets = {name: let.value for name, let in scope.lets.items()}
    read = {field.path[1] for rule in rules for field in fields(rule.when, lets.__getitem__) if field.path[0] == "pod"}
    if "podGroup" in read:
        read.add("labels")
    getters = [_PARTS[name] for name in sorted(read & _PARTS.keys())]
    if read - _PARTS.keys():
        getters.append(lambda pod: pod.shape)
    return Quotas((RuleQuota(rule, scope, decisions) for rule in rules), lambda pod: tuple(get(pod) for get in getters))
