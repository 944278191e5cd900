"""The columns that a streak rests on: they must stay what they were when it began, or it is over.

Each is watched as cheaply as its plugin allows: not at all while no other object changes, by a look at whether it has
something to count, by following the pods that come and go, or by asking for it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from policyengine.framework.cached_column import ColumnCache
from policyengine.framework.carried import CarriedColumn
from policyengine.framework.changes import Changes
from policyengine.framework.column import Column

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo

_Watched = tuple[ColumnCache, Hashable, Column]


class RestingColumns:
    """Columns of plugins that refuse or skip the pod as a whole, or that no pod which comes or goes concerns."""

    __slots__ = ("_idle", "_object_changes", "_silent", "_unmoved", "_watched")

    def __init__(self, changes: Changes) -> None:
        self._object_changes = changes.object_changes
        self._watched: list[_Watched] = []
        """Those for which pods, or a situation, are read."""
        self._unmoved: list[_Watched] = []
        """Those that stay by themselves while no other object changes."""
        self._idle: list[_Watched] = []
        """Those of plugins that count, and have nothing to count."""
        self._silent: list[CarriedColumn] = []
        """Those of plugins that count, and must go on having nothing to say."""

    def add(self, cache: ColumnCache, signature: Hashable, column: Column, changes: Changes) -> None:
        """One more, as it is now."""
        if not column.settled and cache.idles(column, changes):
            self._idle.append((cache, signature, column))
        elif cache.counts and cache.follows_pods and not column.settled:
            self._silent.append(CarriedColumn(cache, signature, column))
        elif cache.stays_by_itself(column):
            self._unmoved.append((cache, signature, column))
        else:
            self._watched.append((cache, signature, column))

    def stay(self, pod: PodInfo, changes: Changes, rows: Sequence[int], since: int) -> bool:
        """Whether all are what they were. Since the pod position `since` only pods on `rows` came or went, and no Node
        changed."""
        for cache, _, column in self._idle:
            if not cache.idles(column, changes):
                return False
        for cache, signature, column in self._watched:
            if not cache.stays(column, signature, pod, changes):
                return False
        if changes.object_changes != self._object_changes:
            for cache, signature, column in (*self._idle, *self._unmoved):
                if not cache.stays(column, signature, pod, changes):
                    return False
            self._object_changes = changes.object_changes
        return not self._silent or all(part.follow(pod, changes, rows, since) is not None for part in self._silent)
