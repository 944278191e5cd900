"""A node on which one application always fails, and what the scheduler makes of it.

    policyengine sandbox --nodes 4 --policy policies/rewards.policy --kubeconfig-out sandbox.kubeconfig
    policyengine rewards --kubeconfig sandbox.kubeconfig --interval 1s
    python examples/rewards/walk.py sandbox.kubeconfig

Ten pods of the group `web` fail on node-1, as if something were wrong there that no scheduler can see; ten more are
left to the scheduler. Ends with a table of the nodes.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable

from kubernetes import client, config

PODS = 10
FAILURES = 10
BAD = "node-1"
ANNOTATION = "default.rewards.policyengine.io/web"


class Walk:
    """What is done, in the words of the client."""

    def __init__(self, kubeconfig: str) -> None:
        config.load_kube_config(kubeconfig)
        self.api = client.CoreV1Api()

    def pod(self, name: str, node: str | None = None) -> str:
        """Make a pod, and wait for its node; a `node` is chosen by hand. Where it is."""
        container = client.V1Container(name="main", image="registry.k8s.io/pause:3.10")
        spec = client.V1PodSpec(scheduler_name="rewards", containers=[container], node_name=node)
        metadata = client.V1ObjectMeta(name=name, labels={"app": "web"})
        self.api.create_namespaced_pod("default", client.V1Pod(metadata=metadata, spec=spec))
        eventually(lambda: self.read(name).status.phase == "Running")
        found: str = self.read(name).spec.node_name
        return found

    def read(self, name: str) -> client.V1Pod:
        """The pod as it is."""
        return self.api.read_namespaced_pod(name, "default")

    def fail(self, name: str) -> None:
        """Have the pod's kubelet say that it failed."""
        self.api.patch_namespaced_pod_status(name, "default", {"status": {"phase": "Failed"}})

    def rewards(self) -> dict[str, float]:
        """Node -> what it says of the group; without those that say nothing."""
        nodes = self.api.list_node().items
        said = {node.metadata.name: (node.metadata.annotations or {}).get(ANNOTATION) for node in nodes}
        return {name: float(text) for name, text in said.items() if text}


def eventually(seen: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait until it is so."""
    end = time.monotonic() + seconds
    while not seen():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.05)


def walk(kubeconfig: str) -> Counter[str]:
    """Fail on the bad node, wait until that was learnt, and place the rest. How many of them each node got."""
    taken = Walk(kubeconfig)
    for number in range(FAILURES):
        taken.pod(f"failing-{number}", BAD)
        taken.fail(f"failing-{number}")
    eventually(lambda: taken.rewards().get(BAD, 1.0) < 0.4)
    placed = Counter(taken.pod(f"web-{number}") for number in range(PODS))
    rewards = taken.rewards()
    print(f"{'node':<10} {'reward':>8} {'pods':>6}")
    for node in taken.api.list_node().items:
        name = node.metadata.name
        print(f"{name:<10} {rewards.get(name, '-'):>8} {placed[name]:>6}")
    return placed


if __name__ == "__main__":
    walk(sys.argv[1])
