"""A world from a seed: what is there when kube-scheduler starts, and the pods that come one after another.

Everything is as an API server takes it. Worlds are small and crowded, so that names, labels, ports and room collide;
each has a few themes of many, so that most pods still find a node.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.exact.random_pods import (
    APPS,
    DISKS,
    EFFECTS,
    GPU,
    HOST,
    HUGE,
    IMAGES,
    NAMESPACES,
    NEVER,
    OVERHEAD,
    OWNED,
    PRIORITIES,
    PRIORITY,
    RANKS,
    TAINT_KEYS,
    THEMES,
    ZONE,
    ZONES,
    pod,
)
from tests.exact.random_volumes import VOLUMES, claims_of, volumes
from tests.plugins.devices import random_devices

Json = dict[str, Any]

PATHS = {
    "Node": "/api/v1/nodes",
    "Namespace": "/api/v1/namespaces",
    "Service": "/api/v1/namespaces/{}/services",
    "Pod": "/api/v1/namespaces/{}/pods",
    "ReplicaSet": "/apis/apps/v1/namespaces/{}/replicasets",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "RuntimeClass": "/apis/node.k8s.io/v1/runtimeclasses",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "CSIDriver": "/apis/storage.k8s.io/v1/csidrivers",
    "CSINode": "/apis/storage.k8s.io/v1/csinodes",
    "CSIStorageCapacity": "/apis/storage.k8s.io/v1/namespaces/{}/csistoragecapacities",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims",
}


DEVICES = "devices"
"""The theme."""


@dataclass
class World:
    """`objects` in the order in which they are made; those with a status have it written after them."""

    seed: int
    themes: frozenset[str]
    objects: list[Json] = field(default_factory=list)
    coming: list[Json] = field(default_factory=list)


def classes() -> list[Json]:
    """What outlives worlds: priorities, what overhead costs, namespaces."""
    made: list[Json] = [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "preemptionPolicy": "Never" if name == NEVER else "PreemptLowerPriority",
        }
        for name, value in PRIORITIES.items()
    ]
    runtime: Json = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "h"}
    costs = {"overhead": {"podFixed": {"cpu": "150m", "memory": "90Mi"}}}
    wants = {"scheduling": {"nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]}}
    made.append(runtime | {"metadata": {"name": OVERHEAD}} | costs | wants)
    made.append(runtime | {"metadata": {"name": "plain"}} | costs)
    made += [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"team": name[-1]}}}
        for name in NAMESPACES
        if name != "default"
    ]
    return made


def world(seed: int) -> World:
    rng = Random(seed)
    themes = frozenset(rng.sample((*THEMES, VOLUMES, DEVICES), rng.randint(2, 5)))
    made = World(seed, themes)
    names = [f"n{number}" for number in range(rng.choice((5, 8, 8, 12, 25, 40)))]
    made.objects += [_node(rng, name, crowded=PRIORITY in themes and rng.random() < 0.8) for name in names]
    if rng.random() < 0.5 or OWNED in themes:
        made.objects += _owners(rng)
    if VOLUMES in themes:
        made.objects += volumes(rng, names)
    if DEVICES in themes:
        made.objects += _devices(rng, names)
    standing = rng.randint(0, 3 * len(names))
    if PRIORITY in themes:
        made.objects += [_budget(rng, number) for number in range(rng.randint(0, 3))]
        standing += 2 * len(names)
    made.objects += _apart([_standing(rng, f"run-{number}", names, themes) for number in range(standing)])
    made.coming = [_coming(rng, f"new-{number}", names, themes) for number in range(rng.randint(15, 30))]
    return made


def _apart(pods: list[Json]) -> list[Json]:
    """No two on a node hold the same host port: no kubelet runs them, and kube-scheduler, which keeps a set of what is
    taken, would hold it free when one of them goes."""
    taken: set[tuple[str, ...]] = set()
    for one in pods:
        for container in one["spec"]["containers"]:
            held = {
                (
                    one["spec"]["nodeName"],
                    port.get("hostIP", "0.0.0.0"),
                    port.get("protocol", "TCP"),
                    str(port["hostPort"]),
                )
                for port in container.get("ports", ())
            }
            if held & taken:
                del container["ports"]
            taken |= held
    return pods


def _coming(rng: Random, name: str, nodes: list[str], themes: frozenset[str]) -> Json:
    made = pod(rng, name, nodes, themes)
    made["spec"]["terminationGracePeriodSeconds"] = 0
    if VOLUMES in themes and rng.random() < 0.5:
        claims_of(rng, made["spec"])
    if DEVICES in themes and rng.random() < 0.5:
        made = random_devices.using(made, rng)
    if rng.random() < 0.08:
        made["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    return made


def _standing(rng: Random, name: str, nodes: list[str], themes: frozenset[str]) -> Json:
    made = pod(rng, name, nodes, themes)
    made["spec"]["nodeName"] = rng.choice(nodes)
    made["spec"]["terminationGracePeriodSeconds"] = 0
    if rng.random() < 0.9:
        made["status"] = started(rng)
    return made


def started(rng: Random) -> Json:
    """The status of a pod that runs: when it began decides who is preempted."""
    moment = f"2026-01-0{rng.randint(1, 9)}T00:00:{rng.randint(0, 59):02}Z"
    return {"phase": "Running", "startTime": moment}


def _node(rng: Random, name: str, crowded: bool) -> Json:
    labels = {HOST: name}
    if rng.random() < 0.9:
        labels[ZONE] = rng.choice(ZONES)
    if rng.random() < 0.6:
        labels["disk"] = rng.choice(DISKS)
    if rng.random() < 0.6:
        labels["rank"] = rng.choice(RANKS)
    offered = {
        "cpu": rng.choice(("1", "2", "3500m", "3.999", "16", "3920m")),
        "memory": rng.choice(("1Gi", "4Gi", "5G", "7973912Ki", "64Gi", "8123456789")),
        "pods": rng.choice(("2", "5", "110", "110", "250")),
    }
    if crowded:
        offered |= {"cpu": rng.choice(("1", "1500m", "2")), "memory": rng.choice(("1Gi", "4Gi"))}
    if rng.random() < 0.6:
        offered["ephemeral-storage"] = rng.choice(("1Gi", "10Gi", "47093746742"))
    if rng.random() < 0.4:
        offered[GPU] = rng.choice(("0", "1", "4"))
    if rng.random() < 0.3:
        offered[HUGE] = rng.choice(("0", "64Mi", "1Gi"))
    if rng.random() < 0.04:
        del offered["cpu"]
    spec: Json = {}
    if rng.random() < 0.08:
        spec["unschedulable"] = True
    if rng.random() < 0.35:
        taints = {(rng.choice(TAINT_KEYS), rng.choice(EFFECTS)): rng.choice(("", "a", "b", "3", "7")) for _ in range(2)}
        spec["taints"] = [{"key": key, "value": value, "effect": effect} for (key, effect), value in taints.items()]
    images = [
        {"names": [image], "sizeBytes": size}
        for image, size in zip(IMAGES, (50_000_000, 700_000_000, 3_000_000_000, 23 << 20), strict=True)
        if rng.random() < 0.4
    ]
    status = {"allocatable": offered, "capacity": offered, "images": images}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": status,
    }


def _devices(rng: Random, nodes: list[str]) -> list[Json]:
    """A class, the slices of some nodes, and claims, of which some have devices."""
    made = [{"kind": "DeviceClass"} | random_devices.device_class(rng)]
    made += [
        {"kind": "ResourceSlice"} | random_devices.resource_slice(rng, name) for name in nodes if rng.random() < 0.8
    ]
    for space in NAMESPACES:
        claims = [random_devices.claim(rng, space, name, nodes) | {"status": {}} for name in random_devices.CLAIMS]
        made += [{"kind": "ResourceClaim"} | one for one in claims]
    return [{"apiVersion": "resource.k8s.io/v1"} | one for one in made]


def _owners(rng: Random) -> list[Json]:
    app = rng.choice(APPS)
    service = {"selector": {"app": app}, "ports": [{"port": 80}]}
    labels = {"app": rng.choice(APPS)}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    sets = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    spaces = rng.sample(NAMESPACES, 2)
    return [
        *(
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": space}, "spec": service}
            for space in spaces
        ),
        *(
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": {"name": "rs", "namespace": space},
                "spec": sets,
            }
            for space in spaces
        ),
    ]


def _budget(rng: Random, number: int) -> Json:
    selects = rng.choice(({"matchLabels": {"app": rng.choice(APPS)}}, {}, {"matchLabels": {"tier": "gold"}}))
    allowed = rng.choice((0, 0, 1, 2))
    status = {"disruptionsAllowed": allowed, "currentHealthy": 5, "desiredHealthy": 1, "expectedPods": 5}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"pdb-{number}", "namespace": rng.choice(NAMESPACES)},
        "spec": {"minAvailable": 1, "selector": selects},
        "status": status,
    }


def collection(obj: Json) -> str:
    """Where objects of its kind and namespace live."""
    return PATHS[obj["kind"]].format(obj["metadata"].get("namespace", ""))
