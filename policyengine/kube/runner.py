"""Drives the core against an API server: watches in, bindings, events and conditions out.

The one loop below owns the core. It hands over what the watches brought, asks for a few cycles, sends what they
decided, and gives the event loop a turn; where too much of that is under way, cycles wait.

At the end nothing new is decided; the outcome of every binding is awaited, then what is left to say is said.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from random import Random

from policyengine.clock import Clock
from policyengine.framework.profile import Profile
from policyengine.kube.extenders.http_extender import HttpExtender
from policyengine.kube.http.client import Client
from policyengine.kube.leader import LeaderElector
from policyengine.kube.watching.informers import Informers, MessageQueue
from policyengine.kube.watching.server_versions import ServerHistory
from policyengine.kube.writing.writer import Writer
from policyengine.scheduler import messages
from policyengine.scheduler.actions import Action
from policyengine.scheduler.binding.bind_result import SLEW

logger = logging.getLogger(__name__)

CYCLES = 16
"""Cycles between two turns of the event loop."""
MESSAGES, QUEUED = 256, 2048
"""Messages handled between two turns of the event loop; and those not handled yet, above which watches wait."""
BINDINGS_DEADLINE = 10.0
"""Seconds for the bindings under way at the end."""
EVENTS_BEHIND = 60.0
"""Seconds that events may wait behind bindings."""
_TURNS_TO_SEND = 8
"""Turns of the event loop in which a binding comes from the core to its socket: the worker's, its task's, the
connection's. No message is handled meanwhile."""


class Runner:
    """One scheduler on one API server."""

    def __init__(
        self,
        core: messages.DrivenCore,
        client: Client,
        clock: Clock,
        random: Random,
        *,
        profiles: Iterable[Profile] = (),
        host: str = "",
        elector: LeaderElector | None = None,
        extenders: Sequence[HttpExtender] = (),
        history: ServerHistory | None = None,
    ) -> None:
        """`profiles` are those that `core` serves from the start; others come as messages. Without an `elector` there
        is no other replica, and without a `history` nobody else who reads the server."""
        self.synced = asyncio.Event()
        """Set while every list is in, those of the start, and all anew where the server has gone back: a replica that
        does not lead stands by from then on."""
        self.history = history or ServerHistory(client, clock)
        self._core = core
        self._clock = clock
        self._core_clock = MonotonicClock(clock)
        self._elector = elector
        self._stopping = False
        self.messages = MessageQueue(QUEUED)
        """What the core has not taken in yet."""
        self.informers = Informers(client, clock, random, self.messages, profiles, self.history)
        self.writer = Writer(
            client,
            clock,
            random,
            self.messages.put,
            informers=self.informers,
            may_bind=core.may_bind,
            leads=self.leads,
            host=host,
            extenders=extenders,
        )
        self.history.listeners.append(self._lose_cache)

    def leads(self) -> bool:
        """Whether this replica may change anything."""
        return self._elector is None or self._elector.holds()

    async def run(self, stop: asyncio.Event, ready: Sequence[asyncio.Event] = ()) -> None:
        """Schedule until `stop` is set, then end cleanly.

        Cycles begin once every list is in, every event of `ready` is set (the first reading of policies), and this
        replica leads.
        """
        async with asyncio.TaskGroup() as group:
            background = [self.informers.run(), *self.writer.work(), self._announce(ready), self._when_stopped(stop)]
            tasks = [group.create_task(work) for work in background]
            await self._loop()
            await self._finish()
            for task in tasks:
                task.cancel()

    async def _announce(self, ready: Sequence[asyncio.Event]) -> None:
        """Tell the core when cycles may begin, and when they may not go on until everything is listed anew."""
        for event in ready:
            await event.wait()
        is_told = False
        while True:
            await self.informers.wait_for_sync()
            generation = await self.history.settled()
            self.synced.set()
            if self._elector is not None:
                await self._elector.leads_in(generation)
                await self.informers.catch_up()
            if generation == self.history.generation:
                self.messages.put(messages.CacheSynced(None if is_told else self._unwritten_since()))
                is_told = True
            await self.history.ended(generation)

    def _unwritten_since(self) -> float | None:
        """Since when a predecessor that died may have left bindings without events: it wrote its last ones up to
        `EVENTS_BEHIND` after the bindings, later where requests are limited, and its lease had to run out."""
        if self._elector is None or not self._elector.predecessor_died:
            return None
        behind = EVENTS_BEHIND + self.writer.queue.longest_wait
        return self._clock.now() - self._elector.settings.lease_duration - behind

    def _lose_cache(self) -> None:
        self.synced.clear()
        self.messages.put(messages.CacheLost())

    async def _when_stopped(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._stopping = True
        self.messages.wake()

    async def _loop(self) -> None:
        while not self._stopping:
            self._drain()
            self._tick()
            if self._may_cycle():
                await self._cycle()
            elif self.messages.waiting:
                await asyncio.sleep(0)
            else:
                await self._sleep()

    async def _cycle(self) -> None:
        """Run a few cycles and let what they decided be sent; then compare, where a candidate is tried."""
        began = self._clock.monotonic()
        self._handle(messages.CyclesRequested(CYCLES), self._core_clock.now())
        ended = self._clock.monotonic()
        await asyncio.sleep(0)
        if self._core.has_decided:
            for _ in range(_TURNS_TO_SEND):
                await asyncio.sleep(0)
            compares = self._clock.monotonic()
            self._handle(messages.ComparisonRequested(ended - began), self._core_clock.now())
            self._handle(messages.ComparisonTimed(self._clock.monotonic() - compares), self._core_clock.now())

    def _may_cycle(self) -> bool:
        return self._core.ready and self.leads() and self.writer.has_room

    def _drain(self) -> None:
        """Hand over what came, all of it at one time: a few milliseconds make no difference to anything it starts."""
        waiting = self.messages.waiting
        if not waiting:
            return
        now = self._core_clock.now()
        for _ in range(min(len(waiting), MESSAGES)):
            self._handle(waiting.popleft(), now)
        self.messages.taken()

    def _tick(self) -> None:
        wakeup = self._core.next_wakeup()
        if wakeup is not None and wakeup <= self._core_clock.now():
            self._handle(messages.Tick(), self._core_clock.now())

    async def _sleep(self) -> None:
        """Until a message, the core's next wake-up, or the end; whether there is room for cycles is looked at again
        soon."""
        wakeup = self._core.next_wakeup()
        seconds = None if wakeup is None else max(0.0, wakeup - self._core_clock.now())
        if self._core.ready:
            seconds = 0.05 if seconds is None else min(seconds, 0.05)
        await self.messages.sleep(seconds)

    def _handle(self, message: messages.Message, now: float) -> None:
        for action in self._core.handle(message, now):
            self.writer.dispatch(action)

    async def _finish(self) -> None:
        """No new cycles; the outcome of every binding, then every event and condition, each within its time.

        Where another replica leads, or may, there is nothing to wait for.
        """
        if not self.leads():
            return
        deadline = self._clock.monotonic() + BINDINGS_DEADLINE
        while self.writer.outstanding and self._clock.monotonic() < deadline:
            self._drain()
            await self._clock.sleep(0.01)
        self._drain()
        if self.writer.bindings:
            logger.warning("%d bindings were not answered before the end", self.writer.bindings)
        await self.writer.flush()


class Onlooker:
    """Stands where a core would, and decides nothing."""

    ready = has_decided = False

    def __init__(self, told: Callable[[messages.Message, float], object]) -> None:
        """`told` hears every message, and when it came."""
        self._told = told

    def handle(self, message: messages.Message, now: float) -> list[Action]:
        """Nothing is asked for."""
        self._told(message, now)
        return []

    def next_wakeup(self, now: float = 0.0) -> float | None:
        """Never."""
        return None

    def may_bind(self, uid: str) -> bool:
        """Nothing is bound."""
        return False


class MonotonicClock:
    """Epoch seconds that never go back and never leap."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._now = clock.now()
        self._read_at = clock.monotonic()

    def now(self) -> float:
        """Epoch seconds."""
        monotonic = self._clock.monotonic()
        passed = max(0.0, monotonic - self._read_at)
        self._read_at = monotonic
        error = self._clock.now() - (self._now + passed)
        correction = max(-SLEW * passed, min(SLEW * passed, error))
        self._now += passed + correction
        return self._now
