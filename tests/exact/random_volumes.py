"""Random volumes, claims and what stands behind them, as an API server takes them: few, so that they are short."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.exact.random_pods import NAMESPACES, ZONE, ZONES

Json = dict[str, Any]

VOLUMES = "volumes"
"""The theme."""
CLAIMS = ("data", "logs", "cache", "tmp")
DRIVER = "csi.example"
BOUND = "pv.kubernetes.io/bind-completed"
CLASSES = ("wait", "wait", "static", "static", "now")


def volumes(rng: Random, nodes: list[str]) -> list[Json]:
    """Classes, a driver, claims and volumes; of the claims some are bound."""
    claims = [_claim(rng, space, name) for space in NAMESPACES for name in CLAIMS]
    bound = [_bound(rng, one) for one in claims if "volumeName" in one["spec"]]
    spare = [_volume(rng, f"pv-{number}") for number in range(rng.randint(0, 8))]
    drivers = [_csi_node(rng, name) for name in nodes if rng.random() < 0.7]
    return [*_classes(), *_driver(rng), *drivers, *claims, *bound, *spare]


def claims_of(rng: Random, spec: Json) -> None:
    """The pod's volumes are claims; one of them may not be there."""
    names = rng.sample((*CLAIMS, *CLAIMS, "absent"), rng.choice((1, 1, 2)))
    made = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in sorted(set(names))]
    spec.setdefault("volumes", []).extend(made)


def _classes() -> list[Json]:
    kind: Json = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass"}
    allowed = {"matchLabelExpressions": [{"key": ZONE, "values": ["z1", "z2", "z3"]}]}
    late = {"volumeBindingMode": "WaitForFirstConsumer"}
    return [
        kind | {"metadata": {"name": "wait"}, "provisioner": DRIVER, "allowedTopologies": [allowed]} | late,
        kind | {"metadata": {"name": "static"}, "provisioner": "kubernetes.io/no-provisioner"} | late,
        kind | {"metadata": {"name": "now"}, "provisioner": DRIVER, "volumeBindingMode": "Immediate"},
    ]


def _driver(rng: Random) -> list[Json]:
    kind: Json = {"apiVersion": "storage.k8s.io/v1", "metadata": {"name": DRIVER}}
    made = [kind | {"kind": "CSIDriver", "spec": {"storageCapacity": rng.random() < 0.5}}]
    for zone in rng.sample(ZONES, 2):
        about = {"name": f"room-{zone}", "namespace": "default"}
        room = {"capacity": rng.choice(("0", "2Gi", "20Gi")), "nodeTopology": {"matchLabels": {ZONE: zone}}}
        made.append(kind | {"kind": "CSIStorageCapacity", "metadata": about, "storageClassName": "wait"} | room)
    return made


def _csi_node(rng: Random, name: str) -> Json:
    drivers = [{"name": DRIVER, "nodeID": name, "allocatable": {"count": rng.randint(0, 3)}}]
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode"}
    return kind | {"metadata": {"name": name}, "spec": {"drivers": drivers}}


def _claim(rng: Random, namespace: str, name: str) -> Json:
    spec: Json = {
        "accessModes": [rng.choice(("ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod"))],
        "resources": {"requests": {"storage": rng.choice(("1Gi", "5Gi"))}},
        "storageClassName": rng.choice(CLASSES),
    }
    about: Json = {"name": name, "namespace": namespace}
    made: Json = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": about, "spec": spec}
    if rng.random() < 0.15:
        spec["selector"] = {"matchLabels": {"disk": "fast"}}
    if rng.random() < 0.45:
        spec["volumeName"] = f"bound-{namespace}-{name}"
        about["annotations"] = {BOUND: "yes"}
        made["status"] = {"phase": rng.choice(("Bound", "Bound", "Bound", "Lost"))}
    return made


def _bound(rng: Random, claim: Json) -> Json:
    """The volume of a claim that names one."""
    made = _volume(rng, claim["spec"]["volumeName"])
    about = {name: claim["metadata"][name] for name in ("namespace", "name")}
    made["spec"] |= {"claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim"} | about}
    made["spec"] |= {name: claim["spec"][name] for name in ("accessModes", "storageClassName")}
    return made | {"status": {"phase": "Bound"}}


def _volume(rng: Random, name: str) -> Json:
    labels: Json = {"disk": "fast"} if rng.random() < 0.5 else {}
    if rng.random() < 0.4:
        labels[rng.choice((ZONE, "failure-domain.beta.kubernetes.io/zone"))] = rng.choice((*ZONES, "z1__z2"))
    spec: Json = {
        "capacity": {"storage": rng.choice(("1Gi", "10Gi"))},
        "accessModes": [rng.choice(("ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod"))],
        "storageClassName": rng.choice(("wait", "static", "static")),
        "csi": {"driver": DRIVER, "volumeHandle": name},
    }
    if rng.random() < 0.5:
        term = {"key": ZONE, "operator": "In", "values": rng.sample(ZONES, 2)}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}}
    kind = {"apiVersion": "v1", "kind": "PersistentVolume"}
    return kind | {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"phase": "Available"}}
