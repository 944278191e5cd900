"""What recording takes: an hour of 5,000 nodes and 100 pod events a second on virtual time, through the core alone.

A pod comes, is bound, runs, is being deleted, and is gone: five events. Each node says every five minutes that it is
there, as a kubelet does. CPU time is of the recorder and of what it has compressed and written, once a second; the
share is of that in the CPU time of recorder and core together, where a scheduler has its server to talk to besides.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from msgspec.structs import replace

from benchmarks.decisions import EPOCH, nodes_of, pods_of, quiet_collector
from benchmarks.figures import Figure
from benchmarks.workloads import Workload, mixed, peer_node
from policyengine.cluster.objects import format_time
from policyengine.cluster.pod_objects import Pod
from policyengine.plugins.registry import default_profile
from policyengine.recording.directory import Limits, RecordingDirectory, files
from policyengine.recording.encoding import Began
from policyengine.recording.recorder import Recorder
from policyengine.scheduler.actions import Action, Bind
from policyengine.scheduler.messages import (
    BindSucceeded,
    CacheSynced,
    CyclesRequested,
    Message,
    NodeObserved,
    PodDeleted,
    PodObserved,
)
from policyengine.scheduler.state import SchedulerState

NODES: Final = 5_000
EVENTS: Final = 100
"""Of pods, a second."""
EVENTS_OF_A_POD: Final = 5
LIFE: Final = (60.0, 600.0)
"""Seconds that a pod stands on its node."""
SUFFIX: Final = "bcdfghjklmnpqrstvwxz2456789"
STATUS_EVERY: Final = 300.0
"""Seconds between two status updates of a node."""


@dataclass
class _Hour:
    """A core and its recorder."""

    folder: Path
    state: SchedulerState = field(default_factory=lambda: SchedulerState([default_profile()]))
    told: list[Callable[[], None]] = field(default_factory=list)
    core_ns: int = 0
    recorder_ns: int = 0
    pod_events: int = 0
    version: int = 10_000_000
    now: float = EPOCH

    def __post_init__(self) -> None:
        self.recorder = Recorder(Began("bench", "bench"), self.state.profiles)
        self.directory = RecordingDirectory(self.folder, Limits(file_age=3600.0))

    def tell(self, message: Message) -> list[Action]:
        actions = self.state.handle(message, self.now)
        self.told.append(partial(self.recorder.told, self.now, message, actions))
        self.pod_events += type(message) in (PodObserved, PodDeleted)
        return actions

    def may_bind(self, uid: str) -> None:
        self.told.append(partial(self.recorder.asked, uid, self.state.may_bind(uid)))

    def second(self, work: Callable[[], None]) -> None:
        """Have the core do it, then record it, so that reading the clock is not what is measured."""
        begun = time.process_time_ns()
        work()
        decided = time.process_time_ns()
        for record in self.told:
            record()
        self.told.clear()
        while entries := self.recorder.take():
            self.directory.write(entries, self.now - EPOCH)
        self.core_ns += decided - begun
        self.recorder_ns += time.process_time_ns() - decided

    def shown(self, pod: Pod, node: str = "", phase: str = "", ends: str | None = None) -> Pod:
        """The pod's next version, as a watch shows it."""
        self.version += 1
        metadata = replace(pod.metadata, resource_version=str(self.version), deletion_timestamp=ends)
        spec = replace(pod.spec, node_name=node or pod.spec.node_name)
        status = replace(pod.status, phase=phase or pod.status.phase)
        pod = replace(pod, metadata=metadata, spec=spec, status=status)
        self.tell(PodObserved(pod))
        return pod


def recording(nodes: int = NODES, seconds: int = 3600) -> list[Figure]:
    """Play it; `seconds` of it."""
    a_second = EVENTS // EVENTS_OF_A_POD
    workload = Workload("recording", "", nodes, a_second * seconds, mixed, peer_node)
    with tempfile.TemporaryDirectory(prefix="policyengine-") as folder, quiet_collector():
        hour = _Hour(Path(folder))
        hour.second(lambda: _begins(hour, workload))
        began = sum(one.stat().st_size for one in files(hour.folder))
        hour.core_ns = hour.recorder_ns = 0
        _play(hour, workload, seconds, a_second)
        hour.directory.close()
        size = sum(one.stat().st_size for one in files(hour.folder))
    spent, events = hour.recorder_ns / 1e3 / hour.pod_events, hour.pod_events
    share = 100 * hour.recorder_ns / hour.core_ns
    told = f"{nodes:,} nodes and {EVENTS} pod events a second for {seconds / 60:,.0f} minutes"
    return [
        Figure(f"{told}, recorded", size / 1e6, "MB", at_most=30.0, digits=1, more=f" ({events:,} pod events)"),
        Figure("a pod event, in the files", (size - began) / events, "bytes", at_most=60.0, digits=1),
        Figure("a pod event, CPU with all that belongs to it", spent, "µs", digits=1),
        Figure("beside the CPU of the core alone", share, "%", digits=1),
    ]


def _begins(hour: _Hour, workload: Workload) -> None:
    for node in nodes_of(workload):
        hour.tell(NodeObserved(node))
    hour.tell(CacheSynced())


def _play(hour: _Hour, workload: Workload, seconds: int, a_second: int) -> None:
    random = Random("recording")
    coming = (_named(pod, random) for pod in pods_of(workload, "default-scheduler"))
    nodes = list(nodes_of(workload))
    leaving: list[list[Pod]] = [[] for _ in range(seconds + int(LIFE[1]) + 1)]

    def second(number: int) -> None:
        for at in range(a_second):
            hour.now = EPOCH + number + at / a_second
            _comes(hour, next(coming), leaving[number + int(random.uniform(*LIFE))])
        for turn in range(int(number * len(nodes) / STATUS_EVERY), int((number + 1) * len(nodes) / STATUS_EVERY)):
            node = nodes[turn % len(nodes)]
            hour.version += 1
            hour.tell(NodeObserved(replace(node, metadata=replace(node.metadata, resource_version=str(hour.version)))))
        for pod in leaving[number]:
            gone = hour.shown(pod, ends=format_time(hour.now))
            hour.tell(PodDeleted(gone.metadata.namespace, gone.metadata.name, gone.metadata.uid))

    for number in range(seconds):
        hour.second(partial(second, number))


def _named(pod: Pod, random: Random) -> Pod:
    """With a name and a UID as controllers and servers choose them: they are what a recording cannot do without."""
    digits = f"{random.getrandbits(128):032x}"
    uid = f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
    name = f"web-{random.randrange(100)}-{''.join(random.choices(SUFFIX, k=5))}"
    return replace(pod, metadata=replace(pod.metadata, name=name, uid=uid))


def _comes(hour: _Hour, pod: Pod, leaving: list[Pod]) -> None:
    pod = hour.shown(pod)
    for action in hour.tell(CyclesRequested(16)):
        if isinstance(action, Bind):
            hour.may_bind(action.uid)
            hour.tell(BindSucceeded(action.uid))
            leaving.append(hour.shown(hour.shown(pod, action.node), phase="Running"))
