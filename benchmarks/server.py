"""What the embedded API server does on one core: start, memory, bindings and watch events a second.

The server is a process alone on its core; the load comes from a process on the others. Where there is one core only,
they share it.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure
from benchmarks.processes import Child, module, processor
from benchmarks.workloads import NAMESPACE

SECONDS = 300.0
CONNECTIONS = 32
WATCHERS = 10
WORKLOAD = "peer-basic"


async def server(nodes: int = 5_000, pods: int = 50_000, bindings: int = 20_000, runs: int = 3) -> list[Figure]:
    """Measure everything, each `runs` times, and tell the medians. Raises `ChildFailed`."""
    with tempfile.TemporaryDirectory(prefix="policyengine-") as name:
        folder = Path(name)
        starts = [await _start(folder) for _ in range(runs)]
        held = await _memory(folder, nodes, pods)
        one = [await _load(folder, bindings, 1) for _ in range(runs)]
        many = [await _load(folder, bindings // 2, WATCHERS) for _ in range(runs)]
    start, start_cpu = (statistics.median_low(column) * 1e3 for column in zip(*starts, strict=True))
    bound, _, bind_cpu = sorted(one)[(runs - 1) // 2]
    _, events, event_cpu = sorted(many, key=lambda run: run[1])[(runs - 1) // 2]
    spent = (f", {bind_cpu:.1f} µs of CPU each", f", {event_cpu / WATCHERS:.1f} µs of CPU each")
    return [
        Figure("bindings, one watch attached", bound, "a second", more=spent[0]),
        Figure(f"events to {WATCHERS} watchers", events, "a second", more=spent[1]),
        Figure(f"{nodes:,} nodes and {pods:,} pods, at most", held, "MB"),
        Figure("start as a process", start, "ms", more=f", {start_cpu:.0f} ms of CPU"),
    ]


async def _start(folder: Path) -> tuple[float, float]:
    """Wall and CPU seconds from the process's start to its first answer, interpreter and imports included."""
    before = time.perf_counter()
    async with module("server_process", {"cpu": processor(0)}, folder) as child:
        await _get(await child.line(SECONDS), "/readyz")
        return time.perf_counter() - before, child.usage().cpu_seconds


async def _memory(folder: Path, nodes: int, pods: int) -> float:
    """Peak resident MB with all nodes and pods, after one list of all pods over HTTP."""
    argument = {"cpu": processor(0), "workload": WORKLOAD, "nodes": nodes, "pods": pods}
    async with module("server_process", argument, folder) as child:
        await _get(await child.line(SECONDS), "/api/v1/pods")
        return child.usage().peak_mb


async def _get(where: dict[str, Any], path: str) -> None:
    """One request on a connection of its own, read to its end."""
    reader, writer = await asyncio.open_connection(where["host"], where["port"])
    writer.write(f"GET {path} HTTP/1.1\r\nHost: server\r\nConnection: close\r\n\r\n".encode())
    while await reader.read(1 << 20):
        pass
    writer.close()


async def _load(folder: Path, pods: int, watchers: int) -> tuple[float, float, float]:
    """(bindings a second, events a second over all watchers, microseconds of the server's CPU a binding)."""
    argument = {"cpu": processor(0), "workload": WORKLOAD, "nodes": 100, "pods": pods}
    async with module("server_process", argument, folder) as child:
        where = await child.line(SECONDS)
        asked = {**where, "namespace": NAMESPACE, "requests": pods, "connections": CONNECTIONS, "watchers": watchers}
        asked |= {"cpu": processor(1), "rate": None}
        told, spent = await loaded(child, asked, folder)
    return pods / told["seconds"], watchers * pods / told["event_seconds"], spent / pods * 1e6


async def loaded(child: Child, asked: dict[str, Any], folder: Path) -> tuple[dict[str, Any], float]:
    """What the load process says at its end, and the seconds of CPU it cost the child. Raises `ChildFailed`."""
    async with module("load_process", asked, folder) as load:
        await load.line(SECONDS)
        before = child.usage().cpu_seconds
        load.tell()
        return await load.line(SECONDS), child.usage().cpu_seconds - before
