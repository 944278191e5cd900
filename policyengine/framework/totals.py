"""The sum of the weighted shares over the whole node table, kept for the pods that share them.

Rule: a kept sum equals the sum of its shares; rows in which no share changed are not added up again.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from policyengine.framework.kept import Kept
from policyengine.framework.leaders import Leaders
from policyengine.framework.plugin import Scores
from policyengine.framework.rows import FEW
from policyengine.framework.scoring import Share, Total
from policyengine.framework.status import Rows


@dataclass(slots=True, eq=False)
class _Summed:
    """The total that followed from exactly these shares, all of them over the whole table."""

    shares: Sequence[Share]
    total: Total


class Totals:
    """Totals by the signatures of the shares in them."""

    def __init__(self, size: int) -> None:
        self._summed: Kept[_Summed] = Kept(size)

    def of(self, signatures: Hashable, shares: Sequence[Share], node_position: int) -> Total:
        """The sum of the shares, at least one and all of them by row."""
        before = self._summed.get(signatures)
        if before is not None and _same(before.shares, shares):
            before.total.node_position = node_position
            return before.total
        changed = None if before is None else _changed_rows(before.shares, shares)
        if before is None or changed is None:
            total = Total(weighted(shares), node_position)
        else:
            total = _patched(before.total, shares, changed, node_position)
        self._summed.put(signatures, _Summed(shares, total))
        return total


def weighted(shares: Sequence[Share]) -> Scores:
    """The sum of the shares, each times its weight: aligned with their scores."""
    total = shares[0].scores * shares[0].weight
    for share in shares[1:]:
        total += share.scores * share.weight if share.weight != 1 else share.scores
    return total


def _same(a: Sequence[Share], b: Sequence[Share]) -> bool:
    return len(a) == len(b) and all(map(_is, a, b))


def _is(a: Share, b: Share) -> bool:
    return a is b


def _changed_rows(before: Sequence[Share], shares: Sequence[Share]) -> Rows | None:
    """The rows in which a share differs from the one before; None where that is not known."""
    if len(before) != len(shares):
        return None
    rows: Rows | None = None
    for old, new in zip(before, shares, strict=True):
        if new is old:
            continue
        if new.patched is None or new.plugin != old.plugin or new.based_on != old.number:
            return None
        if rows is None:
            rows = new.patched
        elif rows is not new.patched:
            rows = np.union1d(rows, new.patched)
    return rows


def _patched(before: Total, shares: Sequence[Share], rows: Rows, node_position: int) -> Total:
    values = before.values.copy()
    few = len(rows) <= FEW
    if few:
        for row in rows.tolist():
            values[row] = sum([share.scores.item(row) * share.weight for share in shares])
    else:
        values[rows] = sum(share.scores[rows] * share.weight for share in shares)
    total = Total(values, node_position, before.ranked)
    leaders, before.leaders = before.leaders, None
    if few and leaders is not None and _keeps_up(leaders, rows, total):
        total.leaders = leaders
    return total


def _keeps_up(leaders: Leaders, rows: Rows, total: Total) -> bool:
    return leaders.node_position == total.node_position and leaders.keep_up(rows.tolist(), total.values)
