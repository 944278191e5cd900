"""docs/performance.md, from saved results: every figure with the command, the machine, the server and the date.

Nothing on it is written by hand but `notes.md`; whether a target is met is computed from the records.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.figures import Figure
from benchmarks.measure import OURS
from benchmarks.options import KUBE_SCHEDULER
from benchmarks.picture import svg
from benchmarks.records import Record, middle_runs, runs_of
from benchmarks.report import EMBEDDED, sections, server_of, target_table

HEAD: Final = """\
# What it costs

Made by `make bench`: `python -m benchmarks … --save RESULTS` keeps results, `python -m benchmarks page --from RESULTS`
makes this page of them. Nothing here is asserted by a test: times belong to a machine. Where a command ran several
times the medians are shown, with the range beside them. The load average says how busy the machine was with other work.

A rate is from the first bind to the last, as a watch in a third process saw them, which looks a hundred times a
second, of pods that waited before the scheduler started, unless it says that they came during the run; *to the last
event*: until the server had a Scheduled event for each. CPU is the scheduler process's from start to its last event,
memory its peak. *kube-scheduler, recorded* is kube-scheduler 1.36.2 with the real API server and etcd on a machine of
2 cores; ratios are taken only between programs measured in turn on one server. *limit* is a client that decides
nothing: alone it only binds; `watch` decodes every pod that changes, `events` writes a Scheduled event for each
binding. What any scheduler must do is all three, so `limit, watch, events` is the measure; the others are shown too.
"""
SHORTEST: Final = 3
"""Seconds that a run must have for a picture of it."""
FASTER: Final = {
    "peer-basic": (2.5, 2.0),
    "peer-mixed": (2.5, 2.0),
    "peer-spread": (6.0, 4.0),
    "peer-affinity": (6.0, 4.0),
    "peer-antiaffinity": (6.0, 4.0),
    "peer-nodeaffinity": (6.0, 4.0),
}
"""Times kube-scheduler's rate on one real API server, to the last binding and to the last event."""
DECISION_US: Final = {name: 60.0 if name == "peer-basic" else 200.0 for name in FASTER}
"""Median CPU of a decision at 5,000 nodes."""
FIRST_BIND_SECONDS, PEAK_MB = 3.0, 300.0


def page(records: Sequence[Record], plots: str | None = None) -> str:
    """The whole page, ending in a newline; `plots`: the folder beside it with `pictures`, if there is one."""
    drawn = {key: f"{plots}/{name}" for key, name in _names(records).items()} if plots else {}
    notes = Path(__file__).with_name("notes.md").read_text(encoding="utf-8")
    return "\n".join([HEAD, *_machines(records), *_target_section(records), *sections(records, drawn), notes])


def pictures(records: Sequence[Record]) -> Mapping[str, str]:
    """{file name: SVG} of every record that is worth one."""
    names = _names(records)
    return {names[record.key]: svg(record) for record in records if record.key in names}


def _names(records: Sequence[Record]) -> dict[str, str]:
    """Key of a record -> file name, of those that have a picture."""
    return {
        record.key: re.sub(r"[^a-z0-9]+", "-", record.key.lower()).strip("-") + ".svg"
        for record in records
        if _is_drawn(record)
    }


def _is_drawn(record: Record) -> bool:
    if record.what == "scale":
        return bool(record.figures["by_nodes"] or record.figures["by_pods"])
    if record.what != "end-to-end":
        return False
    return max(len(run["samples"]["series"]) for run in record.figures["runs"]) >= SHORTEST


def _machines(records: Sequence[Record]) -> Iterator[str]:
    machines = {f"- {record.machine}": None for record in records}
    dates = sorted({record.date[:10] for record in records})
    versions = ", ".join(sorted({record.version for record in records}))
    yield "\n".join(["## Machine", "", *machines, f"- policyengine {versions}, measured {' to '.join(dates)}", ""])


def _target_section(records: Sequence[Record]) -> Iterator[str]:
    rows = targets(records)
    if rows:
        met = f"{sum(row.met is True for row in rows)} of {len(rows)}"
        told = f"{met} are met by the results below; figures of one run are not medians."
        yield "\n".join(["## Targets", "", told, "", *target_table(rows)]) + "\n"


def targets(records: Sequence[Record]) -> list[Figure]:
    """Every target of what was measured."""
    return [row for record in records for row in _targets_of(record)]


def _targets_of(record: Record) -> Iterator[Figure]:
    if record.what == "end-to-end":
        yield from _of_runs(record)
    elif record.what == "decisions":
        one = record.figures
        limit = DECISION_US.get(one["workload"])
        if limit and one["nodes"] == 5_000 and one["policy"] == "default":
            yield Figure(f"a decision, median CPU: `{record.command}`", one["decision"]["median"], "µs", at_most=limit)
    elif "rows" in record.figures:
        rows = [Figure(**row) for row in record.figures["rows"]]
        yield from (row for row in rows if row.met is not None)


def _of_runs(record: Record) -> Iterator[Figure]:
    """Of the peer workloads: beside kube-scheduler on one real API server, or alone on the embedded one."""
    runs = middle_runs(record)
    ours, other = runs.get(OURS), runs.get(KUBE_SCHEDULER)
    if ours is None or ours["workload"] not in FASTER or ours["created"] != "before":
        return
    name = f"{ours['workload']}, {ours['nodes']:,} nodes, {ours['pods']:,} pods"
    if other is not None:
        count = len(runs_of(record)[KUBE_SCHEDULER])
        more = f", median of {count}" if count > 1 else ", one run"
        to = zip(("binding", "event"), ("binds_per_second", "events_per_second"), FASTER[ours["workload"]], strict=True)
        for last, field, wanted in to:
            faster = ours[field] / max(other[field], 1e-9)
            what = f"{name}, beside kube-scheduler: rate to the last {last}"
            yield Figure(what, faster, "times", at_least=wanted, digits=2, more=more)
        cpu = ours["cpu_seconds"] / max(other["cpu_seconds"], 1e-9)
        yield Figure(f"{name}, beside kube-scheduler: CPU", cpu, "times", at_most=1, digits=2, more=more)
    elif server_of(record) == EMBEDDED and (ours["nodes"], ours["pods"]) == (5_000, 10_000):
        first = ours["first_bind_seconds"]
        yield Figure(f"{name}, embedded server: first bind", first, "s", at_most=FIRST_BIND_SECONDS, digits=2)
        yield Figure(f"{name}, embedded server: peak memory", ours["peak_mb"], "MB", at_most=PEAK_MB)
