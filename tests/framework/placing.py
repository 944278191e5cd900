"""Pods placed one after another by an evaluator that lives as long, each held against one that has just begun."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from policyengine.cluster.kinds import BY_KIND
from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_info import PodInfo, PodState
from policyengine.cluster.pod_objects import Pod
from policyengine.cluster.view import ClusterView, Snapshot
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.filtering import Diagnosis
from policyengine.framework.profile import Profile
from policyengine.framework.scoring import ONLY, SCORED, SHOWN, Choice, NodeScores

Json = dict[str, Any]
HOSTNAME, ZONE, RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack"
GPU = "vendor.example/gpu"
MINE = {"matchLabels": {"app": "mine"}}
HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"


def spread(key: str, when: str, skew: int = 1, **more: object) -> Json:
    return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": MINE, **more}


def near(kind: str, key: str, preferred: bool, app: str = "mine") -> Json:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    if preferred:
        terms: Json = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 3, "podAffinityTerm": term}]}
    else:
        terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"affinity": {kind: terms}}


def check_choice(choice: Choice, diagnosis: Diagnosis, scores: NodeScores, snapshot: Snapshot) -> None:
    """What was kept of a decision is what a fresh one finds; of equal runners-up any may be named."""
    totals = {snapshot.nodes.names[row]: total for row, total in zip(scores.rows, scores.total, strict=True)}
    assert (choice.nodes, choice.feasible, choice.refused) == (snapshot.nodes.n, len(totals), diagnosis.refused)
    if len(totals) == 1:
        assert (choice.how, choice.best, choice.weighted()) == (ONLY, tuple(totals), {})
        return
    assert choice.how == SCORED
    assert len(set(choice.best)) == len(choice.best)
    assert [totals[name] for name in choice.best] == sorted(totals.values(), reverse=True)[:SHOWN]
    rows = {name: scores.rows.tolist().index(snapshot.nodes.row_of[name]) for name in choice.best}
    assert choice.weighted() == {
        name: {plugin: points[at] for plugin, points in scores.per_plugin.items()} for name, at in rows.items()
    }


SSD = {"weight": 7, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
TEMPLATES: Mapping[str, Json] = {
    "nothing but a service's spread": {},
    "toleration": {"tolerations": [{"key": "odd", "operator": "Exists", "effect": "PreferNoSchedule"}]},
    "node selector": {"nodeSelector": {"disk": "ssd"}},
    "host port": {"port": {"containerPort": 80, "hostPort": 80}},
    "preferred node affinity": {
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [SSD]}}
    },
    "zone spread": {"topologySpreadConstraints": [spread(ZONE, HARD)]},
    "zone and host spread": {
        "topologySpreadConstraints": [spread(ZONE, HARD, 2, minDomains=3), spread(HOSTNAME, HARD)]
    },
    "soft zone spread": {"topologySpreadConstraints": [spread(ZONE, SOFT)]},
    "soft rack and host spread": {"topologySpreadConstraints": [spread(RACK, SOFT, 2), spread(HOSTNAME, SOFT)]},
    "zone affinity": near("podAffinity", ZONE, preferred=False),
    "zone anti-affinity": near("podAntiAffinity", ZONE, preferred=False),
    "host anti-affinity": near("podAntiAffinity", HOSTNAME, preferred=False),
    "host anti-affinity to others": near("podAntiAffinity", HOSTNAME, preferred=False, app="other"),
    "preferred host affinity": near("podAffinity", HOSTNAME, preferred=True),
    "preferred host anti-affinity": near("podAntiAffinity", HOSTNAME, preferred=True),
    "preferred zone affinity": near("podAffinity", ZONE, preferred=True),
    "preferred zone anti-affinity": near("podAntiAffinity", ZONE, preferred=True),
}
AMOUNTS = {
    "cpu": ("0", "1m", "50m", "90m", "150m", "300m", "500m", "1", "9", "4Ti"),
    "memory": ("0", "1", "100Mi", "300Mi", "700Mi", "1500Mi", "3Gi", "9Gi", "4Pi"),
    "ephemeral-storage": ("1Gi", "20Gi"),
    GPU: ("1", "2", "5"),
}
"""The last is more than any node offers."""
ALIKE = {"cpu": "150m", "memory": "100Mi"}


class Placing:
    """A cluster as a view, what others do in it, and what decides in it.

    Pods of one template are alike, or differ in what they ask for. Nodes are few or many, in zones and racks; every
    node has every label, or some lack one or have odd amounts.
    """

    def __init__(self, rng: Random, profile: Profile, room: int = 0) -> None:
        """`room`: pods that every node takes, all nodes and pods being regular; 0: some nodes and pods are odd."""
        self.rng = rng
        self.view = ClusterView()
        self.profile = profile
        self.evaluator = Evaluator(profile)
        self.room = room
        self.differ = not room and rng.random() < 0.5
        """Whether pods differ in their requests."""
        self.odd = 0.0 if room else rng.choice((0.0, 0.05, 0.2))
        """How often something is odd."""
        self.version = 0
        self.decided = 0
        """Pods placed."""
        self.set_object("Service", "mine", spec={"selector": {"app": "mine"}})
        for number in range(rng.choice((rng.randint(3, 9), 24, 36, 60))):
            self.set_node(number)

    def meta(self, name: str, **more: object) -> Json:
        self.version += 1
        return {"name": name, "uid": name, "namespace": "default", "resourceVersion": str(self.version), **more}

    def is_odd(self) -> bool:
        return self.rng.random() < self.odd

    def set_object(self, kind: str, name: str, **more: object) -> None:
        self.view.set_object(kind, decode(BY_KIND[kind].type, {"metadata": self.meta(name), **more}))

    def set_node(self, number: int) -> None:
        rng, name = self.rng, f"node-{number}"
        labels = {HOSTNAME: name, ZONE: f"zone-{number % 3}", RACK: f"rack-{number // 4}"}
        if self.is_odd():
            del labels[rng.choice((HOSTNAME, ZONE, RACK))]
        elif self.is_odd():
            labels[HOSTNAME] = "node-0"
        if rng.random() < 0.5:
            labels["disk"] = "ssd"
        effects = ("PreferNoSchedule", "PreferNoSchedule", "NoSchedule")
        taints = [{"key": "odd", "effect": rng.choice(effects)}] if self.is_odd() else []
        size = {"cpu": rng.choice(("1", "2", "3500m")), "memory": rng.choice(("4Gi", "7Gi"))}
        size["pods"] = str(self.room or rng.randint(1, 8))
        if self.is_odd():
            size |= rng.choice(({"cpu": "0"}, {"memory": "0"}, {"memory": "4Ei"}, {"pods": "0"}))
        if rng.random() < 0.4:
            size |= {GPU: "4", "ephemeral-storage": "30Gi"}
        spec = {"taints": taints, "unschedulable": self.is_odd()}
        node = {"metadata": self.meta(name, labels=labels), "spec": spec, "status": {"allocatable": size}}
        self.view.add_or_update_node(decode(Node, node))

    def requests(self) -> Json:
        rng = self.rng
        if not self.differ:
            return ALIKE
        asked = [name for name in AMOUNTS if rng.random() < (0.9 if name in ("cpu", "memory") else 0.08)]
        return {name: rng.choice(AMOUNTS[name] if rng.random() < 0.06 else AMOUNTS[name][:6]) for name in asked}

    def set_pod(self, name: str, template: Json, node: str = "") -> None:
        container: Json = {"name": "c", "image": "app", "resources": {"requests": self.requests()}}
        spec = {key: value for key, value in template.items() if key != "port"}
        container["ports"] = [template["port"]] if "port" in template else []
        spec |= {"containers": [container], "nodeName": node}
        labels = {"app": self.rng.choice(("mine", "other", "third")) if self.is_odd() else "mine"}
        annotations = {}
        if self.is_odd():
            annotations = self.rng.choice(({"disk": "ssd"}, {"only": f"node-{self.rng.randint(0, 25)}"}))
        metadata = self.meta(name, labels=labels, annotations=annotations)
        self.view.add_or_update_pod(decode(Pod, {"metadata": metadata, "spec": spec}))

    def standing(self) -> list[PodInfo]:
        return [pod for pod in self.view.pods.values() if pod.state is not PodState.PENDING]

    def disturb(self, template: Json) -> None:
        """Something that others do."""
        rng, pods = self.rng, self.standing()
        pick = rng.random()
        if rng.random() < 0.5:
            template = rng.choice(list(TEMPLATES.values()))
        if pick < 0.1:
            self.set_node(rng.randint(0, 60))
        elif pick < 0.13 and self.view.nodes.n > 2:
            self.view.remove_node(rng.choice(self.view.nodes.names))
        elif pick < 0.45 and pods:
            self.view.remove_pod(rng.choice(pods).uid)
        elif pick < 0.55 and pods:
            seen = rng.choice(pods)
            self.set_pod(seen.name, template, seen.node_name)
        elif pick < 0.58:
            self.set_object("Namespace", "default")
        elif pick < 0.61:
            self.set_object("Service", "mine", spec={"selector": {"app": "mine"}})
        elif pick < 0.64:
            self.view.remove_object("Service", "default/mine")
        elif pick < 0.7 and pods:
            self.explain(rng.choice(pods))
        else:
            self.set_pod(f"other-{self.version}", template, rng.choice(self.view.nodes.names))

    def explain(self, pod: PodInfo) -> None:
        """Ask the columns between the pods, also as if another pod were gone."""
        if self.rng.random() < 0.5:
            with self.view.hypothetically(remove=[self.rng.choice(self.standing()).uid]) as snapshot:
                self.evaluator.filter(pod, snapshot)
        else:
            snapshot = self.view.snapshot()
            self.evaluator.score(pod, snapshot, self.evaluator.filter(pod, snapshot))

    def place(self, name: str, template: Json) -> None:
        """A pod comes. Hold its place, the feasible nodes and the totals against a fresh decision."""
        self.set_pod(name, template)
        pod, snapshot = self.view.pods[name], self.view.snapshot()
        found = self.evaluator.select_node(pod, snapshot)
        fresh = Evaluator(self.profile)
        diagnosis = fresh.filter(pod, snapshot)
        scores = fresh.score(pod, snapshot, diagnosis)
        assert (found is None) == (len(diagnosis.feasible) == 0)
        if found is not None:
            assert found.node == snapshot.nodes.names[scores.best(pod.uid)]
            check_choice(found, diagnosis, scores, snapshot)
            kept = self.evaluator._total(pod)
            assert kept.feasible.rows.tolist() == diagnosis.feasible.tolist()
            if len(diagnosis.feasible) > 1:
                assert kept.values[diagnosis.feasible].tolist() == scores.total.tolist()
            self.view.assume(pod.uid, found.node)
            self.decided += 1
