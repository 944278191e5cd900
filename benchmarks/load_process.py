"""Load on an API server, in a process of its own: bindings over raw sockets, and watches that only count.

It builds its requests beforehand and looks no closer at answers than it must, so that the server is what is measured.
Argument: `host`, `port`, `pods` (how many, named `pod-%06d` in `namespace`), `connections`, `watchers`, `cpu` (the core
to stay on, or null). It says one line when the watches are there, waits for a line, and says at the end
`{"seconds", "event_seconds"}`: until the last binding was answered, and until every watcher had seen them all.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any, cast

from benchmarks.processes import say
from policyengine.kube.config import event_loop

CREATED = b"HTTP/1.1 201"
LENGTH = b"content-length:"


class Wrong(RuntimeError):
    """The server answered something else than was asked for."""


class Worker(asyncio.Protocol):
    """One connection that binds pod after pod."""

    def __init__(self, requests: Iterator[bytes], done: asyncio.Future[None]) -> None:
        self._requests = requests
        self._done = done
        self._held = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)
        self._next()

    def _next(self) -> None:
        assert self._transport is not None
        request = next(self._requests, None)
        if request is not None:
            self._transport.write(request)
        elif not self._done.done():
            self._done.set_result(None)

    def data_received(self, data: bytes) -> None:
        """A part of an answer, or all of it."""
        self._held += data
        head = self._held.find(b"\r\n\r\n")
        if head < 0:
            return
        if not self._held.startswith(CREATED):
            self._fail(self._held[:300].decode("utf-8", "replace"))
            return
        lines = self._held[:head].lower()
        at = lines.find(LENGTH) + len(LENGTH)
        end = lines.find(b"\r\n", at)
        if len(self._held) >= head + 4 + int(lines[at : end if end > 0 else None]):
            self._held = b""
            self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        """The server hung up."""
        self._fail(f"the server closed the connection: {exc}")

    def _fail(self, why: str) -> None:
        if not self._done.done():
            self._done.set_exception(Wrong(why))


class Watcher(asyncio.Protocol):
    """One watch that counts its lines."""

    def __init__(self, request: bytes, count: int) -> None:
        loop = asyncio.get_running_loop()
        self._request = request
        self._left = count
        self.begun: asyncio.Future[None] = loop.create_future()
        self.done: asyncio.Future[float] = loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask."""
        cast(asyncio.Transport, transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        """The head first, then chunks of lines."""
        if not self.begun.done():
            self.begun.set_result(None)
        self._left -= data.count(b'{"type":"MODIFIED"')
        if self._left <= 0 and not self.done.done():
            self.done.set_result(time.perf_counter())

    def connection_lost(self, exc: Exception | None) -> None:
        """The server hung up."""
        if not self.done.done():
            self.done.set_exception(Wrong(f"a watch ended with {self._left} events to come: {exc}"))


def bindings(asked: dict[str, Any]) -> list[bytes]:
    """One request for each pod."""
    found = []
    for number in range(asked["pods"]):
        name = f"pod-{number:06d}"
        target = {"apiVersion": "v1", "kind": "Node", "name": f"node-{number % 100:06d}"}
        body = json.dumps({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target})
        head = (
            f"POST /api/v1/namespaces/{asked['namespace']}/pods/{name}/binding HTTP/1.1\r\nHost: server\r\n"
            "User-Agent: load\r\nAccept: application/json\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        found.append((head + body).encode())
    return found


async def connect(protocol: asyncio.Protocol, asked: dict[str, Any]) -> None:
    """Open a connection for a protocol."""
    await asyncio.get_running_loop().create_connection(lambda: protocol, asked["host"], asked["port"])


async def main(asked: dict[str, Any]) -> None:
    """Watch, wait for the word, bind."""
    if asked["cpu"] is not None:
        os.sched_setaffinity(0, {asked["cpu"]})
    loop = asyncio.get_running_loop()
    path = f"/api/v1/pods?watch=1&resourceVersion={asked['version']}"
    watch = f"GET {path} HTTP/1.1\r\nHost: server\r\nUser-Agent: load\r\nAccept: application/json\r\n\r\n".encode()
    watchers = [Watcher(watch, asked["pods"]) for _ in range(asked["watchers"])]
    for watcher in watchers:
        await connect(watcher, asked)
    await asyncio.gather(*(watcher.begun for watcher in watchers))
    requests = iter(bindings(asked))
    say({"ready": True})
    await asyncio.to_thread(sys.stdin.readline)
    ends = [loop.create_future() for _ in range(asked["connections"])]
    began = time.perf_counter()
    for end in ends:
        await connect(Worker(requests, end), asked)
    await asyncio.gather(*ends)
    seconds = time.perf_counter() - began
    last = max([await watcher.done for watcher in watchers], default=began)
    say({"seconds": seconds, "event_seconds": last - began})


if __name__ == "__main__":
    event_loop.run(main(json.loads(sys.argv[1])))
