"""Measures the core without a server: what a decision costs, what an event costs, what a cluster weighs.

CPU time of this process (`time.process_time_ns`), not wall time, so that a busy machine shows less.
"""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from benchmarks.audit import check
from benchmarks.figures import Figure, Spread, per_second
from benchmarks.processes import resident_mb
from benchmarks.workloads import Json, Workload
from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_objects import Pod
from policyengine.framework.profile import Profile
from policyengine.scheduler.actions import Action, Bind
from policyengine.scheduler.messages import (
    BindSucceeded,
    CacheSynced,
    CyclesRequested,
    Message,
    NodeObserved,
    PodObserved,
)
from policyengine.scheduler.state import SchedulerState
from policyengine.seldom_collected import collect_seldom

EPOCH = 1_767_225_600.0
"""The virtual time at which a benchmark starts: 2026-01-01T00:00:00Z."""
NODE_UPDATES = 2_000
"""At most."""
CHECKS = 20
"""Decisions of a run that are made again by a fresh evaluator."""


class Core:
    """A scheduler's core without a server, at one moment, with the CPU it takes."""

    def __init__(self, profile: Profile) -> None:
        self.state = SchedulerState([profile])
        self._scheduler_name = profile.scheduler_name

    def fill(self, workload: Workload) -> dict[str, Pod]:
        """Take in the workload's nodes, initial and waiting pods, then decide from now on. {UID: waiting pod}."""
        waiting = {pod.metadata.uid: pod for pod in pods_of(workload, self._scheduler_name)}
        self.take(NodeObserved(node) for node in nodes_of(workload))
        self.take(PodObserved(pod) for pod in decoded("initial", workload.initial_objects()))
        self.take(PodObserved(pod) for pod in waiting.values())
        self.handle(CacheSynced())
        return waiting

    def take(self, messages: Iterable[Message]) -> None:
        """Hand all of them over."""
        for message in messages:
            self.state.handle(message, EPOCH)

    def handle(self, message: Message) -> tuple[list[Action], int]:
        """The actions, and the nanoseconds of CPU they took."""
        started = time.process_time_ns()
        actions = self.state.handle(message, EPOCH)
        return actions, time.process_time_ns() - started

    def decide(self) -> tuple[list[Bind], int]:
        """One scheduling cycle: whom it binds, and its nanoseconds."""
        actions, spent = self.handle(CyclesRequested(1))
        return [action for action in actions if isinstance(action, Bind)], spent


@dataclass(frozen=True, slots=True)
class DecisionFigures:
    """What `benchmarks decisions` found for one workload."""

    workload: str
    policy: str
    nodes: int
    pods: int
    bound: int
    decisions_per_second: float
    """Cycles a second of CPU, nothing else counted."""
    decision: Spread
    """One scheduling cycle."""
    pod_event: Spread
    """Applying the watch event of a pod that was bound."""
    node_event: Spread
    """Applying a node's update."""
    pods_per_node_max: int
    checks: int
    """Decisions a fresh evaluator made again; every one came out the same, or the run had ended."""
    memory_mb: float
    """Resident memory of the process at the end."""


def decisions(workload: Workload, profile: Profile) -> DecisionFigures:
    """Schedule every pod of the workload through the core, one cycle at a time, confirming each binding.

    Raises `audit.WrongDecision`.
    """
    core = Core(profile)
    waiting = core.fill(workload)
    every = max(1, workload.pods // CHECKS)
    bound: dict[str, str] = {}
    cycles: list[int] = []
    pod_events: list[int] = []
    checks = 0
    with quiet_collector():
        for _ in range(workload.pods):
            binds, spent = core.decide()
            cycles.append(spent)
            checks += _check(core.state, binds, len(bound), every)
            for bind in binds:
                bound[bind.uid] = bind.node
                message = PodObserved(_placed(waiting[bind.uid], bind.node, len(bound)))
                core.handle(BindSucceeded(bind.uid))
                pod_events.append(core.handle(message)[1])
        node_events = [core.handle(message)[1] for message in _node_updates(workload)]
    return DecisionFigures(
        workload=workload.name,
        policy=profile.name,
        nodes=workload.nodes,
        pods=workload.pods,
        bound=len(bound),
        decisions_per_second=per_second(len(cycles), sum(cycles) / 1e9),
        decision=Spread.of(cycles),
        pod_event=Spread.of(pod_events),
        node_event=Spread.of(node_events),
        pods_per_node_max=max(Counter(bound.values()).values(), default=0),
        checks=checks,
        memory_mb=resident_mb(),
    )


def _check(state: SchedulerState, binds: Sequence[Bind], bound: int, every: int) -> int:
    """Check one of every so many pods bound (a gang binds many in a cycle); how many were checked."""
    chosen = [at for at in range(len(binds)) if (bound + at) % every == 0]
    for at in chosen:
        check(state, binds[at], binds[at + 1 :])
    return len(chosen)


def _node_updates(workload: Workload) -> Iterator[Message]:
    for i, node in zip(range(NODE_UPDATES), nodes_of(workload), strict=False):
        metadata = msgspec.structs.replace(node.metadata, resource_version=str(10_000_000 + i))
        labels = {**(metadata.labels or {}), "touched": str(i % 3)}
        yield NodeObserved(msgspec.structs.replace(node, metadata=msgspec.structs.replace(metadata, labels=labels)))


@contextmanager
def quiet_collector() -> Iterator[None]:
    """Have reference cycles looked for as seldom as in a running scheduler (`kube.collector`)."""
    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    collect_seldom()
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def memory(workload: Workload, profile: Profile) -> list[Figure]:
    """Hold the workload's nodes and its pods, already bound round robin, as after a start on a full cluster."""
    before = resident_mb()
    core = Core(profile)
    core.handle(CacheSynced())
    names = [node["metadata"]["name"] for node in workload.node_objects()]
    core.take(NodeObserved(node) for node in nodes_of(workload))
    waiting = pods_of(workload, "default-scheduler")
    core.take(PodObserved(_placed(pod, names[i % len(names)], i)) for i, pod in enumerate(waiting))
    gc.collect()
    held = resident_mb()
    grown = (held - before) * 1024 / (workload.nodes + workload.pods)
    more = f" ({before:,.0f} MB before, {grown:.2f} KB an object)"
    return [Figure(f"{workload.nodes:,} nodes and {workload.pods:,} pods held", held, "MB", more=more)]


def nodes_of(workload: Workload) -> Iterator[Node]:
    """The workload's nodes as the core sees them."""
    for i, node in enumerate(workload.node_objects()):
        node["metadata"] |= {"uid": f"node-uid-{i}", "resourceVersion": str(i + 1)}
        yield decode(Node, msgspec.json.encode(node))


def pods_of(workload: Workload, scheduler_name: str) -> Iterator[Pod]:
    """The workload's waiting pods as the core sees them."""
    return decoded("pod", workload.pod_objects(scheduler_name))


def decoded(kind: str, items: Iterable[Json]) -> Iterator[Pod]:
    """Pods from their JSON, with UIDs of their own."""
    for i, item in enumerate(items):
        item["metadata"] |= {"uid": f"{kind}-uid-{i}", "resourceVersion": str(1_000_000 + i)}
        yield decode(Pod, msgspec.json.encode(item))


def _placed(pod: Pod, node: str, i: int) -> Pod:
    metadata = msgspec.structs.replace(pod.metadata, resource_version=str(2_000_000 + i))
    return msgspec.structs.replace(pod, metadata=metadata, spec=msgspec.structs.replace(pod.spec, node_name=node))
