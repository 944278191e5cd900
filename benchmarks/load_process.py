"""Load on an HTTP server, in a process of its own: bindings to an API server, or what kube-scheduler asks an extender.

Argument: `host`, `port`, `cpu` (the core to stay on, or null), `connections`, `requests` (how many), `rate` (requests a
second; null: the next one when the one before was answered), `watchers`, and either `namespace` (bindings of the pods
`pod-%06d` in it) or `workload`, `nodes` and `whole` (extender calls for its pods, with node objects in place of names).
It says one line when requests are built and watches are there, waits for a line, and says at the end:
`took` {kind: nanoseconds from the moment a request was due to the end of its answer}, `served` (from the moment it was
sent, so that what this process itself was late by does not count), `seconds`, `event_seconds` (until every watcher had
seen all of them) and `bytes` of one request.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
import time
from collections.abc import Iterator
from random import Random
from typing import Any

from benchmarks.processes import say
from benchmarks.scheduler_perf import WORKLOADS
from benchmarks.workloads import Json, Workload
from policyengine.kube.config import process

WARM_UP = 8
"""Calls of an extender that are not counted."""
ORDERS = 16
"""Orders of the names, taken in turn, each time cut at another place."""
IMAGES = 20
LIMIT = 1 << 26
Request = tuple[str, bytes]
"""Its kind, and its bytes."""


class Wrong(RuntimeError):
    """The server answered something else than was asked for."""


def bindings(asked: dict[str, Any]) -> Iterator[Request]:
    """One request for each pod."""
    for number in range(asked["requests"]):
        name = f"pod-{number:06d}"
        target = {"apiVersion": "v1", "kind": "Node", "name": f"node-{number % 100:06d}"}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        yield "bind", _post(f"/api/v1/namespaces/{asked['namespace']}/pods/{name}/binding", _compact(body))


def extender_calls(asked: dict[str, Any]) -> Iterator[Request]:
    """Requests without end, a pod twice: to filter, then to prioritize.

    Names come in another order for each pod, as they do from kube-scheduler, which filters in parallel.
    """
    workload = WORKLOADS[asked["workload"]].sized(asked["nodes"], asked["requests"])
    if asked["whole"]:
        items = [whole_node(node, number) for number, node in enumerate(workload.node_objects())]
        whole = b'"Nodes":' + _compact({"metadata": {}, "items": items}) + b',"NodeNames":null}'
        of_nodes: Iterator[bytes] = itertools.repeat(whole)
    else:
        of_nodes = (b'"Nodes":null,"NodeNames":[' + names + b"]}" for names in _orders(workload))
    for number, pod in enumerate(itertools.cycle(workload.pod_objects("default-scheduler"))):
        pod["metadata"]["uid"] = f"10000000-0000-0000-0000-{number:012d}"
        body = b'{"Pod":' + _compact(pod) + b"," + next(of_nodes)
        for verb in ("filter", "prioritize"):
            yield verb, _post(f"/bench/{verb}", body)


def whole_node(node: Json, number: int) -> Json:
    """A node as a kubelet reports it and the API server stores it: about 4 KB with its images."""
    images = [
        {"names": [f"registry.example/team/image-{i}@sha256:{i:064x}", f"registry.example/team/image-{i}:v1.{i}"]}
        for i in range(IMAGES)
    ]
    node["metadata"] |= {"uid": f"00000000-0000-0000-0000-{number:012d}", "resourceVersion": str(number + 1)}
    node["status"]["images"] = [{**image, "sizeBytes": 10_000_000 + i} for i, image in enumerate(images)]
    return node


def _orders(workload: Workload) -> Iterator[bytes]:
    """The names in JSON, never twice in one order: shuffling them for each pod would keep this process too busy."""
    names = [_compact(node["metadata"]["name"]) for node in workload.node_objects()]
    random = Random(1)
    orders = []
    for _ in range(ORDERS):
        random.shuffle(names)
        orders.append(b",".join(names))
    for order in itertools.cycle(orders):
        at = order.find(b",", random.randrange(len(order) - len(names[-1])))
        yield order[at + 1 :] + b"," + order[:at] if at >= 0 else order


def _compact(value: object) -> bytes:
    """As Go writes it, without white space."""
    return json.dumps(value, separators=(",", ":")).encode()


def _post(path: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: server\r\nUser-Agent: load\r\nAccept: application/json\r\n"
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


class Connection:
    """One kept connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def ask(self, kind: str, request: bytes) -> None:
        """One request, its answer read to the end. Raises `Wrong`."""
        self._writer.write(request)
        lines = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        length = next(int(line[15:]) for line in lines.split(b"\r\n") if line.startswith(b"content-length:"))
        answer = await self._reader.readexactly(length)
        if not lines.startswith(b"http/1.1 20") or (kind == "filter" and b'"Error":""' not in answer):
            raise Wrong(f"{kind}: {lines[:40]!r} {answer[:200]!r}")

    async def watch(self, request: bytes, begun: asyncio.Event, events: int) -> float:
        """The moment that so many changes had been seen."""
        self._writer.write(request)
        while events > 0:
            data = await self._reader.read(1 << 16)
            begun.set()
            if not data:
                raise Wrong(f"a watch ended with {events} events to come")
            events -= data.count(b'{"type":"MODIFIED"')
        return time.perf_counter()


class Load:
    """The requests of one measurement, and how long each took."""

    def __init__(self, connections: list[Connection], requests: Iterator[Request]) -> None:
        self._connections = connections
        self._requests = requests
        self.took: dict[str, list[int]] = {}
        self.served: list[int] = []

    async def run(self, count: int, rate: float | None) -> float:
        """So many of them, at a rate or one after the other on every connection; seconds."""
        began = time.perf_counter()
        due = ((None if rate is None else began + number / rate) for number in range(count))
        await asyncio.gather(*(self._work(one, due) for one in self._connections))
        return time.perf_counter() - began

    async def _work(self, connection: Connection, due: Iterator[float | None]) -> None:
        for moment in due:
            kind, request = next(self._requests)
            if moment is not None:
                await asyncio.sleep(max(0.0, moment - time.perf_counter()))
            began = time.perf_counter()
            await connection.ask(kind, request)
            ended = time.perf_counter()
            self.took.setdefault(kind, []).append(round((ended - (moment or began)) * 1e9))
            self.served.append(round((ended - began) * 1e9))


async def main(asked: dict[str, Any]) -> None:
    """Build, watch, wait for the word, ask."""
    if asked["cpu"] is not None:
        os.sched_setaffinity(0, {asked["cpu"]})

    async def connect() -> Connection:
        return Connection(*await asyncio.open_connection(asked["host"], asked["port"], limit=LIMIT))

    count, watching = asked["requests"], []
    for _ in range(asked.get("watchers", 0)):
        path, begun = f"/api/v1/pods?watch=1&resourceVersion={asked['version']}", asyncio.Event()
        request = (
            f"GET {path} HTTP/1.1\r\nHost: server\r\nUser-Agent: load\r\nAccept: application/json\r\n\r\n".encode()
        )
        watching.append(asyncio.create_task((await connect()).watch(request, begun, count)))
        await begun.wait()
    connections = [await connect() for _ in range(asked["connections"])]
    binding = "namespace" in asked
    requests = iter([*bindings(asked)]) if binding else extender_calls(asked)
    if not binding:
        await Load(connections, requests).run(WARM_UP, None)
    load = Load(connections, requests)
    say({"ready": True})
    await asyncio.to_thread(sys.stdin.readline)
    began = time.perf_counter()
    seconds = await load.run(count, asked["rate"])
    last = max([await watch for watch in watching], default=began)
    size = 0 if binding else len(next(requests)[1])
    say({"took": load.took, "served": load.served, "seconds": seconds, "event_seconds": last - began, "bytes": size})


if __name__ == "__main__":
    process.run(main(json.loads(sys.argv[1])))
