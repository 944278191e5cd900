"""The machine a figure was measured on: a figure without it says nothing."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Machine:
    """What a reader must know to compare figures."""

    cpus: int
    cpu_model: str
    memory_gb: float
    kernel: str
    python: str
    load: float
    """Load average of the last minute, before the measurement: over 1 a cpu, others were at work."""


def this_machine() -> Machine:
    """The machine this runs on, as Linux describes it."""
    return Machine(
        cpus=len(os.sched_getaffinity(0)),
        cpu_model=_first("/proc/cpuinfo", "model name") or platform.machine(),
        memory_gb=round(_kilobytes("MemTotal") / 2**20, 1),
        kernel=platform.release(),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        load=round(os.getloadavg()[0], 2),
    )


def _kilobytes(field: str) -> int:
    words = _first("/proc/meminfo", field).split()
    return int(words[0]) if words else 0


def _first(path: str, field: str) -> str:
    """The value of the first line `field : value`; empty where there is none."""
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(field)), "")
