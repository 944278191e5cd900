"""Small clusters as plain data, and the same as a cluster view: what oracle and compiler are asked about.

Everything in a world is a manifest, as the API would send it. `PlainPod` and `PlainNode` write the usual ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from policyengine.cluster.kinds import BY_KIND, kind_of
from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_objects import Pod
from policyengine.cluster.view import ClusterView, Snapshot

Manifest = dict[str, Any]
GPU = "nvidia.com/gpu"
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
NOW = 1_800_000_000
"""When decisions are made, in seconds since 1970."""
WORDS = ("", "a", "b", "zone-a", "Zone-B", "node9", "10", "-7", "2.5", "x y", "9223372036854775807")
KEYS = ("app", "tier", ZONE)


def merged(base: Manifest, more: Manifest) -> Manifest:
    """The manifest with others' fields put in, object by object; a list is replaced."""
    both = {key: merged(base[key], more[key]) for key in base if isinstance(base[key], dict) and key in more}
    return base | more | both


@dataclass
class PlainPod:
    """A pod; amounts in millicores, bytes and counts. `more` are further fields of its manifest."""

    name: str = "p"
    labels: dict[str, str] = field(default_factory=dict)
    cpu: int = 0
    memory: int = 0
    gpus: int | None = None
    priority: int = 0
    images: tuple[str, ...] = ("app:1",)
    namespace: str = "ns"
    nominated: str = ""
    more: Manifest = field(default_factory=dict)

    def manifest(self, node: str = "") -> Manifest:
        requests: dict[str, str] = {"cpu": f"{self.cpu}m", "memory": str(self.memory)}
        if self.gpus is not None:
            requests[GPU] = str(self.gpus)
        containers: list[Manifest] = [{"name": f"c{i}", "image": image} for i, image in enumerate(self.images)]
        containers[0]["resources"] = {"requests": requests}
        metadata = {"name": self.name, "namespace": self.namespace, "uid": self.name, "labels": self.labels}
        spec = {"containers": containers, "priority": self.priority, "nodeName": node}
        status = {"nominatedNodeName": self.nominated}
        return merged({"kind": "Pod", "metadata": metadata, "spec": spec, "status": status}, self.more)

    def decode(self, node: str = "") -> Pod:
        return decode(Pod, self.manifest(node))

    def info(self) -> PodInfo:
        return PodInfo(self.decode())


@dataclass
class PlainNode:
    """A node and the pods on it."""

    name: str
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    cpu: int = 4000
    memory: int = 2**33
    gpus: int = 0
    taints: tuple[tuple[str, str, str], ...] = ()
    unschedulable: bool = False
    ready: bool = True
    pods: list[PlainPod] = field(default_factory=list)
    more: Manifest = field(default_factory=dict)

    def manifest(self) -> Manifest:
        allocatable = {"cpu": f"{self.cpu}m", "memory": str(self.memory), "pods": "110"}
        if self.gpus:
            allocatable[GPU] = str(self.gpus)
        metadata = {"name": self.name, "labels": self.labels, "annotations": self.annotations}
        taints = [{"key": k, "value": v, "effect": e} for k, v, e in self.taints]
        conditions = [{"type": "Ready", "status": "True" if self.ready else "False"}]
        status = {"allocatable": allocatable, "capacity": allocatable, "conditions": conditions}
        spec = {"unschedulable": self.unschedulable, "taints": taints}
        return merged({"kind": "Node", "metadata": metadata, "spec": spec, "status": status}, self.more)


@dataclass
class World:
    """A cluster."""

    nodes: list[PlainNode]
    pending: list[PlainPod] = field(default_factory=list)
    others: list[Manifest] = field(default_factory=list)
    """PodGroups, namespaces, and pods that have ended."""

    def manifests(self) -> list[Manifest]:
        """Everything there is: pods that wait, then each node and its pods."""
        placed = [one for node in self.nodes for one in (node.manifest(), *(p.manifest(node.name) for p in node.pods))]
        return [*(pod.manifest() for pod in self.pending), *placed, *self.others]

    def view(self) -> ClusterView:
        return view_of(self.manifests())

    def snapshot(self) -> Snapshot:
        return self.view().snapshot()


def view_of(manifests: list[Manifest]) -> ClusterView:
    view = ClusterView()
    view.now = NOW
    for item in manifests:
        if item["kind"] == "Node":
            view.add_or_update_node(decode(Node, item))
        elif item["kind"] == "Pod":
            view.add_or_update_pod(decode(Pod, item))
        else:
            kind = kind_of(item)
            found = decode(BY_KIND[kind].type, item)
            view.set_object(kind, found)
            view.regroup(kind, found.metadata.key)
    return view


# --- drawn at random: every field of the schema says something somewhere --------------------------------------

TIMES = ("2027-01-15T07:59:00Z", "2027-01-15T07:00:01Z", "2026-02-28T23:59:59+01:00", "1999-12-31T23:59:59Z")
"""Moments before `NOW`, which is 2027-01-15T08:00:00Z."""
QUANTITIES = ("0", "1", "250m", "1500m", "2", "1Ki", "1Gi", "1.5Gi", "3e3", "1M")
NAMES = ("a", "b", "web", "db-1")


def drawn_world(chance: Random, nodes: int | None = None) -> World:
    """A cluster of up to five nodes, pods on them and pods that wait, pods that ended, and groups."""
    named = [f"n{number}" for number in range(chance.randrange(6) if nodes is None else nodes)]
    drawn = [drawn_node(chance, name) for name in named]
    waiting = [drawn_pod(chance, f"q{number}") for number in range(chance.randrange(3))]
    for pod in waiting:
        pod.nominated = chance.choice(("", *named))
    ended = [_ended(chance, f"e{number}", chance.choice(named)) for number in range(chance.randrange(4)) if named]
    return World(drawn, waiting, [*ended, *GROUPS, *drawn_namespaces(chance)])


def drawn_namespaces(chance: Random) -> list[Manifest]:
    """Some of the namespaces that pods are in."""
    return [drawn_namespace(chance, name) for name in ("ns", "prod") if chance.random() < 0.8]


def drawn_namespace(chance: Random, name: str, version: int = 0) -> Manifest:
    metadata: Manifest = {"name": name, "uid": name, "resourceVersion": str(version or "")}
    metadata["labels"] = _some(chance, KEYS, WORDS)
    metadata["annotations"] = _some(chance, ("note", "cost"), WORDS)
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _some(chance: Random, keys: tuple[str, ...], values: tuple[str, ...]) -> dict[str, str]:
    return {key: chance.choice(values) for key in keys if chance.random() < 0.5}


def drawn_node(chance: Random, name: str) -> PlainNode:
    labels = _some(chance, (*KEYS, REGION), WORDS)
    annotations = _some(chance, ("note", "cost"), WORDS)
    usage = {"usage-cpu": ("1500m", "0", "much", "-1"), "usage-memory": ("2Gi", "1e3", ""), "usage-at": TIMES}
    annotations |= {f"policyengine.io/{k}": chance.choice(v) for k, v in usage.items() if chance.random() < 0.4}
    capacity = {"cpu": chance.choice(("8", "0")), "memory": chance.choice(("16Gi", "1")), "ephemeral-storage": "10Gi"}
    conditions = [
        {"type": "Ready", "status": chance.choice(("True", "False", "Unknown")), "reason": chance.choice(("", "Up"))},
        {"type": "MemoryPressure", "status": chance.choice(("True", "False"))},
    ][: chance.choice((0, 1, 2, 2))]
    status: Manifest = {"capacity": capacity | {GPU: "8"}, "conditions": conditions}
    status["images"] = [{"names": ["app:1", "app@sha256:x"], "sizeBytes": 7}] if chance.random() < 0.5 else []
    if chance.random() < 0.5:
        status["allocatable"] = {"ephemeral-storage": chance.choice(("1Gi", "20k"))}
    taints = (("gpu", "", "NoSchedule"), ("spot", "a", "NoExecute"), ("gpu", "b", "PreferNoSchedule"))
    pods = [drawn_pod(chance, f"{name}-{number}") for number in range(chance.choice((0, 1, 2, 3)))]
    for pod in pods:
        _ran(chance, pod)
    return PlainNode(
        name,
        labels,
        annotations,
        chance.choice((0, 1, 500, 4000)),
        chance.choice((0, 1, 2**30, 3 * 2**30 + 1, 2**45 + 1)),
        chance.choice((0, 1, 8)),
        tuple(taint for taint in taints if chance.random() < 0.3),
        chance.random() < 0.3,
        pods=pods,
        more={"metadata": {"creationTimestamp": chance.choice(TIMES)}, "status": status},
    )


def drawn_pod(chance: Random, name: str) -> PlainPod:
    labels = _some(chance, KEYS, WORDS)
    if chance.random() < 0.4:
        labels["scheduling.x-k8s.io/pod-group"] = chance.choice(("g", "h", "none"))
    spec: Manifest = {"serviceAccountName": chance.choice(("", "robot"))}
    spec["priorityClassName"] = chance.choice(("", "high"))
    spec["nodeSelector"] = _some(chance, KEYS, NAMES)
    containers = [_container(chance, f"c{i}") for i in range(chance.choice((1, 1, 2)))]
    if chance.random() < 0.4:
        spec["initContainers"] = [_container(chance, f"i{i}") for i in range(chance.choice((1, 2)))]
        spec["initContainers"][0]["restartPolicy"] = chance.choice(("Always", ""))
    if chance.random() < 0.3:
        spec["overhead"] = {"cpu": "10m", "memory": "1Mi"}
    if chance.random() < 0.5:
        spec["tolerations"] = [{"key": "gpu", "operator": "Exists"}, {"value": "a", "effect": "NoSchedule"}]
    if chance.random() < 0.5:
        spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "w", "emptyDir": {}}]
        spec["volumes"] += [{"name": "x", "image": {"reference": "model"}}][: chance.randrange(2)]
    if chance.random() < 0.1:
        spec["schedulingGroup"] = {"podGroupName": chance.choice(("g", "native"))}
    metadata: Manifest = {"annotations": _some(chance, ("note", "cost"), WORDS)}
    if chance.random() < 0.8:
        metadata["creationTimestamp"] = chance.choice(TIMES)
    if chance.random() < 0.5:
        owner = {"kind": chance.choice(("Job", "ReplicaSet")), "name": chance.choice(NAMES), "uid": "u"}
        metadata["ownerReferences"] = [{"kind": "Other", "name": "o", "uid": "o"}, owner | {"controller": True}]
    priority, namespace = chance.choice((-5, 0, 0, 1, 7, 100, 2**31 - 1)), chance.choice(("ns", "prod"))
    # The first container's requests are those of the plain pod.
    pod = PlainPod(name, labels, priority=priority, namespace=namespace)
    pod.more = {"metadata": metadata, "spec": spec | {"containers": containers}}
    return pod


def _container(chance: Random, name: str) -> Manifest:
    found: Manifest = {"name": name, "image": chance.choice(("app:1", "side", "r.example:5000/db"))}
    resources = {}
    names = ("cpu", "memory", "ephemeral-storage", GPU)
    for part in ("requests", "limits"):
        some = {one: chance.choice(QUANTITIES if one != GPU else ("0", "1", "4")) for one in names}
        resources[part] = {one: text for one, text in some.items() if chance.random() < 0.5}
    if chance.random() < 0.3:
        resources["limits"] = resources["requests"]
    if chance.random() < 0.5:
        found["ports"] = [{"containerPort": 80, "name": "http"}, {"containerPort": 53, "hostPort": 53}]
        found["ports"][1] |= {"protocol": "UDP", "hostIP": "10.0.0.1"} if chance.random() < 0.5 else {}
    return found | ({"resources": resources} if chance.random() < 0.8 else {})


def _ran(chance: Random, pod: PlainPod) -> None:
    """What a pod that stands on a node has besides."""
    status: Manifest = {"containerStatuses": [{"name": "c0", "restartCount": chance.randrange(3)}]}
    if chance.random() < 0.6:
        status["startTime"] = chance.choice(TIMES)
    if chance.random() < 0.6:
        at = {"lastTransitionTime": chance.choice(TIMES)}
        status["conditions"] = [{"type": "PodScheduled", "status": chance.choice(("True", "False"))} | at]
    more: Manifest = {"status": status}
    if chance.random() < 0.2:
        more["metadata"] = {"deletionTimestamp": "2027-01-15T09:00:00Z"}
    pod.more = merged(pod.more, more)


def _ended(chance: Random, name: str, node: str) -> Manifest:
    pod = drawn_pod(chance, name)
    state = {"terminated": {"exitCode": 1, "finishedAt": chance.choice(TIMES)}}
    status = {"phase": chance.choice(("Failed", "Succeeded")), "reason": chance.choice(("", "Evicted"))}
    return merged(pod.manifest(node), {"status": status | {"containerStatuses": [{"name": "c0", "state": state}]}})


GROUPS: list[Manifest] = [
    {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "ns"},
        "spec": {"minMember": 3, "scheduleTimeoutSeconds": 20, "minResources": {"cpu": "3", GPU: "2"}},
    },
    {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "h", "namespace": "prod"},
        "spec": {"minMember": 1},
    },
    {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "native", "namespace": "ns"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    },
]
