"""How many instructions a piece of work takes, counted by valgrind: a figure that no busy machine disturbs.

The work runs in a process of its own under `valgrind --tool=callgrind`, hashes seeded, the collector off. Counting is
switched on for each piece alone, so neither start-up nor imports show, and what switching itself takes is taken out.
Two counts of one text differ by less than a hundredth; processors of different kinds take different paths in numpy.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.processes import ChildFailed

PROGRAMS: Final = ("valgrind", "callgrind_control")
SECONDS: Final = 600.0
_TOTALS = re.compile(r"^totals: (\d+)", re.MULTILINE)


class NotCounted(Exception):
    """Valgrind is not installed here."""


@dataclass(frozen=True, slots=True)
class InstructionFigures:
    """Thousands of instructions."""

    thousands: dict[str, float]
    """What -> for one of it: a decision, a lint, a filter over every node."""
    valgrind: str
    """Its version."""

    @property
    def ratios(self) -> dict[str, float]:
        """What to compare between runs; more is worse."""
        return {f"thousand instructions, {name}": value for name, value in self.thousands.items()}


def instructions(arguments: Sequence[str] = ()) -> InstructionFigures:
    """Count everything; `arguments` name the pieces to count, all where there are none. About a minute.

    Raises `NotCounted`; `ChildFailed` where the counted process fails.
    """
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        raise NotCounted(f"`{missing[0]}` is not installed; it counts instructions")
    with tempfile.TemporaryDirectory(prefix="policyengine-") as folder:
        out = Path(folder) / "out"
        said = _count(out, arguments)
        totals = [_total(out.with_name(f"out.{number}")) for number in range(1, len(said) + 2)]
    nothing, *counted = totals
    found = {
        name: max(0, total - nothing) / times / 1e3 for (name, times), total in zip(said.items(), counted, strict=True)
    }
    version = subprocess.run(["valgrind", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    return InstructionFigures(found, version)


def _count(out: Path, arguments: Sequence[str]) -> dict[str, int]:
    """Run the work under valgrind, a dump a piece, an empty one first. {piece: how often it was done}, in order."""
    command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}", sys.executable]
    command += ["-m", "benchmarks.instructions_process", *arguments]
    try:
        done = subprocess.run(
            command,
            env={**os.environ, "PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise ChildFailed(f"counting instructions took more than {SECONDS:g} s") from None
    if done.returncode != 0:
        raise ChildFailed(f"counting instructions failed: {(done.stderr.strip() or 'without a word').splitlines()[-1]}")
    said: dict[str, int] = json.loads(done.stdout.strip().splitlines()[-1])
    return said


def _total(dump: Path) -> int:
    found = _TOTALS.search(dump.read_text(encoding="utf-8"))
    if found is None:
        raise ChildFailed(f"counting instructions failed: `{dump.name}` has no totals")
    return int(found[1])
