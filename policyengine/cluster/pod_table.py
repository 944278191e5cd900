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
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.journal import ABSENT, grown
from policyengine.cluster.pod_info import PodInfo

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Mask = NDArray[np.bool_]
Places = NDArray[np.int64]
Read = Callable[[PodInfo], Any]

_FEW_VALUES: Final = 1024


class PodColumn(Protocol):
    """One attribute of every pod."""

    def write(self, place: int, info: PodInfo) -> None:
        """Read a pod's value; `place` may be one beyond the last."""

    def move(self, source: int, target: int) -> None:
        """Bring a value to another place."""


class NumberColumn:
    """`values[place]`, int64 or bool, and whether there is one."""

    __slots__ = ("_read", "_room", "present", "some_absent", "values")

    def __init__(self, read: Read, dtype: type[np.generic]) -> None:
        """`read` answers an int or bool, None where the pod has none."""
        self._read = read
        self._room = 0
        self.values: NDArray[Any] = np.zeros(0, dtype)
        self.present: Mask = np.zeros(0, np.bool_)
        self.some_absent = False
        """Whether a value ever was absent."""

    def write(self, place: int, info: PodInfo) -> None:
        """Read a pod's value."""
        if place >= self._room:
            self.values, self.present = grown(self.values, place + 1), np.asarray(grown(self.present, place + 1), bool)
            self._room = len(self.values)
        value = self._read(info)
        self.present[place] = value is not None
        self.some_absent |= value is None
        self.values[place] = value or 0

    def move(self, source: int, target: int) -> None:
        """Bring a value to another place."""
        self.values[target], self.present[target] = self.values[source], self.present[source]


class CodeColumn:
    """`codes[place]` into `values`, `ABSENT` where the pod has none."""

    __slots__ = ("_known", "_read", "codes", "values")

    def __init__(self, read: Read) -> None:
        """`read` answers a value, or None. Values that cannot be hashed are compared by identity."""
        self._read = read
        self._known: dict[Hashable, int] = {}
        self.values: list[Any] = []
        self.codes: Codes = np.zeros(0, np.int32)

    def write(self, place: int, info: PodInfo) -> None:
        """Read a pod's value."""
        if place >= len(self.codes):
            self.codes = np.asarray(grown(self.codes, place + 1), np.int32)
        value = self._read(info)
        self.codes[place] = ABSENT if value is None else self._code(value)

    def _code(self, value: Any) -> int:
        key: Hashable = id(value)  # `values` keeps the object, so no other takes its id
        try:
            key = value.__class__, value
            code = self._known.get(key)
        except TypeError:
            key = id(value)
            code = self._known.get(key)
        if code is None:
            code = self._known[key] = len(self.values)
            self.values.append(value)
        return code

    def move(self, source: int, target: int) -> None:
        """Bring a value to another place."""
        self.codes[target] = self.codes[source]


class PodTable:
    """All pods, as columns. `ClusterView` and its node table tell it what changed; rules read it."""

    def __init__(self, pods: Mapping[str, PodInfo], row_of: Mapping[str, int]) -> None:
        """Both are the view's own and read when a change is looked at."""
        self._pods = pods
        self._row_of = row_of
        self._is_read = False
        self._touched: dict[str, None] = {}
        self._place_of: dict[str, int] = {}
        self._infos: list[PodInfo] = []
        self._rows: Codes = np.zeros(0, np.int32)
        self._nominations: dict[str, str] = {}
        self._columns: dict[Hashable, PodColumn] = {}
        self._made_from: dict[Hashable, Callable[[], PodColumn]] = {}

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
            self._renumber_stale()
        return self

    @property
    def n(self) -> int:
        """The number of pods, and of places."""
        return len(self._infos)

    @property
    def rows(self) -> Codes:
        """Each pod's row of the node table, -1 without one: `int32[n]`."""
        return self._rows[: self.n]

    @property
    def infos(self) -> list[PodInfo]:
        """The pods by place. Never to be written to."""
        return self._infos

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
        """The column of a number by name; only its first `n` entries mean something."""
        column = self._columns.get(name)
        if column is None:
            column = self._made(name, lambda: NumberColumn(read, dtype))
        assert isinstance(column, NumberColumn)
        return column

    def encoded(self, name: Hashable, read: Read) -> CodeColumn:
        """The column of anything else by name, as codes; only its first `n` entries mean something."""
        column = self._columns.get(name)
        if column is None:
            column = self._made(name, lambda: CodeColumn(read))
        assert isinstance(column, CodeColumn)
        return column

    def _made(self, name: Hashable, make: Callable[[], PodColumn]) -> PodColumn:
        column = make()
        for place, info in enumerate(self._infos):
            column.write(place, info)
        self._made_from[name] = make
        self._columns[name] = column
        return column

    def _look_at(self, uid: str) -> None:
        info, place = self._pods.get(uid), self._place_of.get(uid)
        if info is None:
            if place is not None:
                self._remove(uid, place)
            return
        if place is None:
            place = self._place_of[uid] = self.n
            self._infos.append(info)
            if place >= len(self._rows):
                self._rows = np.asarray(grown(self._rows, place + 1), np.int32)
        self._infos[place] = info
        self._rows[place] = self._row_of.get(info.node_name, ABSENT) if info.node_name else ABSENT
        self._nominate(uid, "" if info.node_name else info.nominated_node_name)
        for column in self._columns.values():
            column.write(place, info)

    def _nominate(self, uid: str, node_name: str) -> None:
        if node_name:
            self._nominations[uid] = node_name
        elif self._nominations:
            self._nominations.pop(uid, None)

    def _remove(self, uid: str, place: int) -> None:
        last = self.n - 1
        if place != last:
            moved = self._infos[last]
            self._infos[place] = moved
            self._place_of[moved.uid] = place
            self._rows[place] = self._rows[last]
            for column in self._columns.values():
                column.move(last, place)
        self._infos.pop()
        del self._place_of[uid]
        self._nominations.pop(uid, None)

    def _renumber_stale(self) -> None:
        """Make columns anew if no pod has most of their values any more."""
        for name, column in list(self._columns.items()):
            if isinstance(column, CodeColumn) and len(column.values) > max(_FEW_VALUES, 4 * self.n):
                self._made(name, self._made_from[name])

    def validate(self) -> None:
        """Compare everything with what the pods say now. AssertionError where something differs."""
        if not self._is_read:
            return
        table = self.current()
        assert {info.uid: info for info in table.infos} == dict(self._pods), "the pods of the pod table"
        for place, info in enumerate(table.infos):
            assert self._place_of[info.uid] == place, "places"
            row = self._row_of.get(info.node_name, ABSENT) if info.node_name else ABSENT
            assert table.rows[place] == row, f"row of {info}"
        for name, make in self._made_from.items():
            fresh = make()
            for place, info in enumerate(table.infos):
                fresh.write(place, info)
                assert _at(fresh, place) == _at(self._columns[name], place), f"column {name} of {info}"


def _at(column: PodColumn, place: int) -> Any:
    if isinstance(column, NumberColumn):
        return column.values[place] if column.present[place] else None
    assert isinstance(column, CodeColumn)
    return column.values[column.codes[place]] if column.codes[place] != ABSENT else None
