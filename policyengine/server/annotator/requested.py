"""What the pods on each node ask for, and what that leaves, as annotations: who reads them needs no watch of pods.

`requested-RESOURCE` and `free-RESOURCE` of cpu (millicores), memory and ephemeral-storage (bytes), pods and gpu
(counts). What is asked for beyond the node's allocatable leaves 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress

from policyengine import quantity
from policyengine.cluster.kinds import Kind
from policyengine.cluster.objects import ObjectError, decode
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_objects import Pod
from policyengine.kube.http.client import Client
from policyengine.server.annotator.source import MeasuredNode

PODS = Kind("Pod", "pods", Pod, field_selector="status.phase!=Succeeded,status.phase!=Failed")
RESOURCES: Mapping[str, str] = {
    "cpu": "cpu",
    "memory": "memory",
    "pods": "pods",
    "gpu": "nvidia.com/gpu",
    "ephemeral-storage": "ephemeral-storage",
}
"""The end of the annotation's name -> the resource."""
NAMES = tuple(f"{what}-{name}" for name in RESOURCES for what in ("requested", "free"))


async def read_requested(client: Client) -> dict[str, Counter[str]]:
    """Node -> what its pods ask for by resource. Raises `ApiError`, `ConnectionFailed`."""
    found: dict[str, Counter[str]] = {}
    async for raw in client.list_all(PODS):
        with suppress(ObjectError):
            pod = PodInfo(decode(Pod, raw))
            if pod.node_name:
                found.setdefault(pod.node_name, Counter()).update({**dict(pod.requests.items()), "pods": 1})
    return found


def requested_of(node: MeasuredNode, requested: Mapping[str, int]) -> dict[str, str]:
    """The annotations of a node whose pods ask for so much."""
    said: dict[str, str] = {}
    for name, resource in RESOURCES.items():
        asked = requested.get(resource, 0)
        said |= {f"requested-{name}": str(asked), f"free-{name}": str(max(_allocatable(node, resource) - asked, 0))}
    return said


def _allocatable(node: MeasuredNode, resource: str) -> int:
    """0 where the node does not say, or not as a quantity."""
    try:
        return quantity.amount(resource, node.status.allocatable[resource])
    except (KeyError, quantity.QuantityError):
        return 0
