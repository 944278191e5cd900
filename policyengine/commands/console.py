"""Where tables are printed: as wide as the terminal, in colours; elsewhere so wide that hardly a line is folded, and no
line ends in blanks."""

from __future__ import annotations

import re
from typing import IO, Final, cast

from rich.console import Console

WIDE: Final = 400
"""Columns where the output is no terminal."""
_BLANKS: Final = re.compile(r" +$", re.MULTILINE)


class _Trimmed:
    """A text file whose lines lose the blanks at their end; rich writes whole lines."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        self._file.write(_BLANKS.sub("", text))
        return len(text)

    def flush(self) -> None:
        self._file.flush()


def standard_output(width: int | None = WIDE) -> Console:
    """The console of standard output; `width` where that is no terminal, None for what rich takes."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = width or console.width
        console.file = cast(IO[str], _Trimmed(console.file))
    return console
