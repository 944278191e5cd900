"""Requests that the core asked for, many at a time, each answered once."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Asked = TypeVar("Asked")
Outcome = TypeVar("Outcome")


class Workers(ABC, Generic[Asked, Outcome]):
    """Takes actions; `answer` gets one outcome for each, in whatever order they come.

    Up to `workers` actions are under way, which is how many connections they may take; up to `together` that came one
    right after the other are done as one. Where there is room for some of those only, they wait for more of it.
    """

    def __init__(self, answer: Callable[[Outcome], None], workers: int, together: int = 1) -> None:
        self._answer = answer
        self._free = workers
        self._together = min(together, workers)
        self._asked: deque[Asked] = deque()
        self._may_start = asyncio.Event()
        self.outstanding = 0
        """Actions taken and not answered yet."""

    def post(self, asked: Asked) -> None:
        """Do it soon, in the order taken."""
        self.outstanding += 1
        self._asked.append(asked)
        self._may_start.set()

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                await self._may_start.wait()
                self._may_start.clear()
                while self._asked and self._free >= (count := self._next_count()):
                    self._free -= count
                    group.create_task(self._do_all([self._asked.popleft() for _ in range(count)]))

    def _next_count(self) -> int:
        """How many to do as one: even parts, as one left over would overtake those before it."""
        parts = -(-len(self._asked) // self._together)
        return -(-len(self._asked) // parts)

    async def _do_all(self, asked: Sequence[Asked]) -> None:
        """Do each and have its outcome told."""
        for one in asked:
            self._told(await self._do(one))

    @abstractmethod
    async def _do(self, asked: Asked) -> Outcome:
        """Send what the action asks for; a refusal, and a lost connection, are outcomes too."""

    def _told(self, outcome: Outcome) -> None:
        self.outstanding -= 1
        self._free += 1
        if self._asked:
            self._may_start.set()
        self._answer(outcome)
