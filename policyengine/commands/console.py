"""Where tables are printed: as wide as the terminal, in colours; elsewhere so wide that hardly a line is folded, and no
line ends in blanks. Names of reports come as they are, and are escaped here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import IO, TYPE_CHECKING, Final, cast

from rich.console import Console
from rich.table import Table
from rich.text import Text

from policyengine.control_characters import escaped

if TYPE_CHECKING:
    from policyengine.plan.tables import Titled


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


REPORT: Final = 160
"""The same of reports."""
_COLOURS: Final = {"better": "green", "worse": "bold red"}


def plain_table(*headers: str, right: Sequence[str] = (), gap: int = 2) -> Table:
    """A table without lines; the columns of `right` stand to the right."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, gap, 0, 0))
    for header in headers:
        table.add_column(Text(escaped(header)), overflow="fold", justify="right" if header in right else "left")
    return table


def print_tables(head: Iterable[str], tables: Iterable[Titled], notes: Iterable[str] = ()) -> None:
    """Print lines, tables, and notes after them; colours on a terminal only."""
    console = standard_output(REPORT)
    for line in head:
        console.print(Text(escaped(line)), soft_wrap=True)
    for title, headers, rows in tables:
        console.print()
        console.print(Text(title, "bold"))
        table = Table(*headers, box=None, pad_edge=False, header_style="dim")
        for row in rows:
            table.add_row(*(Text(escaped(cell), _COLOURS.get(cell, "")) for cell in row))
        console.print(table)
    for note in notes:
        console.print(Text(f"note: {escaped(note)}"), soft_wrap=True)
