"""Results as JSON: kept in a file, one a measurement, and compared by ratios.

A file is `{"records": [...]}`; each record says what was measured, when, by which command, on which machine, and its
figures. Saving again replaces the record of the same measurement. Times of two machines do not compare: ratios are of
one run, and of every ratio more is worse.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from policyengine.version import __version__

Json = Mapping[str, Any]


class UnusableRecords(ValueError):
    """A results file that cannot be read or written; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine a figure was measured on: a figure without it says nothing."""

    cpus: int
    cpu_model: str
    memory_gb: float
    kernel: str
    python: str
    load: float
    """Load average of the last minute, before the measurement: over 1 a cpu, others were at work."""

    def __str__(self) -> str:
        return f"{self.cpus} cpus, {self.cpu_model}, {self.memory_gb:g} GB, {self.kernel}, {self.python}"


def this_machine() -> Machine:
    """The machine this runs on, as Linux describes it."""
    return Machine(
        cpus=len(os.sched_getaffinity(0)),
        cpu_model=_first("/proc/cpuinfo", "model name") or platform.machine(),
        memory_gb=round(int((_first("/proc/meminfo", "MemTotal").split() or ["0"])[0]) / 2**20, 1),
        kernel=platform.release(),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        load=round(os.getloadavg()[0], 2),
    )


def _first(path: str, field: str) -> str:
    """The value of the first line `field : value`; empty where there is none."""
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(field)), "")


@dataclass(frozen=True, slots=True)
class Record:
    """One measurement."""

    what: str
    """What `python -m benchmarks` was asked for: `decisions`, `memory`, …; of a workload `end-to-end`."""
    key: str
    """What makes it the same measurement as another: workload, sizes, policy, server."""
    command: str
    date: str
    """RFC 3339, UTC."""
    version: str
    machine: Machine
    figures: Json
    """For parts alone mostly `{"rows": [figures.Figure]}`; for end-to-end and limit `{"runs": [...]}`."""
    ratios: Mapping[str, float]

    @staticmethod
    def made(
        what: str, key: str, command: str, machine: Machine, figures: Json, ratios: Mapping[str, float] | None = None
    ) -> Record:
        """The record of a measurement that ended just now."""
        now = datetime.fromtimestamp(time.time(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return Record(what, f"{what} {key}".strip(), command, now, __version__, machine, figures, ratios or {})

    def to_json(self) -> dict[str, Any]:
        """As it stands in the file."""
        return asdict(self)

    @staticmethod
    def from_json(entry: Json) -> Record:
        """Read back. Raises TypeError, KeyError where a field is missing or unknown."""
        return Record(**{**entry, "machine": Machine(**entry["machine"])})


def runs_of(record: Record) -> dict[str, list[Json]]:
    """The runs of an end-to-end measurement by contestant, in the order measured."""
    found: dict[str, list[Json]] = {}
    for run in record.figures["runs"]:
        found.setdefault(run["contestant"], []).append(run)
    return found


def middle(runs: Sequence[Json]) -> Json:
    """The run with the median rate; of an even number, the lower of the two."""
    return sorted(runs, key=lambda run: float(run["binds_per_second"]))[(len(runs) - 1) // 2]


def middle_runs(record: Record) -> dict[str, Json]:
    """Each contestant's median run."""
    return {name: middle(runs) for name, runs in runs_of(record).items()}


def title(run: Json) -> str:
    """The workload and its sizes."""
    during = ", pods created during the run" if run["created"] == "during" else ""
    return f"{run['workload']}: {run['nodes']:,} nodes, {run['pods']:,} pods{during}"


def load(path: Path) -> list[Record]:
    """The records of a file. Raises `UnusableRecords`."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return [Record.from_json(entry) for entry in content["records"]]
    except OSError as error:
        raise UnusableRecords(f"cannot read `{path}`: {(error.strerror or str(error)).lower()}") from None
    except (ValueError, TypeError, KeyError) as error:
        raise UnusableRecords(f"`{path}` holds no results of `python -m benchmarks --save`: {error}") from None


def save(path: Path, records: Sequence[Record]) -> None:
    """Put the records into the file, in place of those with the same key. Raises `UnusableRecords`."""
    kept = {one.key: one for one in (load(path) if path.exists() else [])}
    kept |= {one.key: one for one in records}
    text = json.dumps({"records": [one.to_json() for one in kept.values()]}, indent=1) + "\n"
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UnusableRecords(f"cannot write `{path}`: {(error.strerror or str(error)).lower()}") from None


@dataclass(frozen=True, slots=True)
class Difference:
    """One ratio, then and now."""

    name: str
    before: float
    now: float

    @property
    def growth(self) -> float:
        """By how much it grew, as a share of what it was: 0.1 is ten per cent worse."""
        return self.now / self.before - 1 if self.before else 0.0


def compare(before: Sequence[Record], now: Record) -> list[Difference]:
    """Every ratio that both have. Raises `UnusableRecords` where they share none: silence is no verdict."""
    old = next((one.ratios for one in before if one.key == now.key), {})
    found = [Difference(name, old[name], value) for name, value in now.ratios.items() if name in old]
    if not found:
        raise UnusableRecords(f"the file to compare with has no ratios of `{now.key}`")
    return found
