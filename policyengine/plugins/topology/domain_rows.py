"""Which rows are of one topology domain: worked out once for as long as no Node changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from policyengine.framework.rows import FEW
from policyengine.framework.status import Rows
from policyengine.plugins.topology.domain_counts import DomainsMoved

if TYPE_CHECKING:
    from policyengine.cluster.columns import NodeTable


class DomainRows:
    """The rows by the value of one topology key."""

    __slots__ = ("_ids", "_known", "_last", "_sizes")

    def __init__(self, ids: NDArray[np.int32]) -> None:
        """`ids`: the id of each row's value, -1 where it has none."""
        rows = np.flatnonzero(ids >= 0)
        self._ids = ids
        self._sizes = np.bincount(ids[rows])
        self._last: Rows = np.zeros(len(self._sizes), dtype=np.int64)
        """By value, the last of its rows."""
        self._last[ids[rows]] = rows
        self._known: dict[int, list[int] | Rows] = {}

    def of(self, domain: int) -> list[int] | Rows:
        """The rows that have the value, ascending; few of them in a list."""
        if self._sizes.item(domain) == 1:
            return [self._last.item(domain)]
        rows = self._known.get(domain)
        if rows is None:
            found = np.flatnonzero(self._ids == domain)
            rows = self._known[domain] = found.tolist() if len(found) <= FEW else found
        return rows


class _OfTable:
    """The keys of one table that were asked about."""

    __slots__ = ("by_key", "position")

    def __init__(self) -> None:
        self.position = -1
        self.by_key: dict[str, DomainRows] = {}


_tables: WeakKeyDictionary[NodeTable, _OfTable] = WeakKeyDictionary()


def domain_rows(nodes: NodeTable, key: str) -> DomainRows:
    """The rows by the value of the key, as the nodes are now."""
    known = _tables.get(nodes)
    if known is None:
        known = _tables[nodes] = _OfTable()
    if known.position != nodes.node_journal.position:
        known.position = nodes.node_journal.position
        known.by_key.clear()
    rows = known.by_key.get(key)
    if rows is None:
        rows = known.by_key[key] = DomainRows(nodes.label_ids(key))
    return rows


def rows_moved(nodes: NodeTable, moved: DomainsMoved, beside: Sequence[int] = ()) -> Sequence[int] | Rows:
    """The rows in domains that moved, no Node having changed, and those given beside; a list of few, or an array."""
    found = [domain_rows(nodes, key).of(domain) for key, domains in moved.items() for domain in domains]
    if not found:
        return beside
    if beside:
        found.append(list(beside))
    if len(found) == 1:
        return found[0]
    if sum(map(len, found)) <= FEW:
        return sorted({row for rows in found for row in rows})
    touched = np.zeros(nodes.n, dtype=np.bool_)
    for rows in found:
        touched[rows] = True
    return np.flatnonzero(touched)
