"""What commands share that go on until a signal: the signal, and the connection to a cluster."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from policyengine.kube.config.credentials import Server
    from policyengine.kube.http.client import Client

T = TypeVar("T")


def stop_on_signals() -> asyncio.Event:
    """An event that SIGTERM or SIGINT sets; a second signal ends the process at once."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def end() -> None:
        stop.set()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(name)

    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, end)
    return stop


async def unless_stopped(stop: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """What the work comes to; None where the event was set before: it is given up then. Raises what the work does."""
    doing, stopped = asyncio.create_task(work), asyncio.create_task(stop.wait())
    await asyncio.wait({doing, stopped}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if doing.done():
        return doing.result()
    doing.cancel()
    with suppress(asyncio.CancelledError):
        await doing
    return None


@asynccontextmanager
async def connected(server: Server, check: bool = True) -> AsyncIterator[Client]:
    """A client of the API server, closed with the block. With `check` raises `Unreachable`, `AccessDenied`."""
    from policyengine.kube.config.access import check_access
    from policyengine.kube.http.client import Client

    client = Client(server.connect())
    try:
        if check:
            await check_access(client, server.url, server.source)
        yield client
    finally:
        await client.close()
