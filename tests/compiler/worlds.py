"""Small clusters as plain data, and the same as a cluster view: what oracle and compiler are asked about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_objects import Pod
from policyengine.cluster.view import ClusterView, Snapshot

GPU = "nvidia.com/gpu"
ZONE = "topology.kubernetes.io/zone"
WORDS = ("", "a", "b", "zone-a", "Zone-B", "node9", "10", "-7", "2.5", "x y", "9223372036854775807")
KEYS = ("app", "tier", ZONE)


@dataclass
class PlainPod:
    """A pod; amounts in millicores, bytes and counts."""

    name: str = "p"
    labels: dict[str, str] = field(default_factory=dict)
    cpu: int = 0
    memory: int = 0
    gpus: int | None = None
    priority: int = 0
    images: tuple[str, ...] = ("app:1",)
    namespace: str = "ns"
    nominated: str = ""

    def decode(self, node: str = "") -> Pod:
        requests: dict[str, str] = {"cpu": f"{self.cpu}m", "memory": str(self.memory)}
        if self.gpus is not None:
            requests[GPU] = str(self.gpus)
        containers: list[dict[str, Any]] = [{"name": f"c{i}", "image": image} for i, image in enumerate(self.images)]
        containers[0]["resources"] = {"requests": requests}
        return decode(
            Pod,
            {
                "metadata": {"name": self.name, "namespace": self.namespace, "uid": self.name, "labels": self.labels},
                "spec": {"containers": containers, "priority": self.priority, "nodeName": node},
                "status": {"nominatedNodeName": self.nominated},
            },
        )

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

    def decode(self) -> Node:
        allocatable = {"cpu": f"{self.cpu}m", "memory": str(self.memory), "pods": "110"}
        if self.gpus:
            allocatable[GPU] = str(self.gpus)
        return decode(
            Node,
            {
                "metadata": {"name": self.name, "labels": self.labels, "annotations": self.annotations},
                "spec": {
                    "unschedulable": self.unschedulable,
                    "taints": [{"key": k, "value": v, "effect": e} for k, v, e in self.taints],
                },
                "status": {
                    "allocatable": allocatable,
                    "capacity": allocatable,
                    "conditions": [{"type": "Ready", "status": "True" if self.ready else "False"}],
                },
            },
        )


@dataclass
class World:
    """A cluster."""

    nodes: list[PlainNode]
    pending: list[PlainPod] = field(default_factory=list)

    def view(self) -> ClusterView:
        view = ClusterView()
        for pod in self.pending:
            view.add_or_update_pod(pod.decode())
        for node in self.nodes:
            view.add_or_update_node(node.decode())
            for pod in node.pods:
                view.add_or_update_pod(pod.decode(node.name))
        return view

    def snapshot(self) -> Snapshot:
        return self.view().snapshot()


labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(WORDS), max_size=3)
amounts = st.sampled_from((0, 1, 100, 500, 1000, 4000))
bytes_ = st.sampled_from((0, 1, 2**20, 2**30, 3 * 2**30 + 1, 2**45 + 1))
taints = st.lists(
    st.tuples(
        st.sampled_from(("gpu", "spot")), st.sampled_from(("", "a", "b")), st.sampled_from(("NoSchedule", "NoExecute"))
    ),
    max_size=2,
    unique_by=lambda taint: (taint[0], taint[2]),
).map(tuple)


@st.composite
def plain_pods(draw: st.DrawFn, name: str = "p") -> PlainPod:
    return PlainPod(
        name,
        draw(labels),
        draw(amounts),
        draw(bytes_),
        draw(st.sampled_from((None, 0, 1, 4))),
        draw(st.sampled_from((-5, 0, 7, 2**31 - 1))),
        draw(st.sampled_from((("app:1",), ("app:1", "side:2")))),
        draw(st.sampled_from(("ns", "prod"))),
    )


@st.composite
def worlds(draw: st.DrawFn, most: int = 5) -> World:
    nodes = []
    for number in range(draw(st.integers(0, most))):
        pods = [draw(plain_pods(f"p{number}-{i}")) for i in range(draw(st.integers(0, 2)))]
        nodes.append(
            PlainNode(
                f"node{number}",
                draw(labels),
                draw(st.dictionaries(st.sampled_from(("note", "cost")), st.sampled_from(WORDS), max_size=2)),
                draw(amounts),
                draw(bytes_),
                draw(st.sampled_from((0, 1, 8))),
                draw(taints),
                draw(st.booleans()),
                draw(st.booleans()),
                pods,
            )
        )
    return World(nodes)


@st.composite
def full_worlds(draw: st.DrawFn, most: int = 5) -> World:
    """Clusters with pending pods too, some of them nominated."""
    world = draw(worlds(most))
    for number in range(draw(st.integers(0, 3))):
        pod = draw(plain_pods(f"q{number}"))
        pod.nominated = draw(st.sampled_from(("", *(node.name for node in world.nodes))))
        world.pending.append(pod)
    return world
