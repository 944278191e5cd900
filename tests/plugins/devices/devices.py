"""Device classes, slices and claims for tests, and a cluster to put them in."""

from __future__ import annotations

from typing import Any

from policyengine.cluster.device_objects import DeviceClass, ResourceClaim, ResourceSlice
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import ClusterView
from policyengine.framework.evaluator import Evaluator
from policyengine.plugins.registry import build, in_tree_profile
from tests.builders import PodBuilder, make_node, make_pod

Json = dict[str, Any]
DRIVER = "gpu.example"
CANNOT = "cannot allocate all claims"
NOT_HERE = "resourceclaim not available on the node"
ZONE_0 = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z0"]}]}]}


def device_class(name: str = "gpu", *selectors: str, **spec: Any) -> DeviceClass:
    return decode(
        DeviceClass,
        {"metadata": {"name": name}, "spec": {"selectors": [cel(one) for one in selectors], **spec}},
    )


def cel(expression: str) -> Json:
    return {"cel": {"expression": expression}}


def device(name: str, memory: str = "", **more: Any) -> Json:
    """Attributes are those of `more` that are plain values; the rest are fields of the device."""
    kinds = {bool: "bool", int: "int", str: "string"}
    attributes = {key: {kinds[type(value)]: value} for key, value in more.items() if type(value) in kinds}
    fields = {key: value for key, value in more.items() if type(value) not in kinds}
    capacity = {"capacity": {"memory": {"value": memory}}} if memory else {}
    return {"name": name, "attributes": {**attributes, **fields.pop("attributes", {})}, **capacity, **fields}


def resource_slice(
    *devices: Json | str,
    node: str | None = None,
    name: str = "",
    pool: str = "",
    generation: int = 1,
    count: int = 1,
    driver: str = DRIVER,
    version: int = 1,
    **spec: Any,
) -> ResourceSlice:
    pool = pool or node or "pool"
    where: Json = {"nodeName": node} if node is not None else {} if spec else {"allNodes": True}
    return decode(
        ResourceSlice,
        {
            "metadata": {"name": name or f"{driver}-{pool}-{generation}", "resourceVersion": str(version)},
            "spec": {
                "driver": driver,
                "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
                "devices": [device(one) if isinstance(one, str) else one for one in devices],
                **where,
                **spec,
            },
        },
    )


def gpus(*names: Json | str, node: str = "n0", **more: Any) -> ResourceSlice:
    """The node's own slice."""
    return resource_slice(*names, node=node, **more)


def tainted(effect: str) -> Json:
    return {**device("g"), "taints": [{"key": "broken", "value": "yes", "effect": effect}]}


def exactly(name: str = "r", cls: str = "gpu", **more: Any) -> Json:
    return {"name": name, "exactly": {"deviceClassName": cls, **more}}


def first_of(*alternatives: Json, name: str = "r") -> Json:
    subs = [{"name": f"a{place}", "deviceClassName": "gpu", **one} for place, one in enumerate(alternatives)]
    return {"name": name, "firstAvailable": subs}


def claim(
    *requests: Json,
    name: str = "c",
    status: Json | None = None,
    version: int = 1,
    metadata: Json | None = None,
    **devices: Any,
) -> ResourceClaim:
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": str(version)}
    return decode(
        ResourceClaim,
        {
            "metadata": {**meta, **(metadata or {})},
            "spec": {"devices": {"requests": list(requests or (exactly(),)), **devices}},
            "status": status or {},
        },
    )


def allocated(*names: str, node: str = "n0", users: tuple[str, ...] = (), **more: Any) -> Json:
    """A claim's status: these devices of the node's pool."""
    results = [{"request": "r", "driver": DRIVER, "pool": node, "device": name, **more} for name in names]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return {
        "allocation": {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": [term]}},
        "reservedFor": [{"resource": "pods", "name": user, "uid": user} for user in users],
    }


def using(*claims: str, name: str = "p") -> PodBuilder:
    entries = [{"name": f"e{place}", "resourceClaimName": one} for place, one in enumerate(claims)]
    return make_pod(name).set("spec.resourceClaims", entries)


class World:
    """Nodes n0, n1, … and these objects, evaluated by DynamicResources alone."""

    def __init__(self, *items: Any, nodes: int = 2) -> None:
        self.view = ClusterView()
        self.plugin = build("DynamicResources")
        self.evaluator = Evaluator(in_tree_profile("p", "s", "", {"DynamicResources": (self.plugin, None)}))
        for number in range(nodes):
            name = f"n{number}"
            self.view.add_or_update_node(make_node(name).label("zone", f"z{number % 2}").build())
        self.see(device_class(), *items)

    def see(self, *items: Any) -> None:
        for item in items:
            self.view.set_object(type(item).__name__, item)

    def evaluate(self, pod: PodBuilder | PodInfo | None = None) -> dict[str, str] | str:
        """{node: reason, "" where it fits}, or PreFilter's reason."""
        info = pod if isinstance(pod, PodInfo) else (pod or using("c")).info()
        snapshot = self.view.snapshot()
        diagnosis = self.evaluator.filter(info, snapshot)
        if diagnosis.pre_filter is not None:
            return diagnosis.pre_filter.message
        return {name: diagnosis.refusal(row).message for name, row in sorted(snapshot.nodes.row_of.items())}

    def fits(self, pod: PodBuilder | PodInfo | None = None) -> list[str]:
        """The nodes that pass."""
        answer = self.evaluate(pod)
        return [] if isinstance(answer, str) else [name for name, reason in answer.items() if not reason]

    def reserve(self, node: str = "n0", pod: PodInfo | None = None) -> list[list[tuple[str, str]]]:
        """Per claim reserved: (request, device)."""
        info = pod or using("c").info()
        status = self.plugin.reserve(info, node, self.view.snapshot())
        assert status.is_success, status
        return [
            [(result.request, result.device) for result in one.allocation.devices.results] if one.allocation else []
            for one in self.view.pending_claims.of_pod(info.uid)
        ]
