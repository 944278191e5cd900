"""Measures the queue and what gangs cost: operations at many pending pods, events, refused pods in the way, one gang.

CPU time of this process. What an operation costs is taken from many in a row, since the clock itself is not free.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any

import msgspec

from benchmarks.decisions import EPOCH, nodes_of, pods_of
from benchmarks.workloads import Json, Workload, peer_node, pod
from benchmarks.yardstick import yardstick_ns
from policyengine.catalogue import compile_policy
from policyengine.cluster.objects import Pod
from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.events import NODE_DELETE
from policyengine.plugins.registry import default_profile
from policyengine.scheduler.actions import Bind
from policyengine.scheduler.messages import CacheSynced, CyclesRequested, NodeObserved, PodObserved
from policyengine.scheduler.queue.scheduling_queue import SchedulingQueue
from policyengine.scheduler.state import SchedulerState

REFUSED_BY = frozenset({"NodeResourcesFit"})
BATCH = 2_000
"""Operations that one figure is the mean of."""
WARM = 100
"""Decisions that are not counted."""
GANG = """policy "bench-gang" {
  scheduler "bench-gang"
  gang "everybody" { key: pod.namespace  min: %d  timeout: 1min }
}"""


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """Microseconds a piece of CPU, where the name does not say otherwise."""

    pending: int
    add_us: float
    pop_us: float
    """Taking the next pod, and beginning its attempt."""
    refuse_us: float
    """Ending an attempt by a refusal."""
    update_us: float
    remove_us: float
    idle_event_us: float
    """An event that nobody waits for, with as many refused pods as `pending`."""
    refused: int
    decision_us: float
    """One cycle of a pod that fits, nothing else pending."""
    decision_beside_refused_us: float
    """The same beside `refused` pods that fit nowhere."""
    gang: int
    gang_nodes: int
    gang_ms: float
    """One cycle that places a whole gang."""
    gang_refused_ms: float
    """One cycle that finds room for no member of it."""
    yardstick_us: float

    @property
    def ratios(self) -> dict[str, float]:
        """What to compare between runs; more is worse."""
        return {
            "queue operation / yardstick": max(self.add_us, self.pop_us, self.refuse_us) / self.yardstick_us,
            "idle event / yardstick": self.idle_event_us / self.yardstick_us,
            "decision beside refused / alone": self.decision_beside_refused_us / self.decision_us,
            "gang / yardstick": self.gang_ms * 1e3 / self.yardstick_us,
        }


def queue(pending: int = 100_000, refused: int = 10_000, gang: int = 1_000, nodes: int = 5_000) -> QueueFigures:
    """Measure everything; takes about a minute."""
    operations = _operations(pending)
    alone, beside = _decisions(refused)
    placed, not_placed = _gang(gang, nodes)
    return QueueFigures(
        pending=pending,
        add_us=operations["add"],
        pop_us=operations["pop"],
        refuse_us=operations["refuse"],
        update_us=operations["update"],
        remove_us=operations["remove"],
        idle_event_us=operations["event"],
        refused=refused,
        decision_us=alone,
        decision_beside_refused_us=beside,
        gang=gang,
        gang_nodes=nodes,
        gang_ms=placed,
        gang_refused_ms=not_placed,
        yardstick_us=yardstick_ns() / 1e3,
    )


def _operations(pending: int) -> dict[str, float]:
    """Microseconds an operation at so many pending pods."""
    infos = [PodInfo(one) for one in pods_of(Workload("queue", "", 1, pending + BATCH, pod, peer_node), "bench")]
    held, more = infos[:pending], infos[pending:]
    line = SchedulingQueue(default_profile(), now=EPOCH)
    for info in held:
        line.add(info, EPOCH)
    gc.collect()
    found = {"add": _each(lambda info: line.add(info, EPOCH), more)}
    found["update"] = _each(lambda info: line.update(info, info, (), EPOCH), more)
    found["remove"] = _each(lambda info: line.remove(info.uid), more)
    popped = []
    found["pop"] = _each(lambda _: popped.append(line.pop(EPOCH)), more)
    found["refuse"] = _each(lambda one: line.failed(one, EPOCH, REFUSED_BY), [one for one in popped if one])
    while (one := line.pop(EPOCH)) is not None:
        line.failed(one, EPOCH, REFUSED_BY)
    found["event"] = _each(lambda _: line.move(NODE_DELETE, None, None, EPOCH), more)
    return found


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
    workload = Workload("queue", "", 1_000, 2_000, pod, peer_node)
    alone, beside = _cluster(workload), _cluster(workload)
    _crowd(beside, workload, refused)
    spent: dict[SchedulerState, list[int]] = {alone: [], beside: []}
    turns = cycle(((alone, beside), (beside, alone)))
    for one, states in zip(pods_of(workload, "default-scheduler"), turns, strict=False):
        for state in states:
            spent[state].append(_cycle(state, one))
    of_alone, of_beside = (statistics.median(times[WARM:]) / 1e3 for times in spent.values())
    return of_alone, of_beside


def _crowd(state: SchedulerState, workload: Workload, refused: int) -> None:
    """Have so many pods refused that fit nowhere."""
    for number, one in enumerate(pods_of(replace(workload, pods=refused, pod=_too_large), "default-scheduler")):
        name = f"too-large-{number}"
        metadata = msgspec.structs.replace(one.metadata, name=name, uid=name)
        state.handle(PodObserved(msgspec.structs.replace(one, metadata=metadata)), EPOCH)
    while state.ready:
        state.handle(CyclesRequested(100), EPOCH)


def _too_large(i: int) -> Json:
    return pod(i, cpu="100000")


def _cycle(state: SchedulerState, one: Pod) -> int:
    """Nanoseconds of the cycle that places this pod."""
    state.handle(PodObserved(one), EPOCH)
    started = time.process_time_ns()
    actions = state.handle(CyclesRequested(1), EPOCH)
    spent = time.process_time_ns() - started
    assert any(isinstance(action, Bind) for action in actions), f"`{one.metadata.name}` was not placed"
    return spent


def _gang(members: int, nodes: int) -> tuple[float, float]:
    """Milliseconds of the cycle of one gang: where it fits, and where no member does."""
    profile = compile_policy(GANG % members)
    spent = []
    for of, expected in ((pod, members), (_too_large, 0)):
        workload = Workload("queue", "", nodes, members, of, peer_node)
        state = SchedulerState([profile])
        for node in nodes_of(workload):
            state.handle(NodeObserved(node), EPOCH)
        for one in pods_of(workload, profile.scheduler_name):
            state.handle(PodObserved(one), EPOCH)
        state.handle(CacheSynced(), EPOCH)
        gc.collect()
        started = time.process_time_ns()
        actions = state.handle(CyclesRequested(1), EPOCH)
        spent.append((time.process_time_ns() - started) / 1e6)
        bound = sum(isinstance(action, Bind) for action in actions)
        assert bound == expected, f"{bound} of {members} members were bound"
    return spent[0], spent[1]


def _cluster(workload: Workload) -> SchedulerState:
    state = SchedulerState([default_profile()])
    for node in nodes_of(workload):
        state.handle(NodeObserved(node), EPOCH)
    state.handle(CacheSynced(), EPOCH)
    return state
