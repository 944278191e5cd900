"""Waiting until a kind is known up to a version, and what waits less long meanwhile.

Whoever has to know that nothing is missing sets a goal: the version that the server has by then. Until it is reached a
watch that would tell nothing for minutes gives way to one that hurries, and no pause is waited to its end.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from policyengine.kube.watching.store import WatchReader

CATCH_UP_WATCH = 3
"""Seconds of a watch that is to tell soon how far it is: the server sends a bookmark two seconds before the end
(`nextBookmarkTime`, apiserver's cache_watcher.go, v1.36)."""
CATCH_UP = 5.0
"""Seconds of silence after which such a watch is given up, and the kind is listed."""

FEW = 2_000
"""As many objects are listed sooner than a bookmark comes."""


class Goal:
    """The version up to which a kind is to be known, where somebody waits for one."""

    def __init__(self, reader: WatchReader[Any]) -> None:
        self.version = 0
        """0 where nobody waits."""
        self.silence: asyncio.Timeout | None = None
        """Runs out when the watch that is read counts as silent; None where that hurries, or none is read."""
        self._reader = reader
        self._set, self._reached = asyncio.Event(), asyncio.Event()

    @property
    def is_ahead(self) -> bool:
        """Whether somebody waits for what is not known yet."""
        return self._reader.number < self.version

    async def reach(self, version: int) -> None:
        """Return once `note` finds that the version was reached."""
        self.version = max(self.version, version)
        if self.is_ahead:
            self._reached.clear()
            self._set.set()
            if self.silence is not None:
                self.silence.reschedule(asyncio.get_running_loop().time())
            await self._reached.wait()

    def note(self) -> None:
        """The reader came further, and all it read was yielded."""
        if self.version and not self.is_ahead:
            self.version = 0
            self._reached.set()

    async def rest(self, seconds: float) -> None:
        """Wait, but not on where a goal is set from then on: the server has answered whoever set it."""
        self._set.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._set.wait()
