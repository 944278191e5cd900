"""A CPU profile of the thread that schedules, as folded stacks: what it did while it used the processor.

Rules:
1. The kernel's timer of CPU time interrupts the thread `LOOKS` times a second of it, and the stack that was interrupted
   counts. What waits counts for nothing, and no thread has to get a turn to look.
2. A line is a stack, outermost function first, and its microseconds: `a.main;b.work;c.add 12000`. flamegraph.pl,
   inferno and speedscope.app draw it.
3. Nothing is done, and nothing costs, while nobody asks.
"""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from collections import Counter
from types import FrameType

from aiohttp import web

LOOKS = 100
"""In a second of CPU time."""
SECONDS, LONGEST = 30, 60
"""Unless it is said, as in Go's pprof; and at most."""


class NoProfile(Exception):
    """The system has no timer of CPU time."""


async def cpu_profile(seconds: float) -> str:
    """The profile of the main thread, whose event loop this is, after so many seconds. Raises `NoProfile`."""
    if sys.platform == "win32":
        raise NoProfile("there is no CPU profile on Windows")
    found: Counter[str] = Counter()
    signal.signal(signal.SIGPROF, lambda _, frame: found.update([folded(frame)]))
    signal.setitimer(signal.ITIMER_PROF, 1 / LOOKS, 1 / LOOKS)
    try:
        await asyncio.sleep(seconds)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, lambda _, frame: None)  # by default one that comes late would end the process
    return "".join(f"{stack} {looks * 1_000_000 // LOOKS}\n" for stack, looks in found.most_common())


class ProfilePage:
    """`/debug/pprof/profile?seconds=N`: one profile at a time."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def page(self, request: web.Request) -> web.Response:
        """The profile of the seconds from now on."""
        asked = request.query.get("seconds", str(SECONDS))
        if not re.fullmatch("[0-9]{1,2}", asked, re.ASCII) or not 1 <= int(asked) <= LONGEST:
            return web.Response(status=400, text=f"seconds must be a whole number from 1 to {LONGEST}\n")
        if self._turn.locked():
            return web.Response(status=429, text="a profile is under way\n")
        async with self._turn:
            try:
                return web.Response(text=await cpu_profile(int(asked)))
            except NoProfile as error:
                return web.Response(status=501, text=f"{error}\n")


def folded(frame: FrameType | None) -> str:
    """A stack in one line, outermost function first."""
    names = []
    while frame is not None:
        names.append(f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_qualname}")
        frame = frame.f_back
    return ";".join(reversed(names)) or "?"
