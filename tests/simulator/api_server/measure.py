"""Figures of the embedded API server on this machine: memory, bindings and watch events a second, start.

    python -m tests.simulator.api_server.measure [--pods 50000] [--nodes 5000]

The client runs in a process of its own, so that the server has one core to itself.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp

from policyengine.clock import SystemClock
from policyengine.simulator.api_server import ApiServer, Request
from policyengine.simulator.api_server.http import serve
from tests.simulator.api_server.server_bench import NODES, PODS, binding, node, pod

MIB = 1024 * 1024


def resident() -> float:
    """MiB of this process now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / MIB


def peak() -> float:
    """MiB of this process at its largest."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def fill(api: ApiServer, path: str, bodies: list[Any]) -> None:
    """Create objects in memory."""
    headers = {"content-type": "application/json", "user-agent": "measure"}
    for body in bodies:
        answer = await api.handle(Request("POST", path, {}, headers, json.dumps(body).encode()))
        assert answer.status == 201, answer.body


async def _drain(url: str, path: str) -> int:
    async with aiohttp.ClientSession(url) as session, session.get(path) as answer:
        size = 0
        async for chunk in answer.content.iter_any():
            size += len(chunk)
        return size


async def _bind(url: str, count: int, at_once: int) -> None:
    async with aiohttp.ClientSession(url, connector=aiohttp.TCPConnector(limit=at_once)) as session:
        numbers = iter(range(count))

        async def work() -> None:
            for number in numbers:
                name = f"p{number:06d}"
                path = f"{PODS}/{name}/binding"
                async with session.post(path, json=binding(name, f"n{number % 100}")) as answer:
                    assert answer.status == 201
                    await answer.read()

        await asyncio.gather(*(work() for _ in range(at_once)))


async def _watch(url: str, path: str, count: int, begun: Any) -> None:
    async with aiohttp.ClientSession(url) as session, session.get(path) as answer:
        begun.set()
        seen = 0
        async for chunk in answer.content.iter_any():
            seen += chunk.count(b"\n")
            if seen >= count:
                return


def _run(act: Callable[..., Any], *arguments: Any) -> None:
    asyncio.run(act(*arguments))


async def until(reached: Callable[[], object]) -> None:
    """Wait without holding up the loop."""
    while not reached():  # noqa: ASYNC110  (another process reaches it)
        await asyncio.sleep(0.001)


async def beside(act: Callable[..., Any], *arguments: Any) -> multiprocessing.Process:
    """Start an asynchronous function in a process of its own."""
    process = multiprocessing.get_context("spawn").Process(target=_run, args=(act, *arguments), daemon=True)
    process.start()
    return process


async def ended(process: multiprocessing.Process) -> None:
    """Wait for it without holding up the loop."""
    await until(lambda: process.exitcode is not None)
    assert process.exitcode == 0


async def memory(pods: int, nodes: int) -> None:
    """Memory of a large cluster, and at the peak of serving all of it in one list."""
    api = ApiServer(SystemClock())
    await fill(api, NODES, [node(f"n{at:05d}", zone=f"z{at % 10}") for at in range(nodes)])
    await fill(api, PODS, [pod(f"p{at:06d}", labels={"app": f"a{at % 100}"}) for at in range(pods)])
    print(f"{pods} pods, {nodes} nodes: {resident():.0f} MB, peak so far {peak():.0f} MB")
    site = await serve(api)
    client = await beside(_drain, site.url, "/api/v1/pods")
    await ended(client)
    print(f"after one list of all pods over HTTP: peak {peak():.0f} MB")
    await site.stop()


async def bindings(count: int) -> None:
    """Bindings a second over HTTP with one watch attached."""
    api = ApiServer(SystemClock())
    await fill(api, PODS, [pod(f"p{at:06d}") for at in range(count)])
    site = await serve(api)
    context = multiprocessing.get_context("spawn")
    begun = context.Event()
    version = api.store.revision
    watch = await beside(_watch, site.url, f"/api/v1/pods?watch=1&resourceVersion={version}", count, begun)
    await until(begun.is_set)
    client = await beside(_bind, site.url, count, 32)
    await until(lambda: api.store.revision > version)
    before, cpu = time.perf_counter(), os.times()
    await until(lambda: api.store.revision >= version + count)
    wall, after = time.perf_counter() - before, os.times()
    user, system = (after.user - cpu.user) / count * 1e6, (after.system - cpu.system) / count * 1e6
    await ended(client)
    await ended(watch)
    print(
        f"bindings over HTTP, one watch: {count / wall:.0f}/s by the clock, {1e6 / (user + system):.0f}/s a CPU second "
        f"of the server ({user:.0f} us user, {system:.0f} us system each)"
    )
    await site.stop()


async def direct(count: int) -> None:
    """Bindings a second through the handler, without HTTP."""
    api = ApiServer(SystemClock())
    await fill(api, PODS, [pod(f"p{at:06d}") for at in range(count)])
    headers = {"content-type": "application/json", "user-agent": "measure"}
    bodies = [json.dumps(binding(f"p{at:06d}", "n1")).encode() for at in range(count)]
    before = time.process_time()
    for at, body in enumerate(bodies):
        await api.handle(Request("POST", f"{PODS}/p{at:06d}/binding", {}, headers, body))
    used = time.process_time() - before
    print(f"bindings through the handler: {count / used:.0f}/s")


async def events(count: int, watchers: int) -> None:
    """Watch events a second over HTTP."""
    api = ApiServer(SystemClock())
    await fill(api, PODS, [pod(f"p{at:06d}") for at in range(count)])
    site = await serve(api)
    context = multiprocessing.get_context("spawn")
    begun = [context.Event() for _ in range(watchers)]
    path = f"/api/v1/pods?watch=1&resourceVersion={api.store.revision}"
    readers = [await beside(_watch, site.url, path, count, event) for event in begun]
    await until(lambda: all(event.is_set() for event in begun))
    headers = {"content-type": "application/json", "user-agent": "measure"}
    before, cpu = time.perf_counter(), time.process_time()
    for at in range(count):
        name = f"p{at:06d}"
        body = json.dumps(binding(name, "n1")).encode()
        await api.handle(Request("POST", f"{PODS}/{name}/binding", {}, headers, body))
        if at % 50 == 0:
            await asyncio.sleep(0)
    for reader in readers:
        await ended(reader)
    wall, used = time.perf_counter() - before, time.process_time() - cpu
    total = count * watchers
    print(f"events to {watchers} watchers over HTTP: {total / wall:.0f}/s ({total / used:.0f} a CPU second)")
    await site.stop()


def started() -> None:
    """How long a server takes to start."""
    before = time.perf_counter()
    api = ApiServer(SystemClock())

    async def serving() -> float:
        site = await serve(api)
        took = time.perf_counter() - before
        await site.stop()
        return took

    print(f"start: {asyncio.run(serving()) * 1000:.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.simulator.api_server.measure")
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--only", choices=("memory", "bindings", "events", "start"))
    asked = parser.parse_args()
    if asked.only in (None, "start"):
        started()
    if asked.only in (None, "memory"):
        asyncio.run(memory(asked.pods, asked.nodes))
    if asked.only in (None, "bindings"):
        asyncio.run(direct(10_000))
        asyncio.run(bindings(10_000))
    if asked.only in (None, "events"):
        asyncio.run(events(10_000, 4))


if __name__ == "__main__":
    main()
