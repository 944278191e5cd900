"""What kube-scheduler asks of an extender, in a process of its own: filter and prioritize in turn, over raw sockets.

Argument: `port`, `workload`, `nodes`, `whole` (node objects in place of names), `requests`, `rate` (requests a second;
null: the next one when the one before was answered), `cpu` (the core to stay on, or null). It says one line when it has
built its requests, waits for a line, and says at the end {"filter": […], "prioritize": […], "served": […], "bytes": of
one request}: nanoseconds from the moment a request was due to the end of its answer, so that waiting for a free
connection counts; `served` from the moment it was sent, so that what this process itself was late by does not.

Names come in another order for each pod, as they do from kube-scheduler, which filters in parallel, and as Go writes
them, without white space; pods are the workload's, one after the other.
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
from policyengine.kube.config import event_loop

HOST = "127.0.0.1"
VERBS = ("filter", "prioritize")
CONNECTIONS = 4
ORDERS = 16
"""Orders of the names, taken in turn, each time cut at another place."""
IMAGES = 20
LIMIT = 1 << 26
OK = b"http/1.1 200"


class Wrong(RuntimeError):
    """The extender answered something else than was asked for."""


def whole_node(node: Json, number: int) -> Json:
    """A node as a kubelet reports it and the API server stores it: about 4 KB with its images."""
    images = [
        {"names": [f"registry.example/team/image-{i}@sha256:{i:064x}", f"registry.example/team/image-{i}:v1.{i}"]}
        for i in range(IMAGES)
    ]
    node["metadata"] |= {"uid": f"00000000-0000-0000-0000-{number:012d}", "resourceVersion": str(number + 1)}
    node["status"]["images"] = [{**image, "sizeBytes": 10_000_000 + i} for i, image in enumerate(images)]
    return node


def bodies(asked: dict[str, Any]) -> Iterator[bytes]:
    """ExtenderArgs without end, a pod twice: to filter, then to prioritize."""
    workload: Workload = WORKLOADS[asked["workload"]].sized(asked["nodes"], asked["requests"])
    if asked["whole"]:
        items = [whole_node(node, number) for number, node in enumerate(workload.node_objects())]
        whole = b'"Nodes":' + _compact({"metadata": {}, "items": items}) + b',"NodeNames":null}'
        of_nodes: Iterator[bytes] = itertools.repeat(whole)
    else:
        of_nodes = (b'"Nodes":null,"NodeNames":[' + names + b"]}" for names in _orders(workload))
    for number, pod in enumerate(itertools.cycle(workload.pod_objects("default-scheduler"))):
        pod["metadata"]["uid"] = f"10000000-0000-0000-0000-{number:012d}"
        body = b'{"Pod":' + _compact(pod) + b"," + next(of_nodes)
        yield body
        yield body


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
    return json.dumps(value, separators=(",", ":")).encode()


class Connection:
    """One kept connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def post(self, verb: str, body: bytes) -> None:
        """One request, its answer read to the end. Raises `Wrong`."""
        head = f"POST /bench/{verb} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
        self._writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode())
        self._writer.write(body)
        lines = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        length = next(int(line[15:]) for line in lines.split(b"\r\n") if line.startswith(b"content-length:"))
        answer = await self._reader.readexactly(length)
        if not lines.startswith(OK) or (verb == "filter" and b'"Error":""' not in answer):
            raise Wrong(f"{verb}: {lines[:40]!r} {answer[:200]!r}")


class Load:
    """The requests of one measurement, and how long each took."""

    def __init__(self, connections: list[Connection]) -> None:
        self._free: asyncio.Queue[Connection] = asyncio.Queue()
        for connection in connections:
            self._free.put_nowait(connection)
        self.took: dict[str, list[int]] = {verb: [] for verb in VERBS}
        self.served: list[int] = []

    async def ask(self, verb: str, body: bytes, due: float) -> None:
        """One request that was due then, on the next free connection."""
        connection = await self._free.get()
        began = time.perf_counter()
        await connection.post(verb, body)
        ended = time.perf_counter()
        self.took[verb].append(round((ended - due) * 1e9))
        self.served.append(round((ended - began) * 1e9))
        self._free.put_nowait(connection)

    async def run(self, requests: int, rate: float | None, built: Iterator[bytes]) -> None:
        """All of them: at a rate, or one after the other."""
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for number, verb in zip(range(requests), itertools.cycle(VERBS)):
                body = next(built)
                if rate is None:
                    await self.ask(verb, body, time.perf_counter())
                    continue
                due = began + number / rate
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                group.create_task(self.ask(verb, body, due))


async def main(asked: dict[str, Any]) -> None:
    """Build, wait, ask."""
    if asked["cpu"] is not None:
        os.sched_setaffinity(0, {asked["cpu"]})
    built = bodies(asked)
    size = len(next(built))
    next(built)
    opened = [await asyncio.open_connection(HOST, asked["port"], limit=LIMIT) for _ in range(CONNECTIONS)]
    load = Load([Connection(*one) for one in opened])
    await Load([Connection(*one) for one in opened]).run(2 * CONNECTIONS, None, built)
    say({"ready": True})
    await asyncio.to_thread(sys.stdin.readline)
    await load.run(asked["requests"], asked["rate"], built)
    say({**load.took, "served": load.served, "bytes": size})


if __name__ == "__main__":
    event_loop.run(main(json.loads(sys.argv[1])))
