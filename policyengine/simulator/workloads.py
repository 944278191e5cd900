"""The benchmark workloads: which nodes exist, which pods wait, as Kubernetes JSON.

The `peer-*` workloads are those kube-scheduler 1.36.2 was measured with on a real API server: nodes `node-%06d` of
4 cpu, 32Gi, 110 pods in ten zones; pods of 100m / 500Mi created in order before the scheduler starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

Json = dict[str, Any]

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class Workload:
    """A cluster to fill and the pods to fill it with; `pod(i)` is the i-th pod's JSON, without schedulerName."""

    name: str
    summary: str
    nodes: int
    pods: int
    pod: Callable[[int], Json]

    def sized(self, nodes: int | None, pods: int | None) -> Workload:
        """The same workload at another size; None keeps the definition's."""
        return replace(self, nodes=nodes or self.nodes, pods=pods or self.pods)

    def node_objects(self) -> Iterator[Json]:
        """Every node of the cluster, in order."""
        return map(peer_node, range(self.nodes))

    def pod_objects(self, scheduler_name: str) -> Iterator[Json]:
        """Every waiting pod, in order of creation."""
        for i in range(self.pods):
            pod = self.pod(i)
            pod["spec"]["schedulerName"] = scheduler_name
            yield pod


def peer_node(i: int) -> Json:
    """Node i: 4 cpu, 32Gi, 110 pods, in zone i mod 10."""
    name = f"node-{i:06d}"
    size = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, ZONE: f"zone{i % 10}"}},
        "spec": {},
        "status": {
            "capacity": size,
            "allocatable": dict(size),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _pod(i: int, cpu: str = "100m", memory: str = "500Mi", labels: dict[str, str] | None = None, **spec: Any) -> Json:
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
        "metadata": {"name": f"pod-{i:06d}", "namespace": "bench", "labels": labels or {}},
        "spec": {"containers": [container], **spec},
    }


def _term(labels: dict[str, str], key: str) -> Json:
    return {"labelSelector": {"matchLabels": labels}, "topologyKey": key}


def _mixed(i: int) -> Json:
    return _pod(i, cpu=f"{50 + i % 97}m", memory=f"{100 + i % 389}Mi")


def _spread(i: int) -> Json:
    labels = {"color": "blue"}
    constraint = {
        "maxSkew": 5,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": labels},
    }
    return _pod(i, labels=labels, topologySpreadConstraints=[constraint])


def _affinity(i: int) -> Json:
    labels = {"color": "blue"}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [_term(labels, ZONE)]}
    return _pod(i, labels=labels, affinity={"podAffinity": required})


def _antiaffinity(i: int) -> Json:
    labels = {"color": "green"}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [_term(labels, HOSTNAME)]}
    return _pod(i, labels=labels, affinity={"podAntiAffinity": required})


def _nodeaffinity(i: int) -> Json:
    expression = {"key": ZONE, "operator": "In", "values": ["zone0", "zone1"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return _pod(i, affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}})


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("peer-basic", "default pods: 100m, 500Mi", 5_000, 10_000, _pod),
        Workload("peer-mixed", "every pod its own shape", 5_000, 10_000, _mixed),
        Workload("peer-spread", "zone spread, DoNotSchedule, maxSkew 5", 5_000, 5_000, _spread),
        Workload("peer-affinity", "zone affinity to its own kind", 5_000, 5_000, _affinity),
        Workload("peer-antiaffinity", "host anti-affinity", 5_000, 2_000, _antiaffinity),
        Workload("peer-nodeaffinity", "zone In [zone0, zone1]", 5_000, 5_000, _nodeaffinity),
    )
}
