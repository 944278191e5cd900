"""How evenly nodes are used, in whole numbers so small that a look at all of them costs a third of what exact ones
cost: enough to say what no node's score of NodeResourcesBalancedAllocation is above.

With fractions x and y of two resources used, B is trunc(100 - 50·|x - y|). Kept of each node is its tilt, 50·(x - y)
in units of 1/`UNIT`, rounded down; that of a pod's requests is had from shares that are less than 1.1 too small. So
the sum s of both is off by less than 2.1 from the exact one, e. Where B is N or more, 100·UNIT - |e| is at least N·UNIT
but for the rounding of doubles, 1e-9 or so; so 100·UNIT + 2.2 - |s| is, and as all but this are whole numbers,
100·UNIT + 2 - |s| is too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.free_room import FreeRoom
from policyengine.cluster.row_follower import RowFollower
from policyengine.plugins.balance import balance, balance_of, score_of
from policyengine.plugins.offer_shares import OfferShares, Shorts

if TYPE_CHECKING:
    from policyengine.cluster.columns import NodeTable

UNIT: Final = 256
_HALF: Final = 50 * UNIT
"""50·x, where all of an offer is used."""
_EVEN: Final = 2 * _HALF + 2
_SHIFTED: Final = _EVEN + 150 * UNIT
"""The score is (150 + B with the pod - B without it) // 2; of a whole number divided twice the first can wait."""
LARGEST: Final = 2**52
HIGHEST: Final = score_of(0, 100)
"""No score is above it, whatever is used."""


class BalanceCeilings(RowFollower):
    """The tilt of every node between two resources, and its B as it is."""

    def __init__(self, resources: tuple[str, ...]) -> None:
        """Two of them."""
        super().__init__()
        self._resources = resources
        self._tilt: Shorts = np.zeros(0, dtype=np.int16)
        self._even: NDArray[np.uint16] = np.zeros(0, dtype=np.uint16)
        """`_SHIFTED` less B without the pod."""
        self._offers: list[OfferShares] = []
        self.are_usual = False
        """Whether every node offers both resources, and no amount is beyond `LARGEST`; else there are no columns."""

    def fill(self, table: NodeTable) -> None:
        """Every node."""
        offers = [table.allocatable(resource) for resource in self._resources]
        used = [table.requested(resource) for resource in self._resources]
        self.are_usual = table.n > 0 and all(
            offer.min() > 0 and max(offer.max(), taken.max()) <= LARGEST
            for offer, taken in zip(offers, used, strict=True)
        )
        if not self.are_usual:
            self.fill_when_nodes_change()
            return
        first, second = (np.minimum(taken / offer, 1.0) for taken, offer in zip(used, offers, strict=True))
        self._tilt = np.floor((first - second) * _HALF).astype(np.int16)
        without = balance([taken.astype(np.float64) for taken in used], [offer.astype(np.float64) for offer in offers])
        self._even = (_SHIFTED - UNIT * without).astype(np.uint16)
        self._offers = [OfferShares(offer, _HALF) for offer in offers]

    def write(self, table: NodeTable, row: int) -> None:
        """One node."""
        if not self.are_usual:
            return
        fractions: list[float] = []
        for resource, shares in zip(self._resources, self._offers, strict=True):
            offer, used = table.room(resource, row)
            if not (0 < offer <= LARGEST and used <= LARGEST):
                self.are_usual = False
                self.fill_when_nodes_change()
                return
            fractions.append(min(used / offer, 1.0))
            shares.write(row, offer)
        self._tilt[row] = (fractions[0] - fractions[1]) * _HALF // 1
        self._even[row] = _SHIFTED - UNIT * balance_of(fractions)

    def ceilings(self, table: NodeTable, requests: Sequence[int]) -> Shorts:
        """What no node's score is above for a pod with these requests: `int16[nodes]`, the caller's own."""
        first, second = self._offers
        tilt: Shorts = self._tilt + (first.of(requests[0]) - second.of(requests[1]))
        np.abs(tilt, out=tilt)
        found = tilt.view(np.uint16)
        np.subtract(self._even, found, out=found)
        found >>= 9  # by `UNIT`, and by two
        # Where a request is beyond what is left, more than all would be used, and counts as all: the sum is no use.
        room = table.follower(FreeRoom, FreeRoom)
        assert room is not None  # a table without one has no ceilings
        for resource, request in zip(self._resources, requests, strict=True):
            if room.some_lack(table, resource, request):
                np.maximum(tilt, (room.of(table, resource) < request) * np.int16(HIGHEST), out=tilt)
        return tilt
