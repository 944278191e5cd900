"""A request as a share of what each node offers: in small whole numbers, quickly had, and close from below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from policyengine.cluster.node_columns import Int64

Shorts = NDArray[np.int16]

_DOWN: Final = 1 - 2.0**-20
"""More than three roundings of a float32 can add."""


class OfferShares:
    """What nodes offer of one resource, all of it above 0.

    `of` is never above the exact share, and less than 1.1 below it.
    """

    def __init__(self, offers: Int64, whole: int) -> None:
        """`whole`: how many units all of an offer is, at most 25,600."""
        self._whole = whole
        self._smallest = int(offers.min())
        """Never above the smallest offer."""
        self._is_same = self._smallest == int(offers.max())
        """Whether all nodes offer as much: then one share is that of all."""
        self._rates: NDArray[np.float32] = (_DOWN * whole / offers).astype(np.float32)
        """Units by amount."""

    def write(self, row: int, offer: int) -> None:
        """One node offers so much now."""
        if self._is_same and offer == self._smallest:
            return
        self._is_same = False
        self._smallest = min(offer, self._smallest)
        self._rates[row] = _DOWN * self._whole / offer

    def of(self, request: int) -> int | Shorts:
        """The share of every node, or one that is that of all; a request beyond the offer is all of it."""
        if self._is_same:
            return self._whole * min(request, self._smallest) // self._smallest
        shares = self._rates * np.float32(request)
        if request > self._smallest:
            np.minimum(shares, np.float32(self._whole), out=shares)
        return shares.astype(np.int16)
