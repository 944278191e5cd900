"""Results as JSON: kept in a file, one a measurement, and compared by ratios.

A file is `{"records": [...]}`; each record says what was measured, when, by which command, on which machine, and its
figures. Saving again replaces the record of the same measurement. Absolute times of two machines do not compare, so
only ratios taken within one run do; of every ratio more is worse.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import Machine


class UnusableRecords(ValueError):
    """A results file that cannot be read or written; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Record:
    """One measurement."""

    what: str
    """What `python -m benchmarks` was asked for: `decisions`, `memory`, …; of a workload `end-to-end` or `sharing`."""
    key: str
    """What makes it the same measurement as another: workload, sizes, policy, server."""
    command: str
    date: str
    """RFC 3339, UTC."""
    version: str
    machine: Machine
    figures: Mapping[str, Any]
    """The dataclass of the measurement as JSON; for end-to-end and limit `{"runs": [...]}`, one entry a run."""
    ratios: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        """As it stands in the file."""
        return asdict(self)

    @staticmethod
    def from_json(entry: Mapping[str, Any]) -> Record:
        """Read back. Raises TypeError, KeyError where a field is missing or unknown."""
        return Record(**{**entry, "machine": Machine(**entry["machine"])})


Json = Mapping[str, Any]


def runs_of(record: Record) -> dict[str, list[Json]]:
    """The runs of an end-to-end measurement by contestant, in the order measured."""
    found: dict[str, list[Json]] = {}
    for run in record.figures["runs"]:
        found.setdefault(run["contestant"], []).append(run)
    return found


def title(run: Json) -> str:
    """The workload, its sizes, and the server."""
    server = "embedded server" if run["server"] == "embedded" else run["server"]
    during = ", pods created during the run" if run["created"] == "during" else ""
    return f"{run['workload']}: {run['nodes']:,} nodes, {run['pods']:,} pods, {server}{during}"


def middle(runs: Sequence[Json]) -> Json:
    """The run with the median rate; of an even number, the lower of the two."""
    return sorted(runs, key=lambda run: float(run["binds_per_second"]))[(len(runs) - 1) // 2]


def middle_runs(record: Record) -> dict[str, Json]:
    """Each contestant's median run."""
    return {name: middle(runs) for name, runs in runs_of(record).items()}


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
    kept = {(one.what, one.key): one for one in (load(path) if path.exists() else [])}
    kept |= {(one.what, one.key): one for one in records}
    text = json.dumps({"records": [one.to_json() for one in kept.values()]}, indent=1) + "\n"
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UnusableRecords(f"cannot write `{path}`: {(error.strerror or str(error)).lower()}") from None


@dataclass(frozen=True, slots=True)
class Difference:
    """One ratio, then and now."""

    key: str
    name: str
    before: float
    now: float

    @property
    def growth(self) -> float:
        """By how much it grew, as a share of what it was: 0.1 is ten per cent worse."""
        return self.now / self.before - 1 if self.before else 0.0


class NothingToCompare(ValueError):
    """The file has no record of this measurement."""


def compare(before: Sequence[Record], now: Sequence[Record]) -> list[Difference]:
    """Every ratio that both have. Raises `NothingToCompare` where they share none: silence is no verdict."""
    old = {(one.what, one.key): one.ratios for one in before}
    found = [
        Difference(one.key, name, old[one.what, one.key][name], value)
        for one in now
        for name, value in one.ratios.items()
        if name in old.get((one.what, one.key), {})
    ]
    if not found:
        keys = ", ".join(f"`{one.key}`" for one in now)
        raise NothingToCompare(f"the file to compare with has no ratios of {keys}")
    return found
