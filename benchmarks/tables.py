"""The text form of `python -m benchmarks`: runs end to end, and what was compared. Parts alone: `bench_table_alone`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.text import Text

from benchmarks.peers import FLOORS, LIMIT, peer_of
from benchmarks.records import middle, runs_of, title
from benchmarks.tables_alone import ALONE, table

if TYPE_CHECKING:
    from benchmarks.records import Difference, Record

BARS: Final = "▁▂▃▄▅▆▇█"
WIDTH: Final = 60
"""Seconds shown of a run."""

Json = Mapping[str, Any]


def show(record: Record, console: Console | None = None) -> None:
    """Print one record; colours only on a terminal, as rich decides."""
    console = console or _console()
    shown = ALONE.get(record.what, _end_to_end)
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
    shown = table("compared with the saved run; of every ratio more is worse", "ratio", "then", "now", "change")
    for one in differences:
        style = "red" if one.growth > threshold else "green" if one.growth < 0 else ""
        shown.add_row(one.name, f"{one.before:.3g}", f"{one.now:.3g}", Text(f"{one.growth:+.1%}", style=style))
    console.print(shown)


def _console(stderr: bool = False) -> Console:
    """A pipe has no width: a table that goes into one is not cut."""
    console = Console(highlight=False, stderr=stderr)
    if not console.is_terminal:
        console.width = 120
    return console


def _end_to_end(record: Record, console: Console) -> None:
    by_name = runs_of(record)
    first = record.figures["runs"][0]
    shown = table(
        title(first), "", "binds/s", "first s", "cpu s", "ms/pod", "MB", "a node", "deviation", "events", "behind s"
    )
    for name, each in by_name.items():
        shown.add_row(*_row(name, each))
    peer = peer_of(first["workload"], first["nodes"], first["pods"])
    if peer is not None:
        cells = (f"{peer.binds_per_second:,}", "", f"{peer.cpu_seconds:g}", "", f"{peer.memory_mb:,}", *[""] * 4)
        shown.add_row("kube-scheduler *", *cells, style="dim")
    console.print(shown)
    for name, each in by_name.items():
        console.print(*_seconds(name, each), soft_wrap=True)
    _ratios(record, console)
    if peer is not None:
        console.print("* on a real API server and a machine of 2 cores: no ratio to it here", style="dim")
    floor = FLOORS.get(first["workload"])
    if floor is not None:
        console.print(
            f"scheduler_perf's CI asks kube-scheduler for {floor} a second, on machines of its own", style="dim"
        )
    if record.what == "limit":
        told = ", ".join(f"{name} {rate:,}/s at {cpu} ms" for name, (rate, cpu) in LIMIT.items())
        console.print(f"recorded on a real API server: {told}", style="dim", soft_wrap=True)


def _row(name: str, runs: Sequence[Json]) -> list[str]:
    run = middle(runs)
    least, most, _ = run["pods_per_node"]
    return [
        name,
        f"{run['binds_per_second']:,.0f}",
        f"{run['first_bind_seconds']:.2f}",
        f"{run['cpu_seconds']:.1f}",
        f"{run['cpu_ms_per_pod']:.2f}",
        f"{run['peak_mb']:,.0f}",
        f"{least}–{most}",
        f"{run['pods_per_node_deviation']:.2f}",
        f"{run['events']:,}",
        f"{run['events_behind_seconds']:.1f}",
    ]


def _seconds(name: str, runs: Sequence[Json]) -> list[str]:
    """How the binds spread over a run and the runs over each other, and what was checked."""
    run = middle(runs)
    samples = run["samples"]
    told = [f"  {name:<20}", sparkline(samples["series"])]
    told.append(
        f"a second: median {samples['p50']:,.0f}, p99 {samples['p99']:,.0f}, least {samples['minimum']:,.0f}, "
        f"mean after the first {samples['mean_after_first']:,.0f}"
    )
    if len(runs) > 1:
        rates = [one["binds_per_second"] for one in runs]
        told.append(f"({len(runs)} runs: {min(rates):,.0f} to {max(rates):,.0f})")
    if run["bound"] != run["pods"]:
        told.append(f"[red]only {run['bound']:,} of {run['pods']:,} bound[/red]")
    if run["checks"]:
        told.append(f"{sum(one['checks'] for one in runs)} checked anew, all equal")
    return told


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
