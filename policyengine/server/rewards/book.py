"""What is known of every group on every node, and of every pod that was seen: the state of the rewards.

    a container was restarted after t seconds     t / (t + mean time to failure), once for each restart
    the pod failed, or the kubelet did not take it                               0
    the pod was bound and has not started in time                                0, once
    the pod's binding was refused                                                0, each time
    the pod ran on, all its containers ready                                     1, once in a while
    the pod succeeded                                                            1, or less where others were faster

A pod's group is its label `podtype`, else `app`, else `name`, in its namespace; of pods without any nothing is learnt.

A result moves the reward a little: new = (1 - rate) · old + rate · result, from `start` on. It moves the reward of the
group on the node, of the node, and of the group. For example with a rate of 0.1 one failure makes 0.9 of a reward of 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from policyengine.cluster.objects import Int64, ObjectMeta, Wire
from policyengine.cluster.pod_info import seconds_or_none

LABELS = ("podtype", "app", "name")
FAILED = "FailedScheduling"
"""The reason of events that tell of refused bindings, among others."""
VERSION = 2


class _Run(Wire, frozen=True):
    started_at: str | None = None
    finished_at: str | None = None


class _State(Wire, frozen=True):
    terminated: _Run | None = None


class _Container(Wire, frozen=True):
    restart_count: Int64 = 0
    ready: bool = False
    state: _State = _State()
    last_state: _State = _State()


class _Status(Wire, frozen=True):
    phase: str = ""
    start_time: str | None = None
    container_statuses: tuple[_Container, ...] = ()


class _Spec(Wire, frozen=True):
    node_name: str = ""


class WatchedPod(Wire, frozen=True):
    """A pod, as far as it tells how it fares."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def is_healthy(self) -> bool:
        """Whether it runs, every container ready."""
        containers = self.status.container_statuses
        return self.status.phase == "Running" and bool(containers) and all(one.ready for one in containers)


class _About(Wire, frozen=True):
    kind: str = ""
    name: str = ""
    uid: str = ""


class _Series(Wire, frozen=True):
    count: int = 1


class WatchedEvent(Wire, frozen=True):
    """An event, as far as it tells of a binding that was refused: then it is about a pod, and related to a node."""

    metadata: ObjectMeta = ObjectMeta()
    reason: str = ""
    regarding: _About = _About()
    related: _About | None = None
    series: _Series | None = None


@dataclass(frozen=True, slots=True)
class Learning:
    """How results are weighed. Times in seconds."""

    rate: float = 0.1
    """By how much of the way to a result a reward moves."""
    start: float = 1.0
    """What of nothing is known."""
    mean_time_to_failure: float = 600.0
    """A restart after this time is worth a half."""
    healthy_every: float = 3600.0
    """How long a healthy pod runs for one result."""
    forget_after: float = 30 * 24 * 3600.0
    """What nothing was heard of for so long is forgotten."""
    shares_groups: bool = False
    """Whether groups of one name are one in all namespaces."""


@dataclass(frozen=True, slots=True)
class Reward:
    """From 0 to 1, and when it last moved, in seconds since the epoch."""

    value: float
    at: float


@dataclass(slots=True)
class Seen:
    """What was counted of a pod."""

    group: str
    node: str
    bound: float
    """When it was first seen on its node."""
    restarts: int = 0
    healthy_since: float | None = None
    """Since when it has been healthy, less what was counted."""
    started: bool = False
    over: bool = False
    late: bool = False


@dataclass(slots=True)
class Book:
    """The state. Everything in it is plain data: see `dump` and `load`. A group is `namespace/name`, or `name`."""

    learning: Learning = field(default_factory=Learning)
    pairs: dict[tuple[str, str], Reward] = field(default_factory=dict)
    """(group, node) -> reward."""
    nodes: dict[str, Reward] = field(default_factory=dict)
    """Of all groups on the node."""
    groups: dict[str, Reward] = field(default_factory=dict)
    """Of the group on all nodes."""
    runtimes: dict[str, Reward] = field(default_factory=dict)
    """Group -> seconds of the runs that succeeded, on all nodes: a running mean, as a reward is."""
    pods: dict[str, Seen] = field(default_factory=dict)
    """UID -> what was counted of it."""
    group_of_pod: dict[str, str] = field(default_factory=dict, compare=False)
    """UID -> group, of all pods that there are, placed or not; not kept."""
    refusals: dict[str, int] = field(default_factory=dict)
    """UID of an event that tells of a refused binding -> how often that was counted."""

    def observe(self, pod: WatchedPod, now: float) -> None:
        """A pod as it is. Seeing it again counts nothing twice."""
        group, node = self.group_of(pod.metadata), pod.spec.node_name
        if group:
            self.group_of_pod[pod.metadata.uid] = group
        if not group or not node:
            return
        seen = self.pods.setdefault(pod.metadata.uid, Seen(group, node, now))
        restarts = sum(one.restart_count for one in pod.status.container_statuses)
        if restarts > seen.restarts:
            self._result(seen.group, seen.node, self._worth_of_restart(pod), now, restarts - seen.restarts)
            seen.restarts, seen.healthy_since = restarts, None
        if not pod.is_healthy:
            seen.healthy_since = None
        elif seen.healthy_since is None:
            seen.healthy_since = now
        seen.started = seen.started or pod.status.phase in ("Running", "Succeeded")
        if pod.status.phase in ("Succeeded", "Failed") and not seen.over:
            seen.over = True
            self._ended(seen, pod, now)

    def heard(self, event: WatchedEvent, now: float) -> None:
        """An event as it is: refused bindings count, each once."""
        group, node = self.group_of_pod.get(event.regarding.uid), event.related
        if event.reason != FAILED or node is None or node.kind != "Node" or not group:
            return
        times = event.series.count if event.series is not None else 1
        counted = self.refusals.get(event.metadata.uid, 0)
        if times > counted:
            self._result(group, node.name, 0.0, now, times - counted)
        self.refusals[event.metadata.uid] = times

    def gone(self, uid: str) -> None:
        """The pod is no more; what it taught stays."""
        self.pods.pop(uid, None)
        self.group_of_pod.pop(uid, None)

    def over(self, uid: str) -> None:
        """The event is no more, and comes no more."""
        self.refusals.pop(uid, None)

    def wait(self, now: float, patience: float) -> None:
        """Count what time alone tells: pods that have not started `patience` seconds after they were bound, each once,
        and those that have run on."""
        every = self.learning.healthy_every
        for seen in self.pods.values():
            if not (seen.started or seen.over or seen.late) and now - seen.bound >= patience:
                seen.late = True
                self._result(seen.group, seen.node, 0.0, now)
            if seen.healthy_since is not None and now - seen.healthy_since >= every:
                times = int((now - seen.healthy_since) // every)
                seen.healthy_since += times * every
                self._result(seen.group, seen.node, 1.0, now, times)

    def forget(self, now: float) -> None:
        """Give up what nothing was heard of for long."""
        before = now - self.learning.forget_after
        for rewards in (self.pairs, self.nodes, self.groups, self.runtimes):
            for key in [key for key, reward in rewards.items() if reward.at < before]:
                del rewards[key]  # type: ignore[arg-type]  # each has its own keys

    def group_of(self, metadata: ObjectMeta) -> str:
        """The pod's group; empty where no label names one."""
        labels = metadata.labels
        name = next((labels[key] for key in LABELS if labels.get(key)), "")
        return f"{metadata.namespace}/{name}" if name and not self.learning.shares_groups else name

    def _worth_of_restart(self, pod: WatchedPod) -> float:
        """By how long the container ran that was restarted last; 0 where that is not known."""
        runs = [one.last_state.terminated for one in pod.status.container_statuses if one.restart_count]
        times = [(seconds_or_none(run.started_at), seconds_or_none(run.finished_at)) for run in runs if run is not None]
        known = [(began, ended) for began, ended in times if began is not None and ended is not None]
        if not known:
            return 0.0
        began, ended = max(known, key=lambda run: run[1])
        ran = max(ended - began, 0.0)
        return ran / (ran + self.learning.mean_time_to_failure) if ran else 0.0

    def _ended(self, seen: Seen, pod: WatchedPod, now: float) -> None:
        seconds = runtime(pod)
        if pod.status.phase == "Failed":
            self._result(seen.group, seen.node, 0.0, now)
        elif seconds is None:
            self._result(seen.group, seen.node, 1.0, now)
        else:
            known = self.runtimes.get(seen.group)
            usual = self._moved(known or Reward(seconds, now), seconds, now)
            self.runtimes[seen.group] = usual
            self._result(seen.group, seen.node, speed(seconds, usual.value), now)

    def _result(self, group: str, node: str, value: float, now: float, times: int = 1) -> None:
        new = Reward(self.learning.start, now)
        self.pairs[group, node] = self._moved(self.pairs.get((group, node), new), value, now, times)
        self.nodes[node] = self._moved(self.nodes.get(node, new), value, now, times)
        self.groups[group] = self._moved(self.groups.get(group, new), value, now, times)

    def _moved(self, reward: Reward, value: float, now: float, times: int = 1) -> Reward:
        """In closed form: pods and events may say that something happened billions of times."""
        kept = (1.0 - self.learning.rate) ** times
        return Reward(value + kept * (reward.value - value), max(now, reward.at))


def speed(seconds: float, usual: float) -> float:
    """What a run of these seconds is worth where the group's usual one takes `usual`: 1, or less the slower it was."""
    return 1.0 if seconds <= usual else usual / seconds


def runtime(pod: WatchedPod) -> float | None:
    """Seconds from the pod's start to the end of its last container; None where that is not known."""
    ends = [one.state.terminated.finished_at for one in pod.status.container_statuses if one.state.terminated]
    times = [seconds_or_none(text) for text in (pod.status.start_time, *ends)]
    known = [time for time in times if time is not None]
    return max(known[1:]) - known[0] if len(known) == len(times) and len(known) > 1 else None


_Lines = dict[str, tuple[Annotated[float, msgspec.Meta(ge=0, le=1)], float]]
"""Name -> reward, and when it last moved."""


class _Saved(msgspec.Struct):
    """The state as it is written."""

    version: int
    pairs: dict[str, _Lines]
    """Group -> node -> reward."""
    nodes: _Lines
    groups: _Lines
    runtimes: dict[str, tuple[Annotated[float, msgspec.Meta(ge=0)], float]]
    pods: dict[str, Seen]
    refusals: dict[str, int]


class _Versioned(msgspec.Struct):
    version: int = 1


def dump(book: Book) -> str:
    """The state as JSON."""
    pairs: dict[str, _Lines] = {}
    for (group, node), reward in book.pairs.items():
        pairs.setdefault(group, {})[node] = (reward.value, reward.at)
    nodes, groups, runtimes = (_lines(one) for one in (book.nodes, book.groups, book.runtimes))
    state = _Saved(VERSION, pairs, nodes, groups, runtimes, book.pods, book.refusals)
    return msgspec.json.encode(state, order="sorted").decode()


def load(text: str, learning: Learning) -> Book:
    """The state of `dump`. Raises ValueError for anything else."""
    try:
        version = msgspec.json.decode(text, type=_Versioned).version
        if version != VERSION:
            raise ValueError(f"it is of version {version}, and this policyengine reads version {VERSION}")
        state = msgspec.json.decode(text, type=_Saved)
    except (msgspec.MsgspecError, UnicodeEncodeError) as error:
        raise ValueError(f"this is no state of rewards: {error}") from error
    return Book(
        learning,
        {(group, node): Reward(*reward) for group, nodes in state.pairs.items() for node, reward in nodes.items()},
        _rewards(state.nodes),
        _rewards(state.groups),
        _rewards(state.runtimes),
        state.pods,
        refusals=state.refusals,
    )


def _lines(rewards: Mapping[str, Reward]) -> _Lines:
    return {name: (reward.value, reward.at) for name, reward in rewards.items()}


def _rewards(lines: _Lines) -> dict[str, Reward]:
    return {name: Reward(*reward) for name, reward in lines.items()}
