"""What is left on each node, and how little of it there is anywhere: whether all nodes have room is one comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyengine.cluster.allocatable import PODS
from policyengine.cluster.row_follower import RowFollower

if TYPE_CHECKING:
    from policyengine.cluster.node_columns import Int64
    from policyengine.cluster.node_table import NodeTable


class FreeRoom(RowFollower):
    """Allocatable less requested, of the resources asked about so far; `pods` is the number of pods."""

    def __init__(self) -> None:
        super().__init__()
        self._free: dict[str, Int64] = {}
        self._least: dict[str, int] = {}
        """Never above the least of a column; below it where the node that had so little has more now."""

    def fill(self, table: NodeTable) -> None:
        """Every resource anew."""
        for resource in self._free:
            self._add(table, resource)

    def write(self, table: NodeTable, row: int) -> None:
        """Every resource of one node."""
        for resource, free in self._free.items():
            left = _left_at(table, resource, row)
            free[row] = left
            if left < self._least[resource]:
                self._least[resource] = left

    def of(self, table: NodeTable, resource: str) -> Int64:
        """What is left of the resource: `int64[nodes]`, not to be written to."""
        return self._free[resource] if resource in self._free else self._add(table, resource)

    def some_lack(self, table: NodeTable, resource: str, amount: int) -> bool:
        """Whether a node has less than the amount left."""
        if amount <= self._least.get(resource, -1):
            return False
        free = self.of(table, resource)
        if len(free):
            self._least[resource] = int(free.min())
        return amount > self._least[resource]

    def _add(self, table: NodeTable, resource: str) -> Int64:
        if resource == PODS:
            free = table.allowed_pods - table.pod_count
        else:
            free = table.allocatable(resource) - table.requested(resource)
        self._free[resource] = free
        self._least[resource] = int(free.min()) if len(free) else 0
        return free


def _left_at(table: NodeTable, resource: str, row: int) -> int:
    offer, taken = table.pods_room(row) if resource == PODS else table.room(resource, row)
    return offer - taken
