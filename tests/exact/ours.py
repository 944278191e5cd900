"""Our decisions about the same cluster: by a core that is kept in step from the first pod to the last, and by one
that sees the cluster for the first time (`explain`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from policyengine.cluster.kinds import STRUCTS
from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_objects import Pod
from policyengine.diagnosis.explain import explain
from policyengine.policy_compiler import compile_policy
from policyengine.scheduler.actions import Action, DeleteVictim, PatchObject, PatchPodCondition, RecordEvent
from policyengine.scheduler.messages import (
    BindFailed,
    BindFailure,
    BindSucceeded,
    CacheSynced,
    CyclesRequested,
    Message,
    NodeDeleted,
    NodeObserved,
    ObjectDeleted,
    ObjectObserved,
    ObjectPatchFailed,
    PodDeleted,
    PodObserved,
    Tick,
    VictimDeleted,
)
from policyengine.scheduler.state import SchedulerState
from tests.exact.real import SCHEDULER

Json = dict[str, Any]
LATER = 15.0
"""Seconds by which a step is later than the one before: longer than any backoff."""


@dataclass
class Decision:
    """What we make of a pod."""

    node: str
    """Where the core placed it; "" where it fits nowhere."""
    explained: Json
    conditions: list[PatchPodCondition] = field(default_factory=list)
    events: list[RecordEvent] = field(default_factory=list)
    victims: list[DeleteVictim] = field(default_factory=list)
    patches: list[PatchObject] = field(default_factory=list)
    """What is to be written before the pod is bound."""

    @property
    def best(self) -> set[str]:
        """The nodes that are as good as the one chosen."""
        total: Mapping[str, int] = self.explained["total"]
        return {node for node, points in total.items() if points == max(total.values())}


class Ours:
    """The policy that says nothing, which is kube-scheduler's default profile."""

    def __init__(self, objects: Iterable[Json], now: float) -> None:
        self.profile = compile_policy(f'policy "exact" {{ scheduler "{SCHEDULER}" }}')
        self._core = SchedulerState([self.profile])
        self._now = now
        self._known: dict[tuple[str, str, str], Json] = {}
        self.see(objects)
        self._send(CacheSynced())

    def see(self, objects: Iterable[Json]) -> None:
        """The cluster is as these say, and holds nothing else."""
        found = {_key(one): one for one in objects}
        for key in self._known.keys() - found.keys():
            self._send(_gone(self._known.pop(key)))
        for one in found.values():
            self.observe(one)

    def observe(self, obj: Json) -> None:
        """One object is as this says."""
        known = self._known.get(_key(obj), {}).get("metadata", {})
        self._known[_key(obj)] = obj
        if known.get("resourceVersion") != obj["metadata"]["resourceVersion"]:
            self._send(_observed(obj))

    def forget(self, pod: Json) -> None:
        """The pod is gone."""
        if self._known.pop(_key(pod), None):
            self._send(_gone(pod))

    def decide(self, pod: Json) -> Decision:
        """About a pod that has come, or comes anew."""
        self.observe(pod)
        actions = self._try(pod["metadata"]["uid"])
        info = self._core.view.pods[pod["metadata"]["uid"]]
        return Decision(
            info.node_name,
            self._explain(pod),
            [one for one in actions if isinstance(one, PatchPodCondition) and one.uid == info.uid],
            [one for one in actions if isinstance(one, RecordEvent)],
            [one for one in actions if isinstance(one, DeleteVictim)],
            [one for one in actions if isinstance(one, PatchObject)],
        )

    def _try(self, uid: str) -> list[Action]:
        self._now += LATER
        actions = self._send(Tick())
        while self._core.ready:
            actions += self._send(CyclesRequested(1))
        return actions

    def _explain(self, pod: Json) -> Json:
        others = [one for key, one in self._known.items() if key != _key(pod)]
        key = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        (found,) = explain({"items": [*others, pod | {"kind": "Pod"}]}, self.profile, key)
        return found

    def bound(self, decision: Decision, pod: Json) -> list[RecordEvent]:
        """kube-scheduler's binding stands: ours succeeded if it was the same, and else came too late. The events that
        are then recorded."""
        uid, node = pod["metadata"]["uid"], pod["spec"]["nodeName"]
        actions: list[Action] = []
        if decision.patches:
            for patch in decision.patches:
                self._send(ObjectPatchFailed(patch, BindFailure.CONFLICT, "somebody else was faster"))
        elif decision.node == node:
            actions += self._send(BindSucceeded(uid))
        elif decision.node:
            actions += self._send(BindFailed(uid, BindFailure.CONFLICT, "somebody else was faster"))
        self.observe(pod)
        return [one for one in actions if isinstance(one, RecordEvent)]

    def evicted(self, decision: Decision) -> list[RecordEvent]:
        """The victims were deleted; the events that are then recorded."""
        actions = [action for victim in decision.victims for action in self._send(VictimDeleted(victim))]
        return [one for one in actions if isinstance(one, RecordEvent)]

    def _send(self, message: Message) -> list[Action]:
        return self._core.handle(message, self._now)


def _key(obj: Json) -> tuple[str, str, str]:
    meta = obj["metadata"]
    return obj.get("kind", "Pod"), meta.get("namespace", ""), meta.get("uid") or meta["name"]


def _observed(obj: Json) -> Message:
    kind = obj.get("kind", "Pod")
    if kind == "Node":
        return NodeObserved(decode(Node, obj))
    if kind == "Pod":
        return PodObserved(decode(Pod, obj))
    return ObjectObserved(kind, decode(STRUCTS[kind], obj))


def _gone(obj: Json) -> Message:
    kind, meta = obj.get("kind", "Pod"), obj["metadata"]
    if kind == "Node":
        return NodeDeleted(meta["name"])
    if kind == "Pod":
        return PodDeleted(meta["namespace"], meta["name"], meta["uid"])
    return ObjectDeleted(kind, meta.get("namespace", ""), meta["name"])
