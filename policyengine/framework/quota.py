"""Quotas: what the pods that match a rule may use together, and what they are owed.

Rules:
1. Every matching pod with a node counts, whoever placed it; beside them the pods of equal or higher priority for
   which room is being made (`nominated`), so that nobody takes what was cleared for another.
2. A pod is refused, before any filter is asked, where with it a quota would be over its limit, or over its guarantee
   while the pod may not borrow. A resource that a quota does not name is not limited by it.
3. Borrowing takes what is free: nothing is kept back for the guarantees of others. Those are made good by
   reclaiming: a pod within the guarantees of all its quotas is *entitled*, and where it fits nowhere it may preempt
   pods of other quotas beyond theirs, whatever their priority, but for those of system-critical one.
4. What a quota is guaranteed is never taken by preemption from outside it, neither to reclaim nor by priority. A pod
   may go where its quota stays at or above its guarantee in something the pod uses, and falls below it in nothing.
5. An entitled pod for which room is being made is minded by every pod that would borrow.

Sources of the idea: the ElasticQuota of scheduler-plugins (KEP-9) and YARN's capacity scheduler; as with the latter
borrowing reaches as far as there is room, not only as far as others' unused guarantees.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Protocol

from policyengine import quantity
from policyengine.cluster.requests import CPU, EPHEMERAL_STORAGE, MEMORY
from policyengine.cluster.usage_counts import PODS
from policyengine.framework.events import ClusterEventWithHint
from policyengine.framework.status import Code, Status

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.cluster.view import Snapshot


_KINDS = 1 << 14
"""Kinds of pods whose quotas are remembered."""


class QuotaRule(Protocol):
    """One quota. Amounts are in millicores of cpu, else whole units, by Kubernetes' names of resources."""

    @property
    def name(self) -> str:
        """The rule's name, as it appears in refusals."""

    @property
    def guarantee(self) -> Mapping[str, int]:
        """What the pods are owed together; may be empty."""

    @property
    def limit(self) -> Mapping[str, int]:
        """What they never exceed together; may be empty."""

    def matches(self, pod: PodInfo) -> bool:
        """Whether the pod counts in this quota; a function of the pod alone."""

    def may_borrow(self, pod: PodInfo, snapshot: Snapshot) -> bool:
        """Whether the pod may have what exceeds the guarantee."""

    def signature(self, pod: PodInfo) -> Hashable:
        """What the rule reads of the pod, and what the pod asks for: equal pods are refused alike."""

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """The changes that can turn a refusal."""


class Quotas:
    """The quotas of one profile. Their use is counted by the cluster view (`cluster.usage_counts`)."""

    def __init__(
        self, rules: Iterable[QuotaRule] = (), parts: Callable[[PodInfo], tuple[object, ...]] | None = None
    ) -> None:
        """`parts`: all of a pod that decides which rules match it. Pods made of the same parts are asked about once."""
        self.rules = tuple(rules)
        self._parts = parts
        self._known: dict[tuple[int, ...], tuple[tuple[object, ...], tuple[Hashable, ...]]] = {}
        """Identities of the parts -> the parts, kept so that their identities stay theirs, and the groups."""

    def __bool__(self) -> bool:
        return bool(self.rules)

    def groups(self, pod: PodInfo) -> tuple[Hashable, ...]:
        """The names of the quotas that the pod counts in."""
        if self._parts is None:
            return self._matching(pod)
        parts = self._parts(pod)
        key = tuple(map(id, parts))
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _KINDS:
                self._known.clear()
            found = self._known[key] = (parts, self._matching(pod))
        return found[1]

    def _matching(self, pod: PodInfo) -> tuple[Hashable, ...]:
        return tuple(rule.name for rule in self.rules if rule.matches(pod))

    def of(self, pod: PodInfo, snapshot: Snapshot) -> list[QuotaRule]:
        """The quotas that the pod counts in, in order."""
        known = snapshot.usage_counts(self).known(pod)
        names = self.groups(pod) if known is None else known
        return [rule for rule in self.rules if rule.name in names]

    def raised(self, rule: QuotaRule, bound: str, amounts: Mapping[str, int]) -> Quotas:
        """The same with other amounts of one rule; `bound`: `guarantee` or `limit`."""
        changed: Any = copy(rule)
        setattr(changed, bound, {**getattr(rule, bound), **amounts})
        return Quotas((changed if one is rule else one for one in self.rules), self._parts)

    def exceeded(self, pod: PodInfo, snapshot: Snapshot, pods: int = 1) -> tuple[QuotaRule, str, dict[str, int]] | None:
        """The quota that refuses so many pods like this one: the rule, which bound of it is exceeded, and what they
        would use with it of the resources of which that is too much. None where none does."""
        for rule in self.of(pod, snapshot):
            used = self._used_and_coming(rule, pod, snapshot)
            for what, bound in (("limit", rule.limit), ("guarantee", rule.guarantee)):
                wanted = {name: used.get(name, 0) + amount * pods for name, amount in amounts_of(pod) if name in bound}
                over = {name: amount for name, amount in wanted.items() if amount > bound[name]}
                if over and (what == "limit" or not rule.may_borrow(pod, snapshot)):
                    return rule, what, over
        return None

    def used(self, rule: QuotaRule, snapshot: Snapshot) -> Mapping[str, int]:
        """What the quota's pods with a node use, by resource."""
        return snapshot.usage_counts(self).used(rule.name)

    def refusal(self, pod: PodInfo, snapshot: Snapshot) -> Status | None:
        """Why a quota refuses the pod, signed with its name; None where none does. See rule 2."""
        for rule in self.of(pod, snapshot):
            used = self._used_and_coming(rule, pod, snapshot)
            over = _first_over(used, pod, rule.limit)
            if over is not None:
                return _refused(rule, "limit", pod, used, over)
            over = _first_over(used, pod, rule.guarantee)
            if over is not None and not rule.may_borrow(pod, snapshot):
                return _refused(rule, "guarantee", pod, used, over)
        return None

    def is_entitled(self, pod: PodInfo, snapshot: Snapshot) -> bool:
        """Whether the pod, with all that its quotas use, stays within the guarantees of all of them, and one of them
        guarantees something it asks for."""
        owed = False
        for rule in self.of(pod, snapshot):
            if _first_over(self._used_and_coming(rule, pod, snapshot), pod, rule.guarantee) is not None:
                return False
            owed = owed or any(name in rule.guarantee for name, _ in amounts_of(pod))
        return owed

    def minds(self, pod: PodInfo, coming: PodInfo, snapshot: Snapshot) -> bool:
        """Whether the pod keeps off the room being made for `coming` although that is of lower priority: rule 5."""
        return self._borrows(pod, snapshot) and self.is_entitled(coming, snapshot)

    def _borrows(self, pod: PodInfo, snapshot: Snapshot) -> bool:
        return any(
            _first_over(self._used_and_coming(rule, pod, snapshot), pod, rule.guarantee) is not None
            for rule in self.of(pod, snapshot)
        )

    def _used_and_coming(self, rule: QuotaRule, pod: PodInfo, snapshot: Snapshot) -> Mapping[str, int]:
        used = self.used(rule, snapshot)
        coming = [other for other in _nominated(snapshot) if other is not pod and other.priority >= pod.priority]
        sums: dict[str, int] | None = None
        for other in coming:
            if rule.matches(other):
                sums = dict(used) if sums is None else sums
                for name, amount in amounts_of(other):
                    sums[name] = sums.get(name, 0) + amount
        return used if sums is None else sums


NO_QUOTAS = Quotas()


class Surplus:
    """What may be taken from the quotas that a pod is not in, while pods are taken one by one: rule 4."""

    def __init__(self, quotas: Quotas, pod: PodInfo, snapshot: Snapshot) -> None:
        self._quotas = quotas
        self._snapshot = snapshot
        self._own = {rule.name for rule in quotas.of(pod, snapshot)}
        self._used: dict[str, dict[str, int]] = {}
        """By quota, less what was taken."""

    def copy(self) -> Surplus:
        """The same, to be taken from on trial."""
        other = copy(self)
        other._used = {name: dict(used) for name, used in self._used.items()}
        return other

    def has(self, victim: PodInfo) -> bool | None:
        """Whether the victim is part of a surplus: then it may go. None where no guarantee of others is touched."""
        touched = False
        for rule in self._others(victim):
            asks = [(name, amount) for name, amount in amounts_of(victim) if name in rule.guarantee]
            if not asks:
                continue
            touched = True
            used = self._left(rule)
            left = {name: used.get(name, 0) - amount - rule.guarantee[name] for name, amount in asks}
            falls = any(left[name] < 0 <= left[name] + amount for name, amount in asks)
            if falls or max(left.values()) < 0:
                return False
        return True if touched else None

    def take(self, victim: PodInfo) -> None:
        """The victim goes."""
        for rule in self._others(victim):
            used = self._left(rule)
            for name, amount in amounts_of(victim):
                used[name] = used.get(name, 0) - amount

    def _others(self, victim: PodInfo) -> Iterator[QuotaRule]:
        return (rule for rule in self._quotas.of(victim, self._snapshot) if rule.name not in self._own)

    def _left(self, rule: QuotaRule) -> dict[str, int]:
        left = self._used.get(rule.name)
        if left is None:
            left = self._used[rule.name] = dict(self._quotas.used(rule, self._snapshot))
        return left


def amounts_of(pod: PodInfo) -> tuple[tuple[str, int], ...]:
    """(resource, amount) of all a pod counts for in a quota: what it asks for, and one pod."""
    return (*pod.shape.amounts, (PODS, 1))


def _nominated(snapshot: Snapshot) -> Iterator[PodInfo]:
    return (pod for on_node in snapshot.nominated.values() for pod in on_node.values())


def _first_over(used: Mapping[str, int], pod: PodInfo, bound: Mapping[str, int]) -> str | None:
    """The first resource the pod asks for of which there would be more than the bound."""
    for name, amount in amounts_of(pod):
        if name in bound and used.get(name, 0) + amount > bound[name]:
            return name
    return None


def _refused(rule: QuotaRule, what: str, pod: PodInfo, used: Mapping[str, int], name: str) -> Status:
    bound = rule.limit if what == "limit" else rule.guarantee
    asked = dict(amounts_of(pod))[name]
    reason = f"quota {rule.name}: {_text(name, used.get(name, 0))} of {_text(name, bound[name])} {name} are in use"
    reason += f", the pod asks for {_text(name, asked)}" + ("" if what == "limit" else " and may not borrow")
    helpless = asked > bound[name]
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE if helpless else Code.UNSCHEDULABLE, (reason,), rule.name)


def _text(name: str, amount: int) -> str:
    if name == CPU:
        return quantity.format_cpu(amount)
    if name in (MEMORY, EPHEMERAL_STORAGE) or name.startswith("hugepages-"):
        return quantity.format_bytes(amount)
    return quantity.format_count(amount)
