"""A stand-in for the controller of persistent volumes, and for every provisioner.

Rules (pkg/controller/volume/persistentvolume, v1.36):
1. A claim that names no class gets the default one, once there is one.
2. A volume that names a claim, and a claim that names a volume, are bound to each other, whoever wrote the name.
3. Else a claim is bound to the smallest free volume of its class that will do, or one is provisioned. Where its class
   waits for the first consumer, that waits until a scheduler has chosen a node.
4. A class with `kubernetes.io/no-provisioner` provisions nothing.
5. A volume whose claim is gone is deleted or released, as its reclaim policy says.

A volume that is provisioned for a chosen node can be reached from that node's zone, or from it alone where it is in
none; it holds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from policyengine.quantity import QuantityError, value
from policyengine.simulator.controllers.controller_client import (
    MERGE,
    Cluster,
    Object,
    Write,
    of,
    path,
    status,
    terminating,
)

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
_BOUND_BY_CONTROLLER, _BIND_COMPLETED = "pv.kubernetes.io/bound-by-controller", "pv.kubernetes.io/bind-completed"
_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_NO_PROVISIONER = "kubernetes.io/no-provisioner"
_ZONE, _HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
CLAIM, VOLUME, CLASS = "PersistentVolumeClaim", "PersistentVolume", "StorageClass"


def volumes(cluster: Cluster, now: str) -> Iterator[Write]:
    """What is to be written about claims and volumes as they are now."""
    taken: set[str] = set()
    for claim in cluster.all(CLAIM):
        if not terminating(claim):
            yield from _claim(cluster, claim, taken)
    for volume in cluster.all(VOLUME):
        if not terminating(volume):
            yield from _volume(cluster, volume)


def _claim(cluster: Cluster, claim: Object, taken: set[str]) -> Iterator[Write]:
    spec = claim["spec"]
    if "storageClassName" not in spec and not spec.get("volumeName"):
        default = _default_class(cluster)
        if default is not None:
            change = {"spec": {"storageClassName": default["metadata"]["name"]}}
            yield Write("PATCH", of(CLAIM, claim), change, MERGE)
            return
    volume = _meant_for(cluster, claim)
    if volume is None and not spec.get("volumeName") and _may_be_bound(cluster, claim):
        volume = _smallest(cluster, claim, taken)
        if volume is None:
            yield from _provision(cluster, claim)
    if volume is not None:
        taken.add(volume["metadata"]["name"])
        yield from _bind(claim, volume)


def _default_class(cluster: Cluster) -> Object | None:
    """The newest, of several."""
    marked = [one for one in cluster.all(CLASS) if _annotations(one).get(DEFAULT_CLASS) == "true"]
    return max(marked, key=lambda one: str(one["metadata"].get("creationTimestamp")), default=None)


def _meant_for(cluster: Cluster, claim: Object) -> Object | None:
    """Rule 2."""
    named = claim["spec"].get("volumeName")
    for volume in cluster.all(VOLUME):
        if _names(volume, claim) or (volume["metadata"]["name"] == named and not volume["spec"].get("claimRef")):
            return volume
    return None


def _names(volume: Object, claim: Object) -> bool:
    reference, meta = volume["spec"].get("claimRef") or {}, claim["metadata"]
    if (reference.get("namespace"), reference.get("name")) != (meta["namespace"], meta["name"]):
        return False
    return reference.get("uid") in (None, "", meta["uid"])


def _may_be_bound(cluster: Cluster, claim: Object) -> bool:
    """Whether nobody has to choose a node first."""
    found = cluster.kinds[CLASS].get(("", claim["spec"].get("storageClassName") or ""))
    waits = found is not None and found.get("volumeBindingMode") == "WaitForFirstConsumer"
    return not waits or SELECTED_NODE in _annotations(claim)


def _smallest(cluster: Cluster, claim: Object, taken: set[str]) -> Object | None:
    """Rule 3: of equal ones the first by name. One that waits for a consumer is chosen by the scheduler."""
    if SELECTED_NODE in _annotations(claim):
        return None
    fitting = [
        volume
        for volume in cluster.all(VOLUME)
        if volume["metadata"]["name"] not in taken and not terminating(volume) and _fits(volume, claim["spec"])
    ]
    return min(fitting, key=lambda one: _bytes(one["spec"].get("capacity")), default=None)


def _fits(volume: Object, wanted: Object) -> bool:
    spec, labels = volume["spec"], volume["metadata"].get("labels") or {}
    selector = wanted.get("selector") or {}
    return (
        not spec.get("claimRef")
        and (spec.get("storageClassName") or "") == (wanted.get("storageClassName") or "")
        and (spec.get("volumeMode") or "Filesystem") == (wanted.get("volumeMode") or "Filesystem")
        and set(wanted.get("accessModes") or ()) <= set(spec.get("accessModes") or ())
        and _bytes(spec.get("capacity")) >= _bytes((wanted.get("resources") or {}).get("requests"))
        and not selector.get("matchExpressions")
        and (selector.get("matchLabels") or {}).items() <= labels.items()
    )


def _bytes(amounts: Any) -> int:
    try:
        return value((amounts or {}).get("storage", "0"))
    except QuantityError:
        return 0


def _provision(cluster: Cluster, claim: Object) -> Iterator[Write]:
    spec, meta = claim["spec"], claim["metadata"]
    found = cluster.kinds[CLASS].get(("", spec.get("storageClassName") or ""))
    if found is None or found["provisioner"] == _NO_PROVISIONER:
        return
    node = cluster.kinds["Node"].get(("", _annotations(claim).get(SELECTED_NODE, "")))
    made: Object = {
        "capacity": {"storage": (spec.get("resources") or {}).get("requests", {}).get("storage", "1Gi")},
        "accessModes": spec.get("accessModes") or ["ReadWriteOnce"],
        "volumeMode": spec.get("volumeMode") or "Filesystem",
        "storageClassName": found["metadata"]["name"],
        "persistentVolumeReclaimPolicy": found.get("reclaimPolicy") or "Delete",
        "claimRef": _reference(claim),
        "csi": {"driver": found["provisioner"].replace("/", "."), "volumeHandle": meta["uid"]},
    }
    if node is not None:
        labels = node["metadata"].get("labels") or {}
        key = _ZONE if _ZONE in labels else _HOST
        term = {"key": key, "operator": "In", "values": [labels.get(key, node["metadata"]["name"])]}
        made["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}}
    about = {"name": f"pvc-{meta['uid']}", "annotations": {_PROVISIONED_BY: found["provisioner"]}}
    yield Write("POST", path(VOLUME, ""), {"apiVersion": "v1", "kind": VOLUME, "metadata": about, "spec": made})


def _reference(claim: Object) -> Object:
    meta = claim["metadata"]
    named = {"apiVersion": "v1", "kind": CLAIM, "namespace": meta["namespace"], "name": meta["name"]}
    return {**named, "uid": meta["uid"]}


def _bind(claim: Object, volume: Object) -> Iterator[Write]:
    """First the volume, then the claim, as the controller does: whoever sees the claim bound finds the volume so."""
    reference = volume["spec"].get("claimRef") or {}
    if reference.get("uid") != claim["metadata"]["uid"]:
        change: Object = {"spec": {"claimRef": _reference(claim)}}
        if not reference:
            change["metadata"] = {"annotations": {_BOUND_BY_CONTROLLER: "yes"}}
        yield Write("PATCH", of(VOLUME, volume), change, MERGE)
    yield from status(VOLUME, volume, {"phase": "Bound"})
    spec = claim["spec"]
    if spec.get("volumeName") != volume["metadata"]["name"] or _BIND_COMPLETED not in _annotations(claim):
        annotations = {_BIND_COMPLETED: "yes"} | ({} if spec.get("volumeName") else {_BOUND_BY_CONTROLLER: "yes"})
        change = {"metadata": {"annotations": annotations}, "spec": {"volumeName": volume["metadata"]["name"]}}
        yield Write("PATCH", of(CLAIM, claim), change, MERGE)
    held = {"accessModes": volume["spec"].get("accessModes"), "capacity": volume["spec"].get("capacity")}
    yield from status(CLAIM, claim, {"phase": "Bound", **held})


def _volume(cluster: Cluster, volume: Object) -> Iterator[Write]:
    reference = volume["spec"].get("claimRef") or {}
    if not reference:
        yield from status(VOLUME, volume, {"phase": "Available"})
        return
    claim = cluster.kinds[CLAIM].get((reference.get("namespace") or "", reference.get("name") or ""))
    if claim is None and not reference.get("uid"):
        yield from status(VOLUME, volume, {"phase": "Available"})  # it is kept for a claim to come
    elif claim is None or not _names(volume, claim):
        if volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            yield Write("DELETE", of(VOLUME, volume), {"preconditions": {"uid": volume["metadata"]["uid"]}})
        else:
            yield from status(VOLUME, volume, {"phase": "Released"})


def _annotations(obj: Object) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}
