"""Random pods that an API server accepts: each `Feature` of a world's is on about every second of its pods."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

Json = dict[str, Any]

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
ZONES = ("z1", "z2", "z3", "z4")
DISKS = ("ssd", "hdd", "")
RANKS = ("1", "07", "0", "x", "20", "9223372036854775807")
APPS = ("web", "db", "batch")
NAMESPACES = ("default", "team-a", "team-b")
IMAGES = ("app:1", "base:latest", "registry.example:5000/big:2", "registry.example/pinned@sha256:" + "0" * 64)
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
TAINT_KEYS = ("gpu", "spot", "node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready")
GPU, HUGE = "vendor.example/gpu", "hugepages-2Mi"
PRIORITIES = {"low": -10, "middle": 100, "high": 1000, "polite": 500}
NEVER = "polite"
"""The class whose pods preempt nobody."""
OVERHEAD = "sandboxed"
"""The RuntimeClass that costs something, and wants certain nodes."""

BOUNDS = ("0", "7", "5", "19", "9223372036854775806")
BAD_BOUNDS = (*BOUNDS, "x")
"""Only in required terms: a preferred one that cannot be read is refused sooner here (docs/plugins.md)."""
MILLI = ("50m", "100m", "250m", "333m", "0.7", "1", "1500m", "2", "0")
BYTES = ("64Mi", "100M", "500Mi", "123456789", "1Gi", "1.5Gi", "2e9", "0")


def requests(rng: Random, chance: float = 0.75) -> Json:
    asked: Json = {}
    if rng.random() < chance:
        asked["cpu"] = rng.choice(MILLI)
    if rng.random() < chance:
        asked["memory"] = rng.choice(BYTES)
    return asked


def container(rng: Random, name: str) -> Json:
    made: Json = {"name": name, "image": rng.choice(("app:1", "base", "none", *IMAGES[2:]))}
    if asked := requests(rng):
        made["resources"] = {"requests": asked}
    return made


def _more_resources(rng: Random, spec: Json) -> None:
    resources = spec["containers"][0].setdefault("resources", {})
    asked, limits = resources.setdefault("requests", {}), resources.setdefault("limits", {})
    if rng.random() < 0.5:
        asked["ephemeral-storage"] = rng.choice(("600Mi", "1G", "9Gi"))
    if rng.random() < 0.5:
        limits[GPU] = asked[GPU] = rng.choice(("1", "2", "5"))
    if rng.random() < 0.3 and {"cpu", "memory"} & asked.keys():
        limits[HUGE] = asked[HUGE] = rng.choice(("2Mi", "64Mi"))


def _init_containers(rng: Random, spec: Json) -> None:
    made = [container(rng, f"init-{number}") for number in range(rng.randint(1, 3))]
    for one in made:
        if rng.random() < 0.5:
            one["restartPolicy"] = "Always"
    spec["initContainers"] = made


def _pod_level(rng: Random, spec: Json) -> None:
    """What the pod asks for as a whole is no less than what its containers do."""
    del spec["containers"][1:]
    for one in (*spec["containers"], *spec.get("initContainers", ())):
        one.pop("resources", None)
    if rng.random() < 0.5:
        spec["containers"][0]["resources"] = {"requests": {"cpu": "50m"}}
    asked = rng.choice(({"cpu": "700m"}, {"memory": "700Mi"}, {"cpu": "1", "memory": "1Gi"}))
    spec["resources"] = {"requests": asked}


def _overhead(rng: Random, spec: Json) -> None:
    spec["runtimeClassName"] = rng.choice((OVERHEAD, "plain"))


def _tolerations(rng: Random, spec: Json) -> None:
    made = []
    for _ in range(rng.randint(1, 3)):
        one: Json = {"operator": rng.choice(("Exists", "Equal", "", "Gt", "Lt"))}
        one["key"] = rng.choice(TAINT_KEYS)
        if one["operator"] == "Exists" and rng.random() < 0.2:
            del one["key"]
        if one["operator"] != "Exists":
            one["value"] = rng.choice(("3", "5", "-5") if one["operator"] in ("Gt", "Lt") else ("", "a", "b"))
        if rng.random() < 0.6:
            one["effect"] = rng.choice(EFFECTS)
        if one.get("effect") == "NoExecute" and rng.random() < 0.5:
            one["tolerationSeconds"] = rng.choice((0, 60))
        if not one["operator"]:
            del one["operator"]
        made.append(one)
    spec["tolerations"] = made


def _requirement(rng: Random, bounds: tuple[str, ...] = BOUNDS) -> Json:
    key = rng.choice(("disk", "rank", "rank", ZONE, "absent"))
    operator = rng.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    made: Json = {"key": key, "operator": operator}
    if operator in ("In", "NotIn"):
        made["values"] = rng.sample(("ssd", "hdd", "z1", "z2", "z3", "1", "07", ""), rng.randint(1, 4))
    elif operator in ("Gt", "Lt"):
        made["values"] = [rng.choice(bounds)]
    return made


def _field(rng: Random, nodes: list[str]) -> Json:
    return {"key": "metadata.name", "operator": rng.choice(("In", "NotIn")), "values": [rng.choice([*nodes, "gone"])]}


def _node_term(rng: Random, nodes: list[str], bounds: tuple[str, ...] = BOUNDS) -> Json:
    if rng.random() < 0.2:
        made: Json = {"matchFields": [_field(rng, nodes)]}
        return made | ({"matchExpressions": [_requirement(rng, bounds)]} if rng.random() < 0.3 else {})
    return {"matchExpressions": [_requirement(rng, bounds) for _ in range(rng.randint(0, 2))]}


def _node_affinity(rng: Random, spec: Json, nodes: list[str]) -> None:
    made: Json = {}
    if rng.random() < 0.6:
        terms = [_node_term(rng, nodes, BAD_BOUNDS) for _ in range(rng.randint(1, 3))]
        made["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if rng.random() < 0.7:
        made["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": rng.randint(1, 100), "preference": _node_term(rng, nodes)} for _ in range(rng.randint(1, 3))
        ]
    spec.setdefault("affinity", {})["nodeAffinity"] = made
    if rng.random() < 0.15:
        spec["nodeSelector"] = rng.choice(({"disk": "ssd"}, {ZONE: "z1"}, {"rank": "1"}, {"rank": ""}))


def selector(rng: Random) -> Json | None:
    """Of pods; None selects nobody, an empty one everybody."""
    draw = rng.random()
    if draw < 0.06:
        return None
    if draw < 0.12:
        return {}
    if draw < 0.3:
        return {"matchExpressions": [{"key": "tier", "operator": rng.choice(("Exists", "DoesNotExist"))}]}
    if draw < 0.45:
        values = rng.sample(APPS, 2)
        return {"matchExpressions": [{"key": "app", "operator": rng.choice(("In", "NotIn")), "values": values}]}
    return {"matchLabels": {"app": rng.choice(APPS)}}


def _pod_term(rng: Random) -> Json:
    made: Json = {"topologyKey": rng.choice((ZONE, HOST, "disk", "rank"))}
    selects = selector(rng)
    if selects is not None:
        made["labelSelector"] = selects
        if rng.random() < 0.2:
            made[rng.choice(("matchLabelKeys", "mismatchLabelKeys"))] = ["hash"]
    if rng.random() < 0.25:
        made["namespaces"] = rng.sample(NAMESPACES, rng.randint(1, 2))
    if rng.random() < 0.25:
        made["namespaceSelector"] = rng.choice(({}, {"matchLabels": {"team": "a"}}, {"matchLabels": {"team": "x"}}))
    return made


def _pod_terms(rng: Random, required: float) -> Json:
    made: Json = {}
    if rng.random() < required:
        terms = [_pod_term(rng) for _ in range(rng.choice((1, 1, 2)))]
        made["requiredDuringSchedulingIgnoredDuringExecution"] = terms
    if rng.random() < 0.6:
        made["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": rng.randint(1, 100), "podAffinityTerm": _pod_term(rng)} for _ in range(rng.randint(1, 3))
        ]
    return made


def _pod_affinity(rng: Random, spec: Json) -> None:
    affinity = spec.setdefault("affinity", {})
    if rng.random() < 0.6:
        affinity["podAffinity"] = _pod_terms(rng, 0.4)
    if rng.random() < 0.6:
        affinity["podAntiAffinity"] = _pod_terms(rng, 0.5)


def _spread(rng: Random, spec: Json) -> None:
    made: list[Json] = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        one: Json = {
            "maxSkew": rng.randint(1, 3),
            "topologyKey": rng.choice((ZONE, ZONE, HOST, "disk")),
            "whenUnsatisfiable": rng.choice(("DoNotSchedule", "ScheduleAnyway")),
        }
        if any(
            (one["topologyKey"], one["whenUnsatisfiable"]) == (o["topologyKey"], o["whenUnsatisfiable"]) for o in made
        ):
            continue
        selects = selector(rng)
        if selects is not None:
            one["labelSelector"] = selects
            if rng.random() < 0.3:
                one["matchLabelKeys"] = ["hash"]
        if one["whenUnsatisfiable"] == "DoNotSchedule" and rng.random() < 0.3:
            one["minDomains"] = rng.randint(1, 5)
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if rng.random() < 0.4:
                one[policy] = rng.choice(("Honor", "Ignore"))
        made.append(one)
    spec["topologySpreadConstraints"] = made


def _host_ports(rng: Random, spec: Json) -> None:
    for one in rng.sample(spec["containers"], 1):
        made: Json = {"containerPort": 80, "hostPort": rng.choice((80, 8080))}
        if rng.random() < 0.5:
            made["hostIP"] = rng.choice(("0.0.0.0", "10.0.0.1", "10.0.0.2", "::1"))
        if rng.random() < 0.4:
            made["protocol"] = rng.choice(("UDP", "SCTP"))
        one["ports"] = [made]


def _disks(rng: Random, spec: Json) -> None:
    """Volumes that two pods on a node may not be able to share."""
    read_only = rng.random() < 0.5
    made: Json = rng.choice(
        (
            {"gcePersistentDisk": {"pdName": "d", "readOnly": read_only}},
            {"awsElasticBlockStore": {"volumeID": "v", "readOnly": read_only}},
            {"iscsi": {"targetPortal": "t", "iqn": "iqn.2001-04.com.e:s", "lun": 0, "readOnly": read_only}},
            {"rbd": {"monitors": [rng.choice("ab")], "image": "i", "pool": "p", "readOnly": read_only}},
        )
    )
    spec.setdefault("volumes", []).append({"name": "disk"} | made)


def _priority(rng: Random, spec: Json) -> None:
    spec["priorityClassName"] = rng.choice(tuple(PRIORITIES))


PRIORITY = "priority"
Feature = Callable[[Random, Json], None]
FEATURES: dict[str, Feature] = {
    "more resources": _more_resources,
    "init containers": _init_containers,
    "pod level": _pod_level,
    "overhead": _overhead,
    "tolerations": _tolerations,
    "pod affinity": _pod_affinity,
    "spread": _spread,
    "host ports": _host_ports,
    "disks": _disks,
    PRIORITY: _priority,
}
NODE_AFFINITY = "node affinity"
OWNED = "owned"
"""By a ReplicaSet or a Service's selector: such pods are spread without asking for it."""
THEMES = (*FEATURES, NODE_AFFINITY, OWNED)


def pod(rng: Random, name: str, nodes: list[str], themes: frozenset[str]) -> Json:
    labels = {"app": rng.choice(APPS)}
    if rng.random() < 0.4:
        labels["tier"] = rng.choice(("gold", "tin"))
    if rng.random() < 0.5:
        labels["hash"] = rng.choice(("h1", "h2"))
    if rng.random() < 0.08:
        labels = {}
    spec: Json = {"containers": [container(rng, f"c{number}") for number in range(rng.choice((1, 1, 2)))]}
    for theme, feature in FEATURES.items():
        if theme in themes and rng.random() < 0.5:
            feature(rng, spec)
    if NODE_AFFINITY in themes and rng.random() < 0.5:
        _node_affinity(rng, spec, nodes)
    metadata: Json = {"name": name, "namespace": rng.choice(NAMESPACES), "labels": labels}
    if OWNED in themes and rng.random() < 0.4:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs-uid", "controller": True}
        metadata["ownerReferences"] = [owner]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
