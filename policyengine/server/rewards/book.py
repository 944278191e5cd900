"""What is known of every group on every node, and of every pod that was seen: the state of the rewards.

    a container was restarted: it crashed, was killed for memory, was not alive    0, once for each restart
    the pod failed, or the kubelet did not take it                               0
    the pod was bound and has not started in time                                0, once
    the pod's binding was refused                                                0, each time
    the pod succeeded                                                            1, or less where others were faster

A pod's group is its label `podtype`, else `app`, else `name`; of pods without any nothing is learnt.

A result weighs 1 when it is seen and half of that each half-life later. The reward is the weighted mean of the results
and of one that nobody has seen, `UNKNOWN`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from policyengine.cluster.objects import ObjectMeta, Wire
from policyengine.cluster.pod_info import seconds_or_none
from policyengine.cluster.pod_objects import Pod

FORGOTTEN = 0.01
"""Evidence that weighs less is dropped."""
LABELS = ("podtype", "app", "name")
UNKNOWN = 0.5
FAILED = "FailedScheduling"
"""The reason of events that tell of refused bindings, among others."""


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
class Mean:
    """A mean whose parts decay. `weight` and `total` are as of `at`, seconds since the epoch."""

    at: float
    weight: float = 0.0
    total: float = 0.0

    def on(self, now: float, half_life: float) -> Mean:
        """The same as it weighs now. A clock that went back changes nothing."""
        part = 0.5 ** (max(now - self.at, 0.0) / half_life)
        return Mean(max(now, self.at), self.weight * part, self.total * part)

    def with_(self, value: float, now: float, half_life: float) -> Mean:
        """With one more value."""
        then = self.on(now, half_life)
        return Mean(then.at, then.weight + 1.0, then.total + value)

    @property
    def value(self) -> float:
        """The mean; 0 of nothing."""
        return self.total / self.weight if self.weight else 0.0


def reward(evidence: Mean, unknown: float) -> float:
    """From 0 to 1: the mean of the evidence and of one result `unknown`."""
    return (evidence.total + unknown) / (evidence.weight + 1.0)


def speed(seconds: float, usual: float) -> float:
    """What a run of these seconds is worth where the group's usual one takes `usual`: 1, or less the slower it was."""
    return 1.0 if seconds <= usual else usual / seconds


@dataclass(slots=True)
class Seen:
    """What was counted of a pod."""

    group: str
    node: str
    bound: float
    """When it was first seen on its node."""
    restarts: int = 0
    started: bool = False
    over: bool = False
    late: bool = False


@dataclass(slots=True)
class Book:
    """The state. Everything in it is plain data: see `dump` and `load`."""

    half_life: float
    evidence: dict[tuple[str, str], Mean] = field(default_factory=dict)
    """(group, node) -> results."""
    runtimes: dict[str, Mean] = field(default_factory=dict)
    """group -> seconds of the runs that succeeded, on all nodes."""
    pods: dict[str, Seen] = field(default_factory=dict)
    """UID -> what was counted of it."""
    groups: dict[str, str] = field(default_factory=dict, compare=False)
    """UID -> group, of all pods that there are, placed or not; not kept."""
    refusals: dict[str, int] = field(default_factory=dict)
    """UID of an event that tells of a refused binding -> how often that was counted."""

    def observe(self, pod: Pod, now: float) -> None:
        """A pod as it is. Seeing it again counts nothing twice."""
        group, node = group_of(pod.metadata.labels), pod.spec.node_name or ""
        if group:
            self.groups[pod.metadata.uid] = group
        if not group or not node:
            return
        seen = self.pods.setdefault(pod.metadata.uid, Seen(group, node, now))
        restarts = sum(one.restart_count for one in pod.status.container_statuses)
        for _ in range(seen.restarts, restarts):
            self._result(seen.group, seen.node, 0.0, now)
        seen.restarts = max(seen.restarts, restarts)
        seen.started = seen.started or pod.status.phase in ("Running", "Succeeded")
        if pod.status.phase in ("Succeeded", "Failed") and not seen.over:
            seen.over = True
            self._ended(seen, pod, now)

    def heard(self, event: WatchedEvent, now: float) -> None:
        """An event as it is: refused bindings count, each once."""
        group, node = self.groups.get(event.regarding.uid), event.related
        if event.reason != FAILED or node is None or node.kind != "Node" or not group:
            return
        times = event.series.count if event.series is not None else 1
        for _ in range(self.refusals.get(event.metadata.uid, 0), times):
            self._result(group, node.name, 0.0, now)
        self.refusals[event.metadata.uid] = times

    def gone(self, uid: str) -> None:
        """The pod is no more; what it taught stays."""
        self.pods.pop(uid, None)
        self.groups.pop(uid, None)

    def over(self, uid: str) -> None:
        """The event is no more, and comes no more."""
        self.refusals.pop(uid, None)

    def wait(self, now: float, patience: float) -> None:
        """Count the pods that have not started `patience` seconds after they were bound, each once."""
        for seen in self.pods.values():
            if not (seen.started or seen.over or seen.late) and now - seen.bound >= patience:
                seen.late = True
                self._result(seen.group, seen.node, 0.0, now)

    def rewards(self, now: float, unknown: float = UNKNOWN) -> dict[str, dict[str, float]]:
        """Node -> group -> reward, of what is not forgotten; forgets what is."""
        found: dict[str, dict[str, float]] = {}
        for (group, node), mean in list(self.evidence.items()):
            then = mean.on(now, self.half_life)
            if then.weight < FORGOTTEN:
                del self.evidence[group, node]
            else:
                found.setdefault(node, {})[group] = reward(then, unknown)
        return found

    def _ended(self, seen: Seen, pod: Pod, now: float) -> None:
        seconds = runtime(pod)
        if pod.status.phase == "Failed":
            self._result(seen.group, seen.node, 0.0, now)
        elif seconds is None:
            self._result(seen.group, seen.node, 1.0, now)
        else:
            usual = self.runtimes.get(seen.group, Mean(now)).with_(seconds, now, self.half_life)
            self.runtimes[seen.group] = usual
            self._result(seen.group, seen.node, speed(seconds, usual.value), now)

    def _result(self, group: str, node: str, value: float, now: float) -> None:
        key = (group, node)
        self.evidence[key] = self.evidence.get(key, Mean(now)).with_(value, now, self.half_life)


def group_of(labels: Mapping[str, str]) -> str:
    """The pod's group; empty where no label names one."""
    return next((labels[name] for name in LABELS if labels.get(name)), "")


def runtime(pod: Pod) -> float | None:
    """Seconds from the pod's start to the end of its last container; None where that is not known."""
    states = [one.state for one in pod.status.container_statuses]
    ends = [state.terminated.finished_at for state in states if state is not None and state.terminated is not None]
    times = [seconds_or_none(text) for text in (pod.status.start_time, *ends)]
    known = [time for time in times if time is not None]
    return max(known[1:]) - known[0] if len(known) == len(times) and len(known) > 1 else None


class _Saved(msgspec.Struct):
    """The state as it is written; the numbers of a line are those of a `Mean`."""

    evidence: list[tuple[str, str, float, float, float]]
    runtimes: list[tuple[str, float, float, float]]
    pods: dict[str, Seen]
    refusals: dict[str, int] = {}
    """Not in what was written before they were counted."""


def dump(book: Book) -> str:
    """The state as JSON."""
    state = _Saved(
        [(*key, mean.at, mean.weight, mean.total) for key, mean in sorted(book.evidence.items())],
        [(group, mean.at, mean.weight, mean.total) for group, mean in sorted(book.runtimes.items())],
        book.pods,
        book.refusals,
    )
    return msgspec.json.encode(state, order="sorted").decode()


def load(text: str, half_life: float) -> Book:
    """The state of `dump`. Raises ValueError for anything else."""
    try:
        state = msgspec.json.decode(text, type=_Saved)
    except (msgspec.MsgspecError, UnicodeEncodeError) as error:
        raise ValueError(f"this is no state of rewards: {error}") from error
    return Book(
        half_life,
        {(group, node): Mean(*mean) for group, node, *mean in state.evidence},
        {group: Mean(*mean) for group, *mean in state.runtimes},
        state.pods,
        refusals=state.refusals,
    )
