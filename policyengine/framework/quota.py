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
5. A rule with a key (`quota … by`) is as many quotas as the key has values. What it guarantees and limits is what it
   says for the pod that is looked at.
6. An entitled pod for which room is being made is minded by every pod that would borrow.

Sources of the idea: the ElasticQuota of scheduler-plugins (KEP-9) and YARN's capacity scheduler; as with the latter
borrowing reaches as far as there is room, not only as far as others' unused guarantees.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Protocol

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.usage_counts import PODS
from policyengine.cluster.view import Snapshot
from policyengine.framework.events import ClusterEventWithHint
from policyengine.framework.status import Code, Status
from policyengine.quantity import format_amount

_KINDS = 1 << 14
"""Kinds of pods whose quotas are remembered."""


@dataclass(frozen=True, slots=True)
class Quota:
    """A quota as it is for one pod that counts in it. Amounts are in millicores of cpu, else whole units, by
    Kubernetes' names of resources."""

    rule: QuotaRule
    key: str | None
    """Which of the rule's quotas it is; None where the rule is one."""
    guarantee: Mapping[str, int]
    """What the pods are owed together; may be empty."""
    limit: Mapping[str, int]
    """What they never exceed together; may be empty."""

    @property
    def group(self) -> Hashable:
        """Equal for pods that count together."""
        return self.rule.name if self.key is None else (self.rule.name, self.key)

    @property
    def name(self) -> str:
        """The rule's name, with the key where there is one: ``team of `a` ``."""
        return self.rule.name if self.key is None else f"{self.rule.name} of `{self.key}`"


class QuotaRule(Protocol):
    """A rule that makes a quota, or one for each value of a key."""

    @property
    def name(self) -> str:
        """The rule's name, as it appears in refusals."""

    def of(self, pod: PodInfo) -> Quota | None:
        """The quota that the pod counts in, None where it counts in none; a function of the pod alone."""

    @property
    def fixed(self) -> Quota | None:
        """The one quota that the rule makes, where it is the same for all pods."""

    def may_borrow(self, pod: PodInfo, snapshot: Snapshot) -> bool:
        """Whether the pod may have what exceeds the guarantee."""

    def signature(self, pod: PodInfo) -> Hashable:
        """What the rule reads of the pod, and what the pod asks for: equal pods are refused alike."""

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """The changes that can turn a refusal."""


class Quotas:
    """The quotas of one profile. Their use is counted by the cluster view (`cluster.usage_counts`)."""

    def __init__(
        self,
        rules: Iterable[QuotaRule] = (),
        parts: Callable[[PodInfo], tuple[object, ...]] | None = None,
        amended: Callable[[Quota], Quota] = lambda quota: quota,
    ) -> None:
        """`parts`: all of a pod that decides which rules match it. Pods made of the same parts are asked about once.
        `amended`: what counts in the place of what a rule says."""
        self.rules = tuple(rules)
        self._parts = parts
        self._amended = amended
        self._known: dict[tuple[int, ...], tuple[tuple[object, ...], tuple[Quota, ...]]] = {}
        """Identities of the parts -> the parts, kept so that their identities stay theirs, and the quotas."""

    def __bool__(self) -> bool:
        return bool(self.rules)

    def groups(self, pod: PodInfo) -> tuple[Hashable, ...]:
        """The quotas that the pod counts in, by what its pods have in common."""
        return tuple(quota.group for quota in self.of(pod))

    def of(self, pod: PodInfo) -> tuple[Quota, ...]:
        """The quotas that the pod counts in, in order."""
        if self._parts is None:
            return self._asked(pod)
        parts = self._parts(pod)
        key = tuple(map(id, parts))
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _KINDS:
                self._known.clear()
            found = self._known[key] = (parts, self._asked(pod))
        return found[1]

    def _asked(self, pod: PodInfo) -> tuple[Quota, ...]:
        return tuple(self._amended(quota) for rule in self.rules if (quota := rule.of(pod)) is not None)

    def all(self, pods: Iterable[PodInfo]) -> list[Quota]:
        """The quotas of these pods, and those that are known without pods: by rule, then by key. Where a rule says
        other amounts for other pods of a quota, those for one of them."""
        fixed = [self._amended(rule.fixed) for rule in self.rules if rule.fixed is not None]
        found = {quota.group: quota for quota in fixed}
        for pod in pods:
            for quota in self.of(pod):
                found.setdefault(quota.group, quota)
        place = {rule.name: number for number, rule in enumerate(self.rules)}
        return sorted(found.values(), key=lambda quota: (place[quota.rule.name], quota.key or ""))

    def raised(self, quota: Quota, bound: str, amounts: Mapping[str, int]) -> Quotas:
        """The same with other amounts of one quota; `bound`: `guarantee` or `limit`."""

        def amended(one: Quota) -> Quota:
            one = self._amended(one)
            if one.group != quota.group:
                return one
            others: dict[str, Any] = {bound: {**getattr(one, bound), **amounts}}
            return replace(one, **others)

        return Quotas(self.rules, self._parts, amended)

    def exceeded(self, pod: PodInfo, snapshot: Snapshot, pods: int = 1) -> tuple[Quota, str, dict[str, int]] | None:
        """The quota that refuses so many pods like this one, which bound of it is exceeded, and what they would use
        with it of the resources of which that is too much. None where none does."""
        for quota in self.of(pod):
            used = self._used_and_coming(quota, pod, snapshot)
            over = _over(used, pod, quota.limit, pods)
            if over:
                return quota, "limit", over
            over = _over(used, pod, quota.guarantee, pods)
            if over and not quota.rule.may_borrow(pod, snapshot):
                return quota, "guarantee", over
        return None

    def used(self, quota: Quota, snapshot: Snapshot) -> Mapping[str, int]:
        """What the quota's pods with a node use, by resource."""
        return snapshot.usage_counts(self).used(quota.group)

    def refusal(self, pod: PodInfo, snapshot: Snapshot) -> Status | None:
        """Why a quota refuses the pod, signed with its name; None where none does. See rule 2."""
        exceeded = self.exceeded(pod, snapshot)
        return None if exceeded is None else _refused(pod, *exceeded)

    def is_entitled(self, pod: PodInfo, snapshot: Snapshot) -> bool:
        """Whether the pod, with all that its quotas use, stays within the guarantees of all of them, and one of them
        guarantees something it asks for."""
        owed = False
        for quota in self.of(pod):
            if _over(self._used_and_coming(quota, pod, snapshot), pod, quota.guarantee):
                return False
            owed = owed or any(name in quota.guarantee for name, _ in amounts_of(pod))
        return owed

    def minds(self, pod: PodInfo, coming: PodInfo, snapshot: Snapshot) -> bool:
        """Whether the pod keeps off the room being made for `coming` although that is of lower priority: rule 5."""
        mine = ((self._used_and_coming(quota, pod, snapshot), quota.guarantee) for quota in self.of(pod))
        return any(_over(used, pod, owed) for used, owed in mine) and self.is_entitled(coming, snapshot)

    def _used_and_coming(self, quota: Quota, pod: PodInfo, snapshot: Snapshot) -> Mapping[str, int]:
        used = self.used(quota, snapshot)
        sums: dict[str, int] | None = None
        for other in (other for on_node in snapshot.nominated.values() for other in on_node.values()):
            if other is not pod and other.priority >= pod.priority and quota.group in self.groups(other):
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
        self._own = set(quotas.groups(pod))
        self._used: dict[Hashable, dict[str, int]] = {}
        """By quota, less what was taken."""

    def copy(self) -> Surplus:
        """The same, to be taken from on trial."""
        other = copy(self)
        other._used = {group: dict(used) for group, used in self._used.items()}
        return other

    def has(self, victim: PodInfo) -> bool | None:
        """Whether the victim is part of a surplus: then it may go. None where no guarantee of others is touched."""
        touched = False
        for quota in self._others(victim):
            owed = quota.guarantee
            asks = [(name, amount) for name, amount in amounts_of(victim) if name in owed]
            if not asks:
                continue
            touched = True
            used = self._left(quota)
            left = {name: used.get(name, 0) - amount - owed[name] for name, amount in asks}
            falls = any(left[name] < 0 <= left[name] + amount for name, amount in asks)
            if falls or max(left.values()) < 0:
                return False
        return True if touched else None

    def take(self, victim: PodInfo) -> None:
        """The victim goes."""
        for quota in self._others(victim):
            used = self._left(quota)
            for name, amount in amounts_of(victim):
                used[name] = used.get(name, 0) - amount

    def _others(self, victim: PodInfo) -> Iterator[Quota]:
        return (quota for quota in self._quotas.of(victim) if quota.group not in self._own)

    def _left(self, quota: Quota) -> dict[str, int]:
        left = self._used.get(quota.group)
        if left is None:
            left = self._used[quota.group] = dict(self._quotas.used(quota, self._snapshot))
        return left


def amounts_of(pod: PodInfo) -> tuple[tuple[str, int], ...]:
    """(resource, amount) of all a pod counts for in a quota: what it asks for, and one pod."""
    return (*pod.shape.amounts, (PODS, 1))


def _over(used: Mapping[str, int], pod: PodInfo, bound: Mapping[str, int], pods: int = 1) -> dict[str, int]:
    """What would be used with so many pods like this one, of the resources of which that is more than the bound."""
    return {
        name: amount
        for name, asked in amounts_of(pod)
        if name in bound and (amount := used.get(name, 0) + asked * pods) > bound[name]
    }


def _refused(pod: PodInfo, quota: Quota, what: str, over: Mapping[str, int]) -> Status:
    """Told is the first resource that the pod asks for of which that is too much."""
    name, amount = next(iter(over.items()))
    bound = quota.limit if what == "limit" else quota.guarantee
    asked = dict(amounts_of(pod))[name]
    taken, most = format_amount(name, amount - asked), format_amount(name, bound[name])
    reason = f"quota {quota.name}: {taken} of {most} {name} are in use"
    reason += f", the pod asks for {format_amount(name, asked)}" + ("" if what == "limit" else " and may not borrow")
    helpless = asked > bound[name]
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE if helpless else Code.UNSCHEDULABLE, (reason,), quota.rule.name)
