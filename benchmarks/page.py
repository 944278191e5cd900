"""docs/performance.md, from saved results: every figure with the command, the machine, the server and the date.

Nothing on it is written by hand but `notes.md`; whether a target is met is computed (`page_targets`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.machine import Machine
from benchmarks.page_alone import alone
from benchmarks.page_ends import ends, limits
from benchmarks.page_targets import targets
from benchmarks.picture import svg
from benchmarks.records import Record

HEAD: Final = """\
# What it costs

Made by `make bench`: `python -m benchmarks … --save RESULTS` keeps results, `python -m benchmarks page --from RESULTS`
makes this page of them. Nothing here is asserted by a test: times belong to a machine. Where a command ran several
times the medians are shown, with the range beside them. The load average says how busy the machine was with other work.

A rate is from the first bind to the last, as a watch in a third process saw them, which looks a hundred times a
second, of pods that waited before the scheduler started, unless it says that they came during the run. CPU is the
scheduler process's from start to its last event, memory its peak. *kube-scheduler, recorded* is kube-scheduler 1.36.2
with the real API server and etcd on a machine of 2 cores; ratios are taken only between programs measured in turn on
one server. *limit* is a client that decides nothing: alone it only binds; `watch` decodes every pod that changes,
`events` writes a Scheduled event for each binding. What any scheduler must do is all three, so `limit, watch, events`
is the measure; the others are shown too.
"""
SHORTEST: Final = 3
"""Seconds that a run must have for a picture of it."""


def page(records: Sequence[Record], plots: str | None = None) -> str:
    """The whole page, ending in a newline; `plots`: the folder beside it with `pictures`, if there is one."""
    drawn = {key: f"{plots}/{name}" for key, name in _names(records).items()} if plots else {}
    parts = [HEAD, _machines(records), targets(records), *ends(records, drawn), limits(records), *alone(records, drawn)]
    parts.append(Path(__file__).with_name("notes.md").read_text(encoding="utf-8"))
    return "\n".join(part for part in parts if part)


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


def _machines(records: Sequence[Record]) -> str:
    seen = {_machine(record.machine): None for record in records}
    lines = [f"- {text}" for text in seen]
    dates = sorted(record.date[:10] for record in records)
    span = "" if not dates else dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    versions = ", ".join(sorted({record.version for record in records}))
    return "\n".join(["## Machine", "", *lines, f"- policyengine {versions}, measured {span}", ""])


def _machine(machine: Machine) -> str:
    return f"{machine.cpus} cpus, {machine.cpu_model}, {machine.memory_gb:g} GB, {machine.kernel}, {machine.python}"
