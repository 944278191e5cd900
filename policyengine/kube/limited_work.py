"""Work on what others wrote, in processes that can be killed, within limits of CPU time and memory.

A request costs two forks, 15 ms, of a process that has imported everything; a new interpreter would cost 1.1 s of CPU
time. That process takes 60 MiB and starts with the first request.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from policyengine.kube.limited_process import Work  # it needs what Windows lacks

_PROCESS: Final = "policyengine.kube.limited_process"


class Running(NamedTuple):
    """The other process."""

    process: subprocess.Popen[bytes]
    control: socket.socket
    """Through this it gets one end of a socket for each request."""


class Ended(NamedTuple):
    """How the work on a request ended."""

    answer: Any
    """None where a signal ended it."""
    by: int
    """The signal that ended it; 0 where it came to its end."""
    cost: float
    """Seconds of CPU time."""
    is_out_of_memory: bool = False
    """Whether there was no more memory for it; it has no answer then."""


class NoProcess(Exception):
    """None can be started; why."""


class NoAnswer(Exception):
    """The work ended without an answer, for no fault that is known."""


class LimitedWork:
    """Asks another process; `close` ends it."""

    def __init__(self, prepare: Callable[..., Work], *arguments: str, niceness: int = 0) -> None:
        """`prepare`: a function of a module that is given the arguments there; `niceness`: by how much a worker gives
        way to this process on a CPU."""
        self._command = (f"{prepare.__module__}:{prepare.__name__}", str(niceness), *arguments)
        self.running: Running | None = None

    async def ended(self, request: Any, seconds: float, patience: float) -> Ended:
        """Have a request answered in `seconds` of CPU time. Cancelled, it kills the worker.

        Raises `NoProcess`, `NoAnswer`; and `TimeoutError` where there was no end within `patience` seconds, and all
        workers are killed.
        """
        try:
            async with asyncio.timeout(patience):
                return await self._answer(json.dumps([seconds, request]).encode())
        except TimeoutError:
            self.close()
            raise

    def close(self) -> None:
        """Kill the other process and all its workers."""
        if self.running is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.running.process.pid, signal.SIGKILL)
            self.running.process.wait()
            self.running.control.close()
            self.running = None

    async def _answer(self, request: bytes) -> Ended:
        reader, writer = await asyncio.open_unix_connection(sock=self._connect())
        pid = 0
        try:
            pid = int(await reader.readline())
            writer.write(request)  # only now: one that is cancelled before ends without a request
            writer.write_eof()
            *found, end = (await reader.read()).splitlines()
            pid = 0
            by, cost, is_out_of_memory = json.loads(end)
            return Ended(None if by or is_out_of_memory else json.loads(found[0]), by, cost, is_out_of_memory)
        except (OSError, ValueError, IndexError):
            raise NoAnswer from None
        finally:
            if pid:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            writer.close()

    def _connect(self) -> socket.socket:
        """A socket whose other end is a new worker's."""
        if sys.platform == "win32":
            raise NoProcess("this system cannot fork")
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._hand_over(theirs)
            except OSError as error:
                ours.close()
                raise NoProcess(str(error.strerror)) from None
        return ours

    def _hand_over(self, end: socket.socket) -> None:
        if self.running is not None:
            try:
                socket.send_fds(self.running.control, [b"\0"], [end.fileno()])
                return
            except OSError:  # it has ended, or stands still
                self.close()
        self.running = self._started()
        socket.send_fds(self.running.control, [b"\0"], [end.fileno()])

    def _started(self) -> Running:
        command = [sys.executable, "-P", "-m", _PROCESS, *self._command]
        path = os.pathsep.join(folder or str(Path.cwd()) for folder in sys.path)
        environment = {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            return Running(
                subprocess.Popen(command, stdin=theirs.fileno(), env=environment, start_new_session=True), ours
            )
