"""What the documentation says DynamicResources does in the common case, and NodeDeclaredFeatures: naive searches on
plain API objects.

Source: concepts/scheduling-eviction/dynamic-resource-allocation (claims of exact requests against node-local slices,
CEL selectors, taints, `matchAttribute`), KEP-5328. Shares nothing with the plugins: the selectors of
`random_devices` are written out as Python here.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from tests.plugins.oracle import UNRESOLVABLE, Refusal, amount

Json = dict[str, Any]
Device = tuple[str, str]
"""Pool and name."""


class Devices:
    """The objects by name."""

    def __init__(self, objects: Json) -> None:
        self.claims = {(one["metadata"]["namespace"], one["metadata"]["name"]): one for one in objects["deviceClaims"]}
        self.of_node = {one["spec"]["nodeName"]: one["spec"]["devices"] for one in objects["slices"]}
        self.device_class: Json = objects["deviceClass"]
        self.held = {
            (result["pool"], result["device"])
            for claim in objects["deviceClaims"]
            for result in claim["status"].get("allocation", {"devices": {"results": []}})["devices"]["results"]
        }


def refusal(devices: Devices, pod: Json, node: Json) -> Refusal | None:
    names = [entry["resourceClaimName"] for entry in pod["spec"]["resourceClaims"]]
    claims = [devices.claims[pod["metadata"]["namespace"], name] for name in names]
    name = node["metadata"]["name"]
    open_claims = [claim for claim in claims if "allocation" not in claim["status"]]
    if not can_allocate(devices, open_claims, name, devices.held):
        return "DynamicResources", UNRESOLVABLE, ("cannot allocate all claims",)
    if any(name not in nodes_of(claim) for claim in claims if claim not in open_claims):
        return "DynamicResources", UNRESOLVABLE, ("resourceclaim not available on the node",)
    return None


def nodes_of(claim: Json) -> list[str]:
    terms = claim["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"]
    return [value for term in terms for field in term["matchFields"] for value in field["values"]]


def can_allocate(devices: Devices, claims: list[Json], node: str, held: set[Device]) -> bool:
    """Whether some choice of free devices gives every claim what it asks for."""
    if not claims:
        return True
    ways = choices(devices, claims[0], node, held)
    return any(can_allocate(devices, claims[1:], node, held | chosen) for chosen in ways)


def choices(devices: Devices, claim: Json, node: str, held: set[Device]) -> Iterator[set[Device]]:
    """Each way to give the claim its devices."""
    spec = claim["spec"]["devices"]
    for given in ways_for(devices, spec["requests"], node, held):
        models = {device["attributes"]["model"]["string"] for device in given}
        if not spec["constraints"] or len(models) == 1:
            yield {(node, device["name"]) for device in given}


def ways_for(devices: Devices, requests: list[Json], node: str, held: set[Device]) -> Iterator[list[Json]]:
    if not requests:
        yield []
        return
    wanted = requests[0]["exactly"]
    free = [
        one
        for one in devices.of_node.get(node, [])
        if (node, one["name"]) not in held and suits(one, wanted, devices.device_class)
    ]
    for chosen in combinations(free, wanted["count"]):
        names = {(node, one["name"]) for one in chosen}
        for rest in ways_for(devices, requests[1:], node, held | names):
            yield [*chosen, *rest]


def suits(device: Json, wanted: Json, device_class: Json) -> bool:
    taints = [taint for taint in device.get("taints", []) if taint["effect"] in ("NoSchedule", "NoExecute")]
    if taints and not wanted.get("tolerations"):
        return False
    selectors = [*device_class["spec"]["selectors"], *wanted.get("selectors", [])]
    return all(meets(device, selector["cel"]["expression"]) for selector in selectors)


def meets(device: Json, expression: str) -> bool:
    attributes, capacity = device["attributes"], device["capacity"]
    if ".model" in expression:
        return bool(attributes["model"]["string"] == "big")
    if ".index" in expression:
        return bool(attributes["index"]["int"] > 0)
    if ".memory" in expression:
        return amount(capacity["memory"]["value"]) >= amount("20Gi")
    assert "device.driver" in expression
    return True


def lacks_features(pod: Json, node: Json) -> Refusal | None:
    """A pod that restarts all its containers on an exit, or has a user namespace on the host's network, goes only
    where the kubelet says that it can."""
    spec = pod["spec"]
    containers = [*spec["containers"], *spec.get("initContainers", [])]
    actions = {rule["action"] for container in containers for rule in container.get("restartPolicyRules", [])}
    needed = {"RestartAllContainersOnContainerExits"} if "RestartAllContainers" in actions else set()
    if spec.get("hostNetwork") and spec.get("hostUsers") is False:
        needed.add("UserNamespacesHostNetworkSupport")
    if needed <= set(node["status"].get("declaredFeatures", [])):
        return None
    return "NodeDeclaredFeatures", UNRESOLVABLE, ("node(s) didn't match Pod's required features",)
