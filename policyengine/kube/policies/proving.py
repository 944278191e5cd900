"""Proves in another process that texts compile and pass their tests, within limits, before the scheduler compiles them.

Rules:
1. A text from the cluster is compiled in this process only after a proof. A proof takes limited CPU time and memory,
   and is killed when it is late or nobody waits for it any more.
2. A text has a quarter of its CPU time in the quick lane. Where that is not enough it begins anew in the slow lane, so
   that texts which take long hold up only each other. A lane proves one text at a time, and takes next the one whose
   author cost the least there since the lane was empty.
3. A proof that ended for no fault of the text says nothing about the text: `Unproved`.
"""

from __future__ import annotations

import asyncio
import pkgutil
import signal
import sys
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import astuple
from typing import TYPE_CHECKING, Any, Final

from policyengine.compiler.assemble import PluginRegistry
from policyengine.kube.config import process
from policyengine.kube.limited_work import Ended, LimitedWork, NoAnswer, NoProcess
from policyengine.kube.policies.allow_list import Allowed, allowed
from policyengine.kube.policies.compiling import TOO_LARGE, compiled
from policyengine.kube.policies.precedence import UNPROVED, Compiled, Problem, SourceKey
from policyengine.language.diagnostics import Severity

if TYPE_CHECKING:
    from policyengine.kube.limited_process import Work


WARM: Final = """policy "warm" {
  filter "f" { require node.free.cpu > 1 }
  test "t" { given node "n" { allocatable: {cpu: 4, pods: 9} } given pod "p" {} expect "p" on "n" }
}"""
"""Whatever the first text makes once for all, proofs get from the server."""


def prepared(source: str, form: str) -> Work:
    """What proves texts.

    Arguments:
        source: `module:function` that returns the registry of plugins.
        form: of log lines, `text` or `json`.
    """
    process.start_logging("warning", form)
    registry: PluginRegistry = pkgutil.resolve_name(source)()
    compiled({"warm.policy": WARM}, registry, Severity.INFO)

    def prove(request: Any) -> Any:
        data, fail_level, is_tested, may = request
        problem = compiled(data, registry, Severity(fail_level), is_tested, may and Allowed(*may)).problem
        return problem and astuple(problem)

    return prove


CPU_SECONDS: Final = 2.0
"""CPU time of a proof, unless told otherwise."""
QUICK: Final = 0.25
"""The share of it that there is in the quick lane."""
PATIENCE: Final = 10.0
"""A proof may take so many times its CPU time, and so many seconds besides, until it is killed."""
TURN: Final = 0.0005
"""Seconds for which a compiling thread may keep the interpreter while the event loop wants it. Python's own 5 ms would
come on top of every wait of the loop's."""


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
        source = f"{registry.__module__}:{registry.__name__}"
        self._work = LimitedWork(prepared, source, log_format, niceness=niceness)
        self._lanes = Lane(QUICK * cpu_seconds), Lane(cpu_seconds)

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
        self._work.close()

    @asynccontextmanager
    async def _proved(
        self, author: str, name: str, data: Mapping[str, str], is_tested: bool
    ) -> AsyncIterator[Problem | None]:
        """What is wrong with the texts; the lane is held while the block runs."""
        may = None if self._allow is None else allowed(name, self._allow)
        request = [dict(data), self._fail_level.value, is_tested, may]
        for lane in self._lanes:
            async with lane.turn(author):
                ended = await self._ended(request, lane.seconds)
                lane.cost[author] += ended.cost
                if ended.by != signal.SIGPROF or lane is self._lanes[-1]:
                    yield _problem(ended, "compiling and testing it" if is_tested else "compiling it", lane.seconds)
                    return

    async def _ended(self, request: Sequence[Any], seconds: float) -> Ended:
        late = PATIENCE * (1 + self._lanes[-1].seconds)
        try:
            return await self._work.ended(request, seconds, late)
        except TimeoutError:
            raise Unproved(f"it was not proved within {late:g} s: the machine has too much to do") from None
        except NoProcess as why:
            sentence = f"no process to prove it in can be started: {why}; give the policy as a file"
            raise Unproved(sentence) from None
        except NoAnswer:
            raise Unproved("its proof ended without an answer") from None


def _problem(ended: Ended, what: str, seconds: float) -> Problem | None:
    """What a proof says of the text. Raises `Unproved`."""
    if ended.is_out_of_memory:
        return TOO_LARGE
    if not ended.by:
        return ended.answer and Problem.of_json(ended.answer)
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
