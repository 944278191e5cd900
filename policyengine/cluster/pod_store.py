"""The store of the cluster view's pods: which are pending, and on which node the others are. Knows no events.

Invariants:
1. A pod is in exactly one of: among the pending, on a row of the node table, among the orphans of a node not known.
2. It counts in the sums of its row, and in the usage counts, only while it has a node.
3. Whatever a reader can see change is noted: rows in the journals, pods in the pod table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from weakref import WeakKeyDictionary

from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.pod_groups import RelatedPods
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.usage_counts import Grouping, UsageCounts

_NOBODY: Mapping[str, PodInfo] = {}


class PodStore:
    """Pending, assumed and bound pods. Only `ClusterView` moves them."""

    def __init__(self, objects_of: Callable[[str], Mapping[str, object]]) -> None:
        """`objects_of`: where namespaces and the objects of pod groups are found, by kind and key."""
        self.pods: dict[str, PodInfo] = {}
        """UID -> pod: pending, assumed and bound."""
        self.nodes = NodeTable(self.pods)
        self.pending_count = 0
        """Pods neither assumed nor bound."""
        self.orphans: dict[str, dict[str, PodInfo]] = {}
        """Node name -> UID -> pod, for nodes not known."""
        self.nominated: dict[str, dict[str, PodInfo]] = {}
        """Node name -> UID -> pending pod nominated there."""
        self.related = RelatedPods(objects_of)
        self._uid_of: dict[str, str] = {}
        self._usage: WeakKeyDictionary[Grouping, UsageCounts] = WeakKeyDictionary()
        """Kept as long as the groupings live."""

    def find_pod(self, namespace: str, name: str) -> PodInfo | None:
        """The pod that has the name now."""
        return self.pods.get(self._uid_of.get(f"{namespace}/{name}", ""))

    def usage_counts(self, grouping: Grouping) -> UsageCounts:
        """What the pods with a node ask for, by the groups that `grouping` puts them in; kept from then on."""
        counts = self._usage.get(grouping)
        if counts is None:
            placed = ((info, grouping.groups(info)) for info in self.pods.values() if info.node_name)
            counts = self._usage[grouping] = UsageCounts(placed)
        return counts

    def _count_in(self, info: PodInfo) -> None:
        if self._usage:  # not so without quotas; going through a dictionary of weak keys takes longer than asking
            for grouping, counts in self._usage.items():
                counts.add(info, grouping.groups(info))

    def _count_out(self, info: PodInfo) -> None:
        for counts in self._usage.values():
            counts.remove(info)

    def pods_of_node(self, node_name: str) -> Mapping[str, PodInfo]:
        """UID -> pod bound to or assumed on the node, which may be unknown."""
        row = self.nodes.row_of.get(node_name)
        return self.orphans.get(node_name, _NOBODY) if row is None else self.nodes.pods_on(row)

    def nominated_on(self, node_name: str) -> Mapping[str, PodInfo]:
        """UID -> pending pod nominated to the node."""
        return self.nominated.get(node_name, _NOBODY)

    def _replace(self, old: PodInfo, new: PodInfo) -> None:
        is_same = (new.node_name, new.key) == (old.node_name, old.key)  # a test may give one UID to two pods
        row = self.nodes.row_of.get(new.node_name) if is_same else None
        if row is None:
            self._leave(old)
            self._enter(new)
        else:
            self.pods[new.uid] = new
            self.related.replace(old, new)
            self.nodes.replace_pod(row, old, new)
            self._count_out(old)
            self._count_in(new)

    def _enter(self, info: PodInfo) -> None:
        self.pods[info.uid] = info
        self._uid_of[info.key] = info.uid
        self.related.enter(info)
        if not info.node_name:
            self._await(info)
            return
        self._count_in(info)
        row = self.nodes.row_of.get(info.node_name)
        if row is None:
            self.orphans.setdefault(info.node_name, {})[info.uid] = info
            self.nodes.pod_table.touch(info.uid)
        else:
            info.node_name = self.nodes.names[row]
            self.nodes.add_pod(row, info)

    def _leave(self, info: PodInfo) -> None:
        del self.pods[info.uid]
        del self._uid_of[info.key]
        self.related.leave(info)
        if info.node_name:
            self._displace(info)
        else:
            self._withdraw(info)

    def _displace(self, info: PodInfo) -> None:
        """Off its node, or out of the orphans."""
        self._count_out(info)
        row = self.nodes.row_of.get(info.node_name)
        if row is not None:
            self.nodes.remove_pod(row, info)
            return
        orphans = self.orphans[info.node_name]
        self.nodes.pod_table.touch(info.uid)
        del orphans[info.uid]
        if not orphans:
            del self.orphans[info.node_name]

    def _await(self, info: PodInfo) -> None:
        """In among the pending."""
        self.pending_count += 1
        self.nodes.pod_table.touch(info.uid)
        if info.nominated_node_name:
            self.nominated.setdefault(info.nominated_node_name, {})[info.uid] = info
            self.nodes.note_pods(info.nominated_node_name)

    def _withdraw(self, info: PodInfo) -> None:
        """Out of the pending."""
        self.pending_count -= 1
        self.nodes.pod_table.touch(info.uid)
        if info.nominated_node_name:
            self.nodes.note_pods(info.nominated_node_name)
            nominated = self.nominated[info.nominated_node_name]
            del nominated[info.uid]
            if not nominated:
                del self.nominated[info.nominated_node_name]

    def _put_in_order(self, node_name: str, order: dict[str, PodInfo]) -> None:
        row = self.nodes.row_of.get(node_name)
        if row is None:
            self.orphans[node_name] = order
        else:
            self.nodes.restore_order(row, order)
