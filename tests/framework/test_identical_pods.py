"""One identical pod after another goes where an evaluator that has seen nothing else would send it."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_info import PodState
from policyengine.cluster.pod_objects import Pod
from policyengine.cluster.workload_objects import Namespace
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.profile import Profile
from policyengine.plugins.registry import default_profile
from policyengine.policy_compiler import compile_policy
from tests.framework.placing import Placing

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
MINE = {"matchLabels": {"app": "mine"}}
SPREAD = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": MINE}
APART = {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": MINE, "topologyKey": HOSTNAME}]}
FAST = {"weight": 7, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}

RULES = """
policy "rules" {
  filter "kept" { require node.labels[?"disk"].orValue("") != "ssd" || pod.labels[?"app"].orValue("") == "mine" }
  filter "noted" when "only" in pod.annotations { require node.name == pod.annotations[?"only"].orValue("") }
  filter "room" { require node.free.cpu - pod.requests.cpu >= 100m else "only {node.free.cpu} left" }
  score "empty" weight 2 = 100 * ratio(node.free.cpu - pod.requests.cpu, node.allocatable.cpu)
}
"""
"""Rules that read what all pods of a template have in common, and one that reads what they need not."""

TEMPLATES: tuple[dict[str, Any], ...] = (
    {},
    {"tolerations": [{"key": "odd", "operator": "Exists", "effect": "PreferNoSchedule"}]},
    {"nodeSelector": {"disk": "ssd"}},
    {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [FAST]}}},
    {"topologySpreadConstraints": [SPREAD]},
    {"affinity": {"podAntiAffinity": APART}},
    {"port": {"containerPort": 80, "hostPort": 80}},
)


class Cluster(Placing):
    """Few small nodes, which fill up; pods that come in runs; an evaluator that lives as long."""

    def __init__(self, rng: Random, profile: Profile) -> None:
        super().__init__(rng, profile)
        for number in range(rng.randint(3, 24)):
            self.set_node(number)

    def set_node(self, number: int) -> None:
        rng, name = self.rng, f"node-{number}"
        labels = {HOSTNAME: name, ZONE: f"zone-{number % 3}"} | ({"disk": "ssd"} if rng.random() < 0.5 else {})
        taints = [{"key": "odd", "effect": "PreferNoSchedule"}] if rng.random() < 0.3 else []
        size = {"cpu": rng.choice(("1", "2")), "memory": "4Gi", "pods": str(rng.randint(2, 8))}
        spec = {"taints": taints, "unschedulable": rng.random() < 0.1}
        node = {"metadata": self.meta(name, labels=labels), "spec": spec, "status": {"allocatable": size}}
        self.view.add_or_update_node(decode(Node, node))

    def set_pod(self, name: str, template: dict[str, Any], node: str = "") -> None:
        spec = {key: value for key, value in template.items() if key != "port"}
        container = {"name": "c", "image": "app", "resources": {"requests": {"cpu": "150m", "memory": "100Mi"}}}
        ports = [template["port"]] if "port" in template else []
        spec |= {"containers": [container | {"ports": ports}], "nodeName": node}
        metadata = self.meta(name, namespace="default", labels={"app": "mine"})
        if self.rng.random() < 0.03:
            metadata["labels"] = {"app": self.rng.choice(("mine", "other"))}
        if self.rng.random() < 0.03:
            metadata["annotations"] = {"only": f"node-{self.rng.randint(0, 25)}"}
        self.view.add_or_update_pod(decode(Pod, {"metadata": metadata, "spec": spec}))

    def disturb(self) -> None:
        """Something that others do."""
        rng, pods = self.rng, [pod for pod in self.view.pods.values() if pod.state is not PodState.PENDING]
        pick = rng.random()
        if pick < 0.2:
            self.set_node(rng.randint(0, 25))
        elif pick < 0.25 and self.view.nodes.n > 2:
            self.view.remove_node(rng.choice(self.view.nodes.names))
        elif pick < 0.6 and pods:
            self.view.remove_pod(rng.choice(pods).uid)
        elif pick < 0.8 and pods:
            seen = rng.choice(pods)
            self.set_pod(seen.name, rng.choice(TEMPLATES), seen.node_name)
        elif pick < 0.85:
            self.view.set_object("Namespace", decode(Namespace, {"metadata": self.meta("default")}))
        else:
            self.set_pod(f"other-{self.version}", rng.choice(TEMPLATES), rng.choice(self.view.nodes.names))


def run(seed: int, profile: Profile | None = None) -> int:
    cluster = Cluster(Random(seed), profile or default_profile())
    for number in range(6):
        template = cluster.rng.choice(TEMPLATES)
        for member in range(12):
            cluster.set_pod(name := f"pod-{number}-{member}", template)
            cluster.decide(name)
            while cluster.rng.random() < 0.25:
                cluster.disturb()
    return cluster.decided


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_an_identical_pod_goes_where_a_fresh_evaluator_sends_it(seed: int) -> None:
    run(seed)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_so_it_does_by_rules_of_a_policy(seed: int) -> None:
    run(seed, compile_policy(RULES))


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32), columns=st.sampled_from((1, 2, 128)))
def test_so_do_interleaved_kinds_of_pods_whatever_is_evicted_and_whoever_else_asks(seed: int, columns: int) -> None:
    """Kinds share some columns, few of which are kept; now and then the evaluator is asked about another cluster."""
    cluster, other = (Cluster(Random(seed + number), default_profile()) for number in range(2))
    cluster.evaluator = Evaluator(cluster.profile, columns)
    other.set_pod("elsewhere", {})
    kinds = cluster.rng.sample(TEMPLATES, 3)
    for number in range(40):
        cluster.set_pod(name := f"pod-{number}", cluster.rng.choice(kinds))
        cluster.decide(name)
        if cluster.rng.random() < 0.05:
            cluster.evaluator.select_node(other.view.pods["elsewhere"], other.view.snapshot())
        while cluster.rng.random() < 0.25:
            cluster.disturb()
