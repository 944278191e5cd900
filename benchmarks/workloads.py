"""What a benchmark workload is, and the peer workloads.

The `peer-*` workloads are those kube-scheduler 1.36.2 was measured with on a real API server: nodes `node-%06d` of
4 cpu, 32Gi, 110 pods in ten zones; pods of 100m / 500Mi created in order before the scheduler starts. Those of
scheduler_perf stand in `workloads_perf`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

Json = dict[str, Any]

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
NAMESPACE = "bench"
"""Where every pod of a workload lives."""
MEASURED = "pod-"
"""What the names of measured pods begin with; no other pod's does."""
IMPORTANT = "bench-important"
"""The PriorityClass of pods that preempt, and its value."""
HIGH_PRIORITY = 10


@dataclass(frozen=True, slots=True)
class Churn:
    """Changes that go on while pods are placed: every `every` seconds one object of each kind in `objects`."""

    every: float
    objects: tuple[Callable[[int], Json], ...]
    """From the number of the turn to an object, whose name the number is part of."""
    recreate: bool
    """Whether the object of the turn before is deleted."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A cluster to fill and the pods to fill it with; `pod(i)` is the i-th pod's JSON, without schedulerName.

    Initial pods stand on the nodes from the start, round robin; scheduler_perf has them scheduled first.
    """

    name: str
    summary: str
    nodes: int
    pods: int
    pod: Callable[[int], Json]
    node: Callable[[int], Json]
    initial: int = 0
    initial_pod: Callable[[int, int], Json] | None = None
    """From (i, how many) to a pod."""
    churn: Churn | None = None
    policy: str = ""
    """The policy the workload is about; empty: the in-tree plugins."""
    during: bool = False
    """Whether the measured pods are created while the scheduler runs, as scheduler_perf does, not before it starts."""
    schedulers: int = 1
    """Among how many schedulers the measured pods are split, pod by pod."""

    def sized(self, nodes: int | None, pods: int | None) -> Workload:
        """The same workload at another size; None keeps the definition's. Initial pods grow with the nodes."""
        count = nodes or self.nodes
        return replace(self, nodes=count, pods=pods or self.pods, initial=self.initial * count // self.nodes)

    def node_objects(self) -> Iterator[Json]:
        """Every node of the cluster, in order."""
        return map(self.node, range(self.nodes))

    def initial_objects(self) -> Iterator[Json]:
        """The pods that are bound already, in order."""
        for i in range(self.initial if self.initial_pod is not None else 0):
            assert self.initial_pod is not None
            item = self.initial_pod(i, self.initial)
            item["metadata"]["name"] = f"initial-{i:06d}"
            item["spec"]["nodeName"] = self.node(i % self.nodes)["metadata"]["name"]
            yield item

    def pod_objects(self, scheduler_name: str) -> Iterator[Json]:
        """Every waiting pod, in order of creation."""
        for i in range(self.pods):
            item = self.pod(i)
            item["spec"]["schedulerName"] = self.scheduler_of(i, scheduler_name)
            yield item

    def scheduler_of(self, i: int, name: str) -> str:
        """Whose pod i is: `name`, or one of `name-0`, `name-1`, …"""
        return name if self.schedulers == 1 else f"{name}-{i % self.schedulers}"


def peer_node(i: int, zone: str = "", pods: str = "110") -> Json:
    """Node i: 4 cpu, 32Gi, 110 pods, in zone i mod 10 or the one given."""
    name = f"node-{i:06d}"
    size = {"cpu": "4", "memory": "32Gi", "pods": pods}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, ZONE: zone or f"zone{i % 10}"}},
        "spec": {},
        "status": {
            "capacity": size,
            "allocatable": dict(size),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(i: int, cpu: str = "100m", memory: str = "500Mi", labels: dict[str, str] | None = None, **spec: Any) -> Json:
    """Pod i: requests = limits, one port, whatever else of the spec is given."""
    size = {"cpu": cpu, "memory": memory}
    container = {
        "name": "pause",
        "image": "registry.k8s.io/pause:3.10",
        "ports": [{"containerPort": 80}],
        "resources": {"requests": size, "limits": dict(size)},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{MEASURED}{i:06d}", "namespace": NAMESPACE, "labels": labels or {}},
        "spec": {"containers": [container], **spec},
    }


def affinity_term(labels: dict[str, str], key: str) -> Json:
    """A PodAffinityTerm for pods with these labels."""
    return {"labelSelector": {"matchLabels": labels}, "topologyKey": key}


def mixed(i: int) -> Json:
    """A shape of its own for each of 37,733 pods."""
    return pod(i, cpu=f"{50 + i % 97}m", memory=f"{100 + i % 389}Mi")


def spread(i: int, when: str = "DoNotSchedule") -> Json:
    """color=blue, spread over zones, maxSkew 5."""
    labels = {"color": "blue"}
    constraint = {
        "maxSkew": 5,
        "topologyKey": ZONE,
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": labels},
    }
    return pod(i, labels=labels, topologySpreadConstraints=[constraint])


def required(i: int, kind: str, color: str, key: str) -> Json:
    """Required podAffinity or podAntiAffinity (`kind`) to pods of its own colour."""
    labels = {"color": color}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [affinity_term(labels, key)]}
    return pod(i, labels=labels, affinity={kind: terms})


def own_shape(i: int, item: Json) -> Json:
    """The pod with requests of its own and one of many colours, which its selectors mean: as pods of 500
    Deployments, no two alike."""
    text = json.dumps(item)
    for color in ("blue", "green"):
        text = text.replace(f'"{color}"', f'"{color}-{i % 500}"')
    shaped: Json = json.loads(text)
    shaped["spec"]["containers"] = mixed(i)["spec"]["containers"]
    return shaped


def preferred(i: int, kind: str, color: str) -> Json:
    """Preferred podAffinity or podAntiAffinity (`kind`), weight 1, host by host, to pods of its own colour."""
    labels = {"color": color}
    term = {"weight": 1, "podAffinityTerm": affinity_term(labels, HOSTNAME)}
    return pod(i, labels=labels, affinity={kind: {"preferredDuringSchedulingIgnoredDuringExecution": [term]}})


def in_zones(i: int, *zones: str) -> Json:
    """Required nodeAffinity: zone In zones."""
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": list(zones)}]}]
    return pod(i, affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _selector(terms)}})


def on_node(i: int, name: str) -> Json:
    """Required nodeAffinity by matchFields to one node, as the DaemonSet controller writes it."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}]
    return pod(i, affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _selector(terms)}})


def _selector(terms: list[Json]) -> Json:
    return {"nodeSelectorTerms": terms}


PEERS = (
    Workload("peer-basic", "default pods: 100m, 500Mi", 5_000, 10_000, pod, peer_node),
    Workload("peer-mixed", "every pod its own shape", 5_000, 10_000, mixed, peer_node),
    Workload("peer-spread", "zone spread, DoNotSchedule, maxSkew 5", 5_000, 5_000, spread, peer_node),
    Workload(
        "peer-affinity",
        "zone affinity to its own kind",
        5_000,
        5_000,
        lambda i: required(i, "podAffinity", "blue", ZONE),
        peer_node,
    ),
    Workload(
        "peer-antiaffinity",
        "host anti-affinity",
        5_000,
        2_000,
        lambda i: required(i, "podAntiAffinity", "green", HOSTNAME),
        peer_node,
    ),
    Workload(
        "peer-nodeaffinity",
        "zone In [zone0, zone1]",
        5_000,
        5_000,
        lambda i: in_zones(i, "zone0", "zone1"),
        peer_node,
    ),
    Workload(
        "peer-spread-mixed",
        "zone spread, every pod its own shape, of 500 colours",
        5_000,
        5_000,
        lambda i: own_shape(i, spread(i)),
        peer_node,
    ),
    Workload(
        "peer-affinity-mixed",
        "zone affinity to its own kind, every pod its own shape, of 500 colours",
        5_000,
        5_000,
        lambda i: own_shape(i, required(i, "podAffinity", "blue", ZONE)),
        peer_node,
    ),
    Workload(
        "peer-antiaffinity-mixed",
        "host anti-affinity, every pod its own shape, of 500 colours",
        5_000,
        5_000,
        lambda i: own_shape(i, required(i, "podAntiAffinity", "green", HOSTNAME)),
        peer_node,
    ),
)
