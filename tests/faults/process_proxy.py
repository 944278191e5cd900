"""A wire that can be cut: a TCP proxy on loopback between one process and the API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

CHUNK = 64 * 1024


class _Pair:
    """One connection, and its other half to the server."""

    def __init__(self, near: asyncio.StreamWriter, far: asyncio.StreamWriter) -> None:
        self.ends = (near, far)
        self.flows = asyncio.Event()
        self.flows.set()

    def abort(self) -> None:
        for end in self.ends:
            end.transport.abort()


class Proxy:
    """Passes bytes on until told otherwise. The server may go away and come back under its port."""

    def __init__(self, target: int) -> None:
        self.port = 0
        self._target = target
        self._pairs: set[_Pair] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._swallows = False

    @property
    def open(self) -> int:
        """Connections that are open now."""
        return len(self._pairs)

    def cut(self) -> None:
        """Reset every connection; new ones pass."""
        for pair in tuple(self._pairs):
            pair.abort()

    def silence(self, *, new: bool) -> None:
        """Nothing gets through what is open, nobody is told: no FIN, no RST. With `new`, later connections are accepted
        and swallowed, too."""
        self._swallows = new
        for pair in self._pairs:
            pair.flows.clear()

    def heal(self) -> None:
        """New connections pass; the silent ones are found out to be dead."""
        self._swallows = False
        for pair in tuple(self._pairs):
            if not pair.flows.is_set():
                pair.abort()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, by a task of our own: a server tells in the log that one of its was cancelled."""
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        pair = _Pair(writer, far_writer)
        self._pairs.add(pair)
        if self._swallows:
            pair.flows.clear()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass_on(pair, reader, far_writer))
                group.create_task(self._pass_on(pair, far_reader, writer))
        finally:
            self._pairs.discard(pair)
            pair.abort()

    async def _pass_on(self, pair: _Pair, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while chunk := await reader.read(CHUNK):
                await pair.flows.wait()
                writer.write(chunk)
                await writer.drain()
        pair.abort()

    async def end(self) -> None:
        """Drop everything."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def proxy(target: int) -> AsyncIterator[Proxy]:
    """A proxy to a port of this machine, for as long as the block runs."""
    made = Proxy(target)
    server = await asyncio.start_server(made.accept, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        await made.end()
