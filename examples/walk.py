"""Plays an example's scenario against the API of a sandbox, with the ordinary Kubernetes client.

    policyengine sandbox --nodes 0 --policy policies/congestion.policy
    python examples/walk.py examples/congestion/scenario.yaml sandbox.kubeconfig

What `policyengine simulate` plays on virtual time happens here as fast as it goes: the scenario's nodes are made, then
its pods and its changes in their order, each waited for. Ends with a table; a third argument names a file for a picture
of the load over the nodes.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client, config
from load_over_nodes import Bar, svg

WAIT, AFTER_REFUSAL = 30.0, 2.0
"""Seconds until something is said of a pod; and more, for a scheduler that has not heard of all nodes yet."""
ROOM = {"cpu": "4", "memory": "16Gi", "pods": "110"}
Item = dict[str, Any]


class Walk:
    """One scenario in one cluster."""

    def __init__(self, scenario: Path, kubeconfig: str) -> None:
        config.load_kube_config(kubeconfig)
        self.api = client.CoreV1Api()
        self.scenario: Item = yaml.safe_load(scenario.read_text(encoding="utf-8"))
        policy = (scenario.parent / self.scenario["policies"][0]["file"]).read_text(encoding="utf-8")
        self.scheduler = re.findall(r'^\s*scheduler "(.+)"', policy, re.MULTILINE)[0]

    def run(self) -> None:
        """Make everything, in its order."""
        for given in self.scenario["nodes"]:
            for name in named(given):
                self.node(name, given)
        steps = [(seconds(one.get("at", 0)), "change", "", one) for one in self.scenario.get("changes", ())]
        for given in self.scenario["pods"]:
            every = seconds(given.get("every", 0))
            for number, name in enumerate(named(given)):
                steps.append((seconds(given.get("at", 0)) + number * every, "pod", name, given))
        for _, what, name, given in sorted(steps, key=lambda step: step[0]):
            if what == "pod":
                self.pod(name, given)
            else:
                self.api.patch_node(given["node"], {"metadata": {"annotations": given["annotations"]}})
                time.sleep(0.2)

    def node(self, name: str, given: Item) -> None:
        """A node that is ready."""
        room = {key: str(value) for key, value in given.get("allocatable", ROOM).items()}
        ready = client.V1NodeCondition(type="Ready", status="True", reason="Walk", message="it is")
        status = client.V1NodeStatus(capacity=room, allocatable=room, conditions=[ready])
        metadata = client.V1ObjectMeta(name=name, annotations=given.get("annotations"))
        self.api.create_node(client.V1Node(metadata=metadata, status=status))

    def pod(self, name: str, given: Item) -> None:
        """A pod, until it has a node or goes on being told why it has none."""
        requests = {key: str(value) for key, value in given.get("requests", {}).items()}
        needs = client.V1ResourceRequirements(requests=requests)
        container = client.V1Container(name="main", image="registry.k8s.io/pause:3.10", resources=needs)
        metadata = client.V1ObjectMeta(
            name=name, labels=given.get("labels"), annotations=given.get("annotations"), namespace="default"
        )
        spec = client.V1PodSpec(scheduler_name=self.scheduler, containers=[container])
        self.api.create_namespaced_pod("default", client.V1Pod(metadata=metadata, spec=spec))
        start, refused = time.monotonic(), 0.0
        while not self.node_of(pod := self.read(name)) and not (refused and time.monotonic() > refused):
            assert time.monotonic() < start + WAIT, f"nothing is said of {name}"
            if why(pod) and not refused:
                refused = time.monotonic() + AFTER_REFUSAL
            time.sleep(0.02)

    def read(self, name: str) -> client.V1Pod:
        """The pod as it is."""
        return self.api.read_namespaced_pod(name, "default")

    def node_of(self, pod: client.V1Pod) -> str:
        """Where it is; empty while it waits."""
        return pod.spec.node_name or ""

    def bars(self) -> list[Bar]:
        """The load of every node: measured before the pods came, where annotations say so, and asked for by them."""
        pods = self.api.list_namespaced_pod("default").items
        found = []
        for node in self.api.list_node().items:
            cpu = cores(node.status.allocatable["cpu"])
            free = (node.metadata.annotations or {}).get("mean-free-cpu")
            here = [pod for pod in pods if pod.spec.node_name == node.metadata.name]
            asked = [cores((pod.spec.containers[0].resources.requests or {}).get("cpu", "0")) / cpu for pod in here]
            small, large = (sum(one for one in asked if (one > 0.5) == is_large) for is_large in (False, True))
            found.append(Bar(node.metadata.name, 1 - int(free) / (cpu * 1000) if free else 0.0, small, large))
        return found

    def table(self) -> None:
        """The nodes and how many pods each has; then who waits, and why."""
        pods = self.api.list_namespaced_pod("default").items
        print(f"{'node':<12} {'pods':>4}  {'load':>5}")
        for bar in self.bars():
            count = sum(pod.spec.node_name == bar.node for pod in pods)
            print(f"{bar.node:<12} {count:>4}  {bar.used + bar.small + bar.large:>5.0%}")
        for pod in pods:
            if not pod.spec.node_name:
                print(f"{pod.metadata.name} waits: {why(pod)}")


def named(given: Item) -> Iterator[str]:
    """The names of a template's objects."""
    yield from (
        [f"{given['name']}-{number}" for number in range(given["count"])] if "count" in given else [given["name"]]
    )


def seconds(text: str | int) -> float:
    """A duration of a scenario; milliseconds and hours do not occur."""
    value, unit = re.fullmatch(r"(\d+)(s|min|)", str(text)).groups()  # type: ignore[union-attr]
    return float(value) * (60 if unit == "min" else 1)


def cores(text: str) -> float:
    """A quantity of processors."""
    return float(text[:-1]) / 1000 if text.endswith("m") else float(text)


def why(pod: client.V1Pod) -> str:
    """What is said of why it waits."""
    conditions = pod.status.conditions or []
    return next((one.message or "" for one in conditions if one.type == "PodScheduled" and one.status == "False"), "")


def walk(scenario: str, kubeconfig: str, picture: str = "") -> Walk:
    """All of it."""
    taken = Walk(Path(scenario), kubeconfig)
    taken.run()
    taken.table()
    if picture:
        Path(picture).write_text(svg({str(taken.scenario["name"]): taken.bars()}), encoding="utf-8")
    return taken


if __name__ == "__main__":
    walk(*sys.argv[1:])
