"""The text form of `policyengine explain`: a short story a pod, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

BEST: Final = 4
"""Nodes shown with their scores."""
NAMES: Final = 3
"""Nodes named for each reason."""

Entry = Mapping[str, Any]


def show(entries: Sequence[Entry], console: Console | None = None) -> None:
    """Print every entry; colours only on a terminal, as rich decides."""
    console = console or Console(highlight=False)
    if not entries:
        console.print("no pod waits")
    for number, entry in enumerate(entries):
        if number:
            console.print()
        _show_pod(entry, console)


def _show_pod(entry: Entry, console: Console) -> None:
    console.print(_headline(entry), soft_wrap=True)
    if entry["total"]:
        console.print(_best(entry))
    if entry["rejected"]:
        console.print(_refusals(entry))


def _headline(entry: Entry) -> Text:
    line = Text.assemble((entry["pod"], "bold"), "  ")
    refused, fits = len(entry["rejected"]), len(entry["total"])
    if "preFilter" in entry:
        status = entry["preFilter"]
        told = ", ".join(status["reasons"])
        return line.append("refused", "bold red").append(f" as a whole by {status['plugin'] or 'its spec'}: {told}")
    if entry["chosen"] is None:
        return line.append("fits nowhere", "bold red").append(f": all {refused} nodes refuse it")
    return line.append("→ ").append(entry["chosen"], "bold green").append(f"  {fits} of {fits + refused} nodes fit")


def _best(entry: Entry) -> Table:
    """The best nodes, a column each, the chosen one first; a row a plugin, then the total."""
    totals: Mapping[str, int] = entry["total"]
    names = sorted(totals, key=lambda name: (name != entry["chosen"], -totals[name], name))
    shown = names[:BEST]
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 2))
    left = len(names) - len(shown)
    table.add_column(f"score ({left} more fit)" if left else "score", header_style="dim", no_wrap=True)
    for name in shown:
        style = "green" if name == entry["chosen"] else None
        table.add_column(Text(name), justify="right", style=style, header_style=style, overflow="fold")
    for plugin in entry["scores"].get(names[0], {}):
        table.add_row(Text(plugin), *(str(entry["scores"][name][plugin]) for name in shown))
    table.add_row("total", *(str(totals[name]) for name in shown), style="bold")
    return table


def _refusals(entry: Entry) -> Table:
    """The refused nodes by plugin and reason, the most frequent first."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name, status in entry["rejected"].items():
        groups.setdefault((status["plugin"], ", ".join(sorted(status["reasons"]))), []).append(name)
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 2))
    table.add_column("nodes", justify="right")
    table.add_column("refused by", no_wrap=True)
    table.add_column("because", overflow="fold")
    table.add_column("such as", overflow="fold")
    for (plugin, reasons), names in sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])):
        shown = ", ".join(names[:NAMES]) + (", …" if len(names) > NAMES else "")
        table.add_row(str(len(names)), Text(plugin, "yellow"), Text(reasons), Text(shown, "dim"))
    return table
