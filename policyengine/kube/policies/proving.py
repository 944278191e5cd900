"""Proves in another process that texts compile and pass their tests, within limits, before the scheduler compiles them.

Rules:
1. A text from the cluster is compiled in this process only after a proof. A proof takes limited CPU time and memory,
   and is killed when it is late or nobody waits for it any more.
2. A text has a quarter of its CPU time in the quick lane. Where that is not enough it begins anew in the slow lane, so
   that texts which take long hold up only each other. A lane proves one text at a time, and takes next the one whose
   author cost the least there since the lane was empty.
3. A proof that ended for no fault of the text says nothing about the text: `Unproved`.

A proof costs two forks, 15 ms, of a process that has imported everything; a new interpreter would cost 1.1 s of CPU
time. That process takes 60 MiB and starts with the first text.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from policyengine.compiler.assemble import PluginRegistry
from policyengine.kube.policies.allow_list import allowed
from policyengine.kube.policies.compiling import compiled
from policyengine.kube.policies.precedence import UNPROVED, Compiled, Problem, SourceKey
from policyengine.language.diagnostics import Severity

CPU_SECONDS: Final = 2.0
"""CPU time of a proof, unless told otherwise."""
QUICK: Final = 0.25
"""The share of it that there is in the quick lane."""
PATIENCE: Final = 10.0
"""A proof may take so many times its CPU time, and so many seconds besides, until it is killed."""
TURN: Final = 0.0005
"""Seconds for which a compiling thread may keep the interpreter while the event loop wants it. Python's own 5 ms would
come on top of every wait of the loop's."""
_PROCESS: Final = "policyengine.kube.policies.proof_process"


class Running(NamedTuple):
    """The other process."""

    process: subprocess.Popen[bytes]
    control: socket.socket
    """Through this it gets one end of a socket for each proof."""


class Ended(NamedTuple):
    """How a proof ended."""

    problem: Problem | None
    """What it found."""
    by: int
    """The signal that ended it; 0 where it came to its end."""
    cost: float
    """Seconds of CPU time."""


class Unproved(Exception):
    """A text could be neither proved nor refused; one sentence that says why."""


class Prover:
    """Proves texts; `close` ends the process that does."""

    def __init__(
        self,
        registry: Callable[[], PluginRegistry],
        cpu_seconds: float = CPU_SECONDS,
        fail_level: Severity = Severity.ERROR,
        log_format: str = "text",
        niceness: int = 0,
        allow: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """`registry` is a function of a module: the other process imports it. `fail_level`: the least severity of an
        opinion of lint's that is an error. `niceness`: by how much a proof gives way to this process on a CPU.
        `allow`: `policies.allow` of the configuration; None allows everything."""
        self._plugins = registry()
        self._fail_level = fail_level
        self._allow = allow
        self._arguments = f"{registry.__module__}:{registry.__name__}", log_format, str(niceness)
        self._lanes = Lane(QUICK * cpu_seconds), Lane(cpu_seconds)
        self._running: Running | None = None

    async def problem(self, author: str, name: str, data: Mapping[str, str]) -> Problem | None:
        """What is wrong with the texts of the object of that name. Raises `Unproved`."""
        async with self._proved(author, name, data, True) as problem:
            return problem

    async def compiled(self, key: SourceKey, data: Mapping[str, str], is_tested: bool) -> Compiled:
        """What the texts of the object `key` compile to, once that is proved, their tests included or not."""
        try:
            async with self._proved(str(key), key.name, data, is_tested) as problem:
                return Compiled(problem=problem) if problem else await compiled_beside(data, self._plugins)
        except Unproved as why:
            return Compiled(problem=Problem(f"{why}; it is tried again", reason=UNPROVED))

    def close(self) -> None:
        """Kill the other process and all its proofs."""
        if self._running is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._running.process.pid, signal.SIGKILL)
            self._running.process.wait()
            self._running.control.close()
            self._running = None

    @asynccontextmanager
    async def _proved(
        self, author: str, name: str, data: Mapping[str, str], is_tested: bool
    ) -> AsyncIterator[Problem | None]:
        """What is wrong with the texts; the lane is held while the block runs."""
        may = None if self._allow is None else allowed(name, self._allow)
        request = [dict(data), self._fail_level.value, is_tested, may]
        for lane in self._lanes:
            async with lane.turn(author):
                ended = await self._ended(json.dumps([*request, lane.seconds]))
                lane.cost[author] += ended.cost
                if ended.by != signal.SIGPROF or lane is self._lanes[-1]:
                    yield _problem(ended, "compiling and testing it" if is_tested else "compiling it", lane.seconds)
                    return

    async def _ended(self, request: str) -> Ended:
        late = PATIENCE * (1 + self._lanes[-1].seconds)
        try:
            async with asyncio.timeout(late):
                return await self._answer(request.encode())
        except TimeoutError:
            self.close()
            raise Unproved(f"it was not proved within {late:g} s: the machine has too much to do") from None

    async def _answer(self, request: bytes) -> Ended:
        """Have a proof read the request. Cancelled, it kills the proof."""
        reader, writer = await asyncio.open_unix_connection(sock=self._connect())
        pid = 0
        try:
            pid = int(await reader.readline())
            writer.write(request)  # only now: one that is cancelled before ends without a request
            writer.write_eof()
            *found, end = (await reader.read()).splitlines()
            pid = 0
            by, cost = json.loads(end)
            problem = None if by else json.loads(found[0])
            return Ended(problem and Problem.of_json(problem), by, cost)
        except (OSError, ValueError, IndexError):
            raise Unproved("its proof ended without an answer") from None
        finally:
            if pid:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            writer.close()

    def _connect(self) -> socket.socket:
        """A socket whose other end is a new proof's."""
        if sys.platform == "win32":
            raise Unproved("this system cannot fork, which a proof needs; give the policy as a file")
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._hand_over(theirs)
            except OSError as error:
                ours.close()
                raise Unproved(f"no process to prove it in can be started: {error.strerror}") from None
        return ours

    def _hand_over(self, end: socket.socket) -> None:
        if self._running is not None:
            try:
                socket.send_fds(self._running.control, [b"\0"], [end.fileno()])
                return
            except OSError:  # it has ended, or stands still
                self.close()
        self._running = self._started()
        socket.send_fds(self._running.control, [b"\0"], [end.fileno()])

    def _started(self) -> Running:
        command = [sys.executable, "-P", "-m", _PROCESS, *self._arguments]
        path = os.pathsep.join(folder or str(Path.cwd()) for folder in sys.path)
        environment = {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            return Running(
                subprocess.Popen(command, stdin=theirs.fileno(), env=environment, start_new_session=True), ours
            )


def _problem(ended: Ended, what: str, seconds: float) -> Problem | None:
    """What a proof says of the text. Raises `Unproved`."""
    if not ended.by:
        return ended.problem
    if ended.by == signal.SIGPROF:
        return Problem(f"{what} takes more than {seconds:g} s of CPU time; shorten it or its tests, or split it")
    name = signal.Signals(ended.by).name
    if ended.by in (signal.SIGKILL, signal.SIGTERM):
        raise Unproved(f"its proof was ended by {name}")
    return Problem(f"{what} ended in {name}, a bug")


class Lane:
    """One text at a time is proved in `seconds` of CPU time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.cost: defaultdict[str, float] = defaultdict(float)
        """Author -> seconds of CPU time."""
        self._is_taken = False
        self._waiting: list[tuple[str, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def turn(self, author: str) -> AsyncIterator[None]:
        """Hold the lane for as long as the block runs."""
        if self._is_taken:
            await self._wait((author, asyncio.get_running_loop().create_future()))
        self._is_taken = True
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, place: tuple[str, asyncio.Future[None]]) -> None:
        self._waiting.append(place)
        try:
            await place[1]
        except asyncio.CancelledError:
            if place in self._waiting:
                self._waiting.remove(place)
            else:
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        if waiting := [one for one in self._waiting if not one[1].done()]:  # and not cancelled by now
            place = min(waiting, key=lambda one: self.cost[one[0]])
            self._waiting.remove(place)
            place[1].set_result(None)
        else:
            self._is_taken = False
            self.cost.clear()


async def compiled_beside(data: Mapping[str, str], registry: PluginRegistry) -> Compiled:
    """What the texts compile to, untested: in a thread that the end of the process does not wait for."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Compiled] = loop.create_future()

    def work() -> None:
        found = compiled(data, registry, is_tested=False)
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(lambda: None if done.done() else done.set_result(found))

    sys.setswitchinterval(TURN)
    threading.Thread(target=work, daemon=True).start()
    return await done
