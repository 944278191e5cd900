"""A cluster at one moment: what becomes of the pods that wait, and of all pods if they came anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from policyengine.cluster.kinds import PODS
from policyengine.cluster.pod_info import seconds_or_none
from policyengine.cluster.pod_objects import Pod
from policyengine.diagnosis.dump import DumpedObject
from policyengine.diagnosis.forecast import Fate, Forecast, PodForecast
from policyengine.plan.history import History, PastPod, bare, belongs_to_node, with_uid
from policyengine.scheduler.messages import Message, NodeObserved, ObjectObserved

SETTLES: Final = 600.0
"""Seconds that the cluster is given once the last pod has come anew."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pod that waits, and what becomes of it."""

    pod: str
    old: str
    new: str
    why: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the pods that wait come to."""

    waiting: list[Waiting]
    """Those whose fate differs, in the queue's order."""
    count: int
    """All that wait."""
    placed: tuple[int, int]
    """How many of them are placed, before and now."""
    evicted: tuple[list[str], list[str]]
    """Pods that have to go."""

    @property
    def json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "waiting": self.count,
            "placed": {"old": self.placed[0], "new": self.placed[1]},
            "evicted": {"old": self.evicted[0], "new": self.evicted[1]},
            "pods": list(map(asdict, self.waiting)),
        }


def waiting(before: Forecast, after: Forecast) -> Snapshot:
    """The pods that wait, played to the end under both."""
    fates = {one.pod: one for one in before.pods}
    differ = [
        Waiting(one.pod, _fate(fates[one.pod]), _fate(one), one.message)
        for one in after.pods
        if one.pod in fates and (fates[one.pod].what, fates[one.pod].node) != (one.what, one.node)
    ]
    placed = tuple(sum(one.what is Fate.BOUND for one in run.pods) for run in (before, after))
    return Snapshot(differ, len(after.pods), (placed[0], placed[1]), (list(before.evicted), list(after.evicted)))


def _fate(one: PodForecast) -> str:
    return one.node if one.what is Fate.BOUND else one.what.value


def once_each(objects: Sequence[DumpedObject]) -> tuple[list[DumpedObject], list[str]]:
    """Each object as the dump has it last, and what is to be known of a dump that was taken in the middle of a change:
    lists that were taken one after another may have an object twice, or a pod whose node is in none of them."""
    last = {(one.kind, one.object.metadata.namespace, one.object.metadata.name): one for one in objects}
    by_uid = {(one.kind, one.object.metadata.uid or place): one for place, one in enumerate(last.values())}
    nodes = {one.object.metadata.name for one in by_uid.values() if one.kind == "Node"}
    of_pods = [one.object for one in by_uid.values() if one.kind == PODS.kind]
    lost = [pod for pod in of_pods if pod.spec.node_name and pod.spec.node_name not in nodes]
    twice = len(objects) - len(by_uid)
    notes = [f"{twice:,} of the objects stand in the dump more than once; the last of each counts"] if twice else []
    if lost:
        example = f"`{lost[0].metadata.key}` on `{lost[0].spec.node_name}`"
        notes.append(f"the dump lacks the nodes of {len(lost):,} pod{'s' * (len(lost) > 1)}, such as {example}")
    return list(by_uid.values()), notes


def history_of(objects: Sequence[DumpedObject], now: float, anew: bool = True) -> History:
    """The pods of a cluster that is filled `anew`: every pod comes again, in the order of creation, a second after the
    one before; those of DaemonSets and of kubelets stay where they are. Otherwise of the cluster as it is."""
    changes: list[tuple[float, Message]] = []
    pods: list[Pod] = []
    for one in objects:
        if one.kind == PODS.kind:
            if one.object.status.phase not in ("Succeeded", "Failed"):
                pods.append(one.object)
        else:
            seen = NodeObserved(one.object) if one.kind == "Node" else ObjectObserved(one.kind, one.object)
            changes.append((now, seen))
    pods.sort(key=lambda pod: (not belongs_to_node(pod), seconds_or_none(pod.metadata.creation_timestamp) or 0.0))
    past, at = [], now
    for pod in pods:
        stays = not anew or belongs_to_node(pod)
        at += 0.0 if stays else 1.0
        past.append(PastPod(with_uid(bare(pod, keeps_node=stays)), at))
    return History(now, at + SETTLES, changes, past, {}, [])
