"""Which pods one pod may preempt: kube-scheduler's rule, a policy's `preempt`, and quotas.

| a running pod | may be preempted |
|---|---|
| any | where its priority is lower |
| that the policy's `preempt` keeps | never |
| in a quota that the preemptor is not in, within what that is guaranteed | never |
| in such a quota, beyond what that is guaranteed | also of higher priority, if a quota owes the preemptor room |
| of system-critical priority | only for a higher one, whatever quotas say |
| of a gang that would be left with less than its minimum | only with the whole gang, on whichever nodes |
| of a gang, bound in part for its timeout, that blocks the preemptor's, bound in part too | also of the same priority |

Gangs are those of all loaded policies. Pods are evicted from the least important to the most, or in the order of
`preempt { order by … }`; those that would be evicted last are put back first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from typing import Final

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import ClusterView
from policyengine.framework.profile import Profile
from policyengine.framework.quota import Surplus
from policyengine.plugins.preemption.candidate_node import importance

SYSTEM_CRITICAL: Final = 2_000_000_000
"""The least priority of what a cluster cannot do without (scheduling.SystemCriticalPriority): users may give half of it
at most, so that no author of a quota has such a pod evicted."""
Unit = tuple[PodInfo, ...]
"""Pods that are evicted together or not at all; some may run on other nodes."""


class Preemptible:
    """The pods that one pod may preempt. Valid until the view changes."""

    def __init__(self, pod: PodInfo, profile: Profile, view: ClusterView, equals: bool = False) -> None:
        """`equals`: pods of the same priority may go too; a scheduler never chooses among equals, people do."""
        self._pod = pod
        self._bound = pod.priority + equals
        """Pods below this priority may be asked."""
        self._view = view
        rule = profile.preempt
        self._rule = None if rule is None else rule(pod, view)
        self._quotas = profile.quotas
        self.reclaims = bool(self._quotas) and self._quotas.is_entitled(pod, view.snapshot())
        """Whether a quota owes the pod room, so that it may take what others have borrowed."""
        self._giving_way = view.scheduling.giving_way(pod)
        self.of_any_priority = self.reclaims or bool(self._giving_way)
        """Whether a pod may be asked whose priority is not lower."""
        self.by_priority_alone = self._rule is None and not self._quotas and not self._giving_way
        """Whether kube-scheduler's rule is the only one."""
        self.most = None if self._rule is None else self._rule.most
        """How many victims a node may take; None for any number."""

    def on(self, row: int) -> list[list[Unit]]:
        """The units that may be evicted from the node, those that are put back first in front. If not all that could go
        alone can go together, several lists to be tried one after the other. None of them is empty."""
        units = self._units([pod for pod in self._view.nodes.pods_on(row).values() if self._may_be_asked(pod)])
        if not self._quotas:
            return [units] if units else []
        first = self._together(units[::-1])
        # What is left of a surplus after some small pods may be too little for a large one.
        found = [first, *([self._together(sorted(units, key=_size, reverse=True))] if len(first) < len(units) else [])]
        place = {unit[0].uid: number for number, unit in enumerate(units)}
        ordered = [sorted(some, key=lambda unit: place[unit[0].uid]) for some in found if some]
        return ordered[:1] if ordered[1:] == ordered[:1] else ordered

    def with_mates(self, row: int, uids: Set[str]) -> Unit:
        """Those pods of the node and the pods that must go with them, the most important first. Empty if one of them
        may not be evicted, or they are too many."""
        for units in self.on(row):
            going = {one.uid: one for unit in units if any(one.uid in uids for one in unit) for one in unit}
            if uids <= going.keys() and (self.most is None or len(going) <= self.most):
                return tuple(sorted(going.values(), key=importance))
        return ()

    def rows_of_gangs(self) -> list[int]:
        """The rows with pods of gangs."""
        view = self._view
        names = {view.pods[uid].node_name for uid in view.scheduling.placed() if uid in view.pods}
        return [view.nodes.row_of[name] for name in names if name in view.nodes.row_of]

    def may_await(self, pod: PodInfo) -> bool:
        """Whether a pod on its way out may be going for this one."""
        reclaimed = self.reclaims and pod.priority < SYSTEM_CRITICAL
        return pod.priority < self._bound or reclaimed or pod.uid in self._giving_way

    def _may_be_asked(self, pod: PodInfo) -> bool:
        if not self.may_await(pod):
            return False
        return self._rule is None or self._rule.may_go(pod)

    def _units(self, placed: list[PodInfo]) -> list[Unit]:
        """The pods, each with those that have to go with it, the last to go first; those without their mates' leave
        left out."""
        placed.sort(key=importance)
        if self._rule is not None:
            placed.sort(key=self._rule.turn, reverse=True)
        gangs = {pod.uid: gang for pod in placed if (gang := self._view.scheduling.placed_gang(pod.uid)) is not None}
        here = Counter(id(gang.placed) for gang in gangs.values())
        units: list[Unit] = []
        done: set[int] = set()
        for pod in placed:
            gang = gangs.get(pod.uid)
            if gang is None:
                units.append((pod,))
                continue
            mates = [self._view.pods[uid] for uid in sorted(gang.placed) if uid in self._view.pods]
            if len(mates) - here[id(gang.placed)] >= gang.minimum:
                units.append((pod,))
            elif id(gang.placed) not in done:
                done.add(id(gang.placed))
                if all(map(self._may_be_asked, mates)):
                    units.append((pod, *(mate for mate in mates if mate is not pod)))
        return units

    def _together(self, in_turn: Sequence[Unit]) -> list[Unit]:
        """Those that can go together, taken in turn as long as no quota loses what it is guaranteed."""
        surplus = Surplus(self._quotas, self._pod, self._view.snapshot())
        going: list[Unit] = []
        for unit in in_turn:
            tried = surplus.copy()
            if all(self._takes(tried, pod) for pod in unit):
                surplus = tried
                going.append(unit)
        return going

    def _takes(self, surplus: Surplus, pod: PodInfo) -> bool:
        has = surplus.has(pod)
        if not has and (has is not None or (pod.priority >= self._bound and pod.uid not in self._giving_way)):
            return False
        surplus.take(pod)
        return True


def _size(unit: Unit) -> tuple[int, ...]:
    requests = [pod.shape.requests for pod in unit]
    return sum(one.cpu for one in requests), sum(one.memory for one in requests)
