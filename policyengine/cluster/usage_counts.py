"""Sums what the pods on the nodes request, by group: the usage of a tenant, or of a quota.

Invariants:
1. A pod counts while it has a node, bound or assumed, whether or not that node is known.
2. It is subtracted from the groups it was added to, which are computed when it comes to its node.
3. A hypothetical view counts as the view would: pods taken out and put in are counted out and in.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, Protocol

from policyengine.cluster.pod_info import PodInfo

PODS: Final = "pods"
"""The resource that every pod uses one of."""
_NOTHING: Mapping[str, int] = MappingProxyType({})
Groups = tuple[Hashable, ...]


class Grouping(Protocol):
    """Says which groups a pod counts in. Compared, and kept, by identity."""

    def groups(self, pod: PodInfo) -> Groups:
        """The pod's groups, none twice. Depends on the pod, not on its node."""


class UsageCounts:
    """The sums of one grouping. Only `ClusterView` adds and removes."""

    def __init__(self, pods: Iterable[tuple[PodInfo, Groups]] = ()) -> None:
        self._sums: dict[Hashable, dict[str, int]] = {}
        self._groups: dict[str, Groups] = {}
        """UID -> the groups in which the pod counts."""
        self.changed: set[Hashable] | None = None
        """Groups whose sums moved, for a reader that empties it; None without a reader."""
        for info, groups in pods:
            self.add(info, groups)

    def used(self, group: Hashable) -> Mapping[str, int]:
        """Resource -> the group's sum (millicores of cpu, else whole units), without zeros; `pods` is their number."""
        return self._sums.get(group, _NOTHING)

    def add(self, info: PodInfo, groups: Groups) -> None:
        """The pod has a node now."""
        self._groups[info.uid] = groups
        self._shift(info, groups, 1)

    def remove(self, info: PodInfo) -> None:
        """The pod has no node any more."""
        self._shift(info, self._groups.pop(info.uid), -1)

    def dump(self) -> dict[Hashable, dict[str, int]]:
        """Group -> resource -> sum: equal for equal clusters."""
        return {group: dict(sums) for group, sums in self._sums.items()}

    def _shift(self, info: PodInfo, groups: Groups, sign: int) -> None:
        for group in groups:
            sums = self._sums.setdefault(group, {})
            for name, amount in (*info.shape.amounts, (PODS, 1)):
                left = sums.get(name, 0) + sign * amount
                if left:
                    sums[name] = left
                else:
                    del sums[name]
            if not sums:
                del self._sums[group]
            if self.changed is not None:
                self.changed.add(group)
