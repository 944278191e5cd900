"""A measurement as a record: run, median, ratios, where and when."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Protocol

from benchmarks.decisions import DecisionFigures, MemoryFigures
from benchmarks.end_to_end import (
    Contestant,
    EndToEndFigures,
    leave,
    median_run,
    run_embedded,
    run_on,
)
from benchmarks.extender import ExtenderFigures
from benchmarks.instructions import InstructionFigures
from benchmarks.language import LanguageFigures
from benchmarks.machine import Machine
from benchmarks.queue import QueueFigures
from benchmarks.ratios import RatioFigures
from benchmarks.records import Record
from benchmarks.reload import ReloadFigures
from benchmarks.scale import ScaleFigures
from benchmarks.server import ServerFigures
from benchmarks.sharing import SharingFigures
from benchmarks.workloads import Workload
from policyengine.version import __version__

LIMITS = (
    Contestant("limit", limit=True, events=False),
    Contestant("limit, watch", limit=True, watch=True, events=False),
    Contestant("limit, watch, events", limit=True, watch=True),
)
"""Clients that decide nothing, in the order of how much else they do."""

_NAMES: dict[type, str] = {
    DecisionFigures: "decisions",
    MemoryFigures: "memory",
    LanguageFigures: "language",
    QueueFigures: "queue",
    ReloadFigures: "reload",
    ServerFigures: "server",
    ExtenderFigures: "extender",
    ScaleFigures: "scale",
    SharingFigures: "sharing",
    InstructionFigures: "instructions",
    RatioFigures: "ratios",
}


class Figures(Protocol):
    """A dataclass of one measurement."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def ratios(self) -> dict[str, float]:
        """What to compare between runs; more is worse."""


Report = Callable[[EndToEndFigures], None]


async def runs(
    workload: Workload, contestants: Sequence[Contestant], kubeconfig: Path | None, times: int, report: Report
) -> dict[str, list[EndToEndFigures]]:
    """Every contestant `times` times, in turn, so that a busy minute meets them all. {name: runs}.

    A server of one's own is left empty.
    """
    found: dict[str, list[EndToEndFigures]] = {one.name: [] for one in contestants}
    for _ in range(times):
        for one in contestants:
            figures = await (run_on(workload, one, kubeconfig) if kubeconfig else run_embedded(workload, one))
            found[one.name].append(figures)
            report(figures)
    if kubeconfig:
        await leave(kubeconfig)
    return found


def end_to_end_record(
    found: dict[str, list[EndToEndFigures]], ours: str, policy: str, command: str, machine: Machine
) -> Record:
    """The record of `runs`; ratios of the medians of `ours` to the others'."""
    medians = {name: median_run(each) for name, each in found.items()}
    first = next(iter(medians.values()))
    ratios: dict[str, float] = {}
    if ours in medians:
        for name, other in medians.items():
            if name != ours and medians[ours].binds_per_second:
                ratios[f"time / {name}"] = other.binds_per_second / medians[ours].binds_per_second
                ratios[f"cpu / {name}"] = medians[ours].cpu_seconds / max(other.cpu_seconds, 1e-9)
    figures = {"runs": [asdict(run) for each in found.values() for run in each], "ours": ours}
    what = "end-to-end" if ours in medians else "limit"
    during = " during" if first.created == "during" else ""
    key = f"{what} {first.workload} {first.nodes}/{first.pods} {policy} {first.server}{during}"
    return _record(what, key, command, machine, figures, ratios)


def alone_record(
    figures: Figures,
    key: str,
    command: str,
    machine: Machine,
) -> Record:
    """The record of a measurement of one part alone."""
    what = _NAMES[type(figures)]
    return _record(what, f"{what} {key}".strip(), command, machine, asdict(figures), figures.ratios)


def _record(
    what: str,
    key: str,
    command: str,
    machine: Machine,
    figures: Mapping[str, object],
    ratios: dict[str, float],
) -> Record:
    now = datetime.fromtimestamp(time.time(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Record(what, key, command, now, __version__, machine, figures, ratios)
