"""Measures the pages that people look at: how long each takes to come, and what ten viewers cost.

The server, the core and who asks share this process. A core that holds the cluster is told of a new pod again and again
while the pages of the overview are followed, and while nobody looks: the difference is what the viewers cost, what they
read included.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import aiohttp
from aiohttp import web

from benchmarks.decisions import EPOCH, Core, decoded
from benchmarks.figures import Figure
from benchmarks.workloads import Json, peer_node, pod
from policyengine.clock import SystemClock
from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import decode
from policyengine.plugins.registry import default_profile
from policyengine.scheduler.messages import CacheSynced, CyclesRequested, NodeObserved, PodObserved
from policyengine.server.listening import listening
from policyengine.server.pages.site import Site
from policyengine.server.pages.source import Moment, Present

NODES, PODS = 5_000, 50_000
REFUSED: Final = 1_000
"""Pods that fit nowhere."""
VIEWERS: Final = 10
WATCHED: Final = 20.0
"""Seconds for which the overview is followed."""
ASKED: Final = 5
PAGES: Final = {
    "the overview": "",
    "nodes by a rule": "?by=rule:NodeResourcesFit",
    "the pods that wait": "pods",
    "a pod, every rule on every node": "pods/default/too-large-0",
    "the nodes": "nodes",
    "a node": "nodes/node-000000",
    "a policy": "policies/default-scheduler",
}


async def pages(nodes: int, pods: int) -> list[Figure]:
    """Measure everything; takes about a minute."""
    core = _filled(nodes, pods)
    application = web.Application()
    moment = Moment(core.state, EPOCH, "benchmark", leads=True)
    site = Site(Present("benchmark", lambda: moment), SystemClock())
    site.add_to(application)
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(listening(application, "127.0.0.1:0", None, 256, 0.1))
        url = f"http://127.0.0.1:{port}/ui/"
        session = await stack.enter_async_context(aiohttp.ClientSession())
        rows = [await _asked(session, what, url + path) for what, path in PAGES.items()]
        alone = await _busy(core, 0)
        for _ in range(VIEWERS):
            await stack.enter_async_context(_following(session, url))
        watched = await _busy(core, 10_000)
    rows.append(Figure("CPU of new pods while nobody looks", 100 * alone, "% of a core", digits=2))
    cost = 100 * (watched - alone)
    rows.append(Figure(f"{VIEWERS} viewers of the overview beside them", cost, "% of a core", digits=2))
    return rows


def _filled(nodes: int, pods: int) -> Core:
    core = Core(default_profile())
    core.take(NodeObserved(decode(Node, peer_node(number))) for number in range(nodes))
    running = pods - REFUSED
    core.take(PodObserved(one) for one in decoded("running", (_running(number, nodes) for number in range(running))))
    core.take(PodObserved(one) for one in decoded("too-large", map(_too_large, range(REFUSED))))
    core.handle(CacheSynced())
    while core.state.ready:
        core.handle(CyclesRequested(100))
    return core


def _running(number: int, nodes: int) -> Json:
    item = pod(number, schedulerName="default-scheduler", nodeName=f"node-{number % nodes:06d}")
    item["metadata"] |= {"name": f"running-{number}", "namespace": "default"}
    return item


def _too_large(number: int) -> Json:
    item = pod(number, cpu="64", schedulerName="default-scheduler")
    item["metadata"] |= {"name": f"too-large-{number}", "namespace": "default"}
    return item


async def _asked(session: aiohttp.ClientSession, what: str, url: str) -> Figure:
    """The median of a few times by the clock, from the request to its last byte."""
    spent, size = [], 0
    for _ in range(ASKED):
        began = time.perf_counter()
        async with session.get(url) as answer:
            size = len(await answer.read())
            assert answer.status == 200, url
        spent.append(1e3 * (time.perf_counter() - began))
    return Figure(what, statistics.median(spent), "ms", more=f" ({size / 1024:.0f} KiB)")


@asynccontextmanager
async def _following(session: aiohttp.ClientSession, url: str) -> AsyncIterator[None]:
    """Somebody who reads a page's stream, and looks at nothing, while the block runs."""

    async def read() -> None:
        async with session.get(url, headers={"Accept": "text/event-stream"}) as answer:
            async for _ in answer.content.iter_any():
                pass

    reading = asyncio.create_task(read())
    try:
        yield
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


async def _busy(core: Core, first: int) -> float:
    """CPU seconds a second while pods come, ten a second, and are placed."""
    items = (decoded(f"new-{first}", [_new(first + number)]) for number in range(int(10 * WATCHED)))
    began, cpu = time.perf_counter(), time.process_time()
    for number, found in enumerate(items):
        core.take(PodObserved(one) for one in found)
        core.decide()
        await asyncio.sleep(max(0.0, began + number / 10 - time.perf_counter()))
    return (time.process_time() - cpu) / (time.perf_counter() - began)


def _new(number: int) -> Json:
    item = pod(number, schedulerName="default-scheduler")
    item["metadata"] |= {"name": f"new-{number}", "namespace": "default"}
    return item
