"""Requests that the core asked for, many at a time, each answered once."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

Asked = TypeVar("Asked")
Outcome = TypeVar("Outcome")


class Workers(ABC, Generic[Asked, Outcome]):
    """Takes actions; `answer` gets one outcome for each, in whatever order they come.

    HTTP/1.1 carries one request a connection, so as many requests are under way as there are workers.
    """

    def __init__(self, answer: Callable[[Outcome], None], workers: int) -> None:
        self._answer = answer
        self._workers = workers
        self._queue: asyncio.Queue[Asked] = asyncio.Queue()
        self.outstanding = 0
        """Actions taken and not answered yet."""

    def post(self, asked: Asked) -> None:
        """Do it soon, in the order taken."""
        self.outstanding += 1
        self._queue.put_nowait(asked)

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._work())

    @abstractmethod
    async def _do(self, asked: Asked) -> Outcome:
        """Send what the action asks for; a refusal, and a lost connection, are outcomes too."""

    async def _work(self) -> None:
        while True:
            outcome = await self._do(await self._queue.get())
            self.outstanding -= 1
            self._answer(outcome)
