"""One point of `benchmarks scale`: a cluster of a size is taken in, then pods are decided until the time is up.

Argument: {"nodes": N, "pods": placed before, "seconds": CPU for each kind of pod}. Says a `scale.Point`.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

import msgspec

from benchmarks.decisions import EPOCH, nodes_of
from benchmarks.figures import resident_mb
from benchmarks.processes import say
from benchmarks.scale import Point
from benchmarks.scheduler_perf import WORKLOADS
from benchmarks.workloads import Json, mixed, peer_node, pod
from policyengine.cluster.objects import Pod, decode
from policyengine.plugins.registry import default_profile
from policyengine.scheduler.actions import Bind
from policyengine.scheduler.messages import BindSucceeded, CacheSynced, CyclesRequested, NodeObserved, PodObserved
from policyengine.scheduler.state import SchedulerState

WARM_UP = 5
"""Decisions that are not counted: the first one of a kind looks at every node for the first time."""
DIFFERENT, IDENTICAL = 500, 2_000
"""Decisions at most."""
BATCH = 1_000
"""Objects decoded before the clock starts on them."""


class Cluster:
    """A core, and the CPU that taking objects in has cost it."""

    def __init__(self) -> None:
        self.state = SchedulerState([default_profile()])
        self.state.handle(CacheSynced(), EPOCH)
        self.seconds = 0.0

    def take_in(self, messages: Iterable[NodeObserved | PodObserved]) -> float:
        """Hand all of them over; resident MB they brought. They are decoded a batch at a time, which is not counted."""
        before = resident_mb()
        waiting = iter(messages)
        while batch := [message for _, message in zip(range(BATCH), waiting, strict=False)]:
            started = time.process_time()
            for message in batch:
                self.state.handle(message, EPOCH)
            self.seconds += time.process_time() - started
        gc.collect()
        return resident_mb() - before

    def decide(self, pods: Iterable[Pod], seconds: float) -> list[int]:
        """CPU nanoseconds of a cycle for each pod, as many as the time allows."""
        for one in pods:
            self.state.handle(PodObserved(one), EPOCH)
        found: list[int] = []
        end = time.process_time() + seconds
        while self.state.ready and (time.process_time() < end or len(found) <= WARM_UP):
            started = time.process_time_ns()
            actions = self.state.handle(CyclesRequested(1), EPOCH)
            found.append(time.process_time_ns() - started)
            for action in actions:
                if isinstance(action, Bind):
                    self.state.handle(BindSucceeded(action.uid), EPOCH)
        return found[WARM_UP:]


def pods_as(kind: str, items: Iterable[Json]) -> Iterator[Pod]:
    """Pods with names and UIDs of their own."""
    for i, item in enumerate(items):
        item["metadata"] |= {"name": f"{kind}-{i}", "uid": f"{kind}-uid-{i}", "resourceVersion": str(1_000_000 + i)}
        item["spec"]["schedulerName"] = "default-scheduler"
        yield decode(Pod, msgspec.json.encode(item))


def placed(count: int, nodes: int) -> Iterator[Json]:
    """Pods of many shapes, on the nodes round robin."""
    for i in range(count):
        item = mixed(i)
        item["spec"]["nodeName"] = peer_node(i % nodes)["metadata"]["name"]
        yield item


def main(asked: dict[str, Any]) -> Point:
    """Measure."""
    nodes, pods, seconds = asked["nodes"], asked["pods"], asked["seconds"]
    cluster = Cluster()
    gc.collect()
    workload = WORKLOADS["peer-basic"].sized(nodes, 1)
    node_mb = cluster.take_in(map(NodeObserved, nodes_of(workload)))
    pod_mb = cluster.take_in(map(PodObserved, pods_as("placed", placed(pods, nodes))))
    gc.freeze()
    different = cluster.decide(pods_as("different", (mixed(i + 7) for i in range(DIFFERENT))), seconds)
    cluster.state.handle(CyclesRequested(DIFFERENT), EPOCH)
    identical = cluster.decide(pods_as("identical", map(pod, range(IDENTICAL))), seconds)
    return Point(
        nodes=nodes,
        pods=pods,
        different_us=statistics.median(different) / 1e3,
        different=len(different),
        identical_us=statistics.median(identical) / 1e3,
        identical=len(identical),
        start_cpu_seconds=cluster.seconds,
        kb_per_node=node_mb * 1024 / nodes,
        kb_per_pod=pod_mb * 1024 / pods if pods else 0.0,
        peak_mb=resident_mb("VmHWM"),
    )


if __name__ == "__main__":
    say(asdict(main(json.loads(sys.argv[1]))))
