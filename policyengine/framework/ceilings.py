"""The best row, found by what no row is above: all are looked at in small numbers, and few exactly.

Let c be the greatest of all ceilings, and r the row that comes next on the ring of those that have it. If r's total is
c, no total is above c, and whoever else has it has the ceiling c, and so comes later: r is the best row. If r's total
is less, that is its ceiling from now on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from policyengine.framework.leaders import Ring
from policyengine.framework.ranking import next_of

Ceilings = NDArray[np.signedinteger[Any]]
"""Of every row a number that its total is not above: `[nodes]`, a feasible one among them."""

TRIES: Final = 8
"""Rows looked at. Nodes that are alike have ceilings that fail alike: to go on may be to look at them all."""


def best_below(ceilings: Ceilings, total_at: Callable[[int], int], ring: Ring, pod_uid: str) -> int | None:
    """The row that `next_of` would find by the totals; None where that takes more than a few looks. Writes to
    `ceilings`."""
    for _ in range(TRIES):
        highest = ceilings.item(ceilings.argmax())
        row = next_of(ceilings == highest, ring, pod_uid)
        total = total_at(row)
        if total == highest:
            return row
        ceilings[row] = total
    return None
