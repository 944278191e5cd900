"""Lines and tables on a terminal. Names come as they are, and are escaped here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from policyengine.commands.console import standard_output
from policyengine.control_characters import escaped

if TYPE_CHECKING:
    from policyengine.plan.tables import Titled

WIDE: Final = 160
"""Columns where the output is no terminal: nothing is folded that a program may read."""
_COLOURS: Final = {"better": "green", "worse": "bold red"}


def print_tables(head: Iterable[str], tables: Iterable[Titled], notes: Iterable[str] = ()) -> None:
    """Print lines, tables, and notes after them; colours on a terminal only."""
    console = standard_output(WIDE)
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
