"""What was wanted, what was measured, and whether it was met: computed from the records, never written by hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.page_ends import EMBEDDED, server_of
from benchmarks.records import Json, Record, middle_runs, runs_of

KUBE_SCHEDULER: Final = "kube-scheduler"
FASTER: Final = {
    "peer-basic": 3.0,
    "peer-mixed": 2.5,
    "peer-spread": 7.0,
    "peer-affinity": 12.0,
    "peer-antiaffinity": 5.0,
    "peer-nodeaffinity": 6.0,
}
"""Times kube-scheduler's rate on one real API server."""
MEASURE: Final = "limit, watch, events"
SHARE, SHARE_OF_OTHERS = 0.85, 0.60
"""Of the rate of a client that decides nothing, on the embedded server: peer-basic, and the other peers."""
CPU_MS, CPU_MS_OF_OTHERS = 0.5, 0.8
"""Of the scheduler, a bound pod."""
FIRST_BIND_SECONDS, PEAK_MB = 3.0, 300.0
A_SECOND: Final = {"peer-basic": 20_000.0, "peer-mixed": 2_000.0}
"""Decisions alone: identical pods, and pods of different shapes."""
DECISION_US: Final = {
    "peer-basic": 100.0,
    "peer-mixed": 1_000.0,
    "peer-spread": 300.0,
    "peer-affinity": 300.0,
    "peer-antiaffinity": 300.0,
    "peer-spread-mixed": 2_000.0,
    "peer-affinity-mixed": 2_000.0,
    "peer-antiaffinity-mixed": 2_000.0,
}
"""Median CPU of a cycle at 5,000 nodes."""
HELD_MB: Final = {(5_000, 50_000): 300.0, (15_000, 150_000): 400.0}


@dataclass(frozen=True, slots=True)
class Row:
    """One target."""

    what: str
    wanted: str
    measured: str
    met: bool

    def cells(self) -> str:
        """As a row of a Markdown table."""
        return f"| {self.what} | {self.wanted} | {self.measured} | {'met' if self.met else '**missed**'} |"


def at_most(what: str, limit: float, value: float, unit: str, digits: int = 0, more: str = "") -> Row:
    """A target that a value must not exceed. The verdict is on the value before it is rounded to be shown."""
    return Row(what, f"at most {limit:,g} {unit}", f"{value:,.{digits}f} {unit}{more}", value <= limit)


def at_least(what: str, limit: float, value: float, unit: str, digits: int = 0, more: str = "") -> Row:
    """A target that a value must reach."""
    return Row(what, f"at least {limit:,g} {unit}", f"{value:,.{digits}f} {unit}{more}", value >= limit)


def table(rows: Iterable[Row]) -> list[str]:
    """The lines of a table of targets."""
    return ["| what | wanted | measured | |", "|---|---|---|---|", *(row.cells() for row in rows)]


def targets(records: Sequence[Record]) -> str:
    """The section; empty where nothing that has a target was measured."""
    rows = [*_beside(records), *_share_of_limit(records), *_decisions(records), *_memory(records)]
    if not rows:
        return ""
    met = sum(row.met for row in rows)
    told = f"{met} of {len(rows)} are met by the results below; figures of one run are not medians."
    return "\n".join(["## Targets", "", told, "", *table(rows)]) + "\n"


def _size(run: Json) -> str:
    return f"{run['workload']}, {run['nodes']:,} nodes, {run['pods']:,} pods"


def _times(record: Record, name: str) -> str:
    count = len(runs_of(record)[name])
    return f", median of {count}" if count > 1 else ", one run"


def _ends(records: Sequence[Record], embedded: bool) -> Iterator[tuple[Record, Mapping[str, Json], Json]]:
    """(record, median runs, ours) of the peer workloads."""
    for record in records:
        if record.what == "end-to-end" and (server_of(record) == EMBEDDED) == embedded:
            runs = middle_runs(record)
            ours = runs[record.figures["ours"]]
            if ours["workload"] in FASTER and ours["created"] == "before":
                yield record, runs, ours


def _beside(records: Sequence[Record]) -> Iterator[Row]:
    """Side by side with kube-scheduler on one real API server."""
    for record, runs, ours in _ends(records, embedded=False):
        other = runs.get(KUBE_SCHEDULER)
        if other is None or not ours["binds_per_second"]:
            continue
        name, workload = f"{_size(ours)}, beside kube-scheduler", ours["workload"]
        faster = ours["binds_per_second"] / max(other["binds_per_second"], 1e-9)
        yield at_least(f"{name}: rate", FASTER[workload], faster, "times", 2, _times(record, KUBE_SCHEDULER))
        if workload == "peer-basic":
            yield at_most(f"{name}: CPU", 1, ours["cpu_seconds"] / max(other["cpu_seconds"], 1e-9), "times", 2)
        yield _even(f"{name}: deviation of pods a node", ours, other)


def _even(what: str, ours: Json, other: Json) -> Row:
    mine, theirs = ours["pods_per_node_deviation"], other["pods_per_node_deviation"]
    return Row(what, f"at most its {theirs:.3f}", f"{mine:.3f}", round(mine, 3) <= round(theirs, 3))


def _share_of_limit(records: Sequence[Record]) -> Iterator[Row]:
    """On the embedded server, in one run with the client that decides nothing."""
    for record, runs, ours in _ends(records, embedded=True):
        basic = ours["workload"] == "peer-basic"
        name, limit = f"{_size(ours)}, embedded server", runs.get(MEASURE)
        if limit is not None:
            share = 100 * ours["binds_per_second"] / max(limit["binds_per_second"], 1e-9)
            wanted = 100 * (SHARE if basic else SHARE_OF_OTHERS)
            yield at_least(f"{name}: share of `{MEASURE}`", wanted, share, "%", 0, _times(record, MEASURE))
        cpu = CPU_MS if basic else CPU_MS_OF_OTHERS
        yield at_most(f"{name}: scheduler CPU a bound pod, start-up included", cpu, ours["cpu_ms_per_pod"], "ms", 2)
        if (ours["nodes"], ours["pods"]) == (5_000, 10_000):
            yield at_most(f"{name}: first bind", FIRST_BIND_SECONDS, ours["first_bind_seconds"], "s", 2)
        yield at_most(f"{name}: peak memory", PEAK_MB, ours["peak_mb"], "MB")


def _decisions(records: Sequence[Record]) -> Iterator[Row]:
    for record in records:
        if record.what != "decisions" or record.figures["nodes"] != 5_000:
            continue
        figures = record.figures
        name, median = f"`{record.command}`", figures["decision"]["median"]
        if figures["policy"] == "default" and figures["workload"] in A_SECOND:
            wanted = A_SECOND[figures["workload"]]
            yield at_least(f"decisions a second of CPU: {name}", wanted, figures["decisions_per_second"], "a second")
        if figures["policy"] == "default" and figures["workload"] in DECISION_US:
            yield at_most(f"a cycle, median CPU: {name}", DECISION_US[figures["workload"]], median, "µs")
        if figures["policy"] == "riya":
            yield at_most(f"a cycle, median CPU: {name}", 1_000, median, "µs")
            for kind in ("node", "pod"):
                spent = figures[f"{kind}_event"]["median"]
                yield at_most(f"a {kind} event applied, median CPU: {name}", 50, spent, "µs")


def _memory(records: Sequence[Record]) -> Iterator[Row]:
    for record in records:
        if record.what == "memory":
            size = (record.figures["nodes"], record.figures["pods"])
            if size in HELD_MB:
                held = record.figures["after_mb"]
                yield at_most(f"{size[0]:,} nodes and {size[1]:,} pods held", HELD_MB[size], held, "MB")
