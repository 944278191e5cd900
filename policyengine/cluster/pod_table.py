"""The pod table: the fields of every pod that rules read, as columns, made at the first read and then maintained.

Invariants:
1. Dense: places 0..n-1 are exactly the pods of the view (pending, assumed, bound). A pod that goes leaves its place to
   the last one. Places mean nothing beyond one reading, and no answer may depend on their order.
2. Nothing is kept before the first reader: a cluster whose rules read no pods pays nothing.
3. The code that changes a pod, or moves a node to another row, calls `touch`. The next reader reads a touched pod once,
   however often it changed: a hypothesis that is not read costs nothing.
4. Columns handed out are views of `[:n]`: read-only by convention, stale after the next change.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.journal import ABSENT, EncodedColumn, grown
from policyengine.cluster.pod_info import PodInfo

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Mask = NDArray[np.bool_]
Places = NDArray[np.int64]
Read = Callable[[PodInfo], Any]


class NumberColumn:
    """`values[place]`, int64 or bool, and whether there is one."""

    def __init__(self, read: Callable[[int], Any], dtype: type[np.generic], places: int) -> None:
        """`read`: place -> an int or bool, None without one."""
        self.read = read
        self.values: NDArray[Any] = np.zeros(places, dtype)
        self.present: Mask = np.zeros(places, np.bool_)
        self.some_absent = False
        """Whether a value ever was absent."""
        for place in range(places):
            self.refresh(place)

    def refresh(self, place: int) -> None:
        """Read the value of a place again; it may be one beyond the last."""
        if place >= len(self.values):
            self.values, self.present = grown(self.values, place + 1), np.asarray(grown(self.present, place + 1), bool)
        value = self.read(place)
        self.present[place] = value is not None
        self.some_absent |= value is None
        self.values[place] = value or 0

    def value(self, place: int) -> Any:
        """The value of a place, None without one."""
        return self.values[place] if self.present[place] else None


class PodTable:
    """All pods, as columns. `ClusterView` and its node table tell it what changed; rules read it."""

    def __init__(self, pods: Mapping[str, PodInfo], row_of: Mapping[str, int]) -> None:
        """Both are the view's own and read when a change is looked at."""
        self._pods = pods
        self._row_of = row_of
        self._is_read = False
        self._touched: dict[str, None] = {}
        self._place_of: dict[str, int] = {}
        self.infos: list[PodInfo] = []
        """The pods by place. Never to be written to."""
        self._rows: Codes = np.zeros(0, np.int32)
        self._nominations: dict[str, str] = {}
        self._columns: dict[Hashable, NumberColumn | EncodedColumn[Any]] = {}

    def touch(self, uid: str) -> None:
        """Something about the pod, its being there included, is not what it was."""
        if self._is_read:
            self._touched[uid] = None

    def current(self) -> PodTable:
        """The table, up to date; to be asked once before columns are read."""
        if not self._is_read:
            self._is_read = True
            self._touched = dict.fromkeys(self._pods)
        if self._touched:
            touched, self._touched = self._touched, {}
            for uid in touched:
                self._look_at(uid)
            for column in self._columns.values():
                if isinstance(column, EncodedColumn):
                    column.rebuild_if_stale(self.n)
        return self

    @property
    def n(self) -> int:
        """The number of pods, and of places."""
        return len(self.infos)

    @property
    def rows(self) -> Codes:
        """Each pod's row of the node table, -1 without one: `int32[n]`."""
        return self._rows[: self.n]

    def places(self, uids: Iterable[str]) -> Places:
        """The places of pods of the view: `int64[…]`."""
        place_of = self._place_of
        return np.array([place_of[uid] for uid in uids], np.int64)

    def nominated(self) -> tuple[Places, NDArray[np.int64]]:
        """Pending pods nominated to a node that is there: their places, and the rows of those nodes."""
        found = [
            (self._place_of[uid], row)
            for uid, name in self._nominations.items()
            if (row := self._row_of.get(name)) is not None
        ]
        return np.array([at for at, _ in found], np.int64), np.array([row for _, row in found], np.int64)

    def numbers(self, name: Hashable, read: Read, dtype: type[np.generic] = np.int64) -> NumberColumn:
        """The column of a number by name; only its first `n` entries mean something. `read` answers an int or bool,
        None where the pod has none."""
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = NumberColumn(self._at_place(read), dtype, self.n)
        assert isinstance(column, NumberColumn)
        return column

    def encoded(self, name: Hashable, read: Read) -> EncodedColumn[Any]:
        """The column of anything else by name, as ids; only its first `n` entries mean something."""
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = EncodedColumn(self._at_place(read), self.n)
        assert isinstance(column, EncodedColumn)
        return column

    def _at_place(self, read: Read) -> Callable[[int], Any]:
        infos = self.infos
        return lambda place: read(infos[place])

    def _look_at(self, uid: str) -> None:
        info, place = self._pods.get(uid), self._place_of.get(uid)
        if info is None:
            if place is not None:
                self._remove(uid, place)
            return
        if place is None:
            place = self._place_of[uid] = self.n
            self.infos.append(info)
            if place >= len(self._rows):
                self._rows = np.asarray(grown(self._rows, place + 1), np.int32)
        self.infos[place] = info
        self._rows[place] = self._row_of.get(info.node_name, ABSENT) if info.node_name else ABSENT
        if info.nominated_node_name and not info.node_name:
            self._nominations[uid] = info.nominated_node_name
        else:
            self._nominations.pop(uid, None)
        for column in self._columns.values():
            column.refresh(place)

    def _remove(self, uid: str, place: int) -> None:
        last = self.n - 1
        if place != last:
            moved = self.infos[last]
            self.infos[place] = moved
            self._place_of[moved.uid] = place
            self._rows[place] = self._rows[last]
            for column in self._columns.values():
                column.refresh(place)
        self.infos.pop()
        del self._place_of[uid]
        self._nominations.pop(uid, None)
