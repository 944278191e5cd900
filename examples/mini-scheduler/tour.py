"""The seven steps against the API of a sandbox, with the ordinary Kubernetes client.

    policyengine sandbox --nodes 0 --policy examples/mini-scheduler/3-score/scheduler.policy
    python examples/mini-scheduler/tour.py 3 sandbox.kubeconfig

Each step makes nodes and pods, says what it sees, and ends with a table; it fails where it sees something else.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from kubernetes import client, config

SIZE = {"cpu": "4", "memory": "16Gi", "pods": "110"}


class Cluster:
    """What the steps do, in the words of the client."""

    def __init__(self, kubeconfig: str) -> None:
        config.load_kube_config(kubeconfig)
        self.api = client.CoreV1Api()

    def node(self, name: str, unschedulable: bool = False) -> None:
        """A node that is ready."""
        ready = client.V1NodeCondition(type="Ready", status="True", reason="Tour", message="it is")
        self.api.create_node(
            client.V1Node(
                metadata=client.V1ObjectMeta(name=name),
                spec=client.V1NodeSpec(unschedulable=unschedulable),
                status=client.V1NodeStatus(capacity=SIZE, allocatable=SIZE, conditions=[ready]),
            )
        )

    def uncordon(self, name: str) -> None:
        """As `kubectl uncordon` does."""
        self.api.patch_node(name, {"spec": {"unschedulable": False}})

    def pod(self, name: str, run_for: str = "", priority: int = 0) -> None:
        """A pod for the mini-scheduler; with `run_for` it ends that long after it has started."""
        self.api.create_namespaced_pod(
            "default",
            client.V1Pod(
                metadata=client.V1ObjectMeta(
                    name=name, annotations={"policyengine.io/run-for": run_for} if run_for else None
                ),
                spec=client.V1PodSpec(
                    scheduler_name="mini-scheduler",
                    priority=priority,
                    containers=[client.V1Container(name="main", image="registry.k8s.io/pause:3.10")],
                ),
            ),
        )

    def node_of(self, name: str) -> str | None:
        """Where the pod is; None while it waits."""
        found: str | None = self.api.read_namespaced_pod(name, "default").spec.node_name
        return found

    def why(self, name: str) -> str:
        """What is said of why the pod waits."""
        conditions = self.api.read_namespaced_pod(name, "default").status.conditions or []
        return next((one.message or "" for one in conditions if one.type == "PodScheduled"), "")

    def eventually(self, seen: Callable[[], bool], seconds: float = 20.0) -> float:
        """Wait until it is so; how long that took, in seconds."""
        start = time.monotonic()
        while not seen():
            assert time.monotonic() - start < seconds, "it did not come about"
            time.sleep(0.05)
        return time.monotonic() - start

    def placed(self, *names: str) -> float:
        """Wait until the pods have nodes."""
        return self.eventually(lambda: all(self.node_of(name) for name in names))

    def table(self) -> None:
        """Who is where."""
        print(f"{'pod':<10} {'node':<10} why it waits")
        for pod in self.api.list_namespaced_pod("default").items:
            node = pod.spec.node_name
            print(f"{pod.metadata.name:<10} {node or '-':<10} {'' if node else self.why(pod.metadata.name)}")


def random_placement(cluster: Cluster) -> None:
    """1: every pod goes somewhere."""
    for number in range(3):
        cluster.node(f"node-{number}")
    for number in range(6):
        cluster.pod(f"pod-{number}")
    cluster.placed(*(f"pod-{number}" for number in range(6)))


def filtering(cluster: Cluster) -> None:
    """2: of ten nodes nine are cordoned."""
    for number in range(10):
        cluster.node(f"node-{number}", unschedulable=number != 9)
    cluster.pod("pod-1")
    cluster.placed("pod-1")
    assert cluster.node_of("pod-1") == "node-9"


def scoring(cluster: Cluster) -> None:
    """3: the last digits agree."""
    for number in range(5):
        cluster.node(f"node-{number}")
    for number in (4, 12):
        cluster.pod(f"pod-{number}")
    cluster.placed("pod-4", "pod-12")
    assert (cluster.node_of("pod-4"), cluster.node_of("pod-12")) == ("node-4", "node-2")


def pre_scoring(cluster: Cluster) -> None:
    """4: a pod without a number is placed without a score."""
    scoring(cluster)
    cluster.pod("nameless")
    cluster.placed("nameless")


def permitting(cluster: Cluster) -> None:
    """5: the node's digit delays the binding."""
    cluster.node("node-3")
    cluster.pod("pod-3")
    assert cluster.placed("pod-3") >= 2.5


def queueing(cluster: Cluster) -> None:
    """6: a pod that fits nowhere stands aside."""
    cluster.node("node-1")
    cluster.pod("pod-7", priority=0)
    cluster.eventually(lambda: "another digit" in cluster.why("pod-7"))
    cluster.pod("pod-1")
    cluster.placed("pod-1")
    assert cluster.node_of("pod-7") is None


def retrying(cluster: Cluster) -> None:
    """7: a pod is tried again when a node is uncordoned, and when a pod ends."""
    cluster.node("node-1", unschedulable=True)
    cluster.pod("pod-1", run_for="4s")
    cluster.eventually(lambda: "unschedulable" in cluster.why("pod-1"))
    cluster.uncordon("node-1")
    cluster.pod("pod-2")
    cluster.placed("pod-1", "pod-2")
    cluster.pod("pod-3")
    cluster.eventually(lambda: "2 pods" in cluster.why("pod-3"))
    cluster.placed("pod-3")


STEPS = (random_placement, filtering, scoring, pre_scoring, permitting, queueing, retrying)


def main() -> None:
    """Run the step whose number is given, on the cluster of the kubeconfig."""
    number, kubeconfig = sys.argv[1:]
    step = STEPS[int(number) - 1]
    print(step.__doc__)
    cluster = Cluster(kubeconfig)
    step(cluster)
    cluster.table()


if __name__ == "__main__":
    main()
