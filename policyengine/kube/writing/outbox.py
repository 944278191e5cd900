"""Writes that may wait a little: events, conditions, the status of policies.

What holds here:
1. One item a key waits at a time, the latest; two items of one key are never under way together.
2. While `run` runs nothing is lost: a write is tried until the server takes it or refuses it for good (4xx).
3. It is bounded, in size and in time, by whoever fills it, who asks `has_room` first. How long an item will have to
   wait is known from how many wait before it and their pace when nothing else was written. Until there was such a time
   it is the server's (`write_pace`), or their own where that is slower than sharing the server explains; one worker,
   which never gives way for long, keeps that known.
4. It gives way to what is more urgent only where that will be over before the oldest item has waited for `PATIENCE`. So
   of a long burst most items are written while it lasts, beside what is more urgent, and those of its end after it:
   given way to at once, it would make as many items late at its beginning, and be held up by them from then on.
5. Every writer pauses together when the server is down or overloaded. After the pause one item is tried, each time
   another, before all are.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf
from random import Random
from typing import Generic, TypeVar

from policyengine.clock import Clock
from policyengine.kube.http.backoff import Backoff
from policyengine.kube.http.client import ApiError
from policyengine.kube.http.transport import ConnectionFailed
from policyengine.kube.writing.write_pace import WritePace

V = TypeVar("V")
Failure = ApiError | ConnectionFailed | None
"""What became of an item that was written; None for success."""

PATIENCE = 4.4
"""Seconds for which items give way to what is more urgent."""
LATE = 4.6
"""Seconds that an item may lie here, or of work that may, before whoever makes more of it is to wait, so that nothing
comes 5 s behind."""
BURST = 1024
"""Items that may always lie here: a server that is slow with these only must not hold up everything else."""
TOGETHER = 32
"""Items written at once, where several can be."""
_GLANCE = 0.02
_SLACK = 1.0
"""Seconds by which what is more urgent may be longer than there is time for, before more than a `BURST` lie here: what
lies here when it begins to give way is done, and late, before anything that comes then."""
_PROBE = 1.0
_SHARED = 2.5
"""Items take so many times the server's pace, all workers at it, for others are written meanwhile. With more they are
slow by themselves: a webhook sees to events, say, and not to bindings."""


@dataclass(frozen=True, slots=True)
class Together(Generic[V]):
    """Writes several items at once, up to `TOGETHER`, and says what became of each instead of raising."""

    send: Callable[[Sequence[V]], Awaitable[Sequence[Failure]]]


class Outbox(Generic[V]):
    """Items by key, on their way to the server; `send` writes one, or several together."""

    def __init__(
        self,
        what: str,
        send: Callable[[V], Awaitable[None]] | Together[V],
        clock: Clock,
        random: Random,
        *,
        workers: int = 8,
        limit: int = 10_000,
        pace: WritePace | None = None,
        ahead: Callable[[], float] = lambda: 0.0,
        on_problem: Callable[[str], None] = lambda message: None,
    ) -> None:
        """`pace` is shared with what else is written; `ahead` says for how many seconds more urgent things will be, 0
        where there are none."""
        self._what = what
        self._send = send
        self._clock = clock
        self._pace = pace or WritePace(clock)
        self._workers = workers
        self._limit = limit
        self._ahead = ahead
        self._on_problem = on_problem
        self._waiting: OrderedDict[str, tuple[float, V]] = OrderedDict()
        self._under_way: dict[str, asyncio.Event] = {}
        self._filled = asyncio.Event()
        self._backoff = Backoff(clock, random)
        self._is_well = asyncio.Event()
        """Whether something of what was written last was answered, be it refused for good."""
        self._is_well.set()
        self._resume_at = 0.0
        self._failed_at = -inf
        self._own_pace = self._own_pace_alone = 0.0
        """Seconds of one item, all workers at it, and where nothing else was written; of those written lately."""

    @property
    def backlog(self) -> int:
        """Items not written yet."""
        return len(self._waiting) + len(self._under_way)

    @property
    def has_room(self) -> bool:
        """Whether more should be put in."""
        waiting = len(self._waiting)
        if waiting < BURST or waiting >= self._limit or not self._is_well.is_set():
            return waiting < self._limit
        longest, ahead = self._longest(), self._ahead()
        return longest < LATE and (not ahead or longest + ahead < PATIENCE + _SLACK)

    def put(self, key: str, item: V) -> None:
        """Write the item soon; it replaces one of its key that still waits."""
        since = self._waiting[key][0] if key in self._waiting else self._clock.monotonic()
        self._waiting[key] = (since, item)
        self._filled.set()

    def peek(self, key: str) -> V | None:
        """What waits under the key and is not being written."""
        waiting = self._waiting.get(key)
        return None if waiting is None else waiting[1]

    def settle(self, key: str) -> Awaitable[object] | None:
        """Drop what waits under the key; what ends once nothing of it is under way, None where nothing is now."""
        self._waiting.pop(key, None)
        under_way = self._under_way.get(key)
        return None if under_way is None else under_way.wait()

    async def run(self) -> None:
        """Write items until cancelled."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._workers):
                group.create_task(self._work(is_probe=number == 0))

    async def flush(self, seconds: float) -> int:
        """Wait until everything is written, at most `seconds`; the number of items left over. `run` must run."""
        deadline = self._clock.monotonic() + seconds
        while self.backlog and self._clock.monotonic() < deadline:
            await self._clock.sleep(_GLANCE)
        return self.backlog

    async def _work(self, is_probe: bool) -> None:
        while True:
            await self._give_way(is_probe)
            keys = self._next()
            if not keys:
                self._filled.clear()
                await self._filled.wait()
                continue
            done = asyncio.Event()
            taken = [(key, *self._waiting.pop(key)) for key in keys]
            self._under_way.update(dict.fromkeys(keys, done))
            try:
                await self._write(taken)
            finally:
                for key in keys:
                    del self._under_way[key]
                done.set()
                if self._waiting:
                    self._filled.set()

    def _next(self) -> list[str]:
        """The oldest keys that are not under way, as many as are written at once."""
        free = (key for key in self._waiting if key not in self._under_way)
        return list(islice(free, TOGETHER if isinstance(self._send, Together) and self._is_well.is_set() else 1))

    async def _give_way(self, is_probe: bool) -> None:
        """Pause while the server is down, and let what is more urgent go first, but not for long.

        Nothing is under way meanwhile, so that `settle` need not wait for a pause to end.
        """
        while (wait := self._resume_at - self._clock.monotonic()) > 0 or not (is_probe or self._is_well.is_set()):
            await (self._clock.sleep(wait) if wait > 0 else self._is_well.wait())
        since = self._clock.monotonic()
        while self._waiting and 0.0 < self._ahead() < PATIENCE - self._longest():
            if is_probe and self._clock.monotonic() - since >= _PROBE:
                return
            await self._clock.sleep(_GLANCE)

    def _longest(self) -> float:
        """Seconds that the oldest item has waited, or the newest will where that is longer."""
        oldest, _ = next(iter(self._waiting.values()))
        return max(self._clock.monotonic() - oldest, len(self._waiting) * self._each)

    @property
    def _each(self) -> float:
        """Seconds of one item when cycles wait for those that lie here."""
        pace = self._pace.seconds
        return self._own_pace_alone or (self._own_pace if self._own_pace > _SHARED * pace else pace)

    @property
    def _is_alone(self) -> bool:
        return self._pace.under_way == len(self._under_way)

    def _note_own_pace(self, each: float, was_alone: bool) -> None:
        """Of a write beside which all workers had some to write."""
        self._own_pace += (each - self._own_pace) / 16 if self._own_pace else each
        if was_alone:
            known = self._own_pace_alone
            self._own_pace_alone += (each - known) / 16 if known else each

    async def _write(self, taken: Sequence[tuple[str, float, V]]) -> None:
        started, has_more = self._clock.monotonic(), bool(self._waiting)
        self._pace.began(len(taken))
        was_alone, is_answered = self._is_alone, False
        try:
            again = self._to_try_again(taken, await self._failures([item for _, _, item in taken]))
            is_answered = not again
        finally:
            was_alone = was_alone and self._is_alone
            self._pace.ended(len(taken), answered=is_answered)
        if has_more and is_answered:
            self._note_own_pace((self._clock.monotonic() - started) / len(taken) / self._workers, was_alone)
        if len(again) < len(taken):
            self._is_well.set()
        if again:
            self._try_again(started, again)
        if len(again) == len(taken):
            self._is_well.clear()

    def _to_try_again(
        self, taken: Sequence[tuple[str, float, V]], failures: Sequence[Failure]
    ) -> list[tuple[str, float, V, ApiError | ConnectionFailed]]:
        """What was not written, and why; what the server refused for good is said."""
        again = []
        for (key, since, item), failure in zip(taken, failures, strict=True):
            if isinstance(failure, ApiError) and failure.status < 500 and failure.status != 429:
                self._on_problem(f"{self._what} of `{key}` was refused: {failure}")
            elif failure is not None:
                again.append((key, since, item, failure))
        return again

    def _try_again(self, started: float, failed: Sequence[tuple[str, float, V, ApiError | ConnectionFailed]]) -> None:
        """After a pause, and before what came later, unless something newer waits under the key; behind it where others
        are to be tried, too."""
        asked = max(error.retry_after if isinstance(error, ApiError) else 0.0 for *_, error in failed)
        self._pause(started, asked)
        for key, since, item, _ in reversed(failed):
            if key not in self._waiting:
                self._waiting[key] = (since, item)
                self._waiting.move_to_end(key, last=not self._is_well.is_set())

    def _pause(self, started: float, retry_after: float) -> None:
        """Wait, longer each time; what was under way together fails together, and that is one time."""
        now = self._clock.monotonic()
        if started >= self._failed_at:
            wait, self._failed_at = self._backoff.delay(retry_after), now
        else:
            wait = retry_after
        self._resume_at = max(self._resume_at, now + wait)

    async def _failures(self, items: Sequence[V]) -> Sequence[Failure]:
        try:
            if isinstance(self._send, Together):
                return await self._send.send(items)
            await self._send(items[0])
        except (ApiError, ConnectionFailed) as error:
            return [error] * len(items)
        return [None] * len(items)
