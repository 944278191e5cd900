"""Measures decisions about pods with ResourceClaims: the first one among many devices, and those after it."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Iterator
from typing import Any

from benchmarks.decisions import Core
from benchmarks.figures import Figure
from benchmarks.workloads import NAMESPACE, Json, Workload, peer_node, pod
from policyengine.cluster.device_objects import DeviceClass, ResourceClaim, ResourceSlice
from policyengine.cluster.objects import decode
from policyengine.policy_compiler import compile_policy
from policyengine.scheduler.actions import PatchObject
from policyengine.scheduler.messages import CyclesRequested, ObjectObserved

DRIVER = "gpu.example.com"
OF_CLASS = f'device.driver == "{DRIVER}"'
LARGE = (
    f'device.attributes["{DRIVER}"].productName == "H100" && '
    f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0'
)
POLICY = 'policy "bench-devices" { scheduler "bench-devices" }'
A_SLICE = 128
"""Devices of a slice at most (resource.k8s.io)."""


def devices(nodes: int = 5_000, each: int = 8, later: int = 30) -> list[Figure]:
    """Measure both ways in which as many devices can be offered: on every node its own, and one pool for all nodes."""
    total = nodes * each
    local = f"{each} on each of {nodes:,} nodes"
    rows: list[Figure] = []
    for where, slices in ((local, _local(nodes, each)), (f"in a pool that {nodes:,} nodes reach", _network(total))):
        first, after = _decisions(list(slices), nodes, later)
        rows.append(Figure(f"the first decision, {total:,} devices {where}, CPU", first, "ms", at_most=50, digits=1))
        rows.append(Figure("those after it, median", after, "ms", digits=1))
    return rows


def _decisions(slices: list[ResourceSlice], nodes: int, later: int) -> tuple[float, float]:
    """Milliseconds of the first decision, and of those after it."""
    core = Core(compile_policy(POLICY))
    core.fill(Workload("devices", "", nodes, later + 1, _with_claim, peer_node))
    selectors = {"selectors": [{"cel": {"expression": OF_CLASS}}]}
    of_class = decode(DeviceClass, {"metadata": {"name": "gpu"}, "spec": selectors})
    objects = [of_class, *slices, *(_claim(number) for number in range(later + 1))]
    core.take(ObjectObserved(type(one).__name__, one) for one in objects)
    gc.collect()
    gc.freeze()
    spent = []
    for _ in range(later + 1):
        actions, took = core.handle(CyclesRequested(1))
        assert any(isinstance(action, PatchObject) for action in actions), "no claim was allocated"
        spent.append(took / 1e6)
    return spent[0], statistics.median(spent[1:])


def _with_claim(number: int) -> Json:
    item = pod(number)
    item["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": f"claim-{number:06d}"}]
    return item


def _claim(number: int) -> ResourceClaim:
    exactly = {"deviceClassName": "gpu", "count": 1, "selectors": [{"cel": {"expression": LARGE}}]}
    name = f"claim-{number:06d}"
    metadata = {"name": name, "namespace": NAMESPACE, "uid": name, "resourceVersion": "1"}
    requests = [{"name": "gpu", "exactly": exactly}]
    return decode(ResourceClaim, {"metadata": metadata, "spec": {"devices": {"requests": requests}}})


def _local(nodes: int, each: int) -> Iterator[ResourceSlice]:
    for number in range(nodes):
        name = peer_node(number)["metadata"]["name"]
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        yield _slice(name, {"nodeName": name, "pool": pool}, number * each, each)


def _network(total: int) -> Iterator[ResourceSlice]:
    starts = range(0, total, A_SLICE)
    for number, start in enumerate(starts):
        pool = {"name": "network", "generation": 1, "resourceSliceCount": len(starts)}
        yield _slice(f"network-{number:06d}", {"allNodes": True, "pool": pool}, start, min(A_SLICE, total - start))


def _slice(name: str, where: dict[str, Any], start: int, count: int) -> ResourceSlice:
    made = [_device(number) for number in range(start, start + count)]
    spec = {"driver": DRIVER, "devices": made, **where}
    return decode(ResourceSlice, {"metadata": {"name": name, "resourceVersion": "1"}, "spec": spec})


def _device(number: int) -> Json:
    attributes = {
        "uuid": {"string": f"GPU-{number:032x}"},
        "productName": {"string": "H100"},
        "index": {"int": number % 8},
        "driverVersion": {"version": "550.54.15"},
    }
    return {"name": f"gpu-{number}", "attributes": attributes, "capacity": {"memory": {"value": "80Gi"}}}
