"""Records as Markdown, for the terminal and for docs/performance.md: a section for each kind of measurement.

A table's cells are padded, so that it reads as text too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from benchmarks.figures import Figure
from benchmarks.peers import FLOORS, LIMIT, peer_of
from benchmarks.records import Difference, Json, Record, middle, runs_of, title
from benchmarks.scale import ScaleFigures

EMBEDDED = "embedded"
TITLES: Final = {
    "memory": ("Memory", "Resident memory of a core that holds a cluster, pods placed round robin."),
    "language": ("The language", "Medians."),
    "queue": ("The queue", "CPU of the core in one process."),
    "reload": ("A policy replaced", "Medians."),
    "plan": ("A plan", "The command from start to end; it plays the two policies in two processes. One run."),
    "tuning": ("Tuning", "`policyengine tune` from start to end, on 2 processes of this machine. One run."),
    "recording": ("Recordings", "CPU and files of the recorder beside a core, on virtual time, written once a second."),
    "devices": ("Devices", "CPU of the core in one process; ResourceClaims for one device, a selector each."),
    "server": ("The embedded API server", "On a core of its own."),
    "extender": ("The extender", "On a core of its own; by the clock, from the moment a request was due."),
    "churn": ("Churn", "On a real API server, each scheduler on one of its own; the same agenda for all."),
    "pages": ("Pages to look at", "Server, core and who asks in one process; pages by the clock, viewers by CPU."),
    "ratios": ("In units of a fixed piece of work", "CPU of the core, so that two machines can be compared."),
}
"""Of what is told as one number a row."""


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table, all columns but the first to the right."""
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = [cells[0].ljust(widths[0])]
        padded += [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
        return f"| {' | '.join(padded)} |"

    rule = [f"{'-' * widths[0]}", *(f"{'-' * (width - 1)}:" for width in widths[1:])]
    return [line(columns), line(rule), *map(line, rows)]


def target_table(rows: Sequence[Figure]) -> list[str]:
    """What was wanted, what was measured, and whether it was met; without targets, only what was measured."""
    if any(row.met is not None for row in rows):
        return table(("what", "wanted", "measured", ""), [row.cells() for row in rows])
    return table(("what", "measured"), [(row.what, row.cells()[2]) for row in rows])


def sections(records: Sequence[Record], drawn: Mapping[str, str] | None = None) -> Iterator[str]:
    """A section for every kind of measurement, each ending in a newline. `drawn`: {key of a record: its picture}."""
    of: dict[str, list[Record]] = {}
    for record in records:
        of.setdefault(_kind(record), []).append(record)
    for kind, tell in SECTIONS.items():
        if kind in of:
            yield "\n".join(tell(of[kind], drawn or {})) + "\n"


def _kind(record: Record) -> str:
    if record.what == "end-to-end":
        return "embedded" if server_of(record) == EMBEDDED else "real"
    return record.what


def server_of(record: Record) -> str:
    """`embedded`, or `kube-apiserver VERSION`."""
    return str(record.figures["runs"][0]["server"])


Tell = Callable[[Sequence[Record], Mapping[str, str]], Iterator[str]]


def _real(records: Sequence[Record], drawn: Mapping[str, str]) -> Iterator[str]:
    yield from ("## On a real API server", "", "Schedulers in turn on one server, each in a process of its own.")
    for record in records:
        yield from _end(record, drawn)


def _embedded(records: Sequence[Record], drawn: Mapping[str, str]) -> Iterator[str]:
    yield from ("## On the embedded API server", "")
    yield "The server is a Python process on the same machine; a client that decides nothing says what it allows."
    for record in records:
        yield from _end(record, drawn)


RUN_COLUMNS: Final = (
    "",
    "binds/s",
    "range",
    "to the last event",
    "a second: p50 / p99 / least",
    "first bind s",
    "CPU s",
    "CPU ms a pod",
    "peak MB",
    "pods a node",
    "deviation",
    "a zone",
    "events",
)


def _end(record: Record, drawn: Mapping[str, str]) -> Iterator[str]:
    """One measurement end to end: a table, the ratios, how it was made."""
    first = record.figures["runs"][0]
    rows = [_row(name, each) for name, each in runs_of(record).items()]
    peer = peer_of(first["workload"], first["nodes"], first["pods"])
    if peer is not None:
        cells = {"binds/s": f"{peer.binds_per_second:,}", "CPU s": f"{peer.cpu_seconds:g}"}
        rows.append(_sparse("*kube-scheduler, recorded*", cells | {"peak MB": f"{peer.memory_mb:,}"}))
    if first["workload"] in FLOORS:
        wanted = {"binds/s": f"{FLOORS[first['workload']]}"}
        rows.append(_sparse("*asked of kube-scheduler by scheduler_perf's CI*", wanted))
    yield from ("", f"### {title(first)}", "", *table(RUN_COLUMNS, rows), "")
    yield from _ratio_lines(record)
    wrong = [told for run in record.figures["runs"] for told in run["overcommitted"]]
    moved = sum(run["moved"] for run in record.figures["runs"])
    if wrong or moved:
        yield from (f"{moved} pods bound twice; nodes with more than they have: {', '.join(wrong[:5]) or 'none'}.", "")
    if record.key in drawn:
        yield from (f"![binds in each second, and their spread]({drawn[record.key]})", "")
    checks = sum(run["checks"] for run in record.figures["runs"])
    checked = f" {checks} decisions were made again by a fresh evaluator, all equal." if checks else ""
    yield f"`{record.command}`; server: {first['server']}; {_when(record)}{checked}"


def _sparse(name: str, cells: Mapping[str, str]) -> list[str]:
    return [name, *(cells.get(column, "") for column in RUN_COLUMNS[1:])]


def _row(name: str, runs: Sequence[Json]) -> list[str]:
    run = middle(runs)
    samples, rates = run["samples"], [one["binds_per_second"] for one in runs]
    least, most, mean = run["pods_per_node"]
    bound = "" if run["bound"] == run["pods"] else f" ({run['bound']:,} of {run['pods']:,} bound)"
    return [
        name,
        f"{run['binds_per_second']:,.0f}{bound}",
        f"{min(rates):,.0f}–{max(rates):,.0f}",
        f"{run['events_per_second']:,.0f}" if run["events_per_second"] else "",
        f"{samples['p50']:,} / {samples['p99']:,} / {samples['minimum']:,}",
        f"{run['first_bind_seconds']:.2f}",
        f"{run['cpu_seconds']:.1f}",
        f"{run['cpu_ms_per_pod']:.2f}",
        f"{run['peak_mb']:,.0f}",
        f"{least}–{most}, mean {mean:.3g}",
        f"{run['pods_per_node_deviation']:.2f}",
        "–".join(f"{count:,}" for count in run["pods_per_zone"]),
        f"{run['events']:,}",
    ]


def _ratio_lines(record: Record) -> Iterator[str]:
    for name, value in record.ratios.items():
        what, _, other = name.partition(" / ")
        if what == "time":
            events = record.ratios.get(f"time to the last event / {other}")
            more = f" ({1 / events:.2f} times counted to the last event)" if events else ""
            cpu = record.ratios[f"cpu / {other}"]
            yield from (f"**{1 / value:.2f} times the rate of {other}**{more}, at {cpu:.2f} times its CPU.", "")


def _limit(records: Sequence[Record], drawn: Mapping[str, str]) -> Iterator[str]:
    yield "## A client that decides nothing"
    for record in records:
        rows = []
        for name, runs in runs_of(record).items():
            run = middle(runs)
            spent = (run["cpu_seconds"] - run["first_bind_cpu_seconds"]) * 1e3 / max(1, run["bound"])
            rate, cpu = LIMIT.get(name, (0, 0.0))
            rows.append([name, f"{run['binds_per_second']:,.0f}", f"{spent:.2f}", f"{rate:,}/s at {cpu} ms"])
        yield from ("", f"{title(record.figures['runs'][0])}.", "")
        yield from table(("", "binds/s", "CPU ms a bind", "recorded on a real server"), rows)
        yield from ("", f"`{record.command}`; server: {server_of(record)}; {_when(record)}")


def _decisions(records: Sequence[Record], drawn: Mapping[str, str]) -> Iterator[str]:
    yield from ("## Decisions alone", "")
    yield from ("CPU of the core in one process, without a server; median / 99th percentile.", "")
    columns = ("workload", "nodes / pods", "policy", "bound", "decisions/s", "decision µs", "pod event µs")
    rows = []
    for record in records:
        one = record.figures
        spreads = [f"{one[name]['median']:.0f} / {one[name]['p99']:.0f}" for name in SPREADS]
        sizes = (f"{one['nodes']:,} / {one['pods']:,}", one["policy"], f"{one['bound']:,}")
        rows.append([one["workload"], *sizes, f"{one['decisions_per_second']:,.0f}", *spreads, f"{one['checks']}"])
    yield from table((*columns, "node event µs", "checked"), rows)
    yield from ("", f"`{records[-1].command}`; {_when(records[-1])} All that were checked were equal.")


SPREADS: Final = ("decision", "pod_event", "node_event")


def _scale(records: Sequence[Record], drawn: Mapping[str, str]) -> Iterator[str]:
    yield from ("## As the cluster grows", "", SCALE_HEAD, "")
    columns = ("nodes", "pods placed", "different µs", "identical µs", "taken in s", "KB a node", "KB a pod", "peak MB")
    for record in records:
        figures = ScaleFigures.from_json(record.figures)
        rows = [
            [
                f"{point.nodes:,}",
                f"{point.pods:,}",
                f"{point.different_us:,.0f}",
                f"{point.identical_us:,.0f}",
                f"{point.start_cpu_seconds:.2f}",
                f"{point.kb_per_node:.2f}",
                f"{point.kb_per_pod:.2f}",
                f"{point.peak_mb:,.0f}",
            ]
            for point in (*figures.by_nodes, *figures.by_pods)
        ]
        yield from (*table(columns, rows), "")
        powers = [(name, f"{value:z.2f}") for name, value in figures.exponents.items()]
        yield from (*table(("cost", "grows with the power"), powers), "")
        yield from (f"Given up: {told}." for told in figures.given_up)
        if record.key in drawn:
            picture = drawn[record.key]
            yield from (f"![cost of a decision against nodes and pods, both in logarithms]({picture})", "")
        yield _made(record)


SCALE_HEAD: Final = (
    "One process a point. *different*: a decision for a pod unlike the one before; *identical*: like it; medians of"
    " CPU. *taken in*: every node and pod, from decoded objects to rows. The power a cost grows with is the slope of a"
    " line through the logarithms, by least squares."
)


def _rows(records: Sequence[Record], drawn: Mapping[str, str]) -> Iterator[str]:
    """What is told as one number a row."""
    name, told = TITLES[records[0].what]
    yield from (f"## {name}", "", told)
    for record in records:
        yield from ("", *target_table([Figure(**row) for row in record.figures["rows"]]), "", _made(record))


SECTIONS: Final[Mapping[str, Tell]] = {
    "real": _real,
    "embedded": _embedded,
    "limit": _limit,
    "decisions": _decisions,
    "scale": _scale,
    **dict.fromkeys(TITLES, _rows),
}


def _made(record: Record) -> str:
    return f"`{record.command}`; {_when(record)}"


def _when(record: Record) -> str:
    return f"{record.date}; load before: {record.machine.load:g}."


def differences(found: Sequence[Difference], threshold: float) -> str:
    """Every ratio then and now; those that grew too much are marked."""
    rows = [
        (one.name, f"{one.before:.3g}", f"{one.now:.3g}", f"{one.growth:+.1%}{' !' * (one.growth > threshold)}")
        for one in found
    ]
    head = "compared with the saved run; of every ratio more is worse"
    return "\n".join([head, "", *table(("ratio", "then", "now", "change"), rows)])
