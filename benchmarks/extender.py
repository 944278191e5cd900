"""What the extender does on one core: filter and prioritize with names at a rate, and with whole node objects.

The extender is a process alone on its core; kube-scheduler's side is played by a process on the others. With names
it watches the embedded API server, idle by then, which keeps to the load's core. On a machine of one core all share it.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

from aiohttp.test_utils import unused_port

from benchmarks.figures import Figure, Spread
from benchmarks.processes import Child, ChildFailed, module, processor, program
from benchmarks.server import SECONDS, loaded
from policyengine.simulator.sandbox import kubeconfig, write_kubeconfig

HOST = "127.0.0.1"
CONNECTIONS = 4
WORKLOAD = "peer-mixed"
"""Every pod has its own shape, and its nodes come in an order of their own: no answer can be kept for the next pod."""
BY_NAME: Final = """policy "bench" {
  filter "spare" { require node.free.cpu - pod.requests.cpu >= 500m else "has {node.free.cpu}" }
  score "pack" weight 3 = 100 * ratio(node.used.cpu + pod.requests.cpu, node.allocatable.cpu)
  score "memory" weight 2 normalize max = double(node.free.memory)
}"""
WHOLE: Final = """policy "bench" {
  filter "room" { require node.allocatable.cpu >= pod.requests.cpu else "has {node.allocatable.cpu}" }
  score "memory" weight 2 normalize max = double(node.allocatable.memory - pod.requests.memory)
}"""
"""What stands on the nodes is not known without a watch."""


async def extender(nodes: int = 5_000, requests: int = 2_000, rate: float = 200.0, whole: int = 40) -> list[Figure]:
    """Measure `requests` with names at a rate, then `whole` with node objects. Raises `ChildFailed`.

    Times are by the clock, from the moment a request was due to the end of its answer.
    """
    with tempfile.TemporaryDirectory(prefix="policyengine-") as name:
        folder = Path(name)
        server = {"cpu": processor(1), "workload": WORKLOAD, "nodes": nodes, "pods": 1}
        async with module("server_process", server, folder) as child:
            path = folder / "kubeconfig"
            write_kubeconfig(path, kubeconfig((await child.line(SECONDS))["url"]))
            names = await _load(folder, BY_NAME, path, nodes, requests, rate)
        return [*names, *await _load(folder, WHOLE, None, nodes, whole, None)]


async def _load(
    folder: Path, policy: str, path: Path | None, nodes: int, requests: int, rate: float | None
) -> list[Figure]:
    async with _extender(folder, policy, path) as (child, port):
        asked = {"host": HOST, "port": port, "workload": WORKLOAD, "nodes": nodes, "cpu": processor(1)}
        asked |= {"whole": path is None, "requests": requests, "rate": rate}
        asked["connections"] = CONNECTIONS if rate else 1
        told, spent = await loaded(child, asked, folder)
        peak = child.usage().peak_mb
    what = f"names, {rate:g} a second" if rate else f"node objects, {told['bytes'] / 1e6:.1f} MB a request"
    rows = [(f"{verb}, {what}: median", Spread.of(nanoseconds)) for verb, nanoseconds in told["took"].items()]
    rows.append((f"both, {what}, from the moment a request was sent: median", Spread.of(told["served"])))
    cpu = spent / requests * 1e3
    more = f"{cpu:.2f} ms of CPU a request; at most {peak:,.0f} MB"
    return [
        Figure(name, one.median / 1e3, "ms", digits=2, more=f"; p99 {one.p99 / 1e3:.2f}; {more}") for name, one in rows
    ]


@asynccontextmanager
async def _extender(folder: Path, policy: str, path: Path | None) -> AsyncIterator[tuple[Child, int]]:
    """`policyengine extender` on the first core, its cluster read; and its port."""
    text, port = folder / "bench.policy", unused_port()
    text.write_text(policy, encoding="utf-8")
    command = [sys.executable, "-m", "policyengine.commands.main", "extender", f"--policy={text}"]
    command += [f"--listen={HOST}:{port}", *([f"--kubeconfig={path}"] if path else [])]
    async with AsyncExitStack() as stack:
        with _on_first_core():
            child = await stack.enter_async_context(program(command, folder))
        await _ready(child, port)
        yield child, port


@contextmanager
def _on_first_core() -> Iterator[None]:
    """What is started meanwhile stays there."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


async def _ready(child: Child, port: int) -> None:
    """Raises `ChildFailed` where it ends before it answers."""
    while child.running:
        try:
            reader, writer = await asyncio.open_connection(HOST, port)
        except OSError:
            await asyncio.sleep(0.05)
            continue
        writer.write(f"GET /readyz HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode())
        answer = await reader.read(100)
        writer.close()
        if b" 200 " in answer:
            return
        await asyncio.sleep(0.05)
    raise ChildFailed(f"the extender ended: {child.last_words()}")
