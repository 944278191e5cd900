"""The text form of why a pod has its node: what each rule gave the node taken and those that came next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from policyengine.commands.explaining.table import best
from policyengine.control_characters import escaped_values

Entry = Mapping[str, Any]

_HASH: Final = 12
_UNSCORED: Final = {
    "only": "the only node that fits: none was scored",
    "nominated": "room had been made for it here: none was scored",
    "packed": "packed tightly with its gang, which fits in no other way: none was scored",
}


def show_placed(entry: Entry, console: Console | None = None) -> None:
    """Print the answer of `explain_placed`; colours only on a terminal, as rich decides."""
    console = console or Console(highlight=False)
    entry = escaped_values(entry)
    line = Text.assemble((entry["pod"], "bold"), "  on ", (entry["node"], "bold green"))
    why = entry["why"]
    if why is None:
        scheduler = entry["schedulerName"]
        line.append(f"; no policy here serves its schedulerName `{scheduler}`, whose scheduler knows why")
    console.print(line, soft_wrap=True)
    if why is not None:
        show_why(why, console)


def show_why(why: Entry, console: Console) -> None:
    """Print the answer of `why_here`, which is escaped already."""
    policy = why["policy"]
    by = f"policy {policy['name']} {policy['hash'][:_HASH]}"
    said = [why["note"]] if why["note"] else []
    if why["basis"] == "record":
        waited = f"{why['waited']:.1f} s after it was queued, at attempt {why['attempt']}"
        said.append(f"placed {why['at']} by {by}, {waited}")
    else:
        said.append(f"by {by}, which serves it")
    refused = ", ".join(f"{plugin} {count}" for plugin, count in why["refused"].items())
    fit = f"{why['feasible']} of {why['nodes']} nodes {'fit' if why['basis'] == 'record' else 'would fit'}"
    said.append(f"{fit}; nodes refused by {refused}" if refused else fit)
    if why["how"] in _UNSCORED:
        said.append(_UNSCORED[why["how"]])
    for one in said:
        console.print(Text(f"  {one}"), soft_wrap=True)
    table = best({"chosen": next(iter(why["total"]), None), **why})
    if table is not None:
        console.print(Padding(table, (0, 0, 0, 2), expand=False))
    for one in (_tie(why), _room(why)):
        if one:
            console.print(Text(f"  {one}"), soft_wrap=True)


def _tie(why: Entry) -> str:
    """Of a record: whether others were as good."""
    node, *others = why["total"] or [""]
    same = [other for other in others if why["total"][other] == why["total"][node]]
    if not same or why["basis"] != "record":
        return ""
    return f"{node} has the total of {' and '.join(same)}: of equal nodes the hash of the pod's UID decides"


def _room(why: Entry) -> str:
    room = why.get("room")
    if room is None:
        return ""
    because = f" ({room['why']})" if room["why"] else ""
    return f"room was made for it on {room['node']}{because}: {', '.join(room['victims'])} had to go"
