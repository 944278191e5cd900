"""What the scoring strategies of NodeResourcesFit read of nodes, in whole numbers so small that a look at all nodes
costs a third of what exact ones cost: enough to say what no node's score is above.

`left` is in units of 1/`UNIT` of a percent. With t for the exact amount, t - 1 < left < t + 1.1. So where t is at least
k·UNIT, left is too; where t is at most k·UNIT, left is at most k·UNIT + 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from policyengine.cluster.row_follower import RowFollower
from policyengine.plugins.offer_shares import OfferShares, Shorts
from policyengine.plugins.resource_amounts import taken

if TYPE_CHECKING:
    from policyengine.cluster.columns import NodeTable

UNIT: Final = 256
WHOLE: Final = 100 * UNIT
"""All of an offer."""
LARGEST: Final = (2**63 - 1) // WHOLE
"""Amounts up to this are kept: `WHOLE` of them fit into 64 bits."""


class AllocationCeilings(RowFollower):
    """What is left of offers, containers without a request for cpu or memory counting too."""

    def __init__(self, resources: tuple[str, ...]) -> None:
        super().__init__()
        self._resources = resources
        self._left: list[Shorts] = []
        self._least: list[int] = []
        """Never above the least of `_left`."""
        self._offers: list[OfferShares] = []
        self.are_usual = False
        """Whether every node offers each resource, and no amount is beyond `LARGEST`; else there are no columns."""

    def fill(self, table: NodeTable) -> None:
        """Every node's part of each resource."""
        self._left, self._least, self._offers = [], [], []
        self.are_usual = table.n > 0
        for resource in self._resources:
            offer, used = table.allocatable(resource), taken(table, resource, with_defaults=True)
            if not (self.are_usual and offer.min() > 0 and offer.max() <= LARGEST and used.max() <= LARGEST):
                self._give_up()
                return
            left = (np.maximum(offer - used, 0) * WHOLE // offer).astype(np.int16)
            self._left.append(left)
            self._least.append(int(left.min()))
            self._offers.append(OfferShares(offer, WHOLE))

    def write(self, table: NodeTable, row: int) -> None:
        """One node's."""
        if not self.are_usual:
            return
        for place, resource in enumerate(self._resources):
            offer, used = table.room_with_defaults(resource, row)
            if not (0 < offer <= LARGEST and used <= LARGEST):
                self._give_up()
                return
            left = self._left[place][row] = max(offer - used, 0) * WHOLE // offer
            if left < self._least[place]:
                self._least[place] = left
            self._offers[place].write(row, offer)

    def _give_up(self) -> None:
        self.are_usual = False
        self.fill_when_nodes_change()

    def left(self, place: int, request: int) -> Shorts:
        """What the request leaves of a resource, nothing where it is beyond that: `int16[nodes]`, the caller's own."""
        share = self._offers[place].of(request)
        left: Shorts = self._left[place] - share
        if not isinstance(share, int) or share > self._least[place]:
            np.maximum(left, np.zeros_like(left), out=left)  # faster than by one 0 for all
        return left
