"""The part of docs/performance.md about whole runs: on a real API server, on the embedded one; and the limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.peers import FLOORS, LIMIT, peer_of
from benchmarks.records import Json, Record, middle, runs_of

EMBEDDED = "embedded"


def ends(records: Sequence[Record], drawn: Mapping[str, str]) -> Iterator[str]:
    """Sections, real servers first. `drawn`: {key of a record: its picture}."""
    chosen = [one for one in records if one.what == "end-to-end"]
    real = [one for one in chosen if server_of(one) != EMBEDDED]
    embedded = [one for one in chosen if server_of(one) == EMBEDDED]
    if real:
        yield "## On a real API server\n\nSchedulers in turn on one server, each in a process of its own.\n"
        yield from (_end(one, drawn) for one in real)
    if embedded:
        told = "The server is a Python process on the same machine; a client that decides nothing says what it allows."
        yield f"## On the embedded API server\n\n{told}\n"
        yield from (_end(one, drawn) for one in embedded)


def server_of(record: Record) -> str:
    """`embedded`, or `kube-apiserver VERSION`."""
    return str(record.figures["runs"][0]["server"])


def _end(record: Record, drawn: Mapping[str, str]) -> str:
    """One measurement end to end: a table, the ratios, how it was made."""
    first = record.figures["runs"][0]
    during = ", created during the run" if first["created"] == "during" else ""
    lines = [
        f"### {first['workload']}: {first['nodes']:,} nodes, {first['pods']:,} pods{during}",
        "",
        "| | binds/s | range | a second: p50 / p99 / least | first bind s | CPU s | CPU ms a pod | peak MB |"
        " pods a node | deviation | a zone | events |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
        *(_row(name, runs) for name, runs in runs_of(record).items()),
    ]
    peer = peer_of(first["workload"], first["nodes"], first["pods"])
    if peer is not None:
        cells = f"{peer.binds_per_second:,} | | | | {peer.cpu_seconds:g} | | {peer.memory_mb:,} | | | | |"
        lines.append(f"| *kube-scheduler, recorded* | {cells}")
    if first["workload"] in FLOORS:
        lines.append(f"| *asked of kube-scheduler by scheduler_perf's CI* | {FLOORS[first['workload']]} |" + " |" * 10)
    lines += ["", *_ratio_lines(record)]
    if record.key in drawn:
        lines += [f"![binds in each second, and their spread]({drawn[record.key]})", ""]
    return "\n".join([*lines, made(record, first["server"])]) + "\n"


def _row(name: str, runs: Sequence[Json]) -> str:
    run, samples = middle(runs), middle(runs)["samples"]
    rates = [one["binds_per_second"] for one in runs]
    least, most, mean = run["pods_per_node"]
    zones = "–".join(f"{count:,}" for count in run["pods_per_zone"])
    bound = "" if run["bound"] == run["pods"] else f" ({run['bound']:,} of {run['pods']:,} bound)"
    return (
        f"| {name} | {run['binds_per_second']:,.0f}{bound} | {min(rates):,.0f}–{max(rates):,.0f} |"
        f" {samples['p50']:,} / {samples['p99']:,} / {samples['minimum']:,} | {run['first_bind_seconds']:.2f} |"
        f" {run['cpu_seconds']:.1f} | {run['cpu_ms_per_pod']:.2f} | {run['peak_mb']:,.0f} |"
        f" {least}–{most}, mean {mean:.3g} | {run['pods_per_node_deviation']:.2f} | {zones} | {run['events']:,} |"
    )


def _ratio_lines(record: Record) -> list[str]:
    lines = []
    for name, value in record.ratios.items():
        what, _, other = name.partition(" / ")
        if what == "time" and value:
            cpu = record.ratios.get(f"cpu / {other}", 0.0)
            lines += [f"**{1 / value:.2f} times the rate of {other}**, at {cpu:.2f} times its CPU.", ""]
    return lines


def made(record: Record, server: str = "") -> str:
    """The command, the server, the date, the load, and what was checked."""
    checks = sum(run.get("checks", 0) for run in record.figures.get("runs", ()))
    checked = f" {checks} decisions were made again by a fresh evaluator, all equal." if checks else ""
    where = f" server: {server};" if server else ""
    return f"`{record.command}`;{where} {record.date}; load before: {record.machine.load:g}.{checked}"


def limits(records: Sequence[Record]) -> str:
    """What a client that decides nothing does."""
    chosen = [one for one in records if one.what == "limit"]
    if not chosen:
        return ""
    lines = ["## A client that decides nothing", ""]
    for record in chosen:
        first = record.figures["runs"][0]
        lines += [f"{first['workload']}, {first['nodes']:,} nodes, {first['pods']:,} pods.", ""]
        lines += ["| | binds/s | CPU ms a bind | recorded on a real server |", "|---|--:|--:|--:|"]
        for name, runs in runs_of(record).items():
            run = middle(runs)
            spent = (run["cpu_seconds"] - run["first_bind_cpu_seconds"]) * 1e3 / max(1, run["bound"])
            rate, cpu = LIMIT.get(name, (0, 0.0))
            lines.append(f"| {name} | {run['binds_per_second']:,.0f} | {spent:.2f} | {rate:,}/s at {cpu} ms |")
        lines += ["", made(record, first["server"]), ""]
    return "\n".join(lines)
