"""Character offsets and LSP positions: lines and columns from 0, columns in UTF-16 code units.

LSP ends a line with `\\n`, `\\r\\n` or `\\r`; a position behind the end of its line means that end.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right

from lsprotocol.types import Position, Range

from policyengine.language.syntax import Span

_LINE_END = re.compile(r"\r\n|\r|\n")
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
"""What takes two code units."""


class Lines:
    """The lines of a text. A conversion costs the logarithm of its length, however long a line is."""

    def __init__(self, text: str) -> None:
        ends = list(_LINE_END.finditer(text))
        self._starts = [0, *(end.end() for end in ends)]
        self._ends = [*(end.start() for end in ends), len(text)]
        self._astral = [found.start() for found in _ASTRAL.finditer(text)]

    def position(self, offset: int) -> Position:
        """Where an offset is; one outside of the text means its nearest end."""
        offset = max(0, min(offset, self._ends[-1]))
        line = bisect_right(self._starts, offset) - 1
        start = self._starts[line]
        wide = bisect_left(self._astral, offset) - bisect_left(self._astral, start)
        return Position(line, offset - start + wide)

    def offset(self, position: Position) -> int:
        """The offset of a position; inside of a surrogate pair, the character's."""
        if position.line >= len(self._starts):
            return self._ends[-1]
        start, end = self._starts[position.line], self._ends[position.line]
        first, last = bisect_left(self._astral, start), bisect_left(self._astral, end)
        # The n-th wide character of the line, at c, has its second unit at c - start + n + 1.
        middles = range(first, last)
        wide = bisect_right(middles, position.character, key=lambda at: self._astral[at] - start + at - first + 1)
        return min(start + position.character - wide, end)

    def range(self, span: Span) -> Range:
        """The range of a span."""
        return Range(self.position(span.start), self.position(span.end))

    def span(self, range_: Range) -> Span:
        """The span of a range."""
        start = self.offset(range_.start)
        return Span(start, max(start, self.offset(range_.end)))
