"""Random histories of a cluster: plain objects, a view that follows them event by event, evaluators beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

from policyengine.cluster.kinds import BY_KIND
from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_objects import Pod
from policyengine.cluster.view import ClusterView
from policyengine.diagnosis.explain import explain_pod
from policyengine.framework.changes import Changes
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.plugin import UNCONCERNED
from policyengine.framework.plugin_column import PluginColumn, PluginColumns
from policyengine.framework.status import Refusal
from policyengine.plugins.registry import default_profile
from tests.plugins import random_cluster
from tests.plugins.devices import random_devices
from tests.plugins.volumes import random_storage

Json = dict[str, Any]
FEATURE = "RestartAllContainersOnContainerExits"


CONCERNED, PENDING = 4, 6
"""Waiting pods with something for every plugin, and all waiting pods."""


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
        for item in random_storage.storage_classes():
            self.set_object("StorageClass", item["metadata"]["name"], item)
        self.set_object("DeviceClass", "gpu", random_devices.device_class(rng))
        for _ in range(4):
            self.set_storage()
        for number in range(rng.randint(6, 12)):
            self.set_node(f"node-{number}")
        for namespace in random_cluster.NAMESPACES:
            for name in random_devices.CLAIMS:
                self.set_device_claim(namespace, name)
        for number in range(12):
            self.set_pod(f"pod-{number}", pending=number < PENDING)

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
        elif pick < 0.92:
            self.set_storage()
        elif pick < 0.96:
            self.set_devices()
        else:
            self.relabel_pod()

    def stamped(self, item: Json) -> Json:
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)
        return item

    def set_node(self, name: str) -> None:
        node = random_cluster.node(self.rng, name)
        if self.rng.random() < 0.5:
            node["status"]["declaredFeatures"] = [FEATURE]
        self.nodes[name] = self.stamped(node)
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
        if pending or self.rng.random() < 0.3:
            pod = random_storage.claims(pod, self.rng)
        if pending and int(name[4:]) < CONCERNED:
            pod = concerning(pod, self.rng)
        self.pods[uid] = self.stamped(pod)
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
            waiting.remove(self.any_concerned().uid)  # one of them always waits
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
            claim = random_storage.claim(rng, namespace, name)
            self.set_object("PersistentVolumeClaim", f"{namespace}/{name}", claim)
        volume = f"pv-{rng.randint(0, 4)}"
        self.set_object("PersistentVolume", volume, random_storage.volume(rng, volume))
        node = f"node-{rng.randint(0, 13)}"
        self.set_object("CSINode", node, random_storage.csi_node(rng, node))

        self.set_object("CSIDriver", "csi.example", random_storage.csi_driver(rng))
        self.set_object("CSIStorageCapacity", "default/room", random_storage.storage_capacity(rng))
        self.set_object("VolumeAttachment", "attached", random_storage.attachment(rng))

    def set_devices(self) -> None:
        rng = self.rng
        pick = rng.random()
        if pick < 0.1:
            self.set_object("DeviceClass", "gpu", random_devices.device_class(rng))
        elif pick < 0.5:
            self.set_device_claim(rng.choice(random_cluster.NAMESPACES), rng.choice(random_devices.CLAIMS))
        else:
            node = f"node-{rng.randint(0, 13)}"
            self.set_object("ResourceSlice", f"slice-{node}", random_devices.resource_slice(rng, node))

    def set_device_claim(self, namespace: str, name: str) -> None:
        claim = random_devices.claim(self.rng, namespace, name, list(self.nodes))
        self.set_object("ResourceClaim", f"{namespace}/{name}", claim)

    def set_object(self, kind: str, key: str, item: Json) -> None:
        self.objects[kind, key] = self.stamped(item)
        self.view.set_object(kind, decode(BY_KIND[kind].type, item))

    def pending(self) -> list[str]:
        return [uid for uid, pod in self.pods.items() if not pod["spec"].get("nodeName")]

    def fresh(self) -> ClusterView:
        """A view of the same cluster that was never anything else, its rows in another order."""
        view = ClusterView()
        for (kind, _), item in self.objects.items():
            view.set_object(kind, decode(BY_KIND[kind].type, item))
        for name in sorted(self.nodes, reverse=True):
            view.add_or_update_node(decode(Node, self.nodes[name]))
        for pod in self.pods.values():
            view.add_or_update_pod(decode(Pod, pod))
        for uid, name in self.assumed.items():
            view.assume(uid, name)
        return view

    def check(self) -> None:
        """Every waiting pod's answer is that of an evaluator that has seen nothing else."""
        fresh = self.fresh()
        for uid in self.pending():
            if uid not in self.assumed:
                cached = explain_pod(self.evaluator, self.view.pods[uid], self.view.snapshot())
                anew = explain_pod(Evaluator(default_profile()), fresh.pods[uid], fresh.snapshot())
                assert cached == anew

    def compare(self, fresh: Evaluator, held: Counter[str]) -> None:
        """Each plugin's columns for one waiting pod are those worked out from nothing by `fresh`, which belongs to
        another profile; `held` counts what was compared, by plugin."""
        pod, changes = self.any_concerned(), Changes(self.view.snapshot())
        for mine, anew in zip(columns_of(self.evaluator), columns_of(fresh), strict=True):
            signature = mine.signature(pod)
            if signature is not UNCONCERNED:
                one, other = mine.of(signature), PluginColumn(anew)
                one.update(pod, changes)
                other.update(pod, changes)
                assert said(one) == said(other), (pod.name, mine.name)
                held[mine.name] += 1

    def compare_decision(self, fresh: Evaluator) -> None:
        """The decision about one waiting pod is the one that `fresh`, new, takes."""
        pod, snapshot = self.any_concerned(), self.view.snapshot()
        cached, anew = self.evaluator.filter(pod, snapshot), fresh.filter(pod, snapshot)
        assert cached.feasible.tolist() == anew.feasible.tolist()
        assert cached.message() == anew.message()
        if len(cached.feasible):
            ranked, ranked_anew = self.evaluator.score(pod, snapshot, cached), fresh.score(pod, snapshot, anew)
            assert ranked.total.tolist() == ranked_anew.total.tolist()
            assert ranked.best(pod.uid) == ranked_anew.best(pod.uid)

    def any_concerned(self) -> PodInfo:
        """A waiting pod, of those made for it one that every plugin has something to say about."""
        waiting = [uid for uid in self.pending() if uid not in self.assumed]
        concerned = [uid for uid in waiting if self.pods[uid]["spec"].get("resourceClaims")]
        return self.view.pods[self.rng.choice(concerned or waiting)]


def columns_of(evaluator: Evaluator) -> list[PluginColumns]:
    return [*evaluator._filters, *(columns for columns, _ in evaluator._scorers)]


def said(column: PluginColumn) -> tuple[object, ...]:
    """A column's meaning: numbers of refusals are the plugin's own business."""
    if not column.status.is_success:
        return (column.status,)
    if column.source.filters:
        refusals = (None, *column.refusals)
        told = [None if one is None else (one.code, one.reasons_at(row)) for row, one in refused(column, refusals)]
        return (column.status, column.refused, told)
    return (column.status, column.values.tolist())


def refused(column: PluginColumn, refusals: Sequence[Refusal | None]) -> list[tuple[int, Refusal | None]]:
    return [(row, refusals[number]) for row, number in enumerate(column.values.tolist())]


def concerning(pod: Json, rng: Random) -> Json:
    """The pod, made so that every plugin has something to say about it."""
    spec = random_devices.using(pod, rng)["spec"]
    spec["initContainers"] = [
        {"name": "again", "image": "app:1", "restartPolicyRules": [{"action": "RestartAllContainers"}]}
    ]
    spec["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
    spec["nodeSelector"] = {"disk": rng.choice(("ssd", "hdd"))}
    spec["containers"][0]["resources"] = {"requests": {"cpu": "50m", "memory": "64Mi"}}
    spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": rng.choice((80, 8080))}]
    spec["affinity"] = random_cluster.affinity(rng)
    spec["topologySpreadConstraints"] = random_cluster.spread(rng)
    return pod | {"spec": spec}
