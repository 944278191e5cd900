"""The command line as a user meets it: a process, its output and its exit code."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


def policyengine(*arguments: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None) -> Ended:
    """Run the command to its end."""
    return _ended("policyengine.commands.main", arguments, cwd, env)


def benchmarks(*arguments: str | Path, env: dict[str, str] | None = None) -> Ended:
    """Run `python -m benchmarks` to its end."""
    return _ended("benchmarks", arguments, ROOT, env)


def _ended(module: str, arguments: Sequence[str | Path], cwd: Path, env: dict[str, str] | None) -> Ended:
    """A traceback is never what a user may see."""
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Ended(done.returncode, done.stdout, done.stderr)
