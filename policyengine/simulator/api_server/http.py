"""The API server over HTTP, on loopback unless told otherwise: a listening socket, and a `Connection` a client."""

import asyncio
import errno
import ssl
from contextlib import suppress
from dataclasses import dataclass

from policyengine.simulator.api_server.connection import IDLE_SECONDS, Connection
from policyengine.simulator.api_server.handler import ApiServer


class PortInUse(OSError):
    """The port asked for is taken; the message says which and what to do."""


@dataclass(slots=True)
class Site:
    """A running server."""

    url: str
    host: str
    port: int
    _server: asyncio.Server
    _connections: set[Connection]
    _sweeper: asyncio.Task[None]

    async def stop(self) -> None:
        """Stop serving; open watches end."""
        self._server.close()
        self._sweeper.cancel()
        with suppress(asyncio.CancelledError):
            await self._sweeper
        await asyncio.gather(*(connection.stop() for connection in tuple(self._connections)))
        await self._server.wait_closed()


async def serve(api: ApiServer, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None) -> Site:
    """Serve `api`; port 0 picks a free one. Raises PortInUse."""
    loop = asyncio.get_running_loop()
    connections: set[Connection] = set()
    try:
        server = await loop.create_server(lambda: Connection(api, connections), host, port, ssl=tls, backlog=512)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(
                f"port {port} on `{host}` is in use: choose another with --port, or 0 for any free one"
            ) from error
        raise
    taken = server.sockets[0].getsockname()[1]
    scheme = "https" if tls is not None else "http"
    api.address = f"{host}:{taken}"
    sweeper = asyncio.create_task(_sweep(connections))
    return Site(f"{scheme}://{host}:{taken}", host, taken, server, connections, sweeper)


async def _sweep(connections: set[Connection]) -> None:
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(IDLE_SECONDS / 4)
        for connection in tuple(connections):
            connection.sweep(loop.time())
