"""In the scheduler's place, a client that decides nothing: it binds the waiting pods to the nodes round robin.

It uses the scheduler's own client and as many connections, so its rate is what the way to the server allows.
Argument: {"kubeconfig": PATH, "watch": bool, "events": bool, "workers": N}. With `watch`, pods are also followed and
decoded as the scheduler does; with `events`, each binding is followed by its Scheduled event, written at once.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from benchmarks.processes import say, stdin_closed
from benchmarks.workloads import NAMESPACE
from policyengine.clock import SystemClock
from policyengine.cluster.kinds import NODES, PODS, Kind
from policyengine.cluster.pod_objects import Pod
from policyengine.kube.config import credentials, process
from policyengine.kube.http.client import Client
from policyengine.kube.watching.reflector import Reflector
from policyengine.kube.writing.pod_events import EventRecorder
from policyengine.kube.writing.request_queue import RequestQueue
from policyengine.scheduler.actions import RecordEvent


class _Meta(msgspec.Struct):
    name: str
    uid: str


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Item(msgspec.Struct):
    metadata: _Meta
    spec: _Spec


Work = Iterator[tuple[_Item, str]]


async def main(argument: dict[str, Any]) -> None:
    """Bind everything, then wait for the end."""
    client = Client(credentials.load(Path(argument["kubeconfig"])).connect())
    clock, random = SystemClock(), Random()
    following: list[asyncio.Task[None]] = []
    if argument["watch"]:
        reflector = Reflector(client, PODS, clock, random)
        following.append(asyncio.create_task(_follow(reflector)))
        await reflector.synced.wait()
    queue = RequestQueue(clock, random)
    following.append(asyncio.create_task(queue.run()))
    events = EventRecorder(client, clock, queue) if argument["events"] else None
    nodes = [item.metadata.name async for item in _items(client, NODES)]
    waiting = [item async for item in _items(client, PODS, NAMESPACE) if not item.spec.node_name]
    say({"started": True})
    work: Work = zip(waiting, cycle(nodes), strict=False)
    await asyncio.gather(*(_bind(client, work, events) for _ in range(argument["workers"])))
    await stdin_closed()
    for task in following:
        task.cancel()
    await client.close()
    say({"bound": len(waiting)})


async def _items(client: Client, resource: Kind[Any], namespace: str = "") -> Any:
    decode = msgspec.json.Decoder(_Item).decode
    token = ""
    while True:
        page = await client.list_page(resource, namespace, continue_=token)
        for raw in page.items or ():
            yield decode(raw)
        token = page.metadata.continue_
        if not token:
            return


async def _follow(reflector: Reflector[Pod]) -> None:
    async for _ in reflector.changes():
        pass


async def _bind(client: Client, work: Work, events: EventRecorder | None) -> None:
    """Bind the next pod until there are none."""
    for item, node in work:
        await client.bind(NAMESPACE, item.metadata.name, item.metadata.uid, node, {})
        if events is not None:
            events.record(_scheduled(item, node))


def _scheduled(item: _Item, node: str) -> RecordEvent:
    name = item.metadata.name
    note = f"Successfully assigned {NAMESPACE}/{name} to {node}"
    return RecordEvent(item.metadata.uid, NAMESPACE, name, "", "Normal", "Scheduled", "Binding", note, "limit")


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    process.run(main(json.loads(sys.argv[1])))
