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
from itertools import islice
from typing import Any

from benchmarks.decisions import Core, decoded, nodes_of
from benchmarks.processes import resident_mb, say
from benchmarks.scale import Point
from benchmarks.scheduler_perf import WORKLOADS
from benchmarks.workloads import Json, mixed, peer_node, pod
from policyengine.cluster.pod_objects import Pod
from policyengine.plugins.registry import default_profile
from policyengine.scheduler.messages import BindSucceeded, CacheSynced, CyclesRequested, NodeObserved, PodObserved

WARM_UP = 5
"""Decisions that are not counted: the first one of a kind looks at every node for the first time."""
DIFFERENT, IDENTICAL = 500, 2_000
"""Decisions at most."""
BATCH = 1_000
"""Objects decoded before the clock starts on them."""


def take_in(core: Core, messages: Iterable[NodeObserved | PodObserved]) -> tuple[float, float]:
    """Hand all of them over: seconds of CPU, and resident MB they brought. They are decoded a batch at a time, which
    is not counted."""
    before, seconds, waiting = resident_mb(), 0.0, iter(messages)
    while batch := [*islice(waiting, BATCH)]:
        started = time.process_time()
        core.take(batch)
        seconds += time.process_time() - started
    gc.collect()
    return seconds, resident_mb() - before


def decide(core: Core, pods: Iterable[Pod], seconds: float) -> float:
    """Median microseconds of a cycle, over as many pods as the time allows."""
    core.take(PodObserved(one) for one in pods)
    found: list[int] = []
    end = time.process_time() + seconds
    while core.state.ready and (time.process_time() < end or len(found) <= WARM_UP):
        binds, spent = core.decide()
        found.append(spent)
        core.take(BindSucceeded(bind.uid) for bind in binds)
    return statistics.median(found[WARM_UP:]) / 1e3


def named(kind: str, items: Iterable[Json]) -> Iterator[Pod]:
    """Pods with names and UIDs of their own."""
    for i, item in enumerate(items):
        item["metadata"]["name"] = f"{kind}-{i}"
        item["spec"]["schedulerName"] = "default-scheduler"
        yield from decoded(f"{kind}-{i}", [item])


def placed(count: int, nodes: int) -> Iterator[Json]:
    """Pods of many shapes, on the nodes round robin."""
    for i in range(count):
        item = mixed(i)
        item["spec"]["nodeName"] = peer_node(i % nodes)["metadata"]["name"]
        yield item


def main(asked: dict[str, Any]) -> Point:
    """Measure."""
    nodes, pods, seconds = asked["nodes"], asked["pods"], asked["seconds"]
    core = Core(default_profile())
    core.handle(CacheSynced())
    gc.collect()
    node_seconds, node_mb = take_in(core, map(NodeObserved, nodes_of(WORKLOADS["peer-basic"].sized(nodes, 1))))
    pod_seconds, pod_mb = take_in(core, map(PodObserved, named("placed", placed(pods, nodes))))
    gc.freeze()
    different = decide(core, named("different", (mixed(i + 7) for i in range(DIFFERENT))), seconds)
    core.handle(CyclesRequested(DIFFERENT))
    identical = decide(core, named("identical", map(pod, range(IDENTICAL))), seconds)
    return Point(
        nodes=nodes,
        pods=pods,
        different_us=different,
        identical_us=identical,
        start_cpu_seconds=node_seconds + pod_seconds,
        kb_per_node=node_mb * 1024 / nodes,
        kb_per_pod=pod_mb * 1024 / pods if pods else 0.0,
        peak_mb=resident_mb("VmHWM"),
    )


if __name__ == "__main__":
    say(asdict(main(json.loads(sys.argv[1]))))
