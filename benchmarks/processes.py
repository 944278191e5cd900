"""Processes under measurement: started, read from /proc, ended. Theirs is the CPU and memory that counts.

The project's own children are modules run with JSON as their one argument; they say one line of JSON when they are
ready and one when they are done, and they end when their standard input does: no child outlives its parent.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TICKS = os.sysconf("SC_CLK_TCK")
STOP_SECONDS = 30.0
LONGEST_LINE = 64 * 1024 * 1024
"""Bytes: a child tells every latency of its run in one line of JSON."""
_ERROR = re.compile(r"[ |]*([A-Za-z_.]*(Error|Exception|WrongDecision|ConnectionFailed)\b.*)")
"""The line of a traceback that names it; that of a group's member stands behind a bar."""


class ChildFailed(RuntimeError):
    """A process under measurement ended too early; the message carries what it said last."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used so far."""

    cpu_seconds: float
    peak_mb: float


class Child:
    """A running process."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.returncode is None

    def usage(self) -> Usage:
        """CPU of all its threads and its peak resident memory, from /proc. Raises `ChildFailed`."""
        try:
            stat = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            raise ChildFailed(f"it is gone: {self.last_words()}") from None
        # The name in parentheses may hold spaces; user and system time are the 14th and 15th field.
        fields = stat.rpartition(")")[2].split()
        return Usage((int(fields[11]) + int(fields[12])) / TICKS, resident_mb("VmHWM", self._process.pid))

    def resident_mb(self) -> float:
        """Its resident memory now; 0 where it is gone."""
        return resident_mb("VmRSS", self._process.pid)

    async def line(self, seconds: float) -> dict[str, Any]:
        """The next line of JSON it says. Raises `ChildFailed`."""
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(seconds):
                raw = await self._process.stdout.readline()
        except TimeoutError:
            raise ChildFailed(f"it says nothing for {seconds:g} s: {self.last_words()}") from None
        if not raw:
            raise ChildFailed(f"it ended: {self.last_words()}")
        said: dict[str, Any] = json.loads(raw)
        return said

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def tell(self) -> None:
        """Give a child of the project the word it waits for: an empty line."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")

    async def finish(self) -> dict[str, Any]:
        """End a child of the project and take its last line."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return await self.line(STOP_SECONDS)

    def last_words(self) -> str:
        """What went wrong, as far as it wrote that to standard error: its last error, else its last line."""
        lines = self._log.read_text("utf-8", "replace").strip().splitlines()
        errors = [found[1] for line in lines if (found := _ERROR.match(line))]
        return (errors or lines or ["without a word"])[-1]


@asynccontextmanager
async def module(name: str, argument: Mapping[str, object], folder: Path) -> AsyncIterator[Child]:
    """A module of `benchmarks` as a process."""
    command = [sys.executable, "-m", f"benchmarks.{name}", json.dumps(argument)]
    async with program(command, folder, asyncio.subprocess.PIPE, with_byte_code()) as child:
        yield child


def with_byte_code() -> Mapping[str, str]:
    """The environment of the project's own children. They load byte code, as from an installed package, also where this
    process was told to write none: else each would compile half a second's worth of source when it starts."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return environment


def compile_children() -> None:
    """Write the byte code of what the measured processes import, so that no first run pays for it."""
    measured = ", ".join(f"benchmarks.{name}_process" for name in ("scheduler", "limit", "server"))
    subprocess.run([sys.executable, "-c", f"import uvloop, yaml, {measured}"], env=with_byte_code(), check=True)


@asynccontextmanager
async def program(
    command: Sequence[str],
    folder: Path,
    stdout: int = asyncio.subprocess.DEVNULL,
    environment: Mapping[str, str] | None = None,
) -> AsyncIterator[Child]:
    """Any program, ended with the block, with this process's environment unless told otherwise. Raises `ChildFailed`
    where it cannot be started."""
    log = folder / f"{Path(command[0]).name}.log"
    with log.open("wb") as out:
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=stdout,
                stderr=out,
                limit=LONGEST_LINE,
                start_new_session=True,
                env=environment,
            )
        except OSError as error:
            raise ChildFailed(f"cannot start `{command[0]}`: {(error.strerror or str(error)).lower()}") from None
    try:
        yield Child(process, log)
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def stdin_closed() -> None:
    """For a child: return when the parent wants it to end, or is gone."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.read(1024):
        pass


def say(content: Mapping[str, object]) -> None:
    """For a child: one line of JSON to the parent."""
    sys.stdout.write(json.dumps(content) + "\n")
    sys.stdout.flush()


def resident_mb(field: str = "VmRSS", pid: int | str = "self") -> float:
    """`VmRSS` (now) or `VmHWM` (peak) of a process in MB; 0 where it is gone (Linux)."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0.0
    for line in status.splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    return 0.0


def processor(number: int) -> int | None:
    """The processor with that number among those this process may use; None where it may use only one."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[number] if len(cores) > 1 else None
