"""Pods that differ in their requests alone go where an evaluator that has seen nothing else would send them."""

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
from policyengine.framework.profile import Profile
from policyengine.plugins.registry import default_profile
from policyengine.policy_compiler import compile_policy
from tests.framework.placing import Placing

ZONE, HOSTNAME, GPU = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "vendor.example/gpu"
MINE = {"matchLabels": {"app": "mine"}}
FAST = {"weight": 7, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
SPREAD = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": MINE}
APART = {"labelSelector": {"matchLabels": {"app": "other"}}, "topologyKey": HOSTNAME}
NEAR = {"weight": 9, "podAffinityTerm": {"labelSelector": MINE, "topologyKey": ZONE}}

RULES = """
policy "rules" {
  filter "room" { require node.free.cpu - pod.requests.cpu >= 100m else "only {node.free.cpu} left" }
  filter "large" when pod.requests.memory > 1Gi { require node.allocatable.memory > 2 * pod.requests.memory }
  filter "disk" { require pod.annotations[?"disk"].orValue("") == "" || node.labels[?"disk"].orValue("") == "ssd" }
  score "close" weight 2 = 100 * ratio(pod.requests.cpu, node.free.cpu)
}
"""
"""Rules that read requests beside what pods on a node change, beside what they do not, and one that reads neither."""
SCALED = (
    RULES.rstrip("}\n")
    + """
  score "spare" weight 1 normalize minmax = ratio(node.allocatable.memory, 8Gi)
}
"""
)
"""With one whose scores follow from which nodes are feasible."""


TEMPLATES: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"tolerations": [{"key": "odd", "operator": "Exists", "effect": "PreferNoSchedule"}]},
    {"nodeSelector": {"disk": "ssd"}},
    {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [FAST]}}},
    {"topologySpreadConstraints": [SPREAD]},
    {"topologySpreadConstraints": [SPREAD | {"whenUnsatisfiable": "ScheduleAnyway"}]},
    {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [APART]}}},
    {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [NEAR]}}},
)
AMOUNTS = {
    "cpu": ("0", "1m", "50m", "90m", "150m", "300m", "500m", "1", "9", "4Ti"),
    "memory": ("0", "1", "100Mi", "300Mi", "700Mi", "1500Mi", "3Gi", "9Gi", "4Pi"),
    "ephemeral-storage": ("1Gi", "20Gi"),
    GPU: ("1", "2", "5"),
}
"""The last is more than any node offers."""


class Cluster(Placing):
    """Few small nodes, which fill up; pods that come in runs of one template; an evaluator that lives as long."""

    def __init__(self, rng: Random, profile: Profile) -> None:
        super().__init__(rng, profile)
        self.is_plain = rng.random() < 0.7
        for number in range(rng.randint(9, 30)):
            self.set_node(number)

    def set_node(self, number: int) -> None:
        rng, name = self.rng, f"node-{number}"
        labels = {HOSTNAME: name, ZONE: f"zone-{number % 3}"} | ({"disk": "ssd"} if rng.random() < 0.6 else {})
        taints = [{"key": "odd", "effect": "PreferNoSchedule"}] if not self.is_plain and rng.random() < 0.3 else []
        size = {"cpu": rng.choice(("1", "2", "3500m")), "memory": rng.choice(("4Gi", "7Gi")), "pods": "8"}
        if not self.is_plain and rng.random() < 0.2:
            size |= rng.choice(({"cpu": "0"}, {"memory": "0"}, {"memory": "4Ei"}, {"pods": "0"}))
        if rng.random() < 0.4:
            size |= {GPU: "4", "ephemeral-storage": "30Gi"}
        node = {"metadata": self.meta(name, labels=labels), "spec": {"taints": taints}, "status": {"allocatable": size}}
        self.view.add_or_update_node(decode(Node, node))

    def set_pod(self, name: str, template: dict[str, Any], node: str = "") -> None:
        rng = self.rng
        asked = [name for name in AMOUNTS if rng.random() < (0.9 if name in ("cpu", "memory") else 0.08)]
        likely = {name: AMOUNTS[name] if rng.random() < 0.06 else AMOUNTS[name][:6] for name in asked}
        requests = {name: rng.choice(amounts) for name, amounts in likely.items()}
        app = "mine" if self.is_plain else rng.choice(("mine", "other", "third"))
        metadata = self.meta(name, namespace="default", labels={"app": app})
        if rng.random() < 0.03:
            metadata["annotations"] = {"disk": "ssd"}
        container = {"name": "c", "image": "app", "resources": {"requests": requests}}
        spec = {**template, "containers": [container], "nodeName": node}
        if not self.is_plain and rng.random() < 0.2:
            spec["nodeSelector"] = {"disk": "ssd"}
        self.view.add_or_update_pod(decode(Pod, {"metadata": metadata, "spec": spec}))

    def disturb(self) -> None:
        """Something that others do."""
        rng, pods = self.rng, [pod for pod in self.view.pods.values() if pod.state is not PodState.PENDING]
        pick = rng.random()
        if pick < 0.04:
            self.set_node(rng.randint(0, 31))
        elif pick < 0.06 and self.view.nodes.n > 2:
            self.view.remove_node(rng.choice(self.view.nodes.names))
        elif pick < 0.6 and pods:
            self.view.remove_pod(rng.choice(pods).uid)
        elif pick < 0.63:
            self.view.set_object("Namespace", decode(Namespace, {"metadata": self.meta("default")}))
        elif pick < 0.7 and pods:
            with self.view.hypothetically(remove=[rng.choice(pods).uid]) as snapshot:
                self.evaluator.filter(rng.choice(pods), snapshot)
        else:
            self.set_pod(f"other-{self.version}", rng.choice(TEMPLATES), rng.choice(self.view.nodes.names))


def run(seed: int, profile: Profile | None = None) -> int:
    """How many pods were placed."""
    cluster = Cluster(Random(seed), profile or default_profile())
    for number in range(5):
        template = cluster.rng.choice(TEMPLATES)
        for member in range(16):
            cluster.set_pod(name := f"pod-{number}-{member}", template)
            cluster.decide(name)
            while cluster.rng.random() < 0.2:
                cluster.disturb()
    return cluster.decided


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_similar_pods_go_where_a_fresh_evaluator_sends_them(seed: int) -> None:
    run(seed)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), policy=st.sampled_from((RULES, SCALED)))
def test_so_they_do_by_rules_of_a_policy(seed: int, policy: str) -> None:
    run(seed, compile_policy(policy))
