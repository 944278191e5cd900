"""Drives a `SchedulerState` in tests: every step validates, every message is logged, so that it can be replayed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.events import ClusterEventWithHint
from policyengine.framework.plugin import Reads
from policyengine.framework.profile import Profile
from policyengine.framework.status import SUCCESS, Code, Refusal, Status, Verdicts, passed
from policyengine.plugins.registry import default_profile
from policyengine.scheduler.actions import Action, Bind, DeleteVictim, PatchPodCondition, ReadPod, RecordEvent
from policyengine.scheduler.messages import (
    CacheSynced,
    CyclesRequested,
    Message,
    NodeObserved,
    ObjectObserved,
    PodObserved,
    PodRead,
    Tick,
)
from policyengine.scheduler.state import SchedulerState
from tests.builders import NodeBuilder, PodBuilder, make_node, make_pod
from tests.scheduler.invariants import validate

NAME = "default-scheduler"
START = 1000.0


def profile(**changes: Any) -> Profile:
    """kube-scheduler's own profile, with changes."""
    return replace(default_profile(), **changes)


def node(name: str = "n1", cpu: str = "4", pods: str = "10") -> NodeBuilder:
    return make_node(name).capacity(cpu=cpu, memory="8Gi", pods=pods)


def pod(name: str = "p", cpu: str = "1") -> PodBuilder:
    return make_pod(name).req(cpu=cpu)


class Driver:
    """A scheduler, its time, and the versions of the objects it is shown."""

    def __init__(self, *profiles: Profile, synced: bool = True, verifies: bool = False) -> None:
        self.state = SchedulerState(profiles or (default_profile(),), verifies_bindings=verifies)
        self.now = START
        self.log: list[tuple[float, Message]] = []
        self.validates = True
        """Whether every step is validated; long runs do it now and then."""
        self.asked: list[ReadPod] = []
        """Reads that were asked for and not answered by `read`."""
        self._version = 0
        if synced:
            self.send(CacheSynced())

    def send(self, message: Message) -> list[Action]:
        self.log.append((self.now, message))
        actions = self.state.handle(message, self.now)
        self.asked += [action for action in actions if isinstance(action, ReadPod)]
        if self.validates:
            validate(self.state)
        return actions

    def see(self, *builders: PodBuilder | NodeBuilder) -> list[Action]:
        """The watch shows objects, each at a new version."""
        actions: list[Action] = []
        for builder in builders:
            self._version += 1
            builder.version(self._version)
            built = builder.build()
            actions += self.send(PodObserved(built) if isinstance(builder, PodBuilder) else NodeObserved(built))
        return actions

    def observe(self, *items: Any) -> list[Action]:
        """The watch shows objects of other kinds, as they are."""
        return [action for item in items for action in self.send(ObjectObserved(type(item).__name__, item))]

    def showing(self, *builders: PodBuilder | NodeBuilder) -> Self:
        """This driver, once it was shown these objects."""
        self.see(*builders)
        return self

    def read(self, builder: PodBuilder) -> list[Action]:
        """The oldest read is answered, by a pod at a new version."""
        self._version += 1
        return self.send(PodRead(self.asked.pop(0), builder.version(self._version).build()))

    def cycle(self, limit: int = 100) -> list[Action]:
        return self.send(CyclesRequested(limit))

    def wait(self, seconds: float) -> list[Action]:
        self.now += seconds
        return self.send(Tick())

    def until_wakeup(self) -> list[Action]:
        wakeup = self.state.next_wakeup()
        assert wakeup is not None
        self.now = max(self.now, wakeup)
        return self.send(Tick())

    def places(self, *uids: str) -> list[str]:
        return [self.state.place(uid) for uid in uids]

    def told(self, uid: str) -> list[str]:
        """What a pod's timeline says, without times and details."""
        return [line.what for line in self.state.timeline(uid)]


def binds(actions: Sequence[Action]) -> dict[str, str]:
    return {action.uid: action.node for action in actions if isinstance(action, Bind)}


def notes(actions: Sequence[Action]) -> list[tuple[str, str]]:
    return [(action.reason, action.note) for action in actions if isinstance(action, RecordEvent)]


def conditions(actions: Sequence[Action]) -> list[tuple[str, str]]:
    return [(action.reason, action.message) for action in actions if isinstance(action, PatchPodCondition)]


def deletions(actions: Sequence[Action]) -> list[DeleteVictim]:
    return [action for action in actions if isinstance(action, DeleteVictim)]


def victims(actions: Sequence[Action]) -> list[str]:
    return [action.uid for action in deletions(actions)]


def reads(actions: Sequence[Action]) -> list[str]:
    return [action.uid for action in actions if isinstance(action, ReadPod)]


class Rule:
    """A filter that answers what a function of the pod and the node's name says; None lets pass."""

    reads = Reads.NODE

    def __init__(
        self,
        name: str,
        says: Callable[[PodInfo, str], Code | None],
        events: Sequence[ClusterEventWithHint] = (),
        fingerprint: str | None = None,
    ) -> None:
        self.name = name
        self._says = says
        self._events = tuple(events)
        self.fingerprint = fingerprint

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return self._events

    def signature(self, pod: PodInfo) -> str:
        return pod.uid

    def pre_filter(self, pod: PodInfo, snapshot: Any) -> tuple[Status, Any]:
        return SUCCESS, pod

    def filter(self, state: PodInfo, snapshot: Any, rows: Any) -> Verdicts:
        codes = [self._says(state, snapshot.nodes.names[row]) for row in rows.tolist()]
        if not any(codes):
            return passed(len(rows))
        kinds = [Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING, Code.ERROR]
        refused = np.array([0 if code is None else 1 + kinds.index(code) for code in codes], dtype=np.int16)
        return Verdicts(refused, [Refusal(code, (f"{self.name} says no",)) for code in kinds])


class Label:
    """A gang rule by labels `gang`, `min` and `timeout`."""

    name = "pod-group"
    counts_finished = False
    any_scheduler = False

    def key(self, pod: PodInfo) -> str | None:
        return pod.labels.get("gang")

    def minimum(self, pod: PodInfo) -> int:
        return int(pod.labels.get("min", "1"))

    def timeout(self, pod: PodInfo) -> float:
        return float(pod.labels.get("timeout", "60"))

    def waits(self, pod: PodInfo) -> float | None:
        return float(pod.labels["waits"]) if "waits" in pod.labels else None
