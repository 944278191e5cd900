"""The node table: what scheduling reads of every node, as columns.

Invariants:
1. Dense: rows 0..n-1 are exactly the nodes known. A deleted node's row is taken by the last one; both journals
   note it. Row numbers mean nothing beyond one generation, and no answer may depend on them.
2. `free`, `pod_count` and `pods_on` count exactly the pods on the row.
3. Whatever changed in a row is in a journal: `node_journal` for the Node object, `pod_journal` for what stands on
   it. A row that came, or was moved into, is in both.
4. Columns handed out are views of `[:n]`: read-only by convention, stale after the next change.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from copy import copy

import msgspec

from policyengine.cluster.allocatable import allocatable_of
from policyengine.cluster.journal import Journal, Rows, stable_hash
from policyengine.cluster.node_columns import ImageIndex, Int64, NodeColumns
from policyengine.cluster.node_objects import ContainerImage, Node
from policyengine.cluster.pod_info import PodInfo, seconds_or_none
from policyengine.cluster.pod_requests import CPU, MEMORY
from policyengine.cluster.pod_table import PodTable


class NodeTable(NodeColumns):
    """All nodes, as columns. Only `ClusterView` writes to it."""

    def __init__(self, pods: Mapping[str, PodInfo] | None = None) -> None:
        """`pods`: UID -> pod, every one there is, with a node and without."""
        super().__init__()
        self.names: list[str] = []
        self.row_of: dict[str, int] = {}
        self.pod_table = PodTable({} if pods is None else pods, self.row_of)
        self.node_journal = Journal()
        self.pod_journal = Journal()
        self.shifts = 0
        """How often `shift_sums` changed what the journals do not tell."""
        self.known_as: Callable[[str], str] = str
        """What a name counts as where names break a tie."""
        self.images = ImageIndex()
        self.concerned_pods = 0
        """How many of the pods on the nodes may have terms about other pods (`PodShape.concerns_pods`)."""
        self.priorities: dict[int, int] = {}
        """Priority -> how many of the pods on the nodes have it, of those that some have."""
        self._pods: list[dict[str, PodInfo]] = []

    def pods_on(self, row: int) -> Mapping[str, PodInfo]:
        """UID -> pod, of those bound to or assumed on the node."""
        return self._pods[row]

    def set_node(self, node: Node) -> int:
        """Add a node, or replace the object of the one with its name; returns the row."""
        row = self.row_of.get(node.metadata.name)
        if row is None:
            row = self._new_row(node)
        else:
            old = self.objects[row]
            if old.status.images != node.status.images:
                self.images.remove(row, old.status.images)
                node = self._with_shared_images(row, node)
            elif node.status.images:
                node = _with_images(node, old.status.images)
            self.objects[row] = node
        self._write_node(row, node)
        self.node_journal.append(row)
        if self.derived.rebuild_if_stale():  # ids have new meanings: every reader computes everything again
            self.node_journal.forget()
            self.pod_journal.forget()
        return row

    def remove_node(self, name: str) -> dict[str, PodInfo]:
        """Take a node out; returns the pods that stood on it."""
        row = self.row_of[name]
        pods = self._pods[row]
        for info in pods.values():
            self.pod_table.touch(info.uid)
            self.concerned_pods -= info.shape.concerns_pods
            self._count_priority(info.priority, -1)
        self.images.remove(row, self.objects[row].status.images)
        last = self.n - 1
        if row != last:
            self._move(last, row)
        self._clear(last)
        del self.row_of[name]
        for column in (self.names, self.objects, self._pods):
            column.pop()
        self._set_count(last)
        for journal in (self.node_journal, self.pod_journal):
            journal.append(row)
        return pods

    def break_ties_by(self, known_as: Callable[[str], str]) -> None:
        """Have names count as others where they break a tie."""
        self.known_as = known_as
        for row, name in enumerate(self.names):
            self._name_hash[row] = stable_hash(known_as(name))
        self.node_journal.forget()

    def add_pod(self, row: int, info: PodInfo) -> None:
        """Count a pod on a node."""
        self._pods[row][info.uid] = info
        self._count(row, info, 1)

    def remove_pod(self, row: int, info: PodInfo) -> None:
        """Count a pod out; it must be on the row, with this shape."""
        del self._pods[row][info.uid]
        self._count(row, info, -1)

    def _count(self, row: int, info: PodInfo, sign: int) -> None:
        shape = info.shape
        for name, amount in shape.amounts:
            self._take(name, row, sign * amount)
        self._pod_count[row] += sign
        self._free_with_defaults[CPU][row] -= sign * shape.nonzero_cpu
        self._free_with_defaults[MEMORY][row] -= sign * shape.nonzero_memory
        self.concerned_pods += sign * shape.concerns_pods
        self._count_priority(info.priority, sign)
        self.pod_table.touch(info.uid)
        self.pod_journal.append(row)

    def _count_priority(self, priority: int, sign: int) -> None:
        count = self.priorities[priority] = self.priorities.get(priority, 0) + sign
        if not count:
            del self.priorities[priority]

    def replace_pod(self, row: int, old: PodInfo, new: PodInfo) -> None:
        """Put a pod's newer form in the place of the older."""
        if old.shape is new.shape and old.priority == new.priority:
            self._pods[row][new.uid] = new
            self.pod_table.touch(new.uid)
            self.pod_journal.append(row)
        else:
            self.remove_pod(row, old)
            self.add_pod(row, new)

    def note_pods(self, node_name: str) -> None:
        """Which pods are nominated to the node, or ended on it, is not what it was."""
        row = self.row_of.get(node_name)
        if row is not None:
            self.derived.refresh_finished(row)
            self.pod_journal.append(row)

    def restore_order(self, row: int, order: Mapping[str, PodInfo]) -> None:
        """Bring the pods of a row into the order they had in `order`, which holds the same pods."""
        self._pods[row] = {uid: self._pods[row][uid] for uid in order}

    def with_own_sums(self) -> NodeTable:
        """This table with `free` and `pod_count` of its own, to ask what would be if pods were elsewhere.

        Everything else is shared; nothing else may be asked of it where it depends on who stands on a row.
        """
        table = copy(self)
        table._free = {name: column.copy() for name, column in self._free.items()}
        table._nowhere = {name: dict(asked) for name, asked in self._nowhere.items()}
        table._pod_count = self._pod_count.copy()
        return table

    def shift_sums(self, rows: Rows, amounts: Mapping[str, Int64], pods: Int64) -> None:
        """Add to what is requested in `rows`; for a table from `with_own_sums` alone."""
        for name, amount in amounts.items():
            if name in self._free:
                self._free[name][rows] -= amount
            else:
                for row, one in zip(rows.tolist(), amount.tolist(), strict=True):
                    self._take(name, row, one)
        self._pod_count[rows] += pods
        self.shifts += 1

    def _new_row(self, node: Node) -> int:
        row = self.n
        if row >= self._room:
            self._grow(row + 1)
        name = sys.intern(node.metadata.name)
        self.names.append(name)
        self.row_of[name] = row
        self.objects.append(node)
        self.objects[row] = self._with_shared_images(row, node)
        self._pods.append({})
        self._set_count(row + 1)
        self._name_hash[row] = stable_hash(self.known_as(name))
        self.pod_journal.append(row)
        return row

    def _with_shared_images(self, row: int, node: Node) -> Node:
        if not node.status.images:
            return node
        images = self.images.shared(node.status.images)
        self.images.add(row, images)
        return _with_images(node, images)

    def _write_node(self, row: int, node: Node) -> None:
        allocatable = allocatable_of(node)
        self._allowed_pods[row] = allocatable.pods
        for name in allocatable.amounts:
            self._know(name)
        for name, column in self._allocatable.items():
            more = allocatable.amounts.get(name, 0) - column.item(row)
            for columns in (self._allocatable, self._free, self._free_with_defaults):
                if more and name in columns:
                    columns[name][row] += more
        self._offers.clear()
        self._unschedulable[row] = node.spec.unschedulable
        self._ready[row] = any(c.type == "Ready" and c.status == "True" for c in node.status.conditions)
        self._created_at[row] = seconds_or_none(node.metadata.creation_timestamp) or 0.0
        self.derived.refresh(row)

    def _move(self, source: int, target: int) -> None:
        """Bring the last row to where a node was deleted."""
        self._copy_row(source, target)
        node = self.objects[source]
        self.images.remove(source, node.status.images)
        self.images.add(target, node.status.images)
        for info in self._pods[source].values():
            self.pod_table.touch(info.uid)
        self.names[target] = self.names[source]
        self.objects[target] = node
        self._pods[target] = self._pods[source]
        self.row_of[self.names[target]] = target
        self.derived.refresh(target)

    def _set_count(self, count: int) -> None:
        self.n = self.node_journal.row_count = self.pod_journal.row_count = count


def _with_images(node: Node, images: tuple[ContainerImage, ...]) -> Node:
    status = msgspec.structs.replace(node.status, images=images)
    return msgspec.structs.replace(node, status=status)
