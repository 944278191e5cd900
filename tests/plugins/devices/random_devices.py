"""Random devices, and claims for them, as plain API objects: few of them, so that they run out."""

from __future__ import annotations

from random import Random
from typing import Any

Json = dict[str, Any]

DRIVER = "gpu.example"
CLAIMS = ("one", "two", "three", "four")
_SELECTORS = (
    f"device.driver == '{DRIVER}'",
    f"device.attributes['{DRIVER}'].model == 'big'",
    f"device.attributes['{DRIVER}'].index > 0",
    f"device.capacity['{DRIVER}'].memory.compareTo(quantity('20Gi')) >= 0",
)


def device(rng: Random, name: str) -> Json:
    attributes: Json = {"model": {"string": rng.choice(("big", "small"))}, "index": {"int": rng.randint(0, 2)}}
    found: Json = {
        "name": name,
        "attributes": attributes,
        "capacity": {"memory": {"value": rng.choice(("10Gi", "40Gi"))}},
    }
    if rng.random() < 0.15:
        found["taints"] = [{"key": "sick", "value": "", "effect": rng.choice(("NoSchedule", "NoExecute", "None"))}]
    return found


def resource_slice(rng: Random, node: str) -> Json:
    """The node's pool, all of it in one slice."""
    return {
        "metadata": {"name": f"slice-{node}"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [device(rng, f"d{number}") for number in range(rng.randint(0, 3))],
        },
    }


def device_class(rng: Random) -> Json:
    selectors = [_selector(rng)] if rng.random() < 0.4 else []
    return {"metadata": {"name": "gpu"}, "spec": {"selectors": selectors}}


def claim(rng: Random, namespace: str, name: str, nodes: list[str]) -> Json:
    """A claim; now and then one that has some devices of a node."""
    requests = [_request(rng, f"r{number}") for number in range(rng.choice((1, 1, 2)))]
    constraints = [{"matchAttribute": f"{DRIVER}/model"}] if rng.random() < 0.3 else []
    key = rng.choice(nodes)
    status: Json = {}
    if rng.random() < 0.35:
        results = [{"request": "r0", "driver": DRIVER, "pool": key, "device": f"d{rng.randint(0, 2)}"}]
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [key]}]}
        status["allocation"] = {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": [term]}}
    return {
        "metadata": {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}"},
        "spec": {"devices": {"requests": requests, "constraints": constraints}},
        "status": status,
    }


def using(pod: Json, rng: Random) -> Json:
    """The pod with one or two of the claims."""
    chosen = rng.sample(CLAIMS, rng.choice((1, 1, 2)))
    entries = [{"name": name, "resourceClaimName": name} for name in chosen]
    return pod | {"spec": pod["spec"] | {"resourceClaims": entries}}


def _request(rng: Random, name: str) -> Json:
    exactly: Json = {"deviceClassName": "gpu", "count": rng.choice((1, 1, 2)), "allocationMode": "ExactCount"}
    if rng.random() < 0.5:
        exactly["selectors"] = [_selector(rng)]
    if rng.random() < 0.15:
        exactly["tolerations"] = [{"operator": "Exists"}]
    return {"name": name, "exactly": exactly}


def _selector(rng: Random) -> Json:
    return {"cel": {"expression": rng.choice(_SELECTORS)}}
