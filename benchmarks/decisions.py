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
from benchmarks.figures import Spread, resident_mb
from benchmarks.workloads import Json, Workload
from benchmarks.yardstick import yardstick_ns
from policyengine.cluster.objects import Node, Pod, decode
from policyengine.framework.profile import Profile
from policyengine.kube.config.garbage_collector import NEW_OBJECTS
from policyengine.scheduler.actions import Bind
from policyengine.scheduler.messages import (
    BindSucceeded,
    CacheSynced,
    CyclesRequested,
    Message,
    NodeObserved,
    PodObserved,
)
from policyengine.scheduler.state import SchedulerState

EPOCH = 1_767_225_600.0
"""The virtual time at which a benchmark starts: 2026-01-01T00:00:00Z."""
CHECKS = 20
"""Decisions of a run that are made again by a fresh evaluator."""


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
    pods_per_second: float
    """Cycles, the answers to their bindings and the watch events of bound pods: all the core does for a pod."""
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
    yardstick_us: float
    """CPU of a fixed piece of work on this machine, by which runs on different machines compare."""

    @property
    def ratios(self) -> dict[str, float]:
        """What to compare between runs; more is worse."""
        return {
            "decision / yardstick": self.decision.median / self.yardstick_us,
            "pod event / yardstick": self.pod_event.median / self.yardstick_us,
            "node event / yardstick": self.node_event.median / self.yardstick_us,
        }


def decisions(workload: Workload, profile: Profile) -> DecisionFigures:
    """Schedule every pod of the workload through the core, one cycle at a time, confirming each binding.

    Raises `audit.WrongDecision`.
    """
    run = _Run(profile, max(1, workload.pods // CHECKS))
    before = yardstick_ns()
    run.fill(workload)
    with _quiet_collector():
        run.schedule_all(workload.pods)
        run.touch_nodes(min(workload.nodes, 2_000))
    on_node = Counter(run.bound.values())
    return DecisionFigures(
        workload=workload.name,
        policy=profile.name,
        nodes=workload.nodes,
        pods=workload.pods,
        bound=len(run.bound),
        decisions_per_second=_per_second(len(run.cycle_ns), sum(run.cycle_ns)),
        pods_per_second=_per_second(len(run.cycle_ns), run.total_ns),
        decision=Spread.of(run.cycle_ns),
        pod_event=Spread.of(run.pod_event_ns),
        node_event=Spread.of(run.node_event_ns),
        pods_per_node_max=max(on_node.values(), default=0),
        checks=run.checks,
        memory_mb=resident_mb(),
        yardstick_us=min(before, yardstick_ns()) / 1e3,
    )


@contextmanager
def _quiet_collector() -> Iterator[None]:
    """Have reference cycles looked for as seldom as in a running scheduler (`kube.collector`)."""
    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def _per_second(count: int, nanoseconds: int) -> float:
    return count / (nanoseconds / 1e9) if nanoseconds else 0.0


@dataclass(frozen=True, slots=True)
class MemoryFigures:
    """What holding a cluster costs."""

    nodes: int
    pods: int
    before_mb: float
    """The process with everything imported and no cluster."""
    after_mb: float

    @property
    def kb_per_object(self) -> float:
        """Resident memory a node or pod."""
        return (self.after_mb - self.before_mb) * 1024 / max(1, self.nodes + self.pods)

    @property
    def ratios(self) -> dict[str, float]:
        """What to compare between runs; more is worse."""
        return {"KB an object": self.kb_per_object}


def memory(workload: Workload, profile: Profile) -> MemoryFigures:
    """Hold the workload's nodes and its pods, already bound round robin, as after a start on a full cluster."""
    before = resident_mb()
    state = SchedulerState([profile])
    state.handle(CacheSynced(), EPOCH)
    for message in _bound_cluster(workload):
        state.handle(message, EPOCH)
    gc.collect()
    return MemoryFigures(workload.nodes, workload.pods, before, resident_mb())


class _Run:
    """A core under measurement, standing in for the runner and the API server."""

    def __init__(self, profile: Profile, check_every: int) -> None:
        self.state = SchedulerState([profile])
        self.scheduler_name = profile.scheduler_name
        self.check_every = check_every
        self.checks = 0
        self.total_ns = 0
        self.nodes: list[Node] = []
        self.waiting: dict[str, Pod] = {}
        self.bound: dict[str, str] = {}
        self.cycle_ns: list[int] = []
        self.pod_event_ns: list[int] = []
        self.node_event_ns: list[int] = []

    def fill(self, workload: Workload) -> None:
        self.nodes = list(nodes_of(workload))
        for node in self.nodes:
            self.state.handle(NodeObserved(node), EPOCH)
        for pod in _decoded("initial", workload.initial_objects()):
            self.state.handle(PodObserved(pod), EPOCH)
        for pod in pods_of(workload, self.scheduler_name):
            self.waiting[pod.metadata.uid] = pod
            self.state.handle(PodObserved(pod), EPOCH)
        self.state.handle(CacheSynced(), EPOCH)

    def schedule_all(self, cycles: int) -> None:
        for _ in range(cycles):
            started = time.process_time_ns()
            actions = self.state.handle(CyclesRequested(1), EPOCH)
            spent = time.process_time_ns() - started
            self.cycle_ns.append(spent)
            self.total_ns += spent
            binds = [action for action in actions if isinstance(action, Bind)]
            self._check(binds)
            for bind in binds:
                self._confirm(bind)

    def _check(self, binds: Sequence[Bind]) -> None:
        """Of every so many pods bound, one; a gang binds many in a cycle."""
        for at, bind in enumerate(binds):
            if (len(self.bound) + at) % self.check_every == 0:
                check(self.state, bind, binds[at + 1 :])
                self.checks += 1

    def _confirm(self, bind: Bind) -> None:
        self.bound[bind.uid] = bind.node
        message = PodObserved(_placed(self.waiting[bind.uid], bind.node, len(self.bound)))
        started = time.process_time_ns()
        self.state.handle(BindSucceeded(bind.uid), EPOCH)
        answered = time.process_time_ns()
        self.state.handle(message, EPOCH)
        ended = time.process_time_ns()
        self.pod_event_ns.append(ended - answered)
        self.total_ns += ended - started

    def touch_nodes(self, count: int) -> None:
        for i, node in enumerate(self.nodes[:count]):
            metadata = msgspec.structs.replace(node.metadata, resource_version=str(10_000_000 + i))
            labels = {**(metadata.labels or {}), "touched": str(i % 3)}
            changed = msgspec.structs.replace(node, metadata=msgspec.structs.replace(metadata, labels=labels))
            started = time.process_time_ns()
            self.state.handle(NodeObserved(changed), EPOCH)
            self.node_event_ns.append(time.process_time_ns() - started)


def nodes_of(workload: Workload) -> Iterator[Node]:
    """The workload's nodes as the core sees them."""
    for i, node in enumerate(workload.node_objects()):
        node["metadata"] |= {"uid": f"node-uid-{i}", "resourceVersion": str(i + 1)}
        yield decode(Node, msgspec.json.encode(node))


def pods_of(workload: Workload, scheduler_name: str) -> Iterator[Pod]:
    """The workload's waiting pods as the core sees them."""
    return _decoded("pod", workload.pod_objects(scheduler_name))


def _decoded(kind: str, items: Iterable[Json]) -> Iterator[Pod]:
    for i, item in enumerate(items):
        item["metadata"] |= {"uid": f"{kind}-uid-{i}", "resourceVersion": str(1_000_000 + i)}
        yield decode(Pod, msgspec.json.encode(item))


def _placed(pod: Pod, node: str, i: int) -> Pod:
    metadata = msgspec.structs.replace(pod.metadata, resource_version=str(2_000_000 + i))
    return msgspec.structs.replace(pod, metadata=metadata, spec=msgspec.structs.replace(pod.spec, node_name=node))


def _bound_cluster(workload: Workload) -> Iterable[Message]:
    names = []
    for node in nodes_of(workload):
        names.append(node.metadata.name)
        yield NodeObserved(node)
    for i, pod in enumerate(pods_of(workload, "default-scheduler")):
        yield PodObserved(_placed(pod, names[i % len(names)], i))
