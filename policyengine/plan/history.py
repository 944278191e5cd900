"""What happened in a recording, whoever decided: nodes, pods and other objects, as they came, changed and went.

Where a pod was put, and when, is what a policy decides, and is left out of what is played again. What stays is when
pods came, when somebody deleted them, and how long they ran.

Rules:
1. A pod that finished runs as long as it ran, from its binding on. One that was deleted goes when it went. A scheduler
   does not watch finished pods: one that went from its node and was never being deleted has finished.
2. A pod that had to go (it has the condition DisruptionTarget, or its node went) and the next one that its controller
   made within `SUCCESSION` seconds are one pod: who has to go follows from the policy.
3. Who was evicted from a node that was cordoned, or that it did not tolerate (by kubectl drain, or by Kubernetes' taint
   eviction), tells when the node was emptied: whoever stands there then has to go.
4. What only the run changed is no change: the node, what was written with the binding, the phase, conditions, the
   nominated node.
5. Where a recording has several runs, what the lists of a later one do not show any more went before them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from policyengine.cluster.node_objects import Node
from policyengine.cluster.pod_objects import Pod, PodSpec, PodStatus
from policyengine.cluster.pod_shape import interned_map
from policyengine.compiler.assemble import PluginRegistry
from policyengine.framework.profile import Profile
from policyengine.plugins.registry import IN_TREE
from policyengine.plugins.selectors.tolerations import NO_EXECUTE, untolerated
from policyengine.recording.encoding import ABOUT
from policyengine.recording.replay import Replay, Step
from policyengine.scheduler import messages
from policyengine.trials.ledger import clock

_Key = tuple[str, str]
"""A pod's namespace and name."""
SUCCESSION: Final = 300.0
_ENDED: Final = ("Succeeded", "Failed")
_EMPTYING: Final = ("EvictionByEvictionAPI", "DeletionByTaintManager")
"""Reasons of DisruptionTarget that whoever empties a node gives."""
_OF_NODES: Final = ("DaemonSet", "Node")
"""Controllers whose pods belong to their nodes."""
_NO_STATUS: Final = PodStatus()
_encode: Final = msgspec.msgpack.Encoder().encode


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
    changes: list[tuple[float, messages.Message]]
    """Nodes and other objects, in order."""
    pods: list[PastPod]
    """In the order in which they came."""
    profiles: Mapping[str, Profile]
    """By scheduler name: those that served last."""
    notes: list[str]
    """What of the recording could not be used."""
    emptied: Sequence[tuple[float, str]] = ()
    """When a node was emptied, and which, in order."""
    is_damaged: bool = False
    """Whether it lacks more than what a process that was killed had not written."""


def read(path: Path, registry: PluginRegistry = IN_TREE) -> History:
    """Raises `UnusableRecording`, `OSError`."""
    replay = Replay(path, plays=False, registry=registry)
    reader, onwards = _Reader(), _Onwards()
    for step in replay.steps():
        # A run does not say when what it knew at its beginning came to be known: it has no time of its own then.
        reader.take(step._replace(now=onwards.at(step.now) if step.now else onwards.now), replay.runs)
    start, end = reader.start if reader.start is not None else onwards.now, onwards.now
    notes = [*replay.notes, *onwards.notes]
    if reader.start is None:
        notes.append("the recording ends before all that was there was listed: nothing tells when anything came")
    is_damaged = reader.start is None or (bool(replay.notes) and not replay.cut_only)
    pods, emptied = _joined(reader), list(reader.emptied)
    return History(start, end, reader.changes, pods, reader.profiles, notes, emptied, is_damaged)


def without_pods(history: History, profiles: Sequence[Profile]) -> str:
    """That the recording has no pod for which one of the profiles decides; nothing where it has."""
    names = Counter(past.pod.spec.scheduler_name for past in history.pods)
    if any(profile.scheduler_name in names for profile in profiles):
        return ""
    there = ", ".join(f"{count:,} for `{name}`" for name, count in names.most_common(3)) or "none"
    wanted = ", ".join(f"`{profile.scheduler_name}`" for profile in profiles)
    return f"has no pod for scheduler {wanted}; its pods: {there}"


class _Onwards:
    """Times that never go back: where a recorded clock does, what follows is counted on from there."""

    def __init__(self) -> None:
        self.now = 0.0
        self._ahead = 0.0
        self._times = 0

    def at(self, recorded: float) -> float:
        if recorded + self._ahead < self.now:
            self._times += 1
            self._ahead = self.now - recorded
        self.now = recorded + self._ahead
        return self.now

    @property
    def notes(self) -> list[str]:
        times = "once" if self._times == 1 else f"{self._times:,} times"
        told = f"the recorded clock goes back {times}, by {clock(self._ahead)} in all"
        return [f"{told}; what follows is counted on from there"] if self._times else []


class _Reader:
    def __init__(self) -> None:
        self.start: float | None = None
        """When the first lists were in."""
        self.changes: list[tuple[float, messages.Message]] = []
        self.pods: list[PastPod] = []
        self.profiles: dict[str, Profile] = {}
        self.gone_nodes: set[str] = set()
        self.emptied: dict[tuple[float, str], None] = {}
        """As in `History`: in order, and each once."""
        self._run = 0
        self._lists = True
        """Whether what is told is what was there before: the lists of a run are not in yet."""
        self._there: dict[_Key, PastPod] = {}
        self._latest: dict[_Key, Pod] = {}
        """Of those that are there."""
        self._uids: set[str] = set()
        self._specs: dict[bytes, PodSpec] = {}
        self._nodes: dict[str, Node] = {}
        self._objects: set[tuple[str, str, str]] = set()
        """Kind, namespace and name of the others."""
        self._unlisted: set[tuple[str, str, str]] = set()
        """What an earlier run knew, and the lists of this one have not shown yet."""

    def take(self, step: Step, run: int) -> None:
        now = step.now
        if run != self._run:
            self._run, self._lists = run, True
            pods, nodes = ({("Pod", *key) for key in self._there}, {("Node", "", name) for name in self._nodes})
            self._unlisted = pods | nodes | self._objects
            self.profiles.clear()
        match step.message:
            case messages.CacheSynced():
                self._synced(now)
            case messages.PodObserved(pod) | messages.PodRead(_, pod):
                self._pod(pod, now)
            case messages.PodDeleted() | messages.NodeDeleted() | messages.ObjectDeleted():
                self._goes(ABOUT[type(step.message)](step.message), now)
            case messages.NodeObserved(node):
                self._node(node, now)
            case messages.ObjectObserved():
                key = ABOUT[type(step.message)](step.message)
                self._objects.add(key)
                self._unlisted.discard(key)
                self.changes.append((now, step.message))
            case messages.ProfileReplaced(profile):
                self.profiles[profile.scheduler_name] = profile
            case messages.ProfileRemoved(scheduler_name):
                self.profiles.pop(scheduler_name, None)

    def _synced(self, now: float) -> None:
        self.start = now if self.start is None else self.start
        # Gone while nobody recorded: nodes first, as it counts whether a pod's is there.
        for about in sorted(self._unlisted, key=lambda one: (one[0] != "Node", one[0] != "Pod", one)):
            self._goes(about, now)
        self._unlisted = set()
        self._lists = False

    def _goes(self, about: tuple[str, str, str], now: float) -> None:
        kind, namespace, name = about
        if kind == "Pod":
            self._gone((namespace, name), now)
        elif kind != "Node":
            self._objects.discard(about)
            self.changes.append((now, messages.ObjectDeleted(kind, namespace, name)))
        elif self._nodes.pop(name, None) is not None:
            self.gone_nodes.add(name)
            self.changes.append((now, messages.NodeDeleted(name)))

    def _node(self, node: Node, now: float) -> None:
        name = node.metadata.name
        self._unlisted.discard(("Node", "", name))
        same = replace(node, metadata=replace(node.metadata, resource_version=""))
        if self._nodes.get(name) != same:
            self._nodes[name] = same
            self.gone_nodes.discard(name)
            self.changes.append((now, messages.NodeObserved(node)))

    def _pod(self, pod: Pod, now: float) -> None:
        key = (pod.metadata.namespace, pod.metadata.name)
        self._unlisted.discard(("Pod", *key))
        past, before = self._there.get(key), self._latest.get(key, pod)
        if before.metadata.uid != pod.metadata.uid:
            self._gone(key, now)  # a namesake took its place
            past = None
        if past is None:
            if self._lists and pod.status.phase in _ENDED:
                return
            # Of recordings of simulations each run has the same UIDs.
            came = bare(pod, keeps_node=self._lists)
            if pod.metadata.uid in self._uids:
                came = replace(came, metadata=replace(came.metadata, uid=""))
            self._uids.add(pod.metadata.uid)
            past = PastPod(self._shared(with_uid(came, len(self.pods))), now)
            self.pods.append(past)
            self._there[key] = past
        elif bool(pod.spec.node_name) == bool(before.spec.node_name) and (now_bare := bare(pod)) != bare(before):
            past.edits.append((now, self._shared(now_bare)))  # what is written with the node is the run's
        if pod.spec.node_name and past.bound is None:
            past.bound, past.node = now, pod.spec.node_name
        if pod.status.phase in _ENDED and past.finished is None:
            past.finished = now
        disrupted = (one for one in pod.status.conditions if one.type == "DisruptionTarget" and one.status == "True")
        if why := next(disrupted, None):
            past.had_to_go = True
            node = self._nodes.get(pod.spec.node_name)
            if why.reason in _EMPTYING and node is not None and is_emptied(pod, node):
                self.emptied[now, node.metadata.name] = None
        self._latest[key] = pod

    def _shared(self, pod: Pod) -> Pod:
        """With what other pods of its template have, too, kept once: a day has tens of thousands of them."""
        spec = self._specs.setdefault(_encode(pod.spec), pod.spec)
        labels, annotations = interned_map(pod.metadata.labels), interned_map(pod.metadata.annotations)
        return replace(pod, metadata=replace(pod.metadata, labels=labels, annotations=annotations), spec=spec)

    def _gone(self, key: _Key, now: float) -> None:
        past = self._there.pop(key, None)
        if past is None:
            return
        latest = self._latest.pop(key)
        past.deleted = now
        past.had_to_go = past.finished is None and (past.had_to_go or past.node in self.gone_nodes)
        is_deleted = past.had_to_go or self._lists or latest.metadata.deletion_timestamp is not None
        if past.bound is not None and past.finished is None and not is_deleted:
            past.finished = now


def belongs_to_node(pod: Pod) -> bool:
    """Whether a DaemonSet or a kubelet made it for its node: it stays there."""
    controller = pod.metadata.controller
    return bool(pod.spec.node_name) and controller is not None and controller.kind in _OF_NODES


def is_emptied(pod: Pod, node: Node) -> bool:
    """Whether the node is kept free of a pod that stands there."""
    lasting = [one for one in pod.spec.tolerations if one.toleration_seconds is None]
    taints = untolerated(lasting, node.spec.taints, frozenset({NO_EXECUTE}))
    return not belongs_to_node(pod) and (node.spec.unschedulable or bool(taints))


def bare(pod: Pod, keeps_node: bool = False) -> Pod:
    """The pod without what a run decides."""
    spec = pod.spec if keeps_node else replace(pod.spec, node_name="")
    metadata = replace(pod.metadata, resource_version="", generation=0, deletion_timestamp=None)
    return replace(pod, metadata=metadata, spec=spec, status=_NO_STATUS)


def with_uid(pod: Pod, number: int = 0) -> Pod:
    """The pod with a UID of its own where it has none. `number`: tells it apart from its namesakes."""
    metadata = pod.metadata
    return pod if metadata.uid else replace(pod, metadata=replace(metadata, uid=f"uid {number} of {metadata.key}"))


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
