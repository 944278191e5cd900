"""What kube-controller-manager and a CSI driver do once kube-scheduler has chosen a node for unbound claims: a volume
that was given to a claim becomes the claim's, and one is made for a claim that says on which node it is wanted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tests.exact.random_volumes import BOUND, DRIVER

Json = dict[str, Any]
Ask = Callable[..., Awaitable[Json]]
MERGE = "application/merge-patch+json"
SELECTED = "volume.kubernetes.io/selected-node"
VOLUMES, CLAIMS = "/api/v1/persistentvolumes", "/api/v1/persistentvolumeclaims"


async def bind_volumes(ask: Ask) -> None:
    """Do what is to be done now."""
    given = {
        _key(one["spec"]["claimRef"]): one for one in (await ask("GET", VOLUMES))["items"] if "claimRef" in one["spec"]
    }
    for claim in (await ask("GET", CLAIMS))["items"]:
        if "volumeName" in claim["spec"]:
            continue
        volume = given.get(_key(claim["metadata"]))
        if volume is None and SELECTED in claim["metadata"].get("annotations", {}):
            volume = await ask("POST", VOLUMES, _made_for(claim))
        if volume is not None:
            await _bind(ask, claim, volume)


async def _bind(ask: Ask, claim: Json, volume: Json) -> None:
    name, meta = volume["metadata"]["name"], claim["metadata"]
    path = f"/api/v1/namespaces/{meta['namespace']}/persistentvolumeclaims/{meta['name']}"
    await ask("PATCH", f"{VOLUMES}/{name}/status", {"status": {"phase": "Bound"}}, MERGE)
    bound = {"metadata": {"annotations": {BOUND: "yes"}}, "spec": {"volumeName": name}}
    await ask("PATCH", path, bound, MERGE)
    await ask("PATCH", f"{path}/status", {"status": {"phase": "Bound"}}, MERGE)


def _made_for(claim: Json) -> Json:
    meta, spec = claim["metadata"], claim["spec"]
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "uid": meta["uid"]}
    reference |= {"namespace": meta["namespace"], "name": meta["name"]}
    made = {
        "capacity": spec["resources"]["requests"],
        "csi": {"driver": DRIVER, "volumeHandle": meta["uid"]},
        "claimRef": reference,
    }
    made |= {name: spec[name] for name in ("accessModes", "storageClassName")}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"pvc-{meta['uid']}"}, "spec": made}


def _key(meta: Json) -> tuple[str, str]:
    return meta["namespace"], meta["name"]
