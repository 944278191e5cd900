"""What watching costs: `python -m tests.server.metrics.cost NODES PODS`.

Prints the CPU time of one `/metrics` page of a scheduler that holds so many nodes and has bound so many pods, and what
noting a bound pod adds to the core's own work. Each figure is the least of several, the two measured in turn.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Callable, Iterable
from random import Random
from typing import Any, TypeVar

import msgspec
from prometheus_client.exposition import generate_latest

from benchmarks.scheduler_perf import WORKLOADS
from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_objects import Pod
from policyengine.kube.http.client import Client
from policyengine.kube.scheduling import Scheduler
from policyengine.plugins.registry import default_profile
from policyengine.scheduler.actions import Bind
from policyengine.scheduler.messages import BindSucceeded, CacheSynced, CyclesRequested, NodeObserved, PodObserved
from policyengine.scheduler.state import SchedulerState
from policyengine.server.metrics.observed import ObservedCore
from policyengine.server.metrics.readings import read_before_scrape
from policyengine.server.metrics.scheduler_metrics import SchedulerMetrics
from policyengine.simulator.api_server import ApiServer, MemoryTransport
from tests.kube.virtual_time import VirtualClock

WORKLOAD = "SchedulingBasic"
NOW = 1_767_225_600.0
ROUNDS, SCRAPES = 5, 30


T = TypeVar("T", Node, Pod)


def _objects(nodes: int, pods: int) -> tuple[list[Node], list[Pod]]:
    workload = WORKLOADS[WORKLOAD].sized(nodes, pods)
    return _decoded(Node, workload.node_objects()), _decoded(Pod, workload.pod_objects("default-scheduler"))


def _decoded(kind: type[T], items: Iterable[Any]) -> list[T]:
    found = []
    for number, item in enumerate(items):
        item["metadata"] |= {"uid": f"{kind.__name__}-{number}", "resourceVersion": str(number + 1)}
        found.append(decode(kind, msgspec.json.encode(item)))
    return found


def bind_all(core: Any, nodes: list[Node], pods: list[Pod]) -> float:
    """Schedule the pods through a core, the answers included; seconds of CPU."""
    for node in nodes:
        core.handle(NodeObserved(node), NOW)
    core.handle(CacheSynced(), NOW)
    gc.collect()
    gc.disable()
    began = time.process_time()
    for pod in pods:
        core.handle(PodObserved(pod), NOW)
        for action in core.handle(CyclesRequested(1), NOW):
            if isinstance(action, Bind):
                core.handle(BindSucceeded(action.uid), NOW)
    spent = time.process_time() - began
    gc.enable()
    return spent


def noting(nodes: int, pods: int) -> tuple[float, float]:
    """(seconds of CPU the core takes for a pod, and with everything noted)."""
    objects = _objects(nodes, pods)

    def bare() -> float:
        return bind_all(SchedulerState([default_profile()]), *objects)

    def noted() -> float:
        return bind_all(ObservedCore(SchedulerState([default_profile()]), SchedulerMetrics()), *objects)

    measured: list[Callable[[], float]] = [bare, noted]
    found = [[one() / pods for one in measured] for _ in range(ROUNDS)]
    return min(one[0] for one in found), min(one[1] for one in found)


async def page(nodes: int, pods: int) -> tuple[float, int]:
    """(seconds of CPU of one page, its bytes)."""
    metrics, clock = SchedulerMetrics(), VirtualClock()
    scheduler = Scheduler(Client(MemoryTransport(ApiServer(clock))), clock, Random(1), [default_profile()])
    read_before_scrape(metrics, scheduler, clock)
    bind_all(ObservedCore(scheduler.state, metrics), *_objects(nodes, pods))
    spent = []
    for _ in range(SCRAPES):
        began = time.process_time()
        text = generate_latest(metrics)
        spent.append(time.process_time() - began)
    return min(spent), len(text)


def main() -> None:
    nodes, pods = int(sys.argv[1]), int(sys.argv[2])
    seconds, size = asyncio.run(page(nodes, pods))
    print(f"/metrics with {nodes} nodes and {pods} bound pods: {seconds * 1e3:.1f} ms of CPU, {size} bytes")
    bare, noted = noting(min(nodes, 500), min(pods, 3000))
    print(f"a bound pod: {bare * 1e6:.1f} us in the core, {(noted - bare) * 1e6:.1f} us more with everything noted")


if __name__ == "__main__":
    main()
