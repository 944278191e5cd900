"""Measures the queue and what gangs cost: operations at many pending pods, events, refused pods in the way, one gang.

CPU time of this process. What an operation costs is taken from many in a row, since the clock itself is not free.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from typing import Any

from benchmarks.decisions import EPOCH, Core, decoded, pods_of
from benchmarks.figures import Figure
from benchmarks.workloads import Json, Workload, peer_node, pod
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import ClusterView
from policyengine.framework.events import NODE_DELETE
from policyengine.plugins.registry import default_profile
from policyengine.policy_compiler import compile_policy
from policyengine.scheduler.messages import CyclesRequested, PodObserved
from policyengine.scheduler.pod_timeline import PodTimelines
from policyengine.scheduler.queue.scheduling_queue import SchedulingQueue

REFUSED_BY = frozenset({"NodeResourcesFit"})
BATCH = 2_000
"""Operations that one figure is the mean of."""
WARM = 100
"""Decisions that are not counted."""
GANG = """policy "bench-gang" {
  scheduler "bench-gang"
  gang "everybody" { key: pod.namespace  min: %d  timeout: 1min }
}"""


def queue(pending: int = 100_000, refused: int = 10_000, gang: int = 1_000, nodes: int = 5_000) -> list[Figure]:
    """Measure everything; takes about a minute."""
    rows = [
        Figure(f"{what}, {pending:,} pending", spent, "µs", digits=1) for what, spent in _operations(pending).items()
    ]
    rows.append(Figure("an event that wakes nobody", _idle_event(pending), "µs", digits=1))
    alone, beside = _decisions(refused)
    slower, more = 100 * (beside / alone - 1), f" ({alone:.0f} µs alone)"
    rows.append(Figure(f"a decision beside {refused:,} refused pods, slower by", slower, "%", digits=1, more=more))
    rows.append(Figure(f"a gang of {gang:,} on {nodes:,} nodes, placed", _gang(gang, nodes, pod), "ms"))
    rows.append(Figure("the same where no member fits", _gang(gang, nodes, _too_large), "ms"))
    return rows


def _operations(pending: int) -> dict[str, float]:
    """Microseconds an operation at so many pending pods."""
    line, more = _held(pending)
    found = {"add a pod": _each(lambda info: line.add(info, EPOCH), more)}
    found["update one"] = _each(lambda info: line.update(info, info, (), EPOCH), more)
    found["remove one"] = _each(lambda info: line.remove(info.uid), more)
    popped: list[Any] = []
    found["take the next one"] = _each(lambda _: popped.append(line.pop(EPOCH)), more)
    refuse = _each(lambda one: line.failed(one, EPOCH, REFUSED_BY), [one for one in popped if one])
    return found | {"put a refused one away": refuse}


def _idle_event(pending: int) -> float:
    """Microseconds of an event that none of so many refused pods waits for."""
    line, more = _held(pending)
    while (one := line.pop(EPOCH)) is not None:
        line.failed(one, EPOCH, REFUSED_BY)
    return _each(lambda _: line.move(NODE_DELETE, None, None, EPOCH), more)


def _held(pending: int) -> tuple[SchedulingQueue, Sequence[PodInfo]]:
    """A queue that holds so many pods, and a batch more."""
    infos = [PodInfo(one) for one in pods_of(Workload("queue", "", 1, pending + BATCH, pod, peer_node), "bench")]
    line = SchedulingQueue(default_profile(), PodTimelines(), ClusterView(), EPOCH)
    for info in infos[:pending]:
        line.add(info, EPOCH)
    gc.collect()
    return line, infos[pending:]


def _each(work: Callable[[Any], object], items: Sequence[object]) -> float:
    """Mean microseconds an item."""
    started = time.process_time_ns()
    for item in items:
        work(item)
    return (time.process_time_ns() - started) / len(items) / 1e3


def _decisions(refused: int) -> tuple[float, float]:
    """Median microseconds of a cycle that places a pod: alone, and beside so many that fit nowhere.

    Two schedulers place the same pods in turn, each before the other as often as behind it.
    """
    empty = Workload("queue", "", 1_000, 0, pod, peer_node)
    alone, beside = Core(default_profile()), Core(default_profile())
    for core in (alone, beside):
        core.fill(empty)
    beside.take(PodObserved(one) for one in decoded("too-large", _crowd(refused)))
    while beside.state.ready:
        beside.handle(CyclesRequested(100))
    spent: dict[Core, list[int]] = {alone: [], beside: []}
    turns = cycle(((alone, beside), (beside, alone)))
    for one in pods_of(Workload("queue", "", 1, 2_000, pod, peer_node), "default-scheduler"):
        for core in next(turns):
            core.handle(PodObserved(one))
            binds, nanoseconds = core.decide()
            assert binds, f"`{one.metadata.name}` was not placed"
            spent[core].append(nanoseconds)
    of_alone, of_beside = (statistics.median(times[WARM:]) / 1e3 for times in spent.values())
    return of_alone, of_beside


def _crowd(count: int) -> Iterator[Json]:
    for number in range(count):
        item = _too_large(number)
        item["metadata"]["name"] = f"too-large-{number}"
        item["spec"]["schedulerName"] = "default-scheduler"
        yield item


def _too_large(i: int) -> Json:
    return pod(i, cpu="100000")


def _gang(members: int, nodes: int, of: Callable[[int], Json]) -> float:
    """Milliseconds of the cycle of one gang."""
    core = Core(compile_policy(GANG % members))
    core.fill(Workload("queue", "", nodes, members, of, peer_node))
    gc.collect()
    binds, spent = core.decide()
    assert len(binds) == (members if of is pod else 0), f"{len(binds)} of {members} members were bound"
    return spent / 1e6
