"""Watch streams: one buffer a watcher, filled as changes happen, emptied by whoever reads the response.

A watcher with a selector sees an object enter the set as ADDED and leave it as DELETED (with the object before, at
the revision that made it leave). A reader that falls `MAX_BUFFER` lines
behind is cut off, as the real one's watch cache does.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from functools import lru_cache

from policyengine.clock import Clock
from policyengine.simulator.api_server.reading.representation import View
from policyengine.simulator.api_server.storage import (
    ADDED,
    DELETED,
    MODIFIED,
    Change,
    Collection,
    Object,
    decode,
    encode,
    metadata,
)

MAX_BUFFER = 100_000
BOOKMARK_PERIOD = 60.0
Predicate = Callable[[Object], bool]
_shown = lru_cache(maxsize=2)(decode)
"""A stored object that nobody changes: all watchers look at the same one, before a change and after it."""


class WatchStream:
    """One watch: an asynchronous iterator of chunks, each one or more whole lines."""

    def __init__(
        self, collection: Collection, view: View, namespace: str, predicate: Predicate | None, revision: int
    ) -> None:
        self._collection = collection
        self._view = view
        self._namespace = namespace
        self._predicate = predicate
        self._revision = revision
        self._lines: deque[bytes] = deque()
        self._wake: asyncio.Future[None] | None = None
        self._ticker: asyncio.Task[None] | None = None
        self._closed = False

    def start(self, clock: Clock, lifetime: float, bookmark: Callable[[], bytes] | None) -> None:
        """Take part in the collection's changes until `lifetime` seconds from now."""
        self._collection.watchers.append(self)
        self._ticker = asyncio.ensure_future(self._tick(clock, lifetime, bookmark))

    async def _tick(self, clock: Clock, lifetime: float, bookmark: Callable[[], bytes] | None) -> None:
        left = lifetime
        while left > 0:
            # The last bookmark comes shortly before the end, so that the next watch starts late.
            nap = min(BOOKMARK_PERIOD, left - 2 if left > 2 else left) if bookmark else left
            await clock.sleep(nap)
            left -= nap
            if bookmark and left > 0 and not self._closed:
                self.push(bookmark())
        self._ticker = None  # it ends by itself
        self.close()

    def offer(self, change: Change) -> None:
        """Take one change, if this watch is about it."""
        if self._closed or change.revision <= self._revision:
            return
        self._revision = change.revision
        if self._namespace and change.namespace != self._namespace:
            return
        line = self._line(change)
        if line is not None:
            self.push(line)

    def _line(self, change: Change) -> bytes | None:
        selects = self._predicate
        if selects is None:
            return self._view.frame(change.type, change.raw)
        was = change.prev is not None and selects(_shown(change.prev))
        if change.type != DELETED and selects(_shown(change.raw)):
            return self._view.frame(MODIFIED if was else ADDED, change.raw)
        if change.prev is None or not was:
            return None
        if change.type == DELETED:
            return self._view.frame(DELETED, change.raw)
        # The object before, carrying the revision of the change that took it out of the set.
        gone = decode(change.prev)
        metadata(gone)["resourceVersion"] = str(change.revision)
        return self._view.frame(DELETED, encode(gone))

    def push(self, line: bytes) -> None:
        """Put one line into the buffer."""
        self._lines.append(line)
        if len(self._lines) > MAX_BUFFER:
            self.close()
        self._stir()

    def _stir(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def close(self) -> None:
        """End the stream after what is buffered; safe to call twice."""
        if self._closed:
            return
        self._closed = True
        if self in self._collection.watchers:
            self._collection.watchers.remove(self)
        if self._ticker is not None:
            self._ticker.cancel()
        self._stir()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while not self._lines:
            if self._closed:
                raise StopAsyncIteration
            self._wake = asyncio.get_running_loop().create_future()
            try:
                await self._wake
            finally:
                self._wake = None
        chunk = b"".join(self._lines)
        self._lines.clear()
        return chunk

    async def aclose(self) -> None:
        """Stop reading: the client went away."""
        self._lines.clear()
        self.close()
