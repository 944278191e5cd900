"""The messages on their way to the core: handed over in the order they came, by one loop.

Whoever brings many waits while more than `limit` are there (`fill`); a message that answers an action never waits, as
there are no more of those than actions under way.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable

from policyengine.scheduler.messages import Message


class Inbox:
    """Messages that the core has not taken in yet."""

    def __init__(self, limit: int) -> None:
        self.waiting: deque[Message] = deque()
        """The oldest first; the loop takes them from here, and says so (`taken`)."""
        self._limit = limit
        self._wake = asyncio.Event()
        self._room = asyncio.Event()

    def put(self, message: Message) -> None:
        """Behind those that wait already."""
        self.waiting.append(message)
        self._wake.set()

    async def fill(self, messages: Iterable[Message]) -> None:
        """Put many, and return once there is room for more."""
        self.waiting.extend(messages)
        self._wake.set()
        while len(self.waiting) > self._limit:
            self._room.clear()
            await self._room.wait()

    def taken(self) -> None:
        """Some were taken out: those who wait for room may look again."""
        if len(self.waiting) <= self._limit:
            self._room.set()

    def wake(self) -> None:
        """End a `sleep`, though there is no message."""
        self._wake.set()

    async def sleep(self, seconds: float | None) -> None:
        """Until a message comes or somebody calls `wake`, `seconds` at most; None for however long it takes."""
        self._wake.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            pass
