"""Growable columns, encoded values with what is worked out of them, and the journal of changed rows: the parts that
tables are made of."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from hashlib import blake2b
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

V = TypeVar("V")
Rows = NDArray[np.int64]
"""Row numbers, ascending, without repetition: `int64[m]`."""

ABSENT = -1
"""The id of a value that is not there."""

JOURNAL_LIMIT = 1 << 16
_START = 64


def stable_hash(text: str) -> int:
    """64 bits of BLAKE2b: the same in every process and on every machine, unlike `hash`."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


class Journal:
    """Which rows changed, in order. Readers remember a position and ask what came since.

    Memory is bounded: beyond `JOURNAL_LIMIT` entries the older half is forgotten, and whoever stands before it
    is told to compute everything again.
    """

    def __init__(self) -> None:
        self._entries: list[int] = []
        self._first = 0
        self.position = 0
        """The position a reader remembers after it has seen everything so far."""
        self.row_count = 0
        """How many rows the table has now; rows beyond are not reported."""

    def append(self, row: int) -> None:
        """Note a change of `row`."""
        self._entries.append(row)
        self.position += 1
        if len(self._entries) > JOURNAL_LIMIT:
            half = JOURNAL_LIMIT // 2
            del self._entries[:half]
            self._first += half

    def forget(self) -> None:
        """Send every reader back to computing everything, as after row numbers or ids have new meanings."""
        self._entries.clear()
        self.position += 1
        self._first = self.position

    def since(self, position: int) -> Rows | None:
        """The rows changed since `position` that still exist; None: unknown, everything may have changed.

        A reader whose column is shorter than the table finds the new rows among them.
        """
        rows = self.listed_since(position)
        return None if rows is None else np.array(rows, dtype=np.int64)

    def listed_since(self, position: int) -> list[int] | None:
        """The same as a list: for few rows the faster way."""
        if position == self.position:
            return []
        if position < self._first or position > self.position:
            return None
        rows = self._entries[position - self._first :]
        if len(rows) > 1:
            rows = sorted(set(rows))
        while rows and rows[-1] >= self.row_count:
            rows.pop()
        return rows


def grown(column: NDArray[np.generic], size: int, fill: int = 0) -> NDArray[np.generic]:
    """A copy with room for at least `size` rows, at least doubled."""
    capacity = max(_START, 2 * len(column), size)
    larger = np.full(capacity, fill, dtype=column.dtype)
    larger[: len(column)] = column
    return larger


class EncodedColumn(Generic[V]):
    """One attribute of every row, as numbers: `ids[row]` points into `values`, or is `ABSENT`.

    Equal values of one type share a number. Values that cannot be hashed are told apart by identity.
    """

    def __init__(self, read: Callable[[int], V | None], rows: int) -> None:
        """`read`: row -> its value, None without one."""
        self.read = read
        self.ids: NDArray[np.int32] = np.full(max(rows, _START), ABSENT, dtype=np.int32)
        self._number_anew(rows)

    def _number_anew(self, rows: int) -> None:
        self.some_absent = False
        """Whether a row may be without a value; False means that none is."""
        self.values: list[V] = []
        """The values by id; some may stand in no row any more."""
        self._known: dict[Hashable, int] = {}
        for row in range(rows):
            self.refresh(row)

    def value(self, row: int) -> V | None:
        """The row's value, None without one."""
        found = self.ids.item(row)
        return None if found == ABSENT else self.values[found]

    def refresh(self, row: int) -> None:
        """Read the row's value again."""
        if row >= len(self.ids):
            self.ids = np.asarray(grown(self.ids, row + 1, ABSENT), dtype=np.int32)
        value = self.read(row)
        if value is None:
            self.ids[row], self.some_absent = ABSENT, True
        else:
            self.ids[row] = self._id_of(value)

    def _id_of(self, value: V) -> int:
        key: Hashable = (value.__class__, value)
        try:
            found = self._known.get(key)
        except TypeError:
            key = id(value)  # `values` keeps the object, so no other takes its id
            found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self.values)
            self.values.append(value)
        return found

    def rebuild_if_stale(self, rows: int) -> bool:
        """Number the values anew where most stand in no row any more; ids change. True where that happened."""
        if len(self.values) <= max(1024, 4 * rows):
            return False
        self._number_anew(rows)
        return True


class ValueTable:
    """What a function says of each value of an encoded column, by id; only values that came since are asked about."""

    def __init__(self, of: Callable[[Any], object], dtype: type[np.generic], absent: object = 0) -> None:
        """`absent`: what is said of rows without a value."""
        self._of = of
        self._values: Sequence[Any] = ()
        """The column's own list, to which the answers belong."""
        self._answers: NDArray[Any] = np.array([absent], dtype)

    def at(self, ids: NDArray[np.int32], values: Sequence[Any]) -> NDArray[Any]:
        """The answers for rows with these ids; `values` by id."""
        if values is not self._values:
            self._values, self._answers = values, self._answers[-1:]
        known = len(self._answers) - 1
        if known < len(values):
            new = np.array([self._of(value) for value in values[known:]], self._answers.dtype)
            # The last entry answers for an absent value, whose id is -1.
            self._answers = np.concatenate((self._answers[:-1], new, self._answers[-1:]))
        found: NDArray[Any] = self._answers[ids]
        return found
