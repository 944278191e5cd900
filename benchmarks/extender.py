"""What the extender does on one core: filter and prioritize with names at a rate, and with whole node objects.

The extender is a process alone on its core; kube-scheduler's side is played by a process on the others. With names
it watches the embedded API server, idle by then, which keeps to the load's core. On a machine of one core all share it.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.extender_load import HOST
from benchmarks.figures import Spread
from benchmarks.processes import Child, ChildFailed, module, program
from benchmarks.yardstick import yardstick_ns
from policyengine.simulator.kubeconfig import kubeconfig, write_kubeconfig

SECONDS = 300.0
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


@dataclass(frozen=True, slots=True)
class ExtenderFigures:
    """Times are by the clock, from the moment a request was due to the end of its answer."""

    nodes: int
    rate: float
    """Requests a second, filter and prioritize in turn."""
    filter: Spread
    prioritize: Spread
    served: Spread
    """Of both, from the moment a request was sent: without what the load itself was late by."""
    request_cpu_us: float
    """CPU of the extender for one of them."""
    peak_mb: float
    whole_filter: Spread
    whole_prioritize: Spread
    whole_mb: float
    """Of one request with node objects."""
    whole_request_cpu_ms: float
    whole_peak_mb: float
    cores: int
    yardstick_us: float

    @property
    def ratios(self) -> dict[str, float]:
        """What to compare between runs; more is worse."""
        return {
            "request cpu / yardstick": self.request_cpu_us / self.yardstick_us,
            "whole request cpu / yardstick": self.whole_request_cpu_ms * 1e3 / self.yardstick_us,
        }


@dataclass(frozen=True, slots=True)
class _Load:
    filter: Spread
    prioritize: Spread
    served: Spread
    cpu_us: float
    peak_mb: float
    bytes: int


async def extender(nodes: int = 5_000, requests: int = 2_000, rate: float = 200.0, whole: int = 40) -> ExtenderFigures:
    """Measure `requests` with names at a rate, then `whole` with node objects. Raises `ChildFailed`."""
    with tempfile.TemporaryDirectory(prefix="policyengine-") as name:
        folder = Path(name)
        server = {"cpu": _core(1), "workload": WORKLOAD, "nodes": nodes, "pods": 1}
        async with module("server_process", server, folder) as child:
            path = folder / "kubeconfig"
            write_kubeconfig(path, kubeconfig((await child.line(SECONDS))["url"]))
            of_names = await _load(folder, BY_NAME, path, nodes, requests, rate)
        of_objects = await _load(folder, WHOLE, None, nodes, whole, None)
    return ExtenderFigures(
        nodes=nodes,
        rate=rate,
        filter=of_names.filter,
        prioritize=of_names.prioritize,
        served=of_names.served,
        request_cpu_us=of_names.cpu_us,
        peak_mb=of_names.peak_mb,
        whole_filter=of_objects.filter,
        whole_prioritize=of_objects.prioritize,
        whole_mb=of_objects.bytes / 1e6,
        whole_request_cpu_ms=of_objects.cpu_us / 1e3,
        whole_peak_mb=of_objects.peak_mb,
        cores=len(os.sched_getaffinity(0)),
        yardstick_us=yardstick_ns() / 1e3,
    )


def _core(number: int) -> int | None:
    cores = sorted(os.sched_getaffinity(0))
    return cores[number] if len(cores) > 1 else None


async def _load(folder: Path, policy: str, path: Path | None, nodes: int, requests: int, rate: float | None) -> _Load:
    async with _extender(folder, policy, path) as (child, port):
        asked = {"port": port, "workload": WORKLOAD, "nodes": nodes, "cpu": _core(1)}
        asked |= {"whole": path is None, "requests": requests, "rate": rate}
        async with module("extender_load", asked, folder) as load:
            await load.line(SECONDS)
            before = child.usage().cpu_seconds
            load.tell()
            told = await load.line(SECONDS)
            after = child.usage()
    spent = (after.cpu_seconds - before) / requests * 1e6
    filtered, ranked, served = (Spread.of(told[kind]) for kind in ("filter", "prioritize", "served"))
    return _Load(filtered, ranked, served, spent, after.peak_mb, told["bytes"])


@asynccontextmanager
async def _extender(folder: Path, policy: str, path: Path | None) -> AsyncIterator[tuple[Child, int]]:
    """`policyengine extender` on the first core, its cluster read; and its port."""
    text, port = folder / "bench.policy", _free_port()
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


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
