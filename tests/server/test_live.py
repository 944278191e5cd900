"""The running scheduler's connections."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

from policyengine.clock import SystemClock
from policyengine.cluster.kinds import PODS
from policyengine.kube.config import configuration, credentials
from policyengine.server.live import connected
from policyengine.simulator.sandbox import kubeconfig, write_kubeconfig

CONNECTIONS = 8


async def test_the_lease_is_asked_for_though_every_other_connection_waits_for_a_slow_server(tmp_path: Path) -> None:
    slow, waits = asyncio.Event(), 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal waits
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:] if line)
                body = await reader.readexactly(int(fields.get("Content-Length", 0)))
                if b"/leases" not in head:
                    waits += 1
                    if waits == CONNECTIONS:
                        slow.set()
                    await asyncio.sleep(3600)
                writer.write(_answer(200, json.loads(body)) if body else _answer(404, {"kind": "Status"}))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        given = configuration.load(None, {"clientConnection": {"connections": CONNECTIONS}})
        async with connected(_server(port, tmp_path), given, SystemClock(), Random(1)) as connection:
            reads = (connection.client.call("GET", PODS.path("default", f"p{number}")) for number in range(CONNECTIONS))
            waiting = asyncio.gather(*reads)
            await slow.wait()
            assert connection.elector is not None
            leading = asyncio.ensure_future(connection.elector.run())
            await asyncio.wait_for(connection.elector.elected.wait(), 60)
            assert not waiting.done()
            waiting.cancel()
            leading.cancel()
            await asyncio.gather(waiting, leading, return_exceptions=True)


def _answer(status: int, body: Mapping[str, object]) -> bytes:
    text = json.dumps(body).encode()
    return b"HTTP/1.1 %d OK\r\nContent-Length: %d\r\n\r\n%s" % (status, len(text), text)


def _server(port: int, folder: Path) -> credentials.Server:
    write_kubeconfig(folder / "kubeconfig", kubeconfig(f"http://127.0.0.1:{port}"))
    return replace(credentials.load(folder / "kubeconfig", None), proxy=None)
