"""What the scoring strategies of NodeResourcesFit read of nodes, kept ready for the division.

Doubles, because dividing them is several times faster than dividing integers, and here as exact. Take integers
0 <= x <= 100·y <= 2**52. A quotient x/y that is no integer is at least 1/y away from the nearest one, k, and rounding
moves it by at most half a unit in the last place, k/2**53; as k·y < 2**53, that is less. So floor and ceiling stay
what they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.row_follower import RowFollower
from policyengine.plugins.resources.amounts import taken

if TYPE_CHECKING:
    from policyengine.cluster.node_table import NodeTable

Doubles = NDArray[np.float64]
LARGEST: Final = 2**52 // 100
"""Amounts up to this are kept: a hundred of them is below 2**52."""


class AllocationColumns(RowFollower):
    """Offers and what is left of them, containers without a request for cpu or memory counting too."""

    def __init__(self, resources: tuple[str, ...]) -> None:
        super().__init__()
        self._resources = resources
        self._columns: list[tuple[Doubles, Doubles]] = []
        """(100 times what is left, the offer) of each resource: `float64[nodes]`."""
        self._least: list[int] = []
        """Never above the least of 100 times what is left."""
        self.are_usual = False
        """Whether every node offers each resource, and no amount is beyond `LARGEST`; else there are no columns."""

    def fill(self, table: NodeTable) -> None:
        """Both columns of each resource."""
        self._columns, self._least = [], []
        self.are_usual = table.n > 0
        for resource in self._resources:
            offer, used = table.allocatable(resource), taken(table, resource, with_defaults=True)
            if not (self.are_usual and offer.min() > 0 and offer.max() <= LARGEST and used.max() <= LARGEST):
                self._give_up()
                return
            left = (offer - used) * np.float64(100)
            self._columns.append((left, offer.astype(np.float64)))
            self._least.append(int(left.min()))

    def write(self, table: NodeTable, row: int) -> None:
        """Both of one node."""
        if not self.are_usual:
            return
        for place, resource in enumerate(self._resources):
            offer, used = table.room_with_defaults(resource, row)
            if not (0 < offer <= LARGEST and used <= LARGEST):
                self._give_up()
                return
            left = 100 * (offer - used)
            lefts, offers = self._columns[place]
            lefts[row], offers[row] = left, offer
            if left < self._least[place]:
                self._least[place] = left

    def _give_up(self) -> None:
        self.are_usual = False
        self.fill_when_nodes_change()

    def percent_left(self, place: int, request: int) -> Doubles:
        """100 times what the request leaves of a resource, nothing where it is beyond that, by the offer:
        `float64[nodes]`, the caller's own. Its floor and its ceiling are those of the exact quotient."""
        lefts, offers = self._columns[place]
        request *= 100  # one beyond 2**53 is rounded, and beyond what is left
        left: Doubles = lefts - float(request)
        if request > self._least[place]:
            np.maximum(left, 0.0, out=left)
        return np.divide(left, offers, out=left)
