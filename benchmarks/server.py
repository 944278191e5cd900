"""What the embedded API server does on one core: start, memory, bindings and watch events a second.

The server is a process alone on its core; the load comes over raw sockets from a process on the others. Where there is
one core only, they share it.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.processes import Child, module
from benchmarks.workloads import NAMESPACE
from benchmarks.yardstick import yardstick_ns

FILL_SECONDS = 300.0
LOAD_SECONDS = 300.0
CONNECTIONS = 32
WATCHERS = 10
WORKLOAD = "peer-basic"


@dataclass(frozen=True, slots=True)
class ServerFigures:
    """Medians of `runs` runs; the largest run for memory."""

    nodes: int
    pods: int
    start_ms: float
    """Wall time from the process's start to its first answer, the interpreter and all imports included."""
    start_cpu_ms: float
    """CPU of the same."""
    held_mb: float
    """Peak resident memory with all nodes and pods."""
    listed_mb: float
    """The same after one list of all pods over HTTP."""
    bindings: int
    bindings_per_second: float
    """By the clock, with one watch attached."""
    binding_cpu_us: float
    """CPU of the server for one of them."""
    watchers: int
    events_per_second: float
    """By the clock, over all watchers, while pods are bound."""
    event_cpu_us: float
    """CPU of the server for one event to one watcher, its share of the binding included."""
    cores: int
    yardstick_us: float

    @property
    def ratios(self) -> dict[str, float]:
        """What to compare between runs; more is worse."""
        return {
            "binding cpu / yardstick": self.binding_cpu_us / self.yardstick_us,
            "event cpu / yardstick": self.event_cpu_us / self.yardstick_us,
        }


@dataclass(frozen=True, slots=True)
class _Load:
    per_second: float
    events_per_second: float
    cpu_us: float


async def server(nodes: int = 5_000, pods: int = 50_000, bindings: int = 20_000, runs: int = 3) -> ServerFigures:
    """Measure everything, each `runs` times. Raises `ChildFailed`."""
    with tempfile.TemporaryDirectory(prefix="policyengine-") as name:
        folder = Path(name)
        starts = [await _start(folder) for _ in range(runs)]
        held, listed = await _memory(folder, nodes, pods)
        one = [await _load(folder, bindings, 1) for _ in range(runs)]
        many = [await _load(folder, bindings // 2, WATCHERS) for _ in range(runs)]
    middle = sorted(one, key=lambda run: run.per_second)[(runs - 1) // 2]
    crowd = sorted(many, key=lambda run: run.events_per_second)[(runs - 1) // 2]
    return ServerFigures(
        nodes=nodes,
        pods=pods,
        start_ms=statistics.median_low(wall for wall, _ in starts) * 1e3,
        start_cpu_ms=statistics.median_low(cpu for _, cpu in starts) * 1e3,
        held_mb=held,
        listed_mb=listed,
        bindings=bindings,
        bindings_per_second=middle.per_second,
        binding_cpu_us=middle.cpu_us,
        watchers=WATCHERS,
        events_per_second=crowd.events_per_second,
        event_cpu_us=crowd.cpu_us / WATCHERS,
        cores=len(_cores()),
        yardstick_us=yardstick_ns() / 1e3,
    )


def _cores() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def _server(**more: Any) -> dict[str, Any]:
    """The server's argument: the first core is its own."""
    return {"cpu": _cores()[0] if len(_cores()) > 1 else None, **more}


async def _start(folder: Path) -> tuple[float, float]:
    """Wall and CPU seconds."""
    before = time.perf_counter()
    async with module("server_process", _server(), folder) as child:
        where = await child.line(FILL_SECONDS)
        await _get(where, "/readyz")
        return time.perf_counter() - before, child.usage().cpu_seconds


async def _memory(folder: Path, nodes: int, pods: int) -> tuple[float, float]:
    async with module("server_process", _server(workload=WORKLOAD, nodes=nodes, pods=pods), folder) as child:
        where = await child.line(FILL_SECONDS)
        held = child.usage().peak_mb
        await _get(where, "/api/v1/pods")
        return held, child.usage().peak_mb


async def _get(where: dict[str, Any], path: str) -> None:
    """One request on a connection of its own, read to its end."""
    reader, writer = await asyncio.open_connection(where["host"], where["port"])
    writer.write(f"GET {path} HTTP/1.1\r\nHost: server\r\nConnection: close\r\n\r\n".encode())
    while await reader.read(1 << 20):
        pass
    writer.close()


async def _load(folder: Path, pods: int, watchers: int) -> _Load:
    async with module("server_process", _server(workload=WORKLOAD, nodes=100, pods=pods), folder) as child:
        where = await child.line(FILL_SECONDS)
        asked = {**where, "namespace": NAMESPACE, "pods": pods, "connections": CONNECTIONS, "watchers": watchers}
        asked["cpu"] = _cores()[1] if len(_cores()) > 1 else None
        async with module("load_process", asked, folder) as load:
            await load.line(LOAD_SECONDS)
            return await _bind(child, load, pods, watchers)


async def _bind(server: Child, load: Child, pods: int, watchers: int) -> _Load:
    before = server.usage().cpu_seconds
    load.tell()
    told = await load.line(LOAD_SECONDS)
    spent = server.usage().cpu_seconds - before
    return _Load(pods / told["seconds"], watchers * pods / told["event_seconds"], spent / pods * 1e6)
