"""The text form of `policyengine bench`: tables for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from policyengine.simulator.benchmark.peers import LIMIT, peer_of

if TYPE_CHECKING:
    from policyengine.simulator.benchmark.records import Difference, Record

BARS: Final = "▁▂▃▄▅▆▇█"
WIDTH: Final = 60
"""Seconds shown of a run."""

Json = Mapping[str, Any]


def show(record: Record, console: Console | None = None) -> None:
    """Print one record; colours only on a terminal, as rich decides."""
    console = console or _console()
    alone = {
        "decisions": _decisions,
        "memory": _memory,
        "language": _language,
        "queue": _queue,
        "server": _server,
        "extender": _extender,
    }
    shown = alone.get(record.what, _end_to_end)
    shown(record, console)
    machine = record.machine
    console.print(
        f"{machine.cpus} cpus ({machine.cpu_model}), {machine.memory_gb:g} GB, {machine.python}, load {machine.load:g}",
        style="dim",
        soft_wrap=True,
    )


def show_differences(differences: Sequence[Difference], threshold: float, stderr: bool = False) -> None:
    """Print every ratio then and now; those that grew too much in red."""
    console = _console(stderr)
    table = _table("compared with the saved run; of every ratio more is worse", "ratio", "then", "now", "change")
    for one in differences:
        style = "red" if one.growth > threshold else "green" if one.growth < 0 else ""
        table.add_row(one.name, f"{one.before:.3g}", f"{one.now:.3g}", Text(f"{one.growth:+.1%}", style=style))
    console.print(table)


def _console(stderr: bool = False) -> Console:
    """A pipe has no width: a table that goes into one is not cut."""
    console = Console(highlight=False, stderr=stderr)
    if not console.is_terminal:
        console.width = 120
    return console


def _table(title: str, *columns: str) -> Table:
    table = Table(title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.title = title
    table.min_width = len(title)
    for number, name in enumerate(columns):
        table.add_column(name, justify="right" if number else "left", no_wrap=bool(number))
    return table


def _end_to_end(record: Record, console: Console) -> None:
    runs: Sequence[Json] = record.figures["runs"]
    by_name: dict[str, list[Json]] = {}
    for run in runs:
        by_name.setdefault(run["contestant"], []).append(run)
    first = runs[0]
    title = f"{first['workload']}: {first['nodes']:,} nodes, {first['pods']:,} pods, {first['server']} server"
    table = _table(title, "", "binds/s", "first s", "cpu s", "ms/pod", "MB", "a node", "events", "behind s")
    for name, each in by_name.items():
        table.add_row(*_row(name, each))
    peer = peer_of(first["workload"], first["nodes"], first["pods"])
    if peer is not None:
        cells = (f"{peer.binds_per_second:,}", "", f"{peer.cpu_seconds:g}", "", f"{peer.memory_mb:,}", "", "", "")
        table.add_row("kube-scheduler *", *cells, style="dim")
    console.print(table)
    for name, each in by_name.items():
        console.print(*_seconds(name, each), soft_wrap=True)
    _ratios(record, console)
    if peer is not None:
        console.print("* on a real API server and a machine of 2 cores: no ratio to it here", style="dim")
    if record.what == "limit":
        told = ", ".join(f"{name} {rate:,}/s at {cpu} ms" for name, (rate, cpu) in LIMIT.items())
        console.print(f"recorded on a real API server: {told}", style="dim", soft_wrap=True)


def _row(name: str, runs: Sequence[Json]) -> list[str]:
    run = _middle(runs)
    least, most, _ = run["pods_per_node"]
    return [
        name,
        f"{run['binds_per_second']:,.0f}",
        f"{run['first_bind_seconds']:.2f}",
        f"{run['cpu_seconds']:.1f}",
        f"{run['cpu_ms_per_pod']:.2f}",
        f"{run['peak_mb']:,.0f}",
        f"{least}–{most}",
        f"{run['events']:,}",
        f"{run['events_behind_seconds']:.1f}",
    ]


def _seconds(name: str, runs: Sequence[Json]) -> list[str]:
    """How the binds spread over a run and the runs over each other, and what was checked."""
    run = _middle(runs)
    samples = run["samples"]
    told = [f"  {name:<20}", sparkline(samples["series"])]
    told.append(f"a second: median {samples['p50']:,.0f}, p99 {samples['p99']:,.0f}, least {samples['minimum']:,.0f}")
    if len(runs) > 1:
        rates = [one["binds_per_second"] for one in runs]
        told.append(f"({len(runs)} runs: {min(rates):,.0f} to {max(rates):,.0f})")
    if run["bound"] != run["pods"]:
        told.append(f"[red]only {run['bound']:,} of {run['pods']:,} bound[/red]")
    if run["checks"]:
        told.append(f"{sum(one['checks'] for one in runs)} checked anew, all equal")
    return told


def _middle(runs: Sequence[Json]) -> Json:
    return sorted(runs, key=lambda run: float(run["binds_per_second"]))[(len(runs) - 1) // 2]


def _ratios(record: Record, console: Console) -> None:
    for name, value in record.ratios.items():
        what, _, other = name.partition(" / ")
        if what == "time" and value:
            console.print(f"  {1 / value:.2f} times the rate of `{other}`", end="")
            cpu = record.ratios.get(f"cpu / {other}")
            console.print(f", at {cpu:.2f} times its CPU" if cpu else "")


def sparkline(series: Sequence[int]) -> str:
    """A bar a second, the tallest for the most; a long run is cut to its first minute."""
    top = max(series, default=0) or 1
    shown = "".join(BARS[min(7, value * 8 // top)] for value in series[:WIDTH])
    return shown + ("…" if len(series) > WIDTH else "")


def _decisions(record: Record, console: Console) -> None:
    figures = record.figures
    title = f"{figures['workload']}: {figures['nodes']:,} nodes, {figures['pods']:,} pods, policy {figures['policy']}"
    table = _table(title, "CPU µs", "median", "p99", "max", "measured")
    for name in ("decision", "pod_event", "node_event"):
        spread = figures[name]
        cells = (f"{spread[field]:,.1f}" for field in ("median", "p99", "max"))
        table.add_row(name.replace("_", " "), *cells, f"{spread['count']:,}")
    console.print(table)
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
    table = _table(f"the language: a policy of {figures['lines']} lines", "", "median", "")
    rows = (
        ("lint, warm", "lint_warm_ms", "ms of CPU"),
        ("compile", "compile_ms", "ms of CPU"),
        ("`policyengine lint` as a process", "lint_process_ms", "ms"),
        ("`policyengine --help` as a process", "help_process_ms", "ms"),
        (f"a filter of ten operators, {figures['filter_nodes']:,} nodes", "filter_us", "µs of CPU"),
    )
    for name, field, unit in rows:
        table.add_row(name, f"{figures[field]:,.1f}", unit)
    console.print(table)
    _operations(figures, console)


def _queue(record: Record, console: Console) -> None:
    figures = record.figures
    refused, pending = f"{figures['refused']:,} refused pods", f"{figures['pending']:,} pending pods"
    table = _table("the queue and gangs", "", "CPU", "")
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
        table.add_row(name, f"{figures[field]:,.1f}", unit)
    console.print(table)


def _server(record: Record, console: Console) -> None:
    figures = record.figures
    table = _table("the embedded API server on one core", "", "by the clock", "", "its CPU")
    start = f"{figures['start_ms']:,.0f}", "ms", f"{figures['start_cpu_ms']:,.0f} ms"
    table.add_row("start, interpreter and imports included", *start)
    rows = (
        ("bindings, one watch attached", "bindings_per_second", "binding_cpu_us"),
        (f"events to {figures['watchers']} watchers", "events_per_second", "event_cpu_us"),
    )
    for name, field, spent in rows:
        table.add_row(name, f"{figures[field]:,.0f}", "a second", f"{figures[spent]:,.1f} µs each")
    held = f"{figures['nodes']:,} nodes and {figures['pods']:,} pods, at most"
    table.add_row(held, f"{figures['held_mb']:,.0f}", "MB", "")
    table.add_row("the same, once all pods were listed", f"{figures['listed_mb']:,.0f}", "MB", "")
    console.print(table)
    if figures["cores"] < 2:
        console.print("the load shared the core", style="dim")


def _extender(record: Record, console: Console) -> None:
    figures = record.figures
    title = f"the extender on one core: {figures['nodes']:,} nodes, by the clock"
    table = _table(title, "ms", "median", "p99", "max", "requests", "CPU ms each", "at most MB")
    names = f"names, {figures['rate']:g} a second", figures["request_cpu_us"] / 1e3, figures["peak_mb"]
    whole = f"node objects, {figures['whole_mb']:.0f} MB", figures["whole_request_cpu_ms"], figures["whole_peak_mb"]
    for (name, cpu, held), prefix in ((names, ""), (whole, "whole_")):
        for verb in ("filter", "prioritize"):
            spread = figures[prefix + verb]
            cells = (f"{spread[field] / 1e3:,.2f}" for field in ("median", "p99", "max"))
            table.add_row(f"{verb}, {name}", *cells, f"{spread['count']:,}", f"{cpu:,.2f}", f"{held:,.0f}")
    console.print(table)
    if figures["cores"] < 2:
        console.print("the load shared the core", style="dim")


def _operations(figures: Mapping[str, Any], console: Console) -> None:
    """What operations cost here, beside the table that lint's estimates are made of."""
    from policyengine.language.lint.cost import MACHINE, MICROSECONDS

    table = _table(f"an operation over {figures['filter_nodes']:,} nodes, µs of CPU", "", "here", "lint's table")
    for name, spent in figures["operations"].items():
        table.add_row(name, f"{spent:,.1f}", f"{MICROSECONDS[name]:,.1f}")
    console.print(table)
    console.print(f"lint's table: {MACHINE}", highlight=False)
