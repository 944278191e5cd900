"""docs/performance.md, from saved results: every figure with the command, the machine, the server and the date."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from policyengine.simulator.benchmark.machine import Machine
from policyengine.simulator.benchmark.peers import LIMIT, peer_of
from policyengine.simulator.benchmark.records import Record

Json = Mapping[str, Any]

HEAD: Final = """\
# What it costs

Made by `policyengine bench page --from RESULTS > docs/performance.md` from results of `policyengine bench … --save
RESULTS`. Nothing here is asserted by a test: times belong to a machine. Medians where a command ran several times; the
range stands beside them. The load average says how busy the machine was with other work.

A rate is from the first bind to the last, as a watch in a third process saw them, of pods that waited before the
scheduler started. CPU is the scheduler process's from start to its last event, memory its peak. *kube-scheduler,
recorded* is kube-scheduler 1.36.2 with the real API server and etcd on a machine of 2 cores; ratios are taken only
between programs measured in turn on one server.
"""

TARGETS: Final = """\
## At 5,000 nodes

| what | wanted | measured |
|---|---|---|
"""

NOTES: Final = """\
## How it is done

Only what has a figure was measured by itself.

- *Streaks.* From the second of a run of identical pods on, only the rows that changed since are judged and scored, and
  the best rows are kept in the order of the ring (`framework/streak.py`). Columns that are not asked fall behind and
  catch up from the journal when they are.
- *Arrivals.* A watch's lines are handed on as they arrived together, not one by one through every generator and timer.
- *Events behind bindings.* While bindings are under way, events wait for up to 3 s, as long as what lies there can be
  written in 4 s at the pace of the last ones; cycles wait where it cannot. Written from the first second on, they
  halved the rate of bindings: on two cores the server's work for an event is taken from its work for a binding.
- *Kept connections* read by llhttp instead of an HTTP client's session; header lines built once, an answer's headers
  read only where they are asked for; and uvloop, with which 1,316 bindings a second became 2,000 (peer-basic, 2,000
  nodes).
- *A quiet collector.* Reference cycles are looked for seldom, and not at all in what the first lists brought.

Where it steps aside:

- Streaks of pods whose spread or affinity counts them: each placement changes a domain, so the streak is over at once.
  After such a one the next 64 identical pods do not begin another.
- Looking again at more than 256 rows in a streak: after such a burst the columns are asked.
"""


def page(records: Sequence[Record]) -> str:
    """The whole page, ending in a newline."""
    parts = [HEAD, _machines(records)]
    parts += [_targets(records)] if any(_target_rows(records)) else []
    parts += [_real(records), _embedded(records), _limits(records), _decisions(records)]
    parts += [_language(records), _server(records), _extender(records), NOTES]
    return "\n".join(part for part in parts if part)


def _of(records: Iterable[Record], what: str) -> list[Record]:
    return [record for record in records if record.what == what]


def _machines(records: Sequence[Record]) -> str:
    seen = {_machine(record.machine): None for record in records}
    lines = [f"- {text}" for text in seen]
    dates = sorted(record.date[:10] for record in records)
    span = "" if not dates else dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    versions = ", ".join(sorted({record.version for record in records}))
    return "\n".join(["## Machine", "", *lines, f"- policyengine {versions}, measured {span}", ""])


def _machine(machine: Machine) -> str:
    return f"{machine.cpus} cpus, {machine.cpu_model}, {machine.memory_gb:g} GB, {machine.kernel}, {machine.python}"


def _target_rows(records: Sequence[Record]) -> list[str]:
    rows: list[str] = []
    for record in _of(records, "decisions"):
        figures = record.figures
        if figures["nodes"] != 5_000:
            continue
        name = f"`{record.command}`"
        if figures["policy"] == "riya" and figures["workload"] == "peer-mixed":
            rows.append(
                f"| a cycle with riya.policy, pods of different shapes, median CPU: {name} | under 1 ms |"
                f" {figures['decision']['median'] / 1e3:.2f} ms |"
            )
            for kind in ("node", "pod"):
                spent = figures[f"{kind}_event"]["median"]
                rows.append(f"| a {kind} event applied, median CPU: {name} | under 50 µs | {spent:.0f} µs |")
    rows += [
        f"| {figures['nodes']:,} nodes and {figures['pods']:,} pods held: `{record.command}` | under 300 MB |"
        f" {figures['after_mb']:,.0f} MB |"
        for record in _of(records, "memory")
        for figures in [record.figures]
    ]
    return rows


def _targets(records: Sequence[Record]) -> str:
    return TARGETS + "\n".join(_target_rows(records)) + "\n"


def _runs(record: Record) -> dict[str, list[Json]]:
    found: dict[str, list[Json]] = {}
    for run in record.figures["runs"]:
        found.setdefault(run["contestant"], []).append(run)
    return found


def _real(records: Sequence[Record]) -> str:
    chosen = [one for one in _of(records, "end-to-end") if one.figures["runs"][0]["server"] != "embedded"]
    if not chosen:
        return ""
    told = "Schedulers in turn on one server, each in a process of its own.\n"
    return "\n".join(["## On a real API server", "", told, *map(_ends, chosen)])


def _embedded(records: Sequence[Record]) -> str:
    chosen = [one for one in _of(records, "end-to-end") if one.figures["runs"][0]["server"] == "embedded"]
    if not chosen:
        return ""
    told = "The server is a Python process on the same machine; the client that decides nothing says what it allows.\n"
    return "\n".join(["## On the embedded API server", "", told, *map(_ends, chosen)])


def _ends(record: Record) -> str:
    """One measurement end to end: a table, the ratios, how it was made."""
    first = record.figures["runs"][0]
    lines = [
        f"### {first['workload']}: {first['nodes']:,} nodes, {first['pods']:,} pods",
        "",
        "| | binds/s | range | first bind s | CPU s | CPU ms a pod | peak MB | pods a node | events |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
        *(_end_row(name, runs) for name, runs in _runs(record).items()),
    ]
    peer = peer_of(first["workload"], first["nodes"], first["pods"])
    if peer is not None:
        cells = f"{peer.binds_per_second:,} | | | {peer.cpu_seconds:g} | | {peer.memory_mb:,} | | |"
        lines.append(f"| *kube-scheduler, recorded* | {cells}")
    lines += ["", *_ratio_lines(record), _made(record, first["server"])]
    return "\n".join(lines) + "\n"


def _end_row(name: str, runs: Sequence[Json]) -> str:
    run = sorted(runs, key=lambda one: float(one["binds_per_second"]))[(len(runs) - 1) // 2]
    rates = [one["binds_per_second"] for one in runs]
    least, most, mean = run["pods_per_node"]
    bound = "" if run["bound"] == run["pods"] else f" ({run['bound']:,} of {run['pods']:,} bound)"
    return (
        f"| {name} | {run['binds_per_second']:,.0f}{bound} | {min(rates):,.0f}–{max(rates):,.0f} |"
        f" {run['first_bind_seconds']:.2f} | {run['cpu_seconds']:.1f} | {run['cpu_ms_per_pod']:.2f} |"
        f" {run['peak_mb']:,.0f} | {least}–{most}, mean {mean:.3g} | {run['events']:,} |"
    )


def _ratio_lines(record: Record) -> list[str]:
    lines = []
    for name, value in record.ratios.items():
        what, _, other = name.partition(" / ")
        if what == "time" and value:
            cpu = record.ratios.get(f"cpu / {other}", 0.0)
            lines += [f"**{1 / value:.2f} times the rate of {other}**, at {cpu:.2f} times its CPU.", ""]
    return lines


def _made(record: Record, server: str) -> str:
    checks = sum(run["checks"] for run in record.figures["runs"])
    checked = f" {checks} decisions were made again by a fresh evaluator, all equal." if checks else ""
    return f"`{record.command}`; server: {server}; {record.date}; load before: {record.machine.load:g}.{checked}"


def _limits(records: Sequence[Record]) -> str:
    chosen = _of(records, "limit")
    if not chosen:
        return ""
    lines = [
        "## A client that decides nothing",
        "",
        "| | binds/s | CPU ms a bind | recorded on a real server |",
        "|---|--:|--:|--:|",
    ]
    for record in chosen:
        for name, runs in _runs(record).items():
            run = sorted(runs, key=lambda one: float(one["binds_per_second"]))[(len(runs) - 1) // 2]
            spent = (run["cpu_seconds"] - run["first_bind_cpu_seconds"]) * 1e3 / max(1, run["bound"])
            rate, cpu = LIMIT.get(name, (0, 0.0))
            lines.append(f"| {name} | {run['binds_per_second']:,.0f} | {spent:.2f} | {rate:,}/s at {cpu} ms |")
        lines += ["", _made(record, record.figures["runs"][0]["server"])]
    return "\n".join(lines) + "\n"


def _decisions(records: Sequence[Record]) -> str:
    chosen = _of(records, "decisions")
    if not chosen:
        return ""
    lines = [
        "## Decisions alone",
        "",
        "CPU of the core in one process, without a server; median / 99th percentile.",
        "",
        "| workload | nodes / pods | policy | decisions/s | decision µs | pod event µs | node event µs | checked |",
        "|---|--:|---|--:|--:|--:|--:|--:|",
    ]
    for record in chosen:
        one = record.figures
        spreads = " | ".join(
            f"{one[name]['median']:.0f} / {one[name]['p99']:.0f}" for name in ("decision", "pod_event", "node_event")
        )
        lines.append(
            f"| {one['workload']} | {one['nodes']:,} / {one['pods']:,} | {one['policy']} |"
            f" {one['decisions_per_second']:,.0f} | {spreads} | {one['checks']} |"
        )
    return "\n".join([*lines, "", f"`{chosen[-1].command}` and its like; {chosen[-1].date}."]) + "\n"


def _language(records: Sequence[Record]) -> str:
    chosen = _of(records, "language")
    if not chosen:
        return ""
    record, one = chosen[-1], chosen[-1].figures
    rows = (
        (f"lint of {one['lines']} lines, warm", "under 60 ms", f"{one['lint_warm_ms']:.0f} ms of CPU"),
        ("the same as a process", "under 400 ms", f"{one['lint_process_ms']:.0f} ms"),
        ("`policyengine --help`", "under 150 ms", f"{one['help_process_ms']:.0f} ms"),
        ("compile", "under 30 ms", f"{one['compile_ms']:.0f} ms of CPU"),
        (
            f"a filter of ten operators over {one['filter_nodes']:,} nodes",
            "under 40 µs",
            f"{one['filter_us']:.0f} µs of CPU",
        ),
    )
    lines = ["## The language", "", "| | wanted | measured |", "|---|---|---|"]
    lines += [f"| {what} | {wanted} | {measured} |" for what, wanted, measured in rows]
    return "\n".join([*lines, "", f"`{record.command}`; {record.date}; load before: {record.machine.load:g}."]) + "\n"


def _server(records: Sequence[Record]) -> str:
    chosen = _of(records, "server")
    if not chosen:
        return ""
    record, one = chosen[-1], chosen[-1].figures
    bind, event = f"{one['binding_cpu_us']:.0f} µs of CPU", f"{one['event_cpu_us']:.1f} µs of CPU"
    rows = (
        ("bindings, one watch attached", "4,000/s", f"{one['bindings_per_second']:,.0f}/s, {bind} each"),
        (f"events to {one['watchers']} watchers", "10,000/s", f"{one['events_per_second']:,.0f}/s, {event} each"),
        (f"{one['nodes']:,} nodes and {one['pods']:,} pods, at most", "under 400 MB", f"{one['listed_mb']:,.0f} MB"),
        ("start as a process", "under 300 ms", f"{one['start_ms']:.0f} ms, {one['start_cpu_ms']:.0f} ms of CPU"),
    )
    lines = ["## The embedded API server", "", "On a core of its own.", "", "| | wanted | measured |", "|---|---|---|"]
    lines += [f"| {what} | {wanted} | {measured} |" for what, wanted, measured in rows]
    return "\n".join([*lines, "", f"`{record.command}`; {record.date}; load before: {record.machine.load:g}."]) + "\n"


def _extender(records: Sequence[Record]) -> str:
    chosen = _of(records, "extender")
    if not chosen:
        return ""
    record, one = chosen[-1], chosen[-1].figures
    names, whole = f"names, {one['rate']:g} a second", f"node objects, {one['whole_mb']:.0f} MB a request"
    rows = [
        (f"{verb}, {what}", wanted, *(f"{one[prefix + verb][field] / 1e3:.2f} ms" for field in ("median", "p99")), cpu)
        for what, prefix, wanted, cpu in (
            (names, "", "p99 under 10 ms", f"{one['request_cpu_us'] / 1e3:.2f} ms"),
            (whole, "whole_", "under 150 ms", f"{one['whole_request_cpu_ms']:.1f} ms"),
        )
        for verb in ("filter", "prioritize")
    ]
    lines = ["## The extender", "", f"{one['nodes']:,} nodes, on a core of its own; by the clock.", ""]
    lines += ["| | wanted | median | p99 | CPU of a request |", "|---|---|--:|--:|--:|"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([*lines, "", f"`{record.command}`; {record.date}; load before: {record.machine.load:g}."]) + "\n"
