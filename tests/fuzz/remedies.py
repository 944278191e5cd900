"""Generated clusters in which pods wait: each remedy that is suggested for one, applied to the objects, has it placed.

    python -m tests.fuzz.seeds remedies [WORLDS] [SEED]

The remedies are applied here, to manifests and texts of policies, by what docs/explain.md says of each kind; nothing is
shared with what made them. The changed cluster is given to the scheduler's core, which then runs for two minutes. What
a remedy says it costs, and nothing else, is paid by other pods.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from datetime import datetime
from math import inf
from random import Random
from typing import Any

from policyengine.cluster.pod_objects import Pod
from policyengine.diagnosis.dump import DumpedObject, read_objects
from policyengine.diagnosis.suggest import suggest_played
from policyengine.policy_compiler import compile_policy
from policyengine.scheduler.messages import Message, NodeObserved, ObjectObserved, PodDeleted, PodObserved
from policyengine.trials.trial import Trial

Json = dict[str, Any]
NOW = 1_767_600_000.0
"""2026-01-05T08:00:00Z"""
SECONDS = 120.0
PODS_OF_A_WORLD = 4
"""Waiting pods of a world that are asked about."""


class World:
    """Manifests, and the texts of the policies that serve."""

    def __init__(self, items: list[Json], policies: list[str]) -> None:
        self.items = items
        self.policies = policies

    def copy(self) -> World:
        return World(deepcopy(self.items), list(self.policies))

    def find(self, kind: str, name: str) -> Json:
        """By name, or `namespace/name`."""
        return next(item for item in self.items if item["kind"] == kind and name in (key_of(item), short(item)))

    def objects(self) -> list[DumpedObject]:
        return read_objects({"kind": "List", "items": self.items})


def key_of(item: Json) -> str:
    metadata = item["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if "namespace" in metadata else str(metadata["name"])


def short(item: Json) -> str:
    return str(item["metadata"]["name"]) if "namespace" not in item["metadata"] else ""


# --- worlds ---------------------------------------------------------------------------------------------------


def world_of(chance: Random) -> World:
    one = chance.choice
    size, limit, owed, most = one((2, 3)), one((3, 4, 6)), one((2, 4)), one((1, 2))
    borrow = one(("", "borrow: true "))
    rules = [
        f'gang "crew" when pod.labels[?"crew"].hasValue() {{ key: pod.labels["crew"] min: {size} timeout: 30s }}',
        'quota "a" when pod.labels[?"team"].orValue("") == "a" '
        f"{{ guarantee: {{cpu: 2}}, limit: {{cpu: {limit}}} {borrow}}}",
        f'quota "b" when pod.labels[?"team"].orValue("") == "b" {{ guarantee: {{cpu: {owed}}} borrow: true }}',
        f'preempt {{ victims: victim.labels[?"keep"].orValue("") != "yes" maxVictims: {most} }}',
        "param headroom: cpu = 1 range [0, 4] "
        'filter "headroom" { require node.free.cpu - pod.requests.cpu >= headroom else "too little left" }',
        'filter "tier" { require node.labels[?"tier"].orValue("none") == pod.labels[?"tier"].orValue("none") }',
        'filter "few" { require node.podCount < 4 }',
        'permit "late" when pod.labels[?"late"].hasValue() { delay: 20s }',
    ]
    chosen = [rule for rule in rules if chance.random() < 0.4]
    policies = [f'policy "main" {{ scheduler "default-scheduler" {" ".join(chosen)} }}']
    if chance.random() < 0.3:
        policies.append('policy "other" { scheduler "other-scheduler" }')
    nodes = [_node(chance, f"n{number}") for number in range(chance.randint(1, 4))]
    running = [_pod(chance, f"r{number}", one(nodes)["metadata"]["name"]) for number in range(chance.randint(0, 10))]
    waiting = [_pod(chance, f"w{number}") for number in range(chance.randint(1, 5))]
    classes = [_storage_class("standard")] * (chance.random() < 0.7)
    budget = [_budget(one((0, 1)))] * (chance.random() < 0.3)
    return World([*nodes, *classes, *budget, *running, *waiting], policies)


def _node(chance: Random, name: str) -> Json:
    labels = {"kubernetes.io/hostname": name}
    for key, values in (("tier", ("gold", "tin")), ("disk", ("ssd", "hdd"))):
        if chance.random() < 0.5:
            labels[key] = chance.choice(values)
    spec: Json = {"unschedulable": True} if chance.random() < 0.15 else {}
    if chance.random() < 0.25:
        spec["taints"] = [{"key": chance.choice(("spot", "gpu")), "value": "yes", "effect": "NoSchedule"}]
    allocatable = {"cpu": chance.choice(("2", "4", "8")), "memory": "8Gi", "pods": chance.choice(("3", "10"))}
    metadata = {"name": name, "uid": name, "labels": labels}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "spec": spec,
        "status": {"allocatable": allocatable},
    }


def _pod(chance: Random, name: str, on: str = "") -> Json:
    labels: Json = {"app": chance.choice(("web", "db"))}
    for key, values, share in (
        ("crew", ("x", "y"), 0.3),
        ("team", ("a", "b"), 0.5),
        ("tier", ("gold", "tin"), 0.2),
        ("keep", ("yes",), 0.2),
        ("late", ("yes",), 0.1),
    ):
        if chance.random() < share:
            labels[key] = chance.choice(values)
    requests = {"cpu": chance.choice(("500m", "1", "2", "3")), "memory": chance.choice(("256Mi", "1Gi"))}
    container: Json = {"name": "c", "resources": {"requests": requests}}
    spec: Json = {"containers": [container], "priority": chance.choice((0, 0, 0, 5))}
    metadata: Json = {"name": name, "namespace": "default", "uid": name, "labels": labels}
    metadata["creationTimestamp"] = f"2026-01-05T07:{chance.randrange(60):02}:00Z"
    if on:
        spec["nodeName"] = on
        if chance.random() < 0.3:
            owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
            metadata["ownerReferences"] = [owner]
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    draw = chance.random
    if draw() < 0.2:
        spec["nodeSelector"] = {"disk": chance.choice(("ssd", "hdd"))}
    if draw() < 0.1:
        spec["schedulingGates"] = [{"name": "example.com/later"}]
    if draw() < 0.15:
        spec["schedulerName"] = chance.choice(("other-scheduler", "defualt-scheduler"))
    if draw() < 0.1:
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": f"claim-{name}"}}]
    if draw() < 0.1:
        container["ports"] = [{"containerPort": 80, "hostPort": 80}]
    if draw() < 0.2:
        spec["preemptionPolicy"] = "Never"
    if draw() < 0.2:
        terms = [{"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}]
        side = chance.choice(("podAffinity", "podAntiAffinity"))
        spec["affinity"] = {side: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _storage_class(name: str) -> Json:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "example.com/disks",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def _budget(allowed: int) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": allowed},
    }


# --- what each kind of change means -----------------------------------------------------------------------------


def applied(world: World, pod: str, suggestion: Json) -> World:
    """The world with a suggestion for the pod carried out."""
    after = world.copy()
    mates = _mates(after, after.find("Pod", pod))
    for change in sorted(suggestion["changes"], key=lambda one: bool(one["kind"] == "members")):
        # Members are like the pod as it then is.
        _APPLIED[change["kind"]](after, mates, change)
    return after


def _mates(world: World, pod: Json) -> list[Json]:
    """The pod, and those of its gang that wait."""
    crew = pod["metadata"]["labels"].get("crew")
    if crew is None or "crew" not in world.policies[0]:
        return [pod]
    pods = [item for item in world.items if item["kind"] == "Pod" and not item["spec"].get("nodeName")]
    asked = pod["spec"].get("schedulerName", "default-scheduler")
    same = [one for one in pods if one["spec"].get("schedulerName", "default-scheduler") == asked]
    if asked != "default-scheduler":
        return [pod]
    return [one for one in same if one["metadata"]["labels"].get("crew") == crew]


def _request(world: World, pods: list[Json], change: Json) -> None:
    for pod in pods:
        requests = pod["spec"]["containers"][0]["resources"]["requests"]
        if _number(requests[change["resource"]]) > _number(change["to"]):
            requests[change["resource"]] = change["to"]


def _number(text: str) -> float:
    match = re.fullmatch(r"([0-9.]+)(m|Ki|Mi|Gi)?", text)
    assert match is not None, text
    return float(match[1]) * {"m": 0.001, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}.get(match[2], 1)


def _tolerate(world: World, pods: list[Json], change: Json) -> None:
    added = {"key": change["key"], "operator": "Equal", "value": change["value"], "effect": change["effect"]}
    for pod in pods:
        pod["spec"]["tolerations"] = [*pod["spec"].get("tolerations", []), added]


def _drop(world: World, pods: list[Json], change: Json) -> None:
    for pod in pods:
        spec = pod["spec"]
        for key in change.get("nodeSelector", {}):
            spec.get("nodeSelector", {}).pop(key, None)
        for side in ("podAffinity", "podAntiAffinity"):
            if side in change:
                spec.get("affinity", {}).pop(side, None)
        if "hostPort" in change:
            spec["containers"][0].pop("ports", None)
        if "volume" in change:
            spec["volumes"] = [one for one in spec.get("volumes", []) if one["name"] != change["volume"]]


def _free(world: World, pods: list[Json], change: Json) -> None:
    for key in change["pods"]:
        pod = world.find("Pod", key)
        world.items.remove(pod)
        if pod["metadata"].get("ownerReferences"):
            metadata = {**pod["metadata"], "name": f"{pod['metadata']['name']}-2", "uid": f"{pod['metadata']['uid']}-2"}
            metadata["creationTimestamp"] = "2026-01-05T08:00:00Z"
            spec = {name: value for name, value in pod["spec"].items() if name != "nodeName"}
            world.items.append({**pod, "metadata": metadata, "spec": spec})


def _uncordon(world: World, pods: list[Json], change: Json) -> None:
    world.find("Node", change["node"])["spec"].pop("unschedulable")


def _untaint(world: World, pods: list[Json], change: Json) -> None:
    spec = world.find("Node", change["node"])["spec"]
    spec["taints"] = [one for one in spec["taints"] if (one["key"], one["effect"]) != (change["key"], change["effect"])]


def _label(world: World, pods: list[Json], change: Json) -> None:
    for item in pods if "pod" in change else [world.find("Node", change["node"])]:
        item["metadata"]["labels"][change["key"]] = change["value"]


def _add_nodes(world: World, pods: list[Json], change: Json) -> None:
    for number in range(change["count"]):
        node = deepcopy(world.find("Node", change["like"]))
        name = f"new-{change['like']}-{number}"
        node["metadata"] |= {"name": name, "uid": name}
        node["metadata"]["labels"]["kubernetes.io/hostname"] = name
        node["spec"].pop("unschedulable", None)
        world.items.insert(0, node)


def _param(world: World, pods: list[Json], change: Json) -> None:
    _rewrite(world, rf"(param {change['param']}: \w+ = )[^ ]+", rf"\g<1>{change['to']}")


def _quota(world: World, pods: list[Json], change: Json) -> None:
    pattern = rf'(quota "{change["quota"]}" .*?{change["bound"]}: {{{change["resource"]}: )[^}}]+'
    _rewrite(world, pattern, rf"\g<1>{change['to']}")


def _rewrite(world: World, pattern: str, new: str) -> None:
    world.policies[0], count = re.subn(pattern, new, world.policies[0], count=1)
    assert count == 1, (pattern, world.policies[0])


def _members(world: World, pods: list[Json], change: Json) -> None:
    for number in range(change["count"]):
        pod = deepcopy(world.find("Pod", change["like"]))
        pod["metadata"] |= {"name": f"member-{number}", "uid": f"member-{number}"}
        pod["metadata"].pop("creationTimestamp")
        world.items.append(pod)


def _gate(world: World, pods: list[Json], change: Json) -> None:
    for pod in pods:
        pod["spec"].pop("schedulingGates", None)


def _scheduler(world: World, pods: list[Json], change: Json) -> None:
    for pod in pods:
        pod["spec"]["schedulerName"] = change["to"]


def _claim(world: World, pods: list[Json], change: Json) -> None:
    namespace, _, name = change["claim"].partition("/")
    spec = {
        "storageClassName": change["storageClass"],
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": change["size"]}},
    }
    metadata = {"name": name, "namespace": namespace, "uid": name}
    world.items.insert(0, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})


_APPLIED: dict[str, Callable[[World, list[Json], Json], None]] = {
    "request": _request,
    "tolerate": _tolerate,
    "drop": _drop,
    "free": _free,
    "uncordon": _uncordon,
    "untaint": _untaint,
    "label": _label,
    "node": _add_nodes,
    "param": _param,
    "quota": _quota,
    "members": _members,
    "gate": _gate,
    "schedulerName": _scheduler,
    "claim": _claim,
}


# --- what comes of it --------------------------------------------------------------------------------------------


def outcome(world: World) -> tuple[dict[str, str], set[str]]:
    """(pod -> where it is in the end: its node, or ""; keys of the evicted) after a while."""
    profiles = [compile_policy(text) for text in world.policies]
    trial = Trial(profiles, NOW, listed=_listed(world.objects()), victims_linger=True)
    for _ in range(int(SECONDS)):
        trial.advance(1.0)
        for pod in list(trial.cluster.pods.values()):
            if _gone_at(pod) <= trial.now:  # the kubelet's part
                trial.see(PodDeleted(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid))
    trial.settle()
    found = {}
    for uid, pod in trial.cluster.pods.items():
        prepared = trial.state.place(uid) == "waiting at prebind"
        found[pod.metadata.key] = trial.state.view.pods[uid].node_name if prepared else pod.spec.node_name
    return found, {f"{one.namespace}/{one.name}" for _, one in trial.evictions}


def _listed(objects: list[DumpedObject]) -> list[tuple[float, Message]]:
    """Nodes and other objects first, then the pods in the order of their creation; those on nodes last."""
    said: list[tuple[tuple[int, str], Message]] = []
    for one in objects:
        if one.kind == "Node":
            said.append(((0, ""), NodeObserved(one.object)))
        elif one.kind != "Pod":
            said.append(((0, ""), ObjectObserved(one.kind, one.object)))
        else:
            # Among equals who were started at one time preemption takes those that were listed first.
            created = one.object.metadata.creation_timestamp or ""
            said.append(((2, "") if one.object.spec.node_name else (1, created), PodObserved(one.object)))
    said.sort(key=lambda pair: pair[0])
    return [(_seconds(order[1]) if order[0] == 1 else NOW - 3600 if order[0] == 0 else NOW, m) for order, m in said]


def _gone_at(pod: Pod) -> float:
    """When the grace of a pod that is being deleted ends."""
    ends = pod.metadata.deletion_timestamp
    return inf if ends is None else datetime.fromisoformat(ends).timestamp()


def _seconds(created: str) -> float:
    match = re.fullmatch(r"2026-01-05T(\d\d):(\d\d):00Z", created)
    return NOW - 3600 if match is None else NOW + (int(match[1]) - 8) * 3600 + int(match[2]) * 60


def tried(seed: int) -> tuple[list[str], Counter[str]]:
    """What is wrong with the remedies of one world, and what there was of them."""
    world = world_of(Random(seed))
    before, evicted_before = outcome(world)
    profiles = [compile_policy(text) for text in world.policies]
    waits = [pod for pod, node in before.items() if not node][:PODS_OF_A_WORLD]
    wrong, counts = [], Counter({"worlds": 1})
    for pod in waits:
        suggestions = suggest_played(world.objects(), profiles, NOW, pod)
        counts["pods"] += 1
        counts["with a remedy"] += bool(suggestions)
        for one in suggestions:
            counts.update(change["kind"] for change in one["changes"])
            counts["remedies"] += 1
            found, evicted = outcome(applied(world, pod, one))
            told = f"seed {seed}: {pod}: {one['change']}"
            if not found.get(pod):
                wrong.append(f"{told}: it waits still")
            named = {key for change in one["changes"] for key in change.get("pods", ())} | set(one.get("costs", ()))
            lost = {key for key, node in before.items() if node and not found.get(key)} | (evicted - evicted_before)
            if lost - named:
                wrong.append(f"{told}: costs {sorted(lost - named)} too, beside {sorted(named)}")
    return wrong, counts
