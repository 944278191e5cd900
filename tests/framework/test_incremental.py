"""A cached answer equals a fresh one, whatever happened in between: random histories of a cluster."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.cluster.objects import (
    CSINode,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    Service,
    StorageClass,
    decode,
)
from policyengine.cluster.view import ClusterView
from policyengine.framework.evaluation import Evaluator
from policyengine.plugins.registry import default_profile
from policyengine.scheduler.explain import explain_pod
from tests.plugins import random_cluster

Json = dict[str, Any]
STEPS = 30
KINDS: dict[str, type[Any]] = {
    "Namespace": Namespace,
    "Service": Service,
    "StorageClass": StorageClass,
    "PersistentVolume": PersistentVolume,
    "PersistentVolumeClaim": PersistentVolumeClaim,
    "CSINode": CSINode,
}


class World:
    """Plain objects, a view that follows them event by event, and an evaluator that lives as long."""

    def __init__(self, rng: Random, columns: int) -> None:
        self.rng = rng
        self.view = ClusterView()
        self.evaluator = Evaluator(default_profile(), columns)
        self.nodes: dict[str, Json] = {}
        self.pods: dict[str, Json] = {}
        self.objects: dict[tuple[str, str], Json] = {}
        self.assumed: dict[str, str] = {}
        self.version = 0
        for name in random_cluster.NAMESPACES:
            self.set_namespace(name)
        for item in random_cluster.storage_classes():
            self.set_object("StorageClass", item["metadata"]["name"], item)
        for _ in range(4):
            self.set_storage()
        for number in range(rng.randint(6, 12)):
            self.set_node(f"node-{number}")
        for number in range(12):
            self.set_pod(f"pod-{number}", pending=number < 4)

    def step(self) -> None:
        rng = self.rng
        names = list(self.nodes)
        pick = rng.random()
        if pick < 0.12 or len(names) < 2:
            self.set_node(f"node-{rng.randint(0, 13)}")
        elif pick < 0.18:
            self.remove_node(rng.choice(names))
        elif pick < 0.40:
            self.set_pod(f"pod-{rng.randint(5, 30)}", pending=False)
        elif pick < 0.55:
            self.remove_pod()
        elif pick < 0.80:
            self.assume_or_forget()
        elif pick < 0.85:
            self.set_namespace(rng.choice(random_cluster.NAMESPACES))
        elif pick < 0.89:
            self.toggle_service(rng.choice(random_cluster.NAMESPACES))
        elif pick < 0.94:
            self.set_storage()
        else:
            self.relabel_pod()

    def stamped(self, item: Json) -> Json:
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)
        return item

    def set_node(self, name: str) -> None:
        self.nodes[name] = self.stamped(random_cluster.node(self.rng, name))
        self.view.add_or_update_node(decode(Node, self.nodes[name]))

    def remove_node(self, name: str) -> None:
        for uid in [uid for uid, node in self.assumed.items() if node == name]:
            self.forget(uid)
        for uid in [uid for uid, pod in self.pods.items() if pod["spec"].get("nodeName") == name]:
            del self.pods[uid]
            self.view.remove_pod(uid)
        del self.nodes[name]
        self.view.remove_node(name)

    def set_pod(self, name: str, pending: bool) -> None:
        uid = f"uid-{name}"
        if uid in self.pods:
            return
        on = "" if pending else self.rng.choice(list(self.nodes))
        pod = random_cluster.pod(self.rng, name, on)
        self.pods[uid] = self.stamped(random_cluster.claims(pod, self.rng) if self.rng.random() < 0.3 else pod)
        self.view.add_or_update_pod(decode(Pod, self.pods[uid]))

    def remove_pod(self) -> None:
        bound = [uid for uid, pod in self.pods.items() if pod["spec"].get("nodeName")]
        if bound:
            uid = self.rng.choice(bound)
            del self.pods[uid]
            self.view.remove_pod(uid)

    def relabel_pod(self) -> None:
        uid = self.rng.choice(list(self.pods))
        if uid not in self.assumed:
            self.pods[uid]["metadata"]["labels"] = {"app": self.rng.choice(random_cluster.APPS)}
            self.view.add_or_update_pod(decode(Pod, self.stamped(self.pods[uid])))

    def assume_or_forget(self) -> None:
        if self.assumed and self.rng.random() < 0.5:
            self.forget(self.rng.choice(list(self.assumed)))
            return
        waiting = [uid for uid in self.pending() if uid not in self.assumed]
        if len(waiting) > 2:
            uid = self.rng.choice(waiting)
            self.assumed[uid] = self.rng.choice(list(self.nodes))
            self.view.assume(uid, self.assumed[uid])

    def forget(self, uid: str) -> None:
        del self.assumed[uid]
        self.view.forget(uid)

    def set_namespace(self, name: str) -> None:
        item = {"metadata": {"name": name, "labels": {"team": self.rng.choice("ab")}}}
        self.set_object("Namespace", name, item)

    def toggle_service(self, namespace: str) -> None:
        key = f"{namespace}/s"
        if ("Service", key) in self.objects:
            del self.objects["Service", key]
            self.view.remove_object("Service", key)
        else:
            spec = {"selector": {"app": self.rng.choice(random_cluster.APPS)}}
            self.set_object("Service", key, {"metadata": {"name": "s", "namespace": namespace}, "spec": spec})

    def set_storage(self) -> None:
        rng = self.rng
        for namespace in random_cluster.NAMESPACES:
            name = rng.choice(("data", "logs", "cache"))
            claim = random_cluster.claim(rng, namespace, name)
            self.set_object("PersistentVolumeClaim", f"{namespace}/{name}", claim)
        volume = f"pv-{rng.randint(0, 4)}"
        self.set_object("PersistentVolume", volume, random_cluster.volume(rng, volume))
        node = f"node-{rng.randint(0, 13)}"
        self.set_object("CSINode", node, random_cluster.csi_node(rng, node))

    def set_object(self, kind: str, key: str, item: Json) -> None:
        self.objects[kind, key] = self.stamped(item)
        self.view.set_object(kind, decode(KINDS[kind], item))

    def pending(self) -> list[str]:
        return [uid for uid, pod in self.pods.items() if not pod["spec"].get("nodeName")]

    def fresh(self) -> ClusterView:
        """A view of the same cluster that was never anything else, its rows in another order."""
        view = ClusterView()
        for (kind, _), item in self.objects.items():
            view.set_object(kind, decode(KINDS[kind], item))
        for name in sorted(self.nodes, reverse=True):
            view.add_or_update_node(decode(Node, self.nodes[name]))
        for pod in self.pods.values():
            view.add_or_update_pod(decode(Pod, pod))
        for uid, name in self.assumed.items():
            view.assume(uid, name)
        return view

    def check(self) -> None:
        fresh = self.fresh()
        for uid in self.pending():
            if uid not in self.assumed:
                cached = explain_pod(self.evaluator, self.view.pods[uid], self.view.snapshot())
                anew = explain_pod(Evaluator(default_profile()), fresh.pods[uid], fresh.snapshot())
                assert cached == anew


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), columns=st.sampled_from((2, 128)))
def test_a_cached_answer_equals_a_fresh_one_over_any_history(seed: int, columns: int) -> None:
    world = World(Random(seed), columns)
    for _ in range(STEPS):
        world.step()
        if world.rng.random() < 0.6:
            world.check()
    world.check()


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_hypothetical_leaves_no_trace_in_the_columns(seed: int) -> None:
    world = World(Random(seed), 128)
    world.check()
    bound = [uid for uid, pod in world.pods.items() if pod["spec"].get("nodeName")]
    with world.view.hypothetically(remove=bound[:4]) as snapshot:
        for uid in world.pending():
            world.evaluator.judge(world.view.pods[uid], snapshot)
    world.check()
