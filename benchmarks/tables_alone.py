"""The text form of `python -m benchmarks`'s parts alone: a table each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from rich import box
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from benchmarks.records import Record


def table(title: str, *columns: str) -> Table:
    """An empty table with a title and columns, all but the first to the right."""
    made = Table(title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    made.title = title
    made.min_width = len(title)
    for number, name in enumerate(columns):
        made.add_column(name, justify="right" if number else "left", no_wrap=bool(number))
    return made


def _decisions(record: Record, console: Console) -> None:
    figures = record.figures
    title = f"{figures['workload']}: {figures['nodes']:,} nodes, {figures['pods']:,} pods, policy {figures['policy']}"
    shown = table(title, "CPU µs", "median", "p99", "max", "measured")
    for name in ("decision", "pod_event", "node_event"):
        spread = figures[name]
        cells = (f"{spread[field]:,.1f}" for field in ("median", "p99", "max"))
        shown.add_row(name.replace("_", " "), *cells, f"{spread['count']:,}")
    console.print(shown)
    console.print(
        f"  {figures['decisions_per_second']:,.0f} decisions a second of CPU; {figures['pods_per_second']:,.0f} pods "
        f"with their events\n  {figures['bound']:,} bound, at most {figures['pods_per_node_max']} on a node; "
        f"{figures['checks']} checked against a fresh evaluator, all equal; {figures['memory_mb']:,.0f} MB",
        soft_wrap=True,
    )


def _memory(record: Record, console: Console) -> None:
    figures = record.figures
    grown = (figures["after_mb"] - figures["before_mb"]) * 1024 / (figures["nodes"] + figures["pods"])
    console.print(
        f"{figures['nodes']:,} nodes and {figures['pods']:,} pods held: {figures['after_mb']:,.0f} MB "
        f"({figures['before_mb']:,.0f} MB before, {grown:.2f} KB an object)"
    )


def _language(record: Record, console: Console) -> None:
    figures = record.figures
    shown = table(f"the language: a policy of {figures['lines']} lines", "", "median", "")
    rows = (
        ("lint, warm", "lint_warm_ms", "ms of CPU"),
        ("compile: from text to profile", "compile_ms", "ms of CPU"),
        ("  to checked policies", "check_ms", "ms of CPU"),
        ("  from those to the profile", "build_ms", "ms of CPU"),
        ("`policyengine lint` as a process", "lint_process_ms", "ms"),
        ("`policyengine --help` as a process", "help_process_ms", "ms"),
        (f"a filter of ten operators, {figures['filter_nodes']:,} nodes", "filter_us", "µs of CPU"),
    )
    for name, field, unit in rows:
        shown.add_row(name, f"{figures[field]:,.1f}", unit)
    console.print(shown)
    _operations(figures, console)


def _queue(record: Record, console: Console) -> None:
    figures = record.figures
    refused, pending = f"{figures['refused']:,} refused pods", f"{figures['pending']:,} pending pods"
    shown = table("the queue and gangs", "", "CPU", "")
    rows = (
        (f"add a pod to {pending}", "add_us", "µs"),
        ("take the next one", "pop_us", "µs"),
        ("put a refused one away", "refuse_us", "µs"),
        ("update one", "update_us", "µs"),
        ("remove one", "remove_us", "µs"),
        ("an event that wakes nobody", "idle_event_us", "µs"),
        ("a decision, alone", "decision_us", "µs"),
        (f"a decision, beside {refused}", "decision_beside_refused_us", "µs"),
        (f"a gang of {figures['gang']:,} on {figures['gang_nodes']:,} nodes, placed", "gang_ms", "ms"),
        ("the same where no member fits", "gang_refused_ms", "ms"),
    )
    for name, field, unit in rows:
        shown.add_row(name, f"{figures[field]:,.1f}", unit)
    console.print(shown)


def _reload(record: Record, console: Console) -> None:
    figures = record.figures
    size = f"{figures['lines']} lines, {figures['nodes']:,} nodes, {figures['waiting']:,} pods waiting"
    shown = table(f"a policy replaced: {size}", "ms of CPU", "median")
    rows = (
        ("read, checked, tested, compiled beside the event loop", "compile_ms"),
        ("the longest that the loop was held meanwhile", "gap_ms"),
        ("the swap", "swap_ms"),
        ("the first decision", "first_cycle_ms"),
        ("a later decision", "cycle_ms"),
    )
    for name, field in rows:
        shown.add_row(name, f"{figures[field]:,.2f}")
    console.print(shown)


def _server(record: Record, console: Console) -> None:
    figures = record.figures
    shown = table("the embedded API server on one core", "", "by the clock", "", "its CPU")
    start = f"{figures['start_ms']:,.0f}", "ms", f"{figures['start_cpu_ms']:,.0f} ms"
    shown.add_row("start, interpreter and imports included", *start)
    rows = (
        ("bindings, one watch attached", "bindings_per_second", "binding_cpu_us"),
        (f"events to {figures['watchers']} watchers", "events_per_second", "event_cpu_us"),
    )
    for name, field, spent in rows:
        shown.add_row(name, f"{figures[field]:,.0f}", "a second", f"{figures[spent]:,.1f} µs each")
    held = f"{figures['nodes']:,} nodes and {figures['pods']:,} pods, at most"
    shown.add_row(held, f"{figures['held_mb']:,.0f}", "MB", "")
    shown.add_row("the same, once all pods were listed", f"{figures['listed_mb']:,.0f}", "MB", "")
    console.print(shown)
    if figures["cores"] < 2:
        console.print("the load shared the core", style="dim")


def _extender(record: Record, console: Console) -> None:
    figures = record.figures
    title = f"the extender on one core: {figures['nodes']:,} nodes, by the clock"
    shown = table(title, "ms", "median", "p99", "max", "requests", "CPU ms each", "at most MB")
    names = f"names, {figures['rate']:g} a second", figures["request_cpu_us"] / 1e3, figures["peak_mb"]
    whole = f"node objects, {figures['whole_mb']:.0f} MB", figures["whole_request_cpu_ms"], figures["whole_peak_mb"]
    for (name, cpu, held), prefix in ((names, ""), (whole, "whole_")):
        for verb in ("filter", "prioritize"):
            spread = figures[prefix + verb]
            cells = (f"{spread[field] / 1e3:,.2f}" for field in ("median", "p99", "max"))
            shown.add_row(f"{verb}, {name}", *cells, f"{spread['count']:,}", f"{cpu:,.2f}", f"{held:,.0f}")
    served = figures["served"]
    cells = (f"{served[field] / 1e3:,.2f}" for field in ("median", "p99", "max"))
    shown.add_row("both by names, since they were sent", *cells, f"{served['count']:,}", "", "")
    console.print(shown)
    if figures["cores"] < 2:
        console.print("the load shared the core", style="dim")


def _operations(figures: Mapping[str, Any], console: Console) -> None:
    """What operations cost here, beside the table that lint's estimates are made of."""
    from policyengine.language.lint.cost import MACHINE, MICROSECONDS

    shown = table(f"an operation over {figures['filter_nodes']:,} nodes, µs of CPU", "", "here", "lint's table")
    for name, spent in figures["operations"].items():
        shown.add_row(name, f"{spent:,.1f}", f"{MICROSECONDS[name]:,.1f}")
    console.print(shown)
    console.print(f"lint's table: {MACHINE}", highlight=False)


def _scale(record: Record, console: Console) -> None:
    figures = record.figures
    columns = ("nodes", "pods placed", "different µs", "identical µs", "taken in s", "KB a node", "KB a pod", "MB")
    shown = table("CPU of a decision against the size of the cluster", *columns)
    for point in (*figures["by_nodes"], *figures["by_pods"]):
        sizes, held = (f"{point[name]:,}" for name in ("nodes", "pods")), (point["kb_per_node"], point["kb_per_pod"])
        spent = (f"{point[name]:,.0f}" for name in ("different_us", "identical_us"))
        memory = (*(f"{kb:.2f}" for kb in held), f"{point['peak_mb']:,.0f}")
        shown.add_row(*sizes, *spent, f"{point['start_cpu_seconds']:.2f}", *memory)
    console.print(shown)
    for name, value in figures["exponents"].items():
        console.print(f"  {name}: grows with the power {value:.2f}")
    for told in figures["given_up"]:
        console.print(f"  [red]given up[/red] {told}", soft_wrap=True)


def _sharing(record: Record, console: Console) -> None:
    figures = record.figures
    title = f"{figures['workload']}: {figures['nodes']:,} nodes, {figures['pods']:,} pods, {figures['server']} server"
    shown = table(title, "", "lease held by", "pods", "bound", "binds/s", "cpu s", "MB", "checked")
    for runs in ("alone", "together", "apart"):
        for run in figures[runs]:
            many = f"{run['schedulers']} scheduler{'s' * (run['schedulers'] > 1)}{' apart' * run['apart']}"
            shown.add_row(many, "", f"{figures['pods']:,}", f"{run['bound']:,}", f"{run['binds_per_second']:,.0f}")
            for share in run["shares"]:
                cells = (share["holder"][:24], f"{share['pods']:,}", f"{share['bound']:,}")
                spent = (f"{share['cpu_seconds']:.1f}", f"{share['peak_mb']:,.0f}", f"{share['checks']}")
                shown.add_row(
                    f"  {share['scheduler']}", *cells, f"{share['binds_per_second']:,.0f}", *spent, style="dim"
                )
    console.print(shown)
    every = (*figures["alone"], *figures["together"], *figures["apart"])
    moved, over = sum(run["moved"] for run in every), [told for run in every for told in run["overcommitted"]]
    console.print(f"  {moved} pods bound twice, {len(over)} nodes with more than they have")
    for told in over[:10]:
        console.print(f"  [red]{told}[/red]")


def _instructions(record: Record, console: Console) -> None:
    shown = table(f"counted by {record.figures['valgrind']}", "", "thousand instructions")
    for name, value in record.figures["thousands"].items():
        shown.add_row(name, f"{value:,.1f}")
    console.print(shown)


def _ratios(record: Record, console: Console) -> None:
    figures = record.figures
    title = f"in units of a fixed piece of work: {figures['nodes']:,} nodes, {figures['pods']:,} pods"
    shown = table(title, "", "a decision", "a pod event")
    for name, value in figures["yardsticks"].items():
        shown.add_row(name, f"{value:.3f}", f"{figures['events'][name]:.3f}")
    console.print(shown)
    console.print(f"  {figures['checks']} decisions checked against a fresh evaluator, all equal")


ALONE: Final[dict[str, Callable[[Record, Console], None]]] = {
    "decisions": _decisions,
    "memory": _memory,
    "scale": _scale,
    "sharing": _sharing,
    "language": _language,
    "queue": _queue,
    "reload": _reload,
    "server": _server,
    "extender": _extender,
    "instructions": _instructions,
    "ratios": _ratios,
}
"""What was measured -> how it is shown."""
