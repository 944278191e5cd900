"""What the pods that were placed asked for: running moments of their requests, those that are gone included.

A history is of pods that share the value of a label (the key ""  is shared by all), and of one smoothing. The n-th pod
of a group weighs 1/n in its means until that is the smoothing, and the smoothing from then on: so it is the plain mean
of the first pods, and forgets slowly after that. With a smoothing of 0 it stays the plain mean.

For example pods of 1, 2 and 3 cores have the mean 2; with a smoothing of 0.5 they have (1/2 + 2/2) / 2 + 3/2 = 2.25.

Rules:
1. A pod counts once, when it is first known to be bound. What became of it later changes nothing.
2. A history begins when a policy that reads it is loaded: with what was saved of it, and the pods that stand there and
   are not among those saved.
3. No request of processor time counts as 10m, none of memory as 16Mi: a pod that asks for nothing uses some.
4. Of a label at most `MOST_GROUPS` values are remembered: those that were placed last.
5. Of a group at most `MOST_RESOURCES` are remembered: processor time, memory, storage, and those asked for last.
   Covariances are of any two, and a pod may name thousands of resources.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations_with_replacement, islice, product
from typing import Annotated, Final

import msgspec

from policyengine.cluster.pod_info import PodInfo, PodState
from policyengine.cluster.pod_requests import CPU, MEMORY

MOST_GROUPS: Final = 1000
MOST_RESOURCES: Final = 32
LEAST_CPU, LEAST_MEMORY = 10, 16 * 1024 * 1024
"""Millicores and bytes of a pod that asks for none."""
LATE: Final = 60.0
"""Seconds by which a watch may tell of one pod's binding after another's that was later."""
VERSION: Final = 1
MOST_ASKED: Final = 2.0**64
"""No pod asks for as much of anything, so no mean is above it."""
_FEW: Final = 1000

_STORAGE = "storage"
"""What the language calls ephemeral storage."""


@dataclass(frozen=True, eq=False, slots=True)
class Demand:
    """An amount of each resource: millicores, bytes, bytes, and by name what else there is."""

    cpu: int = 0
    memory: int = 0
    storage: int = 0
    scalars: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, slots=True)
class History:
    """The moments of a group, as a policy reads them. The same object until a pod is added."""

    count: int = 0
    mean: Demand = Demand()
    stddev: Demand = Demand()
    moments: Mapping[str, float] = field(default_factory=dict)
    """The same, not rounded: by a resource its mean, by two (`cpu,memory`) their covariance; in millicores, bytes and
    counts. Of the population, as `stddev` is."""


NO_HISTORY = History()


class SavedGroup(msgspec.Struct, frozen=True):
    """The moments of one group; of two resources in the order of their names."""

    label: str
    smoothing: float
    value: str
    count: Annotated[int, msgspec.Meta(ge=1)]
    mean: dict[str, Annotated[float, msgspec.Meta(ge=0, le=MOST_ASKED)]]
    covariance: dict[str, Annotated[float, msgspec.Meta(ge=-(MOST_ASKED**2), le=MOST_ASKED**2)]]

    def __post_init__(self) -> None:
        """Raises ValueError where a covariance is missing."""
        for pair in combinations_with_replacement(sorted(self.mean), 2):
            if ",".join(pair) not in self.covariance:
                raise ValueError(f"it lacks the covariance of {' and '.join(pair)}")


class SavedHistory(msgspec.Struct, frozen=True):
    """All that is remembered, and which pods are in it: those bound until `until` (seconds since the epoch), and the
    UIDs in `recent`, which were bound since."""

    groups: tuple[SavedGroup, ...] = ()
    until: float = -1.0
    recent: tuple[str, ...] = ()
    version: int = VERSION


class Moments:
    """Count, means and covariances of one group."""

    def __init__(self) -> None:
        self.count = 0
        self._mean: dict[str, float] = {}
        self._covariance: dict[str, float] = {}
        self._shown: History | None = None

    @classmethod
    def restored(cls, saved: SavedGroup) -> Moments:
        """As it was when it was saved."""
        moments = cls()
        moments.count, moments._mean = saved.count, dict(saved.mean)
        pairs = product(saved.mean, repeat=2)
        moments._covariance = {f"{one},{two}": saved.covariance[",".join(sorted((one, two)))] for one, two in pairs}
        return moments

    def add(self, requests: Mapping[str, int], smoothing: float) -> None:
        """One more pod. What it does not ask for counts as 0. `requests`: what counts first, first."""
        self.count += 1
        self._shown = None
        part = max(1.0 / self.count, smoothing)
        mean, covariance = self._mean, self._covariance
        requests = dict(islice(requests.items(), MOST_RESOURCES))
        self._make_room(requests)
        apart = {name: requests.get(name, 0) - mean.get(name, 0.0) for name in {**mean, **requests}}
        for name, distance in apart.items():
            mean[name] = mean.get(name, 0.0) + part * distance
        # Of the distances rather than of the squares: pods that are all alike deviate by nothing at all.
        for one, distance in apart.items():
            for other, another in apart.items():
                pair = f"{one},{other}"
                covariance[pair] = (1.0 - part) * (covariance.get(pair, 0.0) + part * distance * another)

    def _make_room(self, requests: Mapping[str, int]) -> None:
        """Forget the resources that were asked for longest ago, where there are too many with these."""
        mean = self._mean
        for name in requests.keys() & mean.keys():
            mean[name] = mean.pop(name)  # the last of them again
        for name in list(mean)[: max(0, len(mean.keys() | requests.keys()) - MOST_RESOURCES)]:
            for other in mean:
                self._covariance.pop(f"{name},{other}", None)
                self._covariance.pop(f"{other},{name}", None)
            del mean[name]

    def shown(self) -> History:
        """As a policy reads it."""
        if self._shown is None:
            deviations = {name: max(self._covariance[f"{name},{name}"], 0.0) ** 0.5 for name in self._mean}
            self._shown = History(
                self.count, _demand(self._mean), _demand(deviations), {**self._mean, **self._covariance}
            )
        return self._shown

    def saved(self, label: str, smoothing: float, value: str) -> SavedGroup:
        """As it is kept."""
        pairs = combinations_with_replacement(sorted(self._mean), 2)
        covariance = {f"{one},{other}": self._covariance[f"{one},{other}"] for one, other in pairs}
        return SavedGroup(label, smoothing, value, self.count, dict(self._mean), covariance)


class DemandHistory:
    """All histories that were asked for. Only `ClusterView` adds to it."""

    def __init__(self, pods: Mapping[str, PodInfo]) -> None:
        """`pods`: those that there are, by UID; read when a history begins."""
        self._pods = pods
        self._asked: dict[tuple[str, float], dict[str, Moments]] = {}
        self._restored = SavedHistory()
        self._resumed: set[tuple[str, float]] = set()
        """The histories that were among what was restored."""
        self._recent: dict[str, float] = {}
        """UID -> when it was bound, of the pods that were added in the last minute, and some before."""
        self._most_recent = _FEW
        """How many there may be, until those before are dropped."""
        self._until = self._restored.until

    def of(self, labels: Mapping[str, str], label: str, smoothing: float) -> History:
        """The history of the pods with the same value of a label; of all, where the label is "". A pod without the
        label is of the group of those without it."""
        self.begin(label, smoothing)
        moments = self._asked[label, smoothing].get(labels.get(label, ""))
        return NO_HISTORY if moments is None else moments.shown()

    def begin(self, label: str, smoothing: float) -> None:
        """Remember from now on what will be asked for."""
        if (label, smoothing) not in self._asked:
            self._asked[label, smoothing] = self._begun(label, smoothing)

    def note(self, pod: PodInfo) -> None:
        """A pod is known to be bound, for the first time."""
        if self._asked:
            is_saved = self._is_saved(pod)
            self._add(
                {asked: groups for asked, groups in self._asked.items() if not (is_saved and asked in self._resumed)},
                pod,
            )

    def restore(self, saved: SavedHistory) -> None:
        """What an earlier process remembered, before the first pod comes."""
        self._restored, self._until = saved, saved.until
        self._recent = dict.fromkeys(saved.recent, saved.until + LATE)
        self._asked = {asked: self._begun(*asked) for asked in self._asked}

    def saved(self) -> SavedHistory:
        """All that is remembered; what was restored and not asked for is handed on as it was."""
        self._prune()
        unasked = [one for one in self._restored.groups if (one.label, one.smoothing) not in self._asked]
        groups = [
            moments.saved(*asked, value) for asked, known in self._asked.items() for value, moments in known.items()
        ]
        return SavedHistory((*unasked, *groups), self._until, tuple(sorted(self._recent)))

    def _begun(self, label: str, smoothing: float) -> dict[str, Moments]:
        groups = {
            one.value: Moments.restored(one)
            for one in self._restored.groups
            if (one.label, one.smoothing) == (label, smoothing)
        }
        if groups:
            self._resumed.add((label, smoothing))
        is_new, begun = not groups, {(label, smoothing): groups}
        for pod in self._pods.values():
            if pod.state is PodState.BOUND and (is_new or not self._is_saved(pod)):
                self._add(begun, pod)
        return groups

    def _is_saved(self, pod: PodInfo) -> bool:
        return bound_at(pod) <= self._restored.until or pod.uid in self._restored.recent

    def _add(self, asked: Mapping[tuple[str, float], dict[str, Moments]], pod: PodInfo) -> None:
        requests = requests_of(pod)
        for (label, smoothing), groups in asked.items():
            value = pod.labels.get(label, "")
            moments = groups.pop(value, None) or Moments()
            moments.add(requests, smoothing)
            groups[value] = moments  # the last of them again
            if len(groups) > MOST_GROUPS:
                del groups[next(iter(groups))]
        self._recent[pod.uid] = bound_at(pod)
        if len(self._recent) > self._most_recent:
            self._prune()
            self._most_recent = 2 * len(self._recent) + _FEW

    def _prune(self) -> None:
        """Pods that were bound more than a minute before the latest need not be told apart by name."""
        self._until = max(self._until, max(self._recent.values(), default=0.0) - LATE)
        self._recent = {uid: at for uid, at in self._recent.items() if at > self._until}


def bound_at(pod: PodInfo) -> float:
    """When the pod was bound, in seconds since the epoch; where that is not said, when it was made."""
    return pod.created_at if pod.scheduled_at is None else pod.scheduled_at


def requests_of(pod: PodInfo) -> dict[str, int]:
    """What a pod counts as, by the language's names of resources; those that every pod has come first."""
    asked = pod.requests
    return {
        CPU: asked.cpu or LEAST_CPU,
        MEMORY: asked.memory or LEAST_MEMORY,
        _STORAGE: asked.ephemeral_storage,
        **asked.scalars,
    }


def _demand(amounts: Mapping[str, float]) -> Demand:
    """Of what has no field of its own, huge pages are whole bytes."""
    others = {name: amount for name, amount in amounts.items() if name not in (CPU, MEMORY, _STORAGE)}
    whole = {name: round(amount) for name, amount in others.items() if name.startswith("hugepages-")}
    cpu, memory, storage = (round(amounts.get(name, 0.0)) for name in (CPU, MEMORY, _STORAGE))
    return Demand(cpu, memory, storage, others | whole)
