"""Thousands of node names found in a node table by a dozen array operations, instead of one look-up each.

A name is read in words of eight bytes. The words of all names of a request are gathered from the JSON it came in, and
mixed into one number a name; that is where the name stands in a table of all that are known, if it is known. What
stands there is compared word by word, so a name is found exactly or not at all.

Read this way is an array of strings as Go writes it: without white space and escapes, and no string longer than a node
name may be. Others are for `json` to read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

LONGEST: Final = 256
"""Bytes of a name read here; a DNS subdomain has at most 253."""
_WORD: Final = 8
_QUOTE: Final = ord('"')
_BETWEEN: Final = 3
"""Bytes between two strings: `","`."""
_TABLES: Final = 8
_MASKS: Final = np.array([(1 << 8 * size) - 1 for size in range(_WORD + 1)], dtype=np.uint64)
"""What is kept of a word of which so many bytes belong to the name."""
_ODD: Final = np.random.Generator(np.random.PCG64(1)).integers(
    1 << 63, dtype=np.uint64, size=LONGEST // _WORD + 1
) | np.uint64(1)
"""Factors by which words are mixed: any odd numbers will do."""
_HALF: Final = np.uint64(32)

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Names:
    """The strings of a JSON array."""

    text: bytes
    lengths: Places
    """Bytes of each."""
    words: tuple[NDArray[np.uint64], ...]
    """The first eight bytes of each, the next eight, and so on; zero beyond its end."""

    @staticmethod
    def read(text: bytes) -> Names | None:
        """The strings of valid JSON; None where it is not such an array as can be read here."""
        if text[:2] != b'["' or text[-2:] != b'"]' or b"\\" in text:
            return None
        raw = np.frombuffer(text + bytes(LONGEST + _WORD), dtype=np.uint8)
        quotes = np.flatnonzero(raw == _QUOTE)
        starts, ends = quotes[::2] + 1, quotes[1::2]
        if (starts[1:] - ends[:-1] != _BETWEEN).any():
            return None
        lengths = ends - starts
        longest, shortest = int(lengths.max()), int(lengths.min())
        if longest > LONGEST:
            return None
        at = np.ndarray((len(raw) - _WORD + 1,), "<u8", raw, strides=(1,))
        words = []
        for begin in range(0, longest, _WORD):
            word = at[starts + begin]
            if shortest < begin + _WORD:
                word &= _MASKS[np.clip(lengths - begin, 0, _WORD)]
            words.append(word)
        return Names(text, lengths, tuple(words))

    def cut(self, kept: NDArray[np.bool_]) -> bytes:
        """The array with only those strings."""
        raw = np.frombuffer(self.text, dtype=np.uint8)[1:]
        left = raw[np.repeat(kept, self.lengths + _BETWEEN)].tobytes()
        return b"[" + left.removesuffix(b"]").removesuffix(b",") + b"]"

    def mixed(self) -> NDArray[np.uint64]:
        """A number for each; equal names have equal numbers, whichever names stand beside them."""
        mixed: NDArray[np.uint64] = self.lengths.astype(np.uint64) * _ODD[-1]
        for word, odd in zip(self.words, _ODD, strict=False):
            mixed += word * odd
        mixed ^= mixed >> _HALF
        return mixed


class NameTable:
    """The names of a node table, by row."""

    def __init__(self, names: Sequence[str]) -> None:
        """Raises `ValueError` where they cannot be read as words."""
        read = Names.read(msgspec.json.encode(names))
        if read is None:
            raise ValueError("names that are not read as words")
        self._names = read
        self._shift = np.uint64(64 - len(names).bit_length() - 3)
        self._tables = self._placed(read.mixed())

    def rows(self, asked: Names) -> Places:
        """The row of each; -1 for a name that is not there."""
        mixed = asked.mixed()
        rows = self._found(0, asked, mixed, slice(None))
        for number in range(1, len(self._tables)):
            missing = np.flatnonzero(rows < 0)
            if not len(missing):
                break
            rows[missing] = self._found(number, asked, mixed, missing)
        return rows

    def _found(self, number: int, asked: Names, mixed: NDArray[np.uint64], places: Places | slice) -> Places:
        rows = self._tables[number][self._slots(number, mixed[places])]
        same = (rows >= 0) & (self._names.lengths[rows] == asked.lengths[places])
        for known, word in zip(self._names.words, asked.words, strict=False):
            same &= known[rows] == word[places]
        found: Places = np.where(same, rows, -1)
        return found

    def _placed(self, mixed: NDArray[np.uint64]) -> list[Places]:
        """Tables in the first of which nearly all names stand, in the others those whose place was taken."""
        tables: list[Places] = []
        left = np.arange(len(mixed))
        while len(left):
            if len(tables) == _TABLES:
                raise ValueError("names that are not told apart")
            slots = self._slots(len(tables), mixed[left])
            table = np.full(1 << 64 - int(self._shift), -1, dtype=np.int64)
            table[slots] = left
            tables.append(table)
            left = left[table[slots] != left]
        return tables

    def _slots(self, number: int, mixed: NDArray[np.uint64]) -> NDArray[np.uint64]:
        slots: NDArray[np.uint64] = mixed * _ODD[number] >> self._shift
        return slots
