"""Writes on their way to the API server: one queue of two priorities, as client-go's workqueue and flow control.

Rules:
1. Urgent requests (bindings, deletions, what a binding waits for) go first, in their order. Background writes (events,
   conditions, statuses) go when none of these waits, and take three quarters of the workers at most, so that slow ones
   always leave some to the bindings.
2. At most `workers` requests are under way. A request is chosen once there is a worker and a token for it.
3. A background write has a key: one waits per key at a time, the latest, and two of a key are never under way together.
4. A background write is tried until the server takes it or refuses it for good (4xx but 429). When one fails, all pause
   together, longer each time and for as long as Retry-After says. After the pause one is tried, each time another.
5. Above `BACKLOG` background writes there is no room (`has_room`): no more pods are decided until some are written. A
   server that fails these writes stops nobody: then there is room, and whoever fills the queue bounds it by `LIMIT`.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from random import Random
from typing import Any, TypeVar

from policyengine.clock import Clock
from policyengine.kube.http.client import ApiError, ConnectionFailed
from policyengine.kube.http.rate_limit import Backoff, TokenBucket

T = TypeVar("T")
Request = Callable[[], Awaitable[object]]
"""Sends something, and answers for what becomes of it."""

BACKLOG = 8192
"""Background writes that may wait while pods are decided: a burst is bound before its events are written. With those of
the bindings under way they stay below `LIMIT`."""
LIMIT = 10_000
"""Background writes that may wait while the server fails them."""
_GLANCE = 0.02
"""Seconds between two looks at whether all is written."""


@dataclass(frozen=True, slots=True)
class _Write:
    """A background write: `send(item)` raises `ApiError` or `ConnectionFailed` if it failed."""

    send: Callable[[Any], Awaitable[object]]
    item: Any
    added: tuple[int, float]


class WorkCounts:
    """What client-go's work queues count, of one priority of a queue."""

    def __init__(self, name: str, clock: Clock) -> None:
        self.name = name
        self.adds = 0
        self.retries = 0
        self.running: dict[int, float] = {}
        """Number of an addition -> when it was begun, on the monotonic clock."""
        self.observe: Callable[[str, float, float], None] = lambda name, waited, worked: None
        """(name, seconds in the queue, seconds under way) -> nothing; called when something has ended."""
        self._clock = clock

    def add(self) -> tuple[int, float]:
        """Something waits: which one, and since when."""
        self.adds += 1
        return self.adds, self._clock.monotonic()

    def begin(self, added: tuple[int, float]) -> None:
        """It is under way."""
        self.running[added[0]] = self._clock.monotonic()

    def end(self, added: tuple[int, float]) -> None:
        """It has ended."""
        began = self.running.pop(added[0])
        self.observe(self.name, began - added[1], self._clock.monotonic() - began)


class _UnderWay(asyncio.Event):
    """A background write that was sent; set when it has ended."""

    is_settled = False
    """Whether nothing of its key is to be written after it."""


class RequestQueue:
    """Requests on their way to one API server."""

    def __init__(
        self,
        clock: Clock,
        random: Random,
        *,
        name: str = "requests",
        workers: int = 96,
        limiter: TokenBucket | None = None,
        on_problem: Callable[[str], None] = lambda message: None,
    ) -> None:
        """`name` is what metrics call it; `on_problem` is told of background writes that the server refused for
        good."""
        self._clock = clock
        self._workers = workers
        self._most_background = max(1, workers * 3 // 4)
        self._limiter = limiter
        self._on_problem = on_problem
        self.urgent, self.background = WorkCounts(name, clock), WorkCounts(f"background_{name}", clock)
        """What was counted of each priority."""
        self._urgent: deque[tuple[Request, tuple[int, float]]] = deque()
        self._waiting: OrderedDict[str, _Write] = OrderedDict()
        """Key -> the background write; it waits for the one of its key that is under way, too."""
        self._under_way: dict[str, _UnderWay] = {}
        self._wake = asyncio.Event()
        self._backoff = Backoff(clock, random)
        self._is_failing = False
        """Whether the last background write failed, and may be tried again."""
        self._failed_at = -inf
        self._resume_at = -inf

    @property
    def backlog(self) -> int:
        """Background writes not done yet."""
        return len(self._waiting) + len(self._under_way)

    @property
    def depths(self) -> list[tuple[WorkCounts, int]]:
        """How much waits, of each priority."""
        return [(self.urgent, len(self._urgent)), (self.background, len(self._waiting))]

    @property
    def longest_wait(self) -> float:
        """Seconds that a background write may wait for tokens: behind as many bindings as writes may wait, and behind
        those writes; 0 where requests are not limited."""
        return 0.0 if self._limiter is None else 2 * BACKLOG * self._limiter.interval

    @property
    def has_room(self) -> bool:
        """Whether more pods should be decided."""
        return len(self._waiting) < BACKLOG or self._is_failing or self._pause_left > 0

    def send(self, request: Request) -> None:
        """Send an urgent request soon. It must not raise."""
        self._urgent.append((request, self.urgent.add()))
        self._wake.set()

    def write(self, key: str, send: Callable[[T], Awaitable[object]], item: T) -> None:
        """Call `send(item)` behind what is urgent; it replaces a write of its key that still waits, in its place."""
        waiting = self._waiting.get(key)
        self._waiting[key] = _Write(send, item, self.background.add() if waiting is None else waiting.added)
        self._wake.set()

    def peek(self, key: str) -> Any:
        """The item that waits under the key and is not being written; None if there is none."""
        waiting = self._waiting.get(key)
        return None if waiting is None else waiting.item

    def settle(self, key: str) -> Awaitable[object] | None:
        """Drop what waits under the key. Returns what ends with the write under way, None if there is none."""
        self._waiting.pop(key, None)
        under_way = self._under_way.get(key)
        if under_way is None:
            return None
        under_way.is_settled = True
        return under_way.wait()

    async def run(self) -> None:
        """Send requests until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                while self._busy >= self._workers or (not self._urgent and self._next_write() is None):
                    self._wake.clear()
                    await self._woken()
                if self._limiter is not None:
                    await self._limiter.take()
                if self._urgent:
                    request, added = self._urgent.popleft()
                    self.urgent.begin(added)
                    group.create_task(self._send(request, added))
                elif (key := self._next_write()) is not None:
                    write = self._waiting.pop(key)
                    self.background.begin(write.added)
                    self._under_way[key] = _UnderWay()
                    group.create_task(self._write(key, write))

    async def flush(self, seconds: float) -> int:
        """Wait until every background write is done, at most `seconds`; the number left over. `run` must run."""
        deadline = self._clock.monotonic() + seconds
        while self.backlog and self._clock.monotonic() < deadline:
            await self._clock.sleep(_GLANCE)
        return self.backlog

    def _next_write(self) -> str | None:
        """The key of the background write that may be sent now."""
        at_most = 1 if self._is_failing else self._most_background
        if not self._waiting or len(self._under_way) >= at_most or self._pause_left > 0:
            return None
        return next((key for key in self._waiting if key not in self._under_way), None)

    @property
    def _busy(self) -> int:
        """Workers at work."""
        return len(self.urgent.running) + len(self.background.running)

    @property
    def _pause_left(self) -> float:
        return self._resume_at - self._clock.monotonic()

    async def _woken(self) -> None:
        """Wait for a request, a free worker, or the end of a pause."""
        pause = self._pause_left
        with suppress(TimeoutError):
            async with asyncio.timeout(pause if self._waiting and pause > 0 else None):
                await self._wake.wait()

    async def _send(self, request: Request, added: tuple[int, float]) -> None:
        try:
            await request()
        finally:
            self.urgent.end(added)
            self._wake.set()

    async def _write(self, key: str, write: _Write) -> None:
        began, under_way = self._clock.monotonic(), self._under_way[key]
        try:
            await write.send(write.item)
        except (ApiError, ConnectionFailed) as error:
            if isinstance(error, ApiError) and error.status < 500 and error.status != 429:
                self._on_problem(f"{key} was refused: {error}")
                self._is_failing = False
            else:
                if not under_way.is_settled:
                    self.background.retries += 1
                    if key not in self._waiting:
                        self._waiting[key] = replace(write, added=self.background.add())
                self._pause(began, error.retry_after if isinstance(error, ApiError) else 0.0)
        else:
            self._is_failing = False
        finally:
            self.background.end(write.added)
            del self._under_way[key]
            under_way.set()
            self._wake.set()

    def _pause(self, began: float, retry_after: float) -> None:
        """Wait, longer each time; writes that were under way together fail together, and that is one time."""
        now = self._clock.monotonic()
        wait = retry_after
        if began > self._failed_at:
            wait, self._failed_at = self._backoff.delay(retry_after), now
        self._resume_at = max(self._resume_at, now + wait)
        self._is_failing = True
