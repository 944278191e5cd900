"""The command line as a user meets it: its output and its exit code.

Most commands run in the test's own process, as `main` runs them; `in_process=False` starts one, where the test is about
the process itself or about what it imports.
"""

import gc
import logging
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
from click.testing import CliRunner

from policyengine.commands.main import cli, main

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


def policyengine(
    *arguments: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None, in_process: bool = True
) -> Ended:
    """Run the command to its end."""
    if in_process:
        return _called(cli, "policyengine", arguments, cwd, env)
    return _started(arguments, cwd, env)


@contextmanager
def running(*arguments: str, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    """The command while it runs, in a process of its own; killed in the end."""
    with subprocess.Popen(
        [sys.executable, "-m", "policyengine.commands.main", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        try:
            yield child
        finally:
            child.kill()


def benchmarks(*arguments: str | Path) -> Ended:
    """Run `python -m benchmarks` to its end."""
    from benchmarks.__main__ import bench

    return _called(bench, "python -m benchmarks", arguments, ROOT, None)


def kubectl_policyengine(*arguments: str | Path, env: dict[str, str] | None = None) -> Ended:
    """Run what `kubectl policyengine` runs to its end."""
    from policyengine.commands.kubectl import PROGRAM, plugin

    return _called(plugin, PROGRAM, arguments, ROOT, env)


def _called(
    command: click.Command, name: str, arguments: Sequence[str | Path], cwd: Path, env: dict[str, str] | None
) -> Ended:
    """An error that `main` does not know is raised: a traceback is never what a user may see."""
    code: object = 0
    with chdir(cwd), _process_state(), CliRunner().isolation(env=env) as (out, err, _):
        try:
            main([str(argument) for argument in arguments], command, name)
        except SystemExit as end:
            code = end.code
        sys.stdout.flush()
        sys.stderr.flush()
        said, told = out.getvalue().decode(), err.getvalue().decode()
    assert isinstance(code, int)
    return Ended(code, said, told)


@contextmanager
def _process_state() -> Iterator[None]:
    """Put back what a command sets for its whole process: log handlers and levels, the collector's thresholds."""
    ours = logging.getLogger("policyengine")
    handlers, levels, thresholds = logging.root.handlers[:], (logging.root.level, ours.level), gc.get_threshold()
    logging.root.handlers.clear()
    try:
        yield
    finally:
        logging.root.handlers[:] = handlers
        logging.root.setLevel(levels[0])
        ours.setLevel(levels[1])
        gc.set_threshold(*thresholds)


def _started(arguments: Sequence[str | Path], cwd: Path, env: dict[str, str] | None) -> Ended:
    done = subprocess.run(
        [sys.executable, "-m", "policyengine.commands.main", *map(str, arguments)],
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
