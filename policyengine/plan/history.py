"""What happened in a recording, whoever decided: nodes, pods and other objects, as they came, changed and went.

Where a pod was put, and when, is what a policy decides, and is left out of what is played again. What stays is when
pods came, when somebody deleted them, and how long they ran.

Rules:
1. A pod that finished runs as long as it ran, from its binding on. One that was deleted goes when it went.
2. A pod that had to go (it has the condition DisruptionTarget, or its node went) and the next one that its controller
   made within `SUCCESSION` seconds are one pod: who has to go follows from the policy.
3. What only the run changed is no change: the node, the phase, conditions, the nominated node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from policyengine.cluster.node_objects import Node
from policyengine.cluster.pod_objects import Pod, PodStatus
from policyengine.framework.profile import Profile
from policyengine.recording.replay import Replay, Step
from policyengine.scheduler.messages import (
    CacheLost,
    CacheSynced,
    Message,
    NodeDeleted,
    NodeObserved,
    ObjectDeleted,
    ObjectObserved,
    PodDeleted,
    PodObserved,
    PodRead,
    ProfileRemoved,
    ProfileReplaced,
)

SUCCESSION: Final = 300.0
_ENDED: Final = ("Succeeded", "Failed")


@dataclass(slots=True)
class PastPod:
    """A pod, and those that took its place."""

    pod: Pod
    """As it came, without what a run decides; on its node where it was there when the recording began."""
    came: float
    """Seconds since the epoch, as all times here."""
    edits: list[tuple[float, Pod]] = field(default_factory=list)
    """What people and controllers made of it later."""
    node: str = ""
    """Where it was bound at last."""
    bound: float | None = None
    finished: float | None = None
    """When it ended by itself."""
    deleted: float | None = None
    had_to_go: bool = False
    """Whether something evicted it."""

    @property
    def ran(self) -> float | None:
        """Seconds from its binding to its own end; None where it never ended so."""
        return None if self.finished is None or self.bound is None else self.finished - self.bound


@dataclass(frozen=True, slots=True)
class History:
    """Everything that is to be played again."""

    start: float
    end: float
    changes: list[tuple[float, Message]]
    """Nodes and other objects, in order."""
    pods: list[PastPod]
    """In the order in which they came."""
    profiles: Mapping[str, Profile]
    """By scheduler name: those that served last."""
    notes: list[str]
    """What of the recording could not be used."""


def read(path: Path) -> History:
    """Raises `UnusableRecording`, `OSError`."""
    replay = Replay(path, plays=False)
    reader = _Reader()
    for step in replay.steps():
        reader.take(step)
    start = reader.start if reader.start is not None else replay.now
    return History(start, replay.now, reader.changes, _joined(reader), reader.profiles, replay.notes)


class _Reader:
    def __init__(self) -> None:
        self.start: float | None = None
        """When the first lists were in."""
        self.changes: list[tuple[float, Message]] = []
        self.pods: list[PastPod] = []
        self.profiles: dict[str, Profile] = {}
        self.gone_nodes: dict[str, float] = {}
        self._there: dict[tuple[str, str], PastPod] = {}
        self._latest: dict[tuple[str, str], Pod] = {}
        self._nodes: dict[str, Node] = {}
        self._lists_anew = False

    def take(self, step: Step) -> None:
        now = step.now
        match step.message:
            case CacheSynced():
                self.start = now if self.start is None else self.start
            case CacheLost():
                pass
            case PodObserved(pod) | PodRead(_, pod):
                self._pod(pod, now)
            case PodDeleted(namespace, name, _):
                self._gone((namespace, name), now)
            case NodeObserved(node):
                name = node.metadata.name
                same = replace(node, metadata=replace(node.metadata, resource_version=""))
                if self._nodes.get(name) != same:
                    self._nodes[name] = same
                    self.gone_nodes.pop(name, None)
                    self.changes.append((now, NodeObserved(node)))
            case NodeDeleted(name):
                self._nodes.pop(name, None)
                self.gone_nodes[name] = now
                self.changes.append((now, step.message))
            case ObjectObserved() | ObjectDeleted():
                self.changes.append((now, step.message))
            case ProfileReplaced(profile):
                self.profiles[profile.scheduler_name] = profile
            case ProfileRemoved(scheduler_name):
                self.profiles.pop(scheduler_name, None)

    def _pod(self, pod: Pod, now: float) -> None:
        key = (pod.metadata.namespace, pod.metadata.name)
        past = self._there.get(key)
        if past is not None and self._latest[key].metadata.uid != pod.metadata.uid:
            self._gone(key, now)  # a namesake took its place
            past = None
        if past is None:
            was_there = self.start is None
            if was_there and pod.status.phase in _ENDED:
                return
            past = PastPod(bare(pod, keeps_node=was_there), now)
            self.pods.append(past)
            self._there[key] = past
        elif (now_bare := bare(pod)) != bare(self._latest[key]):
            past.edits.append((now, now_bare))
        if pod.spec.node_name and past.bound is None:
            past.bound, past.node = now, pod.spec.node_name
        if pod.status.phase in _ENDED and past.finished is None:
            past.finished = now
        past.had_to_go = past.had_to_go or any(
            one.type == "DisruptionTarget" and one.status == "True" for one in pod.status.conditions
        )
        self._latest[key] = pod

    def _gone(self, key: tuple[str, str], now: float) -> None:
        past = self._there.pop(key, None)
        if past is None:
            return
        past.deleted = now
        past.had_to_go = past.finished is None and (past.had_to_go or past.node in self.gone_nodes)


def bare(pod: Pod, keeps_node: bool = False) -> Pod:
    """The pod without what a run decides."""
    spec = pod.spec if keeps_node else replace(pod.spec, node_name="")
    metadata = replace(pod.metadata, resource_version="", generation=0, deletion_timestamp=None)
    return replace(pod, metadata=metadata, spec=spec, status=PodStatus())


def _joined(reader: _Reader) -> list[PastPod]:
    """The pods, each with those that its controller made after it had to go."""
    by_controller: dict[str, list[PastPod]] = {}
    for past in reader.pods:
        controller = past.pod.metadata.controller
        if controller is not None:
            by_controller.setdefault(controller.uid, []).append(past)
    successors: set[int] = set()
    for past in reader.pods:
        if id(past) in successors:
            continue
        for next_ in _chain(past, by_controller, successors):
            past.finished = None if next_.ran is None or past.bound is None else past.bound + next_.ran
            past.deleted, past.had_to_go = next_.deleted, next_.had_to_go
        if past.had_to_go:
            past.deleted = None  # nobody came after it: it would have lived on
    return [past for past in reader.pods if id(past) not in successors]


def _chain(past: PastPod, by_controller: Mapping[str, list[PastPod]], taken: set[int]) -> Iterator[PastPod]:
    while past.had_to_go and past.deleted is not None and past.pod.metadata.controller is not None:
        mates = by_controller[past.pod.metadata.controller.uid]
        soon = (
            one
            for one in mates
            if one is not past and id(one) not in taken and -1.0 <= one.came - past.deleted <= SUCCESSION
        )
        found = min(soon, key=lambda one: one.came, default=None)
        if found is None:
            return
        taken.add(id(found))
        yield found
        past = found
