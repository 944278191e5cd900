"""Our core in a device world, held against what kube-scheduler did there, pod after pod.

Of equally good nodes kube-scheduler takes any; ours is then asked about the one it took. Everything else is to be the
same to the letter: nodes, devices, and what is written into claims and said of pods. What it did stands, for both.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from policyengine.cluster.kinds import STRUCTS
from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_objects import Pod
from policyengine.diagnosis.explain import explain
from policyengine.policy_compiler import compile_policy
from policyengine.scheduler.actions import Action, Bind, PatchObject, PatchPodCondition
from policyengine.scheduler.messages import (
    BindSucceeded,
    CacheSynced,
    CyclesRequested,
    Message,
    NodeObserved,
    ObjectDeleted,
    ObjectObserved,
    ObjectPatched,
    PodDeleted,
    PodObserved,
    Tick,
)
from policyengine.scheduler.state import SchedulerState
from policyengine.trials.trial_cluster import merged
from tests.exact.devices.device_world import DeviceWorld
from tests.exact.devices.live import Fact, attached, plain_name, told

Json = dict[str, Any]
Key = tuple[str, str, str]
LATER = 15.0
"""Seconds by which a step is later than the one before: longer than any backoff."""
_FAILED = re.compile(r'running "\w+" filter plugin: ')
PROFILE = compile_policy('policy "devices" { scheduler "exact" }')


def differences(world: DeviceWorld, facts: Iterable[Fact]) -> list[str]:
    """Where ours differs from the facts, up to the first pod for which it does."""
    cluster = _Cluster(world.objects)
    for fact in facts:
        found = cluster.turn(fact)
        if found:
            return found
    return []


class _Cluster:
    """The objects, with a core that is told of each, and does what it asks for."""

    def __init__(self, objects: Iterable[Json]) -> None:
        self._core = SchedulerState([PROFILE])
        self._now = 1_800_000_000.0
        self._versions = count(1)
        self._objects: dict[Key, Json] = {}
        for obj in objects:
            self._observe(copy.deepcopy(obj))
        self._send(CacheSynced())

    def turn(self, fact: Fact) -> list[str]:
        """What is different of one pod; then things are as the fact says."""
        pod = copy.deepcopy(fact["pod"])
        pod["spec"]["schedulerName"] = "exact"
        name, found = pod["metadata"]["name"], []

        def differ(what: str, ours: object, theirs: object) -> None:
            found.append(f"{name}: {what}\n  ours   {ours}\n  theirs {theirs}")

        conditions: list[PatchPodCondition] = []
        node, errors = "", self._errors(pod) if any(map(_FAILED.match, fact["said"])) else set()
        for refused in range(len(fact["said"]) + bool(fact["node"])):
            if node or (refused and not conditions):
                break
            if fact["node"] and refused == len(fact["said"]):
                pod = self._steered(pod, fact["node"], differ)
            if not refused or pod["spec"].get("affinity"):
                self._observe(pod)
            node = self._try(_uid(pod), conditions)
        said = [one.message for one in conditions if one.reason in ("Unschedulable", "SchedulerError")]
        if said != fact["said"] and not (errors and errors.issuperset((*said, *fact["said"]))):
            differ("the words", said, fact["said"])
        if node != fact["node"]:
            differ("the node", node, fact["node"])
        if fact["node"]:
            now = self._objects[_key(pod)].get("status", {}).get("extendedResourceClaimStatus", {})
            if plain_name(now.get("resourceClaimName", "")) != fact.get("special", {}).get("resourceClaimName", ""):
                differ("the pod's status", now, fact.get("special"))
            if now.get("requestMappings") != fact.get("special", {}).get("requestMappings"):
                differ("the pod's status", now, fact.get("special"))
        for key, status in fact["claims"].items():
            ours = self._told(key)
            if ours != status:
                differ(f"claim {key}", ours, status)
        self._settle(pod, fact)
        return found

    def _errors(self, pod: Json) -> set[str]:
        """What may be said where a filter fails on several nodes: kube-scheduler says it of any."""
        rejected = self._explained(pod)["rejected"].values()
        of_nodes = ((one["plugin"], one["reasons"]) for one in rejected if one["code"] == "Error")
        return {f'running "{plugin}" filter plugin: {", ".join(reasons)}' for plugin, reasons in of_nodes}

    def _explained(self, pod: Json) -> Json:
        others = [one for key, one in self._objects.items() if key != _key(pod)]
        key = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        (found,) = explain({"items": [*others, _known("Pod", pod, 0)]}, PROFILE, key, now=self._now)
        return found

    def _steered(self, pod: Json, node: str, differ: Callable[[str, object, object], None]) -> Json:
        """Of several best nodes only the one that was taken is left."""
        explained = self._explained(pod)
        total = explained["total"]
        best = sorted(one for one, points in total.items() if points == max(total.values()))
        if node not in best:
            differ("the best nodes", {"total": total, "why": explained["rejected"]}, node)
        if best == [node]:
            return pod
        only = {"key": "metadata.name", "operator": "In", "values": [node]}
        terms = {"nodeSelectorTerms": [{"matchFields": [only]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        return pod | {"spec": pod["spec"] | {"affinity": affinity}}

    def _try(self, uid: str, conditions: list[PatchPodCondition]) -> str:
        """The node to which the pod is bound, "" where it fits nowhere; what is said of it is added."""
        self._now += LATER
        actions = self._send(Tick())
        while self._core.ready:
            actions += self._send(CyclesRequested(1))
        bound = ""
        while actions or (actions := self._attach()):
            action = actions.pop(0)
            if isinstance(action, PatchObject):
                actions += self._patch(action)
            elif isinstance(action, PatchPodCondition):
                conditions.append(action)
            elif isinstance(action, Bind) and action.uid == uid:
                bound = action.node
                actions += self._send(BindSucceeded(uid))
        return bound

    def _patch(self, action: PatchObject) -> list[Action]:
        patch = action.patch
        key = (patch.kind, patch.namespace, patch.name)
        if patch.verb == "DELETE":
            del self._objects[key]
            gone = self._send(ObjectDeleted(*key))
            return [*self._send(ObjectPatched(action, "")), *gone]
        before = {"kind": patch.kind} if patch.verb == "POST" else self._objects[key]
        changed = merged(before, patch.patch, patch.strategic)
        seen = self._observe(changed)
        version = self._objects[key]["metadata"]["resourceVersion"]
        return [*self._send(ObjectPatched(action, version)), *seen]

    def _attach(self) -> list[Action]:
        """What drivers do."""
        claims = [one for key, one in self._objects.items() if key[0] == "ResourceClaim"]
        waiting = [one for one in claims if attached(one) and not one["status"].get("devices")]
        changed = (one | {"status": one["status"] | {"devices": attached(one)}} for one in waiting)
        return [action for one in changed for action in (*self._observe(one), *self._send(Tick()))]

    def _told(self, key: str) -> Json | None:
        space, _, name = key.partition("/")
        claim = self._claim(space, name)
        return None if claim is None else told(claim)

    def _claim(self, space: str, name: str) -> Json | None:
        found = (one for key, one in self._objects.items() if key[:2] == ("ResourceClaim", space))
        return next((one for one in found if plain_name(one["metadata"]["name"]) == name), None)

    def _settle(self, pod: Json, fact: Fact) -> None:
        """What kube-scheduler did is what is."""
        for key, status in fact["claims"].items():
            space, _, name = key.partition("/")
            claim = self._claim(space, name)
            if claim is not None:
                names = status.get("reservedFor", ())
                users = [{"resource": "pods", "name": one, "uid": f"{space}/{one}"} for one in names]
                now = {"allocation": status["allocation"]} if "allocation" in status else {}
                self._observe(claim | {"status": now | {"reservedFor": users}})
        if fact["node"]:
            self._observe(fact["pod"] | {"spec": fact["pod"]["spec"] | {"nodeName": fact["node"]}})
            return
        self._objects.pop(_key(pod), None)
        self._send(PodDeleted(pod["metadata"]["namespace"], pod["metadata"]["name"], _uid(pod)))

    def _observe(self, obj: Json) -> list[Action]:
        known = _known(obj["kind"], obj, next(self._versions))
        self._objects[_key(obj)] = known
        if obj["kind"] == "Node":
            return self._send(NodeObserved(decode(Node, known)))
        if obj["kind"] == "Pod":
            return self._send(PodObserved(decode(Pod, known)))
        return self._send(ObjectObserved(obj["kind"], decode(STRUCTS[obj["kind"]], known)))

    def _send(self, message: Message) -> list[Action]:
        return self._core.handle(message, self._now)


def _key(obj: Json) -> Key:
    return obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _uid(obj: Json) -> str:
    kind, space, name = _key(obj)
    return f"{space}/{name}" if kind == "Pod" else f"{kind}/{space}/{name}"


def _known(kind: str, obj: Json, version: int) -> Json:
    """As a server tells it."""
    meta = {"uid": _uid(obj), "creationTimestamp": "2026-01-01T00:00:00Z"} | obj["metadata"]
    return obj | {"kind": kind, "metadata": meta | {"resourceVersion": str(version)}}
