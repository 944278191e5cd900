"""Worlds with one PodGroup of Kubernetes' own: kube-scheduler, its gates on, places it, and so do we."""

from __future__ import annotations

import time
from dataclasses import dataclass
from random import Random
from typing import Any

from policyengine.cluster.kinds import STRUCTS
from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_objects import Pod
from policyengine.cluster.workload_objects import NativePodGroup
from policyengine.policy_compiler import compile_policy
from policyengine.scheduler.actions import Action, Bind, DeleteVictim, PatchObject
from policyengine.scheduler.messages import CacheSynced, CyclesRequested, NodeObserved, ObjectObserved, PodObserved
from policyengine.scheduler.state import SchedulerState
from tests.alpha_gates import GROUPS, flag
from tests.exact.random_pods import HOST
from tests.exact.real import SCHEDULER, Real

Json = dict[str, Any]
RACK = "example.com/rack"
OWN = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"
POLICY = f"""policy "exact" {{
  scheduler "{SCHEDULER}"
  gang "group" when pod.podGroup.hasValue() {{
    key: pod.namespace + "/" + pod.podGroup.orValue("")
    min: podGroup.?minMember.orValue(1)
    timeout: 5min
  }}
}}"""


@dataclass
class Outcome:
    """What came of a group."""

    nodes: list[str]
    """Of its pods, sorted."""
    victims: list[str]
    said: tuple[str, str, str]
    """Status, reason and message of its condition."""

    def domains(self, nodes: list[Json]) -> set[str]:
        """Where its pods are, or are to be."""
        racks = {one["metadata"]["name"]: one["metadata"]["labels"].get(RACK, "") for one in nodes}
        return {racks[name] for name in self.nodes}


def world(seed: int, constrained: bool) -> tuple[list[Json], Json, list[Json]]:
    """(nodes and running pods, the group, its pods). Its pods are alike and all needed, so that no order shows."""
    rng = Random(seed)
    objects: list[Json] = []
    for number in range(rng.randint(4, 9)):
        offered = {"cpu": str(rng.randint(2, 6)), "memory": f"{rng.randint(4, 16)}Gi", "pods": "20"}
        labels = {HOST: f"n{number}"} | ({RACK: rng.choice("abc")} if rng.random() < 0.9 else {})
        metadata = {"name": f"n{number}", "labels": labels}
        status = {"allocatable": offered, "capacity": offered}
        objects.append({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}, "status": status})
    names = [one["metadata"]["name"] for one in objects]
    for number in range(rng.randint(0, 2 * len(names)) if constrained else 4 * len(names)):
        running = _pod(f"run-{number}", rng.choice(("500m", "1", "1500m")), rng.choice(("low", "middle")))
        running["spec"]["nodeName"] = rng.choice(names)
        running["status"] = {"phase": "Running", "startTime": f"2026-01-01T00:{number:02}:{rng.randint(10, 59)}Z"}
        objects.append(running)
    count = rng.randint(2, 6)
    spec: Json = {
        "schedulingPolicy": {"gang": {"minCount": count}},
        "priorityClassName": rng.choice(("middle", "high")),
    }
    if constrained:
        spec["schedulingConstraints"] = {"topology": [{"key": RACK}]}
    group = {"metadata": {"name": f"crew-{seed}-{constrained}".lower()}, "spec": spec}
    cpu = rng.choice(("1", "1500m", "2"))
    members = [_pod(f"new-{number}", cpu, "middle") for number in range(count)]
    for one in members:
        one["spec"] |= {"schedulingGroup": {"podGroupName": group["metadata"]["name"]}, "schedulerName": SCHEDULER}
    return objects, group, members


def _pod(name: str, cpu: str, priority: str) -> Json:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": "256Mi"}}}
    spec = {"containers": [container], "priorityClassName": priority, "terminationGracePeriodSeconds": 0}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


async def play(real: Real, seed: int, constrained: bool) -> tuple[Outcome, Outcome, list[Json]]:
    """(ours, theirs, the nodes)."""
    objects, group, members = world(seed, constrained)
    for obj in objects:
        await real.make(obj)
    await real.ask("POST", OWN, group)
    for one in members:
        await real.make(one)
    seen = await real.everything()
    where = f"{OWN}/{group['metadata']['name']}"
    made = await real.ask("GET", where)
    ours = _ours([*seen, made | {"kind": "NativePodGroup"}])
    gates = [gate for gate in GROUPS if constrained or gate != "TopologyAwareWorkloadScheduling"]
    async with real.scheduler([flag(gates)]):
        theirs = await _theirs(real, where, bool(ours.victims))
    return ours, theirs, [one for one in seen if one["kind"] == "Node"]


def _ours(objects: list[Json]) -> Outcome:
    core, actions, now = SchedulerState([compile_policy(POLICY)]), [], time.time()
    for one in sorted(objects, key=lambda obj: (obj["kind"] == "Pod", obj["kind"])):
        core.handle(_observed(one), now)
    core.handle(CacheSynced(), now)
    while core.ready:
        actions += core.handle(CyclesRequested(1), now)
    nodes = sorted(action.node for action in actions if isinstance(action, Bind))
    victims = sorted(action.name for action in actions if isinstance(action, DeleteVictim))
    return Outcome(nodes, victims, _said(_written(actions)))


def _observed(obj: Json) -> Any:
    if obj["kind"] == "Node":
        return NodeObserved(decode(Node, obj))
    if obj["kind"] == "Pod":
        return PodObserved(decode(Pod, obj))
    kind = NativePodGroup if obj["kind"] == "NativePodGroup" else STRUCTS[obj["kind"]]  # that of v1alpha2
    return ObjectObserved(obj["kind"], decode(kind, obj))


def _written(actions: list[Action]) -> Json:
    patches = [action.patch.patch for action in actions if isinstance(action, PatchObject)]
    return dict(patches[-1]) if patches else {}


async def _theirs(real: Real, where: str, preempts: bool) -> Outcome:
    """Once its first condition is there; after a preemption, once its pods are bound."""
    deadline, first = time.monotonic() + 30.0, ("", "", "")
    while time.monotonic() < deadline:
        first = first if first[0] else _said(await real.ask("GET", where))
        pods = [one for one in real.pods.values() if one["metadata"]["name"].startswith("new-")]
        nodes = sorted(one["spec"]["nodeName"] for one in pods if one["spec"].get("nodeName"))
        if first[0] and (len(nodes) == len(pods) or (first[0] == "False" and not preempts)):
            break
        await real.until(lambda: False, 0.2)
    if first[0] == "False" and not preempts:
        await real.until(lambda: bool(real.gone), 1.0)
    return Outcome(nodes, sorted(real.pods[uid]["metadata"]["name"] for uid in real.gone), first)


def _said(group: Json) -> tuple[str, str, str]:
    conditions = group.get("status", {}).get("conditions", ())
    found = next((one for one in conditions if one["type"] == "PodGroupScheduled"), {})
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")
