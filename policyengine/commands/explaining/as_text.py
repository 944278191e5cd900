"""The text form of `policyengine explain`: a short story a pod, for people; and why a pod has its node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from policyengine.commands.console import plain_table, standard_output
from policyengine.control_characters import escaped_values

BEST: Final = 3
"""Nodes shown with their scores."""
NAMES: Final = 3
"""Nodes named for each reason."""

Entry = Mapping[str, Any]


def show(entries: Sequence[Entry], console: Console | None = None) -> None:
    """Print every entry; colours only on a terminal, as rich decides."""
    console = console or standard_output(None)
    entries = escaped_values(entries)
    if not entries:
        console.print("no pod waits")
    for number, entry in enumerate(entries):
        if number:
            console.print()
        console.print(_headline(entry), soft_wrap=True)
        for part in (best(entry), _refusals(entry)):
            if part is not None:
                console.print(Padding(part, (0, 0, 0, 2), expand=False))
        _show_suggestions(entry, console)
        preemption = _preemption(entry)
        if preemption is not None:
            console.print(Padding(preemption, (0, 0, 0, 2), expand=False))


def show_forecast(entries: Sequence[Entry]) -> None:
    """Print what becomes of the pods, a line each; of one that comes with what its last attempt weighed, that too."""
    console = standard_output(None)
    entries = escaped_values(entries)
    if not entries:
        console.print("no pod waits")
    for entry in entries:
        is_whole = "rejected" not in entry
        console.print(_fate(entry, entry["message"] if is_whole else ""), soft_wrap=True)
        show_attempt(entry, console)


def show_attempt(entry: Entry, console: Console) -> None:
    """Why, what the last attempt weighed if there was one, and what would help."""
    if "rejected" in entry:
        if entry["message"]:
            console.print(Text(f"  {entry['message']}", "dim"), soft_wrap=True)
        for part in (_whole(entry), best({"chosen": entry["node"], **entry}), _refusals(entry)):
            if part is not None:
                console.print(Padding(part, (0, 0, 0, 2), expand=False))
    _show_suggestions(entry, console)


def _fate(entry: Entry, message: str) -> Text:
    """`default/crew-2  held: gang pod-group: 2 of 3 members exist`."""
    line = Text.assemble((entry["pod"], "bold"), "  ")
    outcome = entry["outcome"]
    if outcome in ("bound", "waiting"):
        line.append("→ ").append(entry["node"], "bold green")
        line.append(f"  after {entry['after']:.0f} s" if entry.get("after", 0) >= 1 else "")
    elif outcome == "unserved":
        line.append("nobody serves", "bold red").append(f" its schedulerName `{entry['schedulerName']}`")
        message = f"served are {', '.join(entry['served'])}" if entry["served"] else "no policy serves at all"
    elif outcome == "terminating":
        line.append("is being deleted", "bold yellow").append(": no scheduler places it any more")
    else:
        line.append("fits nowhere" if outcome == "unschedulable" else outcome, "bold red")
    if entry["victims"]:
        line.append(f"  once {', '.join(entry['victims'])} {'is' if len(entry['victims']) == 1 else 'are'} evicted")
    if message:
        line.append(", " if outcome == "waiting" else "; " if outcome == "unserved" else ": ").append(message)
    return line.append(f" (nominated to {entry['nominatedNode']})" if entry["nominatedNode"] else "")


def _whole(entry: Entry) -> Text | None:
    """Why the pod was refused before any node was looked at."""
    status = entry.get("preFilter")
    if status is None:
        return None
    return Text.assemble("refused as a whole by ", (status["plugin"] or "its spec", "yellow"))


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


def best(entry: Entry) -> Table | None:
    """The best nodes, a column each, the chosen one first; a row a plugin, with its weight where `weights` are there,
    then the total. Tiers come first, in points, and are no part of that total. `feasible` counts the nodes that fit
    where not all of them are there."""
    totals: Mapping[str, int] = entry["total"]
    if not totals:
        return None
    names = sorted(totals, key=lambda name: (name != entry["chosen"], -totals[name], name))
    shown = names[:BEST]
    left = entry.get("feasible", len(names)) - len(shown)
    weights = entry.get("weights", {})
    table = plain_table(f"score ({left} more fit)" if left else "score")
    table.columns[0].no_wrap = True
    for name in shown:
        style = "green" if name == entry["chosen"] else None
        table.add_column(Text(name), justify="right", style=style, header_style=style or "none", overflow="fold")
    tiers, scores = entry.get("tiers", ()), entry["scores"]
    for plugin in tiers:
        table.add_row(Text(f"{plugin} (tier)"), *(str(scores[name][plugin] // weights[plugin]) for name in shown))
    for plugin in scores.get(names[0], {}):
        weight = weights.get(plugin, 1)
        label = plugin if weight == 1 else f"{plugin} (weight {weight})"
        if plugin not in tiers:
            table.add_row(Text(label), *(str(scores[name][plugin]) for name in shown))
    below = (totals[name] - sum(scores[name][plugin] for plugin in tiers) for name in shown)
    table.add_row("total behind the tiers" if tiers else "total", *map(str, below), style="bold")
    return table


def _refusals(entry: Entry) -> Table | None:
    """The refused nodes by plugin and reason, the most frequent first, the first few of them by name."""
    if not entry["rejected"]:
        return None
    groups: dict[tuple[str, str], list[str]] = {}
    for name, status in entry["rejected"].items():
        groups.setdefault((status["plugin"], ", ".join(sorted(status["reasons"]))), []).append(name)
    table = plain_table("nodes", "refused by, because")
    table.columns[0].justify = "right"
    for (plugin, reasons), names in sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])):
        shown = ", ".join(names[:NAMES]) + (", …" if len(names) > NAMES else "")
        told = Text.assemble((plugin, "yellow"), f": {reasons}\n", (shown, "dim"))
        table.add_row(str(len(names)), told)
    return table


def _show_suggestions(entry: Entry, console: Console) -> None:
    """What would help, the smallest change first, and where the pod would then go; the first that kubectl can do, as
    commands."""
    if not entry.get("suggestions"):
        return
    table = plain_table("it would fit, if you", "then on")
    for suggestion in entry["suggestions"]:
        others = suggestion["fits"] - 1
        where = Text(suggestion["chosen"], "green")
        told = Text(suggestion["change"])
        for pod, what in suggestion.get("costs", {}).items():
            told.append(f"\n{pod} is then {what}", "red")
        table.add_row(told, where.append(f" or {others} more", "dim") if others else where)
    console.print(Padding(table, (0, 0, 0, 2), expand=False))
    lines = ([change.get("kubectl") for change in suggestion["changes"]] for suggestion in entry["suggestions"])
    if commands := next((" && ".join(some) for some in lines if all(some)), ""):
        console.print(Text(f"  {commands}", "dim"), soft_wrap=True)


def _preemption(entry: Entry) -> Text | None:
    """Who would have to go where."""
    preemption = entry.get("preemption")
    if preemption is None or not preemption.get("chosen"):
        return None
    chosen = preemption["chosen"]
    victims = preemption["candidates"].get(chosen, {}).get("victims", [])
    return Text("preemption would evict ").append(", ".join(victims), "bold").append(f" from {chosen}")


_HASH: Final = 12
_UNSCORED: Final = {
    "only": "the only node that fits: none was scored",
    "nominated": "room had been made for it here: none was scored",
    "packed": "packed tightly with its gang, which fits in no other way: none was scored",
}


def show_placed(entries: Sequence[Entry]) -> None:
    """Print the one answer of `explain_placed`; colours only on a terminal, as rich decides."""
    console = Console(highlight=False)
    (entry,) = escaped_values(entries)
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
