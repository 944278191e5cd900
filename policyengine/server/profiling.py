"""A CPU profile of the thread that schedules, as folded stacks: what it did while it used the processor.

Rules:
1. Another thread looks at the stack `LOOKS` times a second, and counts the CPU time that the scheduling thread has used
   since the look before. What waits counts for nothing.
2. A line is a stack, outermost function first, and its microseconds: `a.main;b.work;c.add 12000`. flamegraph.pl,
   inferno and speedscope.app draw it.
3. Nothing is done, and nothing costs, while nobody asks.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from threading import Event
from types import FrameType

LOOKS = 100.0
"""A second."""
SECONDS, LONGEST = 30, 60
"""Unless it is said, as in Go's pprof; and at most."""


class NoProfile(Exception):
    """The system cannot tell what CPU time a thread has used."""


def cpu_profile(thread: int, seconds: float, stop: Event) -> str:
    """The profile of a thread that lives on, after so many seconds, or when `stop` is set. Raises `NoProfile`."""
    if sys.platform != "linux":
        raise NoProfile("a CPU profile needs Linux")
    clock = time.pthread_getcpuclockid(thread)
    found: Counter[str] = Counter()
    until, before = time.monotonic() + seconds, time.clock_gettime_ns(clock)
    while time.monotonic() < until and not stop.wait(1 / LOOKS):
        stack, now = folded(sys._current_frames().get(thread)), time.clock_gettime_ns(clock)
        found[stack] += now - before
        before = now
    return "".join(f"{stack} {spent // 1000}\n" for stack, spent in found.most_common() if spent >= 1000)


def folded(frame: FrameType | None) -> str:
    """A stack in one line, outermost function first."""
    names = []
    while frame is not None:
        names.append(f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_qualname}")
        frame = frame.f_back
    return ";".join(reversed(names)) or "?"
