"""Random device classes, claims for devices, and pods that use them, as an API server takes them."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.exact.devices.slices import CAPACITY, GPU, NET, NETWORK, TAINTS

Json = dict[str, Any]

ALTERNATIVES, ADMIN, EXTENDED, CONFIG, ALLOCATED = "alternatives", "admin", "extended", "config", "allocated"
SPACES = ("default", "admin")
"""In `admin` claims may ask for admin access."""
RESOURCE = "example.com/gpu"
"""The extended resource that a class may stand for."""
OTHER: Json = {"resource": "pods", "name": "other", "uid": "other"}
"""A user of claims that is never seen."""

_SELECTORS = (
    f"device.driver == '{GPU}'",
    f"device.driver == '{GPU}' && device.attributes['{GPU}'].model == 'big'",
    f"'{GPU}' in device.attributes && device.attributes['{GPU}'].?model.orValue('') == 'small'",
    f"device.attributes['{GPU}'].index > 0",
    f"device.capacity['{GPU}'].memory.compareTo(quantity('20Gi')) >= 0",
    f"device.attributes['{GPU}'].version.isGreaterThan(semver('1.5.0'))",
    "device.attributes['example.com'].root == 'r0'",
    "device.allowMultipleAllocations == true",
)
_SAFE = 3
"""So many of them, from the first, have an answer for every device of the GPU driver."""


def classes(rng: Random, themes: frozenset[str]) -> list[Json]:
    """`gpu`, `net` and `any`."""
    selectors = {"gpu": [_SELECTORS[0]], "net": [f"device.driver == '{NET}'"], "any": []}
    if rng.random() < 0.3:
        selectors["gpu"].append(_SELECTORS[1])
    made = []
    for name, expressions in selectors.items():
        spec: Json = {"selectors": [{"cel": {"expression": one}} for one in expressions]}
        if CONFIG in themes and rng.random() < 0.6:
            spec["config"] = [_opaque(f"class-{name}")]
        if EXTENDED in themes and name != "net" and rng.random() < 0.6:
            spec["extendedResourceName"] = RESOURCE
        made.append(
            {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}
        )
    return made


def _opaque(text: str) -> Json:
    return {"opaque": {"driver": GPU, "parameters": {"for": text}}}


def claim(rng: Random, space: str, name: str, nodes: list[str], themes: frozenset[str]) -> Json:
    """A claim; of the theme, one that has a device already, and perhaps users."""
    requests = [_request(rng, f"r{number}", space, themes) for number in range(rng.choice((1, 1, 1, 2, 2)))]
    spec: Json = {"requests": requests}
    if rng.random() < 0.25:
        kind = "matchAttribute" if CAPACITY not in themes or rng.random() < 0.6 else "distinctAttribute"
        of = [] if rng.random() < 0.7 else [rng.choice(requests)["name"]]
        attribute = rng.choice((f"{GPU}/model", "example.com/root", f"{GPU}/index"))
        spec["constraints"] = [{"requests": of, kind: attribute}]
    if CONFIG in themes and rng.random() < 0.6:
        of = [] if rng.random() < 0.5 else [rng.choice(_names(requests))]
        spec["config"] = [{"requests": of, **_opaque("claim")}]
    made: Json = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": space},
        "spec": {"devices": spec},
    }
    if ALLOCATED in themes and rng.random() < 0.4:
        made["status"] = _allocated(rng, rng.choice(nodes), requests[0], themes)
    return made


def _names(requests: list[Json]) -> list[str]:
    """How configuration names requests and their alternatives."""
    return [request["name"] for request in requests] + [
        f"{request['name']}/{one['name']}" for request in requests for one in request.get("firstAvailable", ())
    ]


def _allocated(rng: Random, node: str, request: Json, themes: frozenset[str]) -> Json:
    named = request["name"]
    if "firstAvailable" in request:
        named = f"{named}/{request['firstAvailable'][0]['name']}"
    result = {"request": named, "driver": GPU, "pool": node, "device": f"d{rng.randint(0, 3)}"}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    allocation: Json = {"devices": {"results": [result]}, "allocationTimestamp": "2026-01-01T00:00:00Z"}
    if rng.random() < 0.85:
        allocation["nodeSelector"] = {"nodeSelectorTerms": [term]}
    status: Json = {"allocation": allocation}
    if rng.random() < 0.4:
        status["reservedFor"] = [OTHER]
    return status


def _request(rng: Random, name: str, space: str, themes: frozenset[str]) -> Json:
    if ALTERNATIVES in themes and rng.random() < 0.6:
        ways = [{"name": f"w{number}", **_devices(rng, themes)} for number in range(rng.randint(1, 3))]
        return {"name": name, "firstAvailable": ways}
    exactly = _devices(rng, themes)
    if ADMIN in themes and space == "admin" and rng.random() < 0.6:
        exactly["adminAccess"] = True
    return {"name": name, "exactly": exactly}


def _devices(rng: Random, themes: frozenset[str]) -> Json:
    names = ("gpu", "gpu", "gpu", "any", "net") if NETWORK in themes else ("gpu", "gpu", "gpu", "any")
    made: Json = {"deviceClassName": rng.choice(names), "allocationMode": "ExactCount"}
    if rng.random() < 0.02:
        made["deviceClassName"] = "absent"
    if rng.random() < 0.08:
        made["allocationMode"] = "All"
    else:
        made["count"] = rng.choice((1, 1, 1, 1, 2, 3))
    if rng.random() < 0.4:
        risky = NETWORK not in themes or rng.random() < 0.05
        expression = rng.choice(_SELECTORS if risky else _SELECTORS[:_SAFE])
        made["selectors"] = [{"cel": {"expression": expression}}]
    if TAINTS in themes and rng.random() < 0.4:
        key = rng.choice(({}, {"key": "sick"}, {"key": "old"}))
        made["tolerations"] = [key | {"operator": "Exists"}]
    if CAPACITY in themes and rng.random() < 0.5:
        amounts = {"memory": rng.choice(("1Gi", "3Gi", "5Gi", "8Gi", "20Gi"))}
        made["capacity"] = {"requests": amounts | ({"bandwidth": "40"} if rng.random() < 0.1 else {})}
    return made


def pod(rng: Random, name: str, space: str, claims: list[str], themes: frozenset[str]) -> Json:
    """A pod with one or two of the claims, or with extended resources, or with both."""
    container: Json = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}
    spec: Json = {"containers": [container], "terminationGracePeriodSeconds": 0}
    extended = EXTENDED in themes and rng.random() < 0.6
    if claims and (not extended or rng.random() < 0.3):
        chosen = rng.sample(claims, min(len(claims), rng.choice((1, 1, 2))))
        spec["resourceClaims"] = [{"name": one, "resourceClaimName": one} for one in chosen]
    if extended:
        spec |= _extended(rng)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": space},
        "spec": spec,
    }


def _extended(rng: Random) -> Json:
    """Containers that ask for devices as for any resource."""

    def container(name: str) -> Json:
        asked = {"cpu": "50m"}
        for resource in (RESOURCE, "deviceclass.resource.kubernetes.io/gpu", "example.com/foo"):
            if rng.random() < (0.6, 0.3, 0.02)[len(asked) % 3 if resource != RESOURCE else 0]:
                asked[resource] = rng.choice(("1", "1", "2", "0"))
        return {"name": name, "image": "i", "resources": {"requests": asked, "limits": asked}}

    spec: Json = {"containers": [container(f"c{number}") for number in range(rng.choice((1, 1, 2)))]}
    if rng.random() < 0.4:
        inits = [container(f"i{number}") for number in range(rng.choice((1, 2)))]
        for one in inits:
            if rng.random() < 0.4:
                one["restartPolicy"] = "Always"
        spec["initContainers"] = inits
    return spec
