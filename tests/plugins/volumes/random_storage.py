"""Random volumes, claims and what stands behind them, as plain API objects: few, so that they are short."""

from __future__ import annotations

from random import Random
from typing import Any

Json = dict[str, Any]

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
ZONES = ("z1", "z2", "z3")
CLAIMS = ("data", "logs", "cache")
VOLUMES = tuple(f"pv-{number}" for number in range(5))
DRIVER = "csi.example"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


def claims(pod: Json, rng: Random) -> Json:
    """The pod with volumes that are claims, and disks."""
    names = rng.sample(CLAIMS, rng.randint(1, 2))
    volumes: list[Json] = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    if rng.random() < 0.3:
        volumes.append({"name": "disk"} | disk(rng))
    return pod | {"spec": pod["spec"] | {"volumes": volumes}}


def disk(rng: Random) -> Json:
    """A volume that two pods on a node may not be able to share."""
    return rng.choice(
        (
            {"gcePersistentDisk": {"pdName": "d", "readOnly": rng.random() < 0.5}},
            {"awsElasticBlockStore": {"volumeID": "v", "readOnly": rng.random() < 0.5}},
            {"iscsi": {"targetPortal": "t", "iqn": "q", "lun": 0, "readOnly": rng.random() < 0.5}},
            {"rbd": {"monitors": [rng.choice("ab")], "image": "i", "pool": "p", "readOnly": rng.random() < 0.5}},
        )
    )


def claim(rng: Random, namespace: str, name: str) -> Json:
    spec: Json = {"accessModes": [rng.choice(("ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod"))]}
    spec["resources"] = {"requests": {"storage": rng.choice(("1Gi", "5Gi"))}}
    spec["storageClassName"] = rng.choice(("wait", "wait", "static", "static", "now", "absent"))
    if rng.random() < 0.15:
        spec["selector"] = {"matchLabels": {"disk": "fast"}}
    metadata: Json = {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}", "annotations": {}}
    phase = "Pending"
    if rng.random() < 0.45:
        spec["volumeName"] = rng.choice((*VOLUMES, *VOLUMES, "gone"))
        phase = "Lost" if rng.random() < 0.05 else "Bound"
        if rng.random() < 0.95:
            metadata["annotations"]["pv.kubernetes.io/bind-completed"] = "yes"
    elif rng.random() < 0.1:
        metadata["annotations"][SELECTED_NODE] = f"node-{rng.randint(0, 5)}"
    if rng.random() < 0.03:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def volume(rng: Random, name: str) -> Json:
    labels: Json = {"disk": "fast"} if rng.random() < 0.5 else {}
    if rng.random() < 0.4:
        labels[rng.choice((ZONE, "failure-domain.beta.kubernetes.io/zone"))] = rng.choice((*ZONES, "z1__z2"))
    spec: Json = {
        "capacity": {"storage": rng.choice(("1Gi", "10Gi"))},
        "accessModes": rng.choice((["ReadWriteOnce", "ReadWriteOncePod"], ["ReadWriteOnce"])),
        "storageClassName": rng.choice(("wait", "static", "static")),
        "csi": {"driver": DRIVER, "volumeHandle": name},
    }
    if rng.random() < 0.3:
        namespace, meant = rng.choice(("default", "team-a")), rng.choice(CLAIMS)
        spec["claimRef"] = {"namespace": namespace, "name": meant, "uid": rng.choice(("", f"{namespace}-{meant}"))}
    if rng.random() < 0.5:
        term = {"key": ZONE, "operator": "In", "values": [rng.choice(ZONES)]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}}
    phase = rng.choice(("Available", "Available", "Available", "Bound"))
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"phase": phase}}


def storage_classes() -> list[Json]:
    allowed = {"matchLabelExpressions": [{"key": ZONE, "values": ["z1", "z2"]}]}
    wait = {"metadata": {"name": "wait"}, "provisioner": DRIVER, "allowedTopologies": [allowed]}
    static = {"metadata": {"name": "static"}, "provisioner": "kubernetes.io/no-provisioner"}
    now = {"metadata": {"name": "now"}, "provisioner": DRIVER, "volumeBindingMode": "Immediate"}
    return [one | {"volumeBindingMode": "WaitForFirstConsumer"} for one in (wait, static)] + [now]


def csi_node(rng: Random, name: str) -> Json:
    drivers = [{"name": DRIVER, "nodeID": name, "allocatable": {"count": rng.randint(0, 3)}}]
    return {"metadata": {"name": name}, "spec": {"drivers": drivers}}


def csi_driver(rng: Random) -> Json:
    return {"metadata": {"name": DRIVER}, "spec": {"storageCapacity": rng.random() < 0.5}}


def storage_capacity(rng: Random) -> Json:
    labels = {"matchLabels": {ZONE: rng.choice(ZONES)}}
    found: Json = {
        "metadata": {"name": "room", "namespace": "default"},
        "storageClassName": "wait",
        "capacity": rng.choice(("0", "2Gi", "20Gi")),
        "nodeTopology": labels,
    }
    return found | ({"maximumVolumeSize": "3Gi"} if rng.random() < 0.3 else {})


def attachment(rng: Random) -> Json:
    source = {"persistentVolumeName": rng.choice(VOLUMES)}
    spec = {"attacher": DRIVER, "nodeName": f"node-{rng.randint(0, 13)}", "source": source}
    return {"metadata": {"name": "attached"}, "spec": spec}
