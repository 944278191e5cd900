"""Random clusters as plain API objects, small enough to be crowded: names, labels and ports collide often."""

from __future__ import annotations

from random import Random
from typing import Any

Json = dict[str, Any]

ZONES = ("z1", "z2", "z3")
KEYS = ("topology.kubernetes.io/zone", "kubernetes.io/hostname", "disk", "rank", "")
APPS = ("web", "db", "batch")
NAMESPACES = ("default", "team-a", "team-b")
IMAGES = ("app:1", "base:latest", "big:2")
TAINT_KEYS = ("gpu", "spot", "node.kubernetes.io/unschedulable")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
GPU = "vendor.example/gpu"


def namespaces() -> list[Json]:
    return [{"metadata": {"name": name, "labels": {"team": name[-1]}}} for name in NAMESPACES[:2]]


def node(rng: Random, name: str) -> Json:
    labels = {"kubernetes.io/hostname": name}
    if rng.random() < 0.85:
        labels["topology.kubernetes.io/zone"] = rng.choice(ZONES)
    if rng.random() < 0.5:
        labels["disk"] = rng.choice(("ssd", "hdd", ""))
    if rng.random() < 0.5:
        labels["rank"] = rng.choice(("1", "07", "-3", "x", "20"))
    allocatable = {
        "cpu": rng.choice(("1", "2", "3500m", "16")),
        "memory": rng.choice(("1Gi", "4Gi", "5G", "64Gi")),
        "pods": rng.choice(("2", "5", "110")),
    }
    if rng.random() < 0.4:
        allocatable["ephemeral-storage"] = rng.choice(("1Gi", "10Gi"))
    if rng.random() < 0.3:
        allocatable[GPU] = rng.choice(("1", "4"))
    if rng.random() < 0.05:
        allocatable.pop("cpu")
    spec: Json = {}
    if rng.random() < 0.1:
        spec["unschedulable"] = True
    if rng.random() < 0.4:
        spec["taints"] = [_taint(rng) for _ in range(rng.randint(1, 3))]
    images = [
        {"names": [image], "sizeBytes": rng.choice((10, 50_000_000, 700_000_000, 3_000_000_000))}
        for image in IMAGES
        if rng.random() < 0.4
    ]
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels},
        "spec": spec,
        "status": {"allocatable": allocatable, "images": images},
    }


def pod(rng: Random, name: str, on: str = "") -> Json:
    labels = {"app": rng.choice(APPS)}
    if rng.random() < 0.3:
        labels["tier"] = rng.choice(("gold", "tin"))
    if rng.random() < 0.1:
        labels = {}
    spec: Json = {"containers": [_container(rng) for _ in range(rng.choice((1, 1, 2)))]}
    if rng.random() < 0.2:
        spec["initContainers"] = [_container(rng)]
    if rng.random() < 0.3:
        spec["tolerations"] = [_toleration(rng) for _ in range(rng.randint(1, 2))]
    if rng.random() < 0.15:
        spec["nodeSelector"] = {"disk": rng.choice(("ssd", "hdd"))}
    affinity: Json = {}
    if rng.random() < 0.25:
        affinity["nodeAffinity"] = _node_affinity(rng)
    if rng.random() < 0.25:
        affinity["podAffinity"] = _pod_affinity(rng)
    if rng.random() < 0.25:
        affinity["podAntiAffinity"] = _pod_affinity(rng)
    if affinity:
        spec["affinity"] = affinity
    if rng.random() < 0.3:
        spec["topologySpreadConstraints"] = [_spread(rng) for _ in range(rng.randint(1, 2))]
    if on:
        spec["nodeName"] = on
    metadata: Json = {"name": name, "namespace": rng.choice(NAMESPACES), "uid": f"uid-{name}", "labels": labels}
    if on and rng.random() < 0.1:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"metadata": metadata, "spec": spec}


def _container(rng: Random) -> Json:
    requests: Json = {}
    if rng.random() < 0.7:
        requests["cpu"] = rng.choice(("50m", "500m", "1", "2"))
    if rng.random() < 0.7:
        requests["memory"] = rng.choice(("64Mi", "500Mi", "1Gi", "3G"))
    if rng.random() < 0.1:
        requests["ephemeral-storage"] = "600Mi"
    if rng.random() < 0.1:
        requests[GPU] = rng.choice(("1", "2"))
    container: Json = {"name": "c", "image": rng.choice(("app:1", "base", "big:2", "none"))}
    if requests:
        container["resources"] = {"requests": requests}
    if rng.random() < 0.15:
        port: Json = {"containerPort": 80, "hostPort": rng.choice((80, 8080))}
        if rng.random() < 0.5:
            port["hostIP"] = rng.choice(("0.0.0.0", "10.0.0.1", "10.0.0.2"))
        if rng.random() < 0.3:
            port["protocol"] = "UDP"
        container["ports"] = [port]
    return container


def _taint(rng: Random) -> Json:
    value = rng.choice(("", "a", "b", "3", "7", "07"))
    return {"key": rng.choice(TAINT_KEYS), "value": value, "effect": rng.choice(EFFECTS)}


def _toleration(rng: Random) -> Json:
    toleration: Json = {"operator": rng.choice(("Exists", "Equal", "", "Gt", "Lt"))}
    if rng.random() < 0.8:
        toleration["key"] = rng.choice(TAINT_KEYS)
    if toleration["operator"] != "Exists":
        toleration["value"] = rng.choice(("", "a", "b", "3", "5", "-5", str(10**30)))
    if rng.random() < 0.5:
        toleration["effect"] = rng.choice(EFFECTS)
    return toleration


def _node_term(rng: Random) -> Json:
    expressions = []
    for _ in range(rng.randint(0, 2)):
        key = rng.choice(("disk", "rank", "topology.kubernetes.io/zone"))
        operator = rng.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Near"))
        values: list[str] = []
        if operator in ("In", "NotIn"):
            values = rng.sample(("ssd", "hdd", "z1", "z2", "1", ""), rng.randint(0, 2))
        elif operator in ("Gt", "Lt"):
            values = [rng.choice(("0", "7", "-5", "x"))]
        expressions.append({"key": key, "operator": operator, "values": values})
    return {"matchExpressions": expressions}


def _node_affinity(rng: Random) -> Json:
    affinity: Json = {}
    if rng.random() < 0.6:
        terms = [_node_term(rng) for _ in range(rng.randint(1, 2))]
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if rng.random() < 0.6:
        preferred = []
        for _ in range(rng.randint(1, 3)):
            term = {"matchExpressions": [{"key": "disk", "operator": rng.choice(("Exists", "DoesNotExist"))}]}
            preferred.append({"weight": rng.randint(1, 100), "preference": term})
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    return affinity


def selector(rng: Random) -> Json:
    if rng.random() < 0.2:
        return {"matchExpressions": [{"key": "tier", "operator": rng.choice(("Exists", "DoesNotExist"))}]}
    return {"matchLabels": {"app": rng.choice(APPS)}}


def _pod_term(rng: Random) -> Json:
    term: Json = {"topologyKey": rng.choice(KEYS[:3]), "labelSelector": selector(rng)}
    if rng.random() < 0.2:
        term["namespaces"] = [rng.choice(NAMESPACES)]
    if rng.random() < 0.2:
        term["namespaceSelector"] = rng.choice(({}, {"matchLabels": {"team": "a"}}))
    return term


def _pod_affinity(rng: Random) -> Json:
    affinity: Json = {}
    if rng.random() < 0.6:
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = [_pod_term(rng)]
    if rng.random() < 0.6:
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": rng.randint(1, 100), "podAffinityTerm": _pod_term(rng)} for _ in range(rng.randint(1, 2))
        ]
    return affinity


def _spread(rng: Random) -> Json:
    constraint: Json = {
        "maxSkew": rng.randint(1, 2),
        "topologyKey": rng.choice(KEYS[:3]),
        "whenUnsatisfiable": rng.choice(("DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": selector(rng),
    }
    if rng.random() < 0.2:
        constraint["minDomains"] = rng.randint(1, 4)
    if rng.random() < 0.3:
        constraint["nodeTaintsPolicy"] = rng.choice(("Honor", "Ignore"))
    if rng.random() < 0.3:
        constraint["nodeAffinityPolicy"] = rng.choice(("Honor", "Ignore"))
    if rng.random() < 0.2:
        constraint["matchLabelKeys"] = ["tier"]
    return constraint


def affinity(rng: Random) -> Json:
    """Node affinity, pod affinity and anti-affinity."""
    return {
        "nodeAffinity": _node_affinity(rng),
        "podAffinity": _pod_affinity(rng),
        "podAntiAffinity": _pod_affinity(rng),
    }


def spread(rng: Random) -> list[Json]:
    """One constraint that refuses, one that prefers."""
    kinds = ("DoNotSchedule", "ScheduleAnyway")
    return [_spread(rng) | {"whenUnsatisfiable": kind} for kind in kinds]


def cluster(rng: Random, nodes: int, pods: int, pending: int) -> Json:
    names = [f"node-{number}" for number in range(nodes)]
    return {
        "namespaces": namespaces(),
        "nodes": [node(rng, name) for name in names],
        "pods": [pod(rng, f"run-{number}", rng.choice(names)) for number in range(pods)],
        "pending": [pod(rng, f"new-{number}") for number in range(pending)],
    }
