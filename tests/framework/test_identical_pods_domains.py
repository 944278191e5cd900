"""Identical pods counted over domains, or scored against all feasible nodes, go where an evaluator that has seen
nothing else would send them."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_info import PodState
from policyengine.cluster.pod_objects import Pod
from policyengine.cluster.workload_objects import Namespace, Service
from policyengine.framework.profile import Profile
from policyengine.plugins.registry import default_profile
from policyengine.policy_compiler import compile_policy
from tests.framework.placing import Placing

Json = dict[str, Any]
HOSTNAME, ZONE, RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack"
MINE = {"matchLabels": {"app": "mine"}}
HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"


def spread(key: str, when: str, skew: int = 1, **more: object) -> Json:
    return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": MINE, **more}


def near(kind: str, key: str, preferred: bool) -> Json:
    term = {"labelSelector": MINE, "topologyKey": key}
    if preferred:
        terms: Json = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 3, "podAffinityTerm": term}]}
    else:
        terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"affinity": {kind: terms}}


SSD = {"weight": 7, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
TEMPLATES: dict[str, Json] = {
    "zone spread": {"topologySpreadConstraints": [spread(ZONE, HARD)]},
    "zone and host spread": {
        "topologySpreadConstraints": [spread(ZONE, HARD, 2, minDomains=3), spread(HOSTNAME, HARD)]
    },
    "zone affinity": near("podAffinity", ZONE, preferred=False),
    "zone anti-affinity": near("podAntiAffinity", ZONE, preferred=False),
    "host anti-affinity": near("podAntiAffinity", HOSTNAME, preferred=False),
    "preferred host affinity": near("podAffinity", HOSTNAME, preferred=True),
    "preferred host anti-affinity": near("podAntiAffinity", HOSTNAME, preferred=True),
    "preferred zone affinity": near("podAffinity", ZONE, preferred=True),
    "preferred zone anti-affinity": near("podAntiAffinity", ZONE, preferred=True),
    "soft zone spread": {"topologySpreadConstraints": [spread(ZONE, SOFT)]},
    "soft rack and host spread": {"topologySpreadConstraints": [spread(RACK, SOFT, 2), spread(HOSTNAME, SOFT)]},
    "default spread": {},
    "preferred node affinity": {
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [SSD]}}
    },
}
RULES = """
policy "rules" {
  filter "zone has room" { require node.domain("topology.kubernetes.io/zone").pods.size() < 40 }
  score "least used" weight 2 normalize minmax = ratio(node.free.cpu, node.allocatable.cpu)
  score "few in the zone" weight 3 normalize max reverse =
    node.domain("topology.kubernetes.io/zone").pods.filter(p, p.labels[?"app"].orValue("") == "mine").size()
}
"""
"""Rules that are scaled by all feasible nodes, or ask about domains."""
PROFILE = compile_policy(RULES)


class Cluster(Placing):
    """Nodes in zones and racks of many rows, some without; pods of one template after another; others beside them."""

    def __init__(self, rng: Random, profile: Profile, template: Json, room: int | None) -> None:
        """`room`: pods that every node takes; each has every label then. None: some lack one, and take what they do."""
        super().__init__(rng, profile)
        self.template = template
        self.room = room
        self.set_service()
        for number in range(rng.choice((5, 36, 60))):
            self.set_node(number)

    def meta(self, name: str, **more: object) -> Json:
        return super().meta(name, namespace="default", **more)

    def set_service(self) -> None:
        service = {"metadata": self.meta("mine"), "spec": {"selector": {"app": "mine"}}}
        self.view.set_object("Service", decode(Service, service))

    def set_node(self, number: int) -> None:
        rng, name = self.rng, f"node-{number}"
        labels = {HOSTNAME: name, ZONE: f"zone-{number % 3}", RACK: f"rack-{number // 4}"}
        if self.room is not None:
            pass
        elif rng.random() < 0.1:
            del labels[rng.choice((HOSTNAME, ZONE, RACK))]
        elif rng.random() < 0.05:
            labels[HOSTNAME] = "node-0"
        if rng.random() < 0.5:
            labels["disk"] = "ssd"
        taints = (
            [{"key": "odd", "effect": rng.choice(("PreferNoSchedule", "NoSchedule"))}] if rng.random() < 0.2 else []
        )
        size = {
            "cpu": rng.choice(("1", "2")),
            "memory": "4Gi",
            "pods": str(self.room or rng.randint(1, 8)),
        }
        node = {"metadata": self.meta(name, labels=labels), "spec": {"taints": taints}, "status": {"allocatable": size}}
        self.view.add_or_update_node(decode(Node, node))

    def set_pod(self, name: str, template: Json, node: str = "", app: str = "mine") -> None:
        container = {"name": "c", "image": "app", "resources": {"requests": {"cpu": "150m", "memory": "100Mi"}}}
        spec = template | {"containers": [container], "nodeName": node}
        self.view.add_or_update_pod(decode(Pod, {"metadata": self.meta(name, labels={"app": app}), "spec": spec}))

    def disturb(self) -> None:
        """Something that others do."""
        rng, pods = self.rng, [pod for pod in self.view.pods.values() if pod.state is not PodState.PENDING]
        pick = rng.random()
        template = self.template if rng.random() < 0.5 else rng.choice(list(TEMPLATES.values()))
        if pick < 0.05:
            self.set_node(rng.randint(0, 60))
        elif pick < 0.07 and self.view.nodes.n > 2:
            self.view.remove_node(rng.choice(self.view.nodes.names))
        elif pick < 0.4 and pods:
            self.view.remove_pod(rng.choice(pods).uid)
        elif pick < 0.5 and pods:
            seen = rng.choice(pods)
            self.set_pod(seen.name, template, seen.node_name, rng.choice(("mine", "other")))
        elif pick < 0.53:
            self.view.set_object("Namespace", decode(Namespace, {"metadata": {"name": "default"}}))
        elif pick < 0.56:
            self.set_service()
        elif pick < 0.59:
            self.view.remove_object("Service", "default/mine")
        else:
            self.set_pod(
                f"other-{self.version}", template, rng.choice(self.view.nodes.names), rng.choice(("mine", "x"))
            )

    def ask(self, name: str) -> None:
        """Let the columns be asked between the pods, as somebody who wants an explanation does."""
        pod = self.view.pods[name]
        standing = [pod.uid for pod in self.view.pods.values() if pod.state is not PodState.PENDING]
        if standing and self.rng.random() < 0.5:
            with self.view.hypothetically(remove=self.rng.sample(standing, 1)) as snapshot:
                self.evaluator.filter(pod, snapshot)
        else:
            snapshot = self.view.snapshot()
            self.evaluator.score(pod, snapshot, self.evaluator.filter(pod, snapshot))


def run(
    seed: int,
    template: Json,
    profile: Profile | None = None,
    calm: float = 0.7,
    room: int | None = None,
    pods: int = 24,
) -> int:
    """Pods of a template; between two of them nothing happens with probability `calm`."""
    cluster = Cluster(Random(seed), profile or default_profile(), template, room)
    for number in range(pods):
        cluster.set_pod(name := f"pod-{number}", template)
        if cluster.rng.random() < 0.05 and calm < 1:
            cluster.ask(name)
        cluster.decide(name)
        while cluster.rng.random() > calm:
            cluster.disturb()
    return cluster.decided


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32), name=st.sampled_from(sorted(TEMPLATES)))
def test_an_identical_pod_goes_where_a_fresh_evaluator_sends_it(seed: int, name: str) -> None:
    run(seed, TEMPLATES[name])


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), name=st.sampled_from(sorted(TEMPLATES)))
def test_so_it_does_by_rules_that_scale_and_ask_about_domains(seed: int, name: str) -> None:
    run(seed, TEMPLATES[name], PROFILE)


@pytest.mark.parametrize("name", [name for name in sorted(TEMPLATES) if "zone" in name])
def test_domains_that_fill_up_no_longer_count(name: str) -> None:
    run(2, TEMPLATES[name], calm=1.0, room=1, pods=36)
    run(3, TEMPLATES[name], calm=0.8, room=1, pods=36)


def test_a_series_begins_again_when_all_of_it_is_gone() -> None:
    cluster = Cluster(Random(4), default_profile(), TEMPLATES["zone affinity"], room=8)
    for number in range(4):
        cluster.set_pod(name := f"pod-{number}", cluster.template)
        cluster.decide(name)
    for number in range(4):
        cluster.view.remove_pod(f"pod-{number}")
    cluster.set_pod("first", cluster.template)
    cluster.decide("first")
    assert cluster.decided == 5


def test_what_a_service_says_is_heard_between_identical_pods() -> None:
    cluster = Cluster(Random(4), default_profile(), TEMPLATES["default spread"], room=8)
    for number in range(8):
        if number == 6:
            cluster.view.remove_object("Service", "default/mine")
        cluster.set_pod(name := f"pod-{number}", cluster.template)
        cluster.decide(name)
    assert cluster.decided == 8
