"""The stand-in for the controller of volumes and provisioners: in memory, and on a real server where there is one."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

from policyengine.simulator.sandbox import CLASSES, storage_classes
from tests.simulator.controllers.test_manager import CORE, MERGE, SPACE, World, on_both
from tests.simulator.controllers.test_manager import world as cluster

CLAIMS, VOLUMES = f"{SPACE}/persistentvolumeclaims", f"{CORE}/persistentvolumes"
SELECTED = "volume.kubernetes.io/selected-node"


def world(kind: str) -> AbstractAsyncContextManager[World]:
    disks = {"metadata": {"name": "local"}, "provisioner": "kubernetes.io/no-provisioner"}
    return cluster(kind, *((CLASSES, one) for one in (*storage_classes(), disks)), with_volumes=True)


async def claim(found: World, name: str, **spec: Any) -> None:
    await found.make(
        CLAIMS, name, {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}, **spec}
    )


async def disk(found: World, name: str, size: str, **spec: Any) -> None:
    local = {"hostPath": {"path": "/disk"}, "storageClassName": "local", "accessModes": ["ReadWriteOnce"]}
    await found.make(VOLUMES, name, {**local, "capacity": {"storage": size}, **spec})


async def settle(found: World) -> None:
    for _ in range(20):
        await found.wait()


async def phase(found: World, path: str) -> str:
    return str(((await found.ask("GET", path)).get("status") or {}).get("phase"))


@on_both
async def test_a_volume_is_provisioned_at_once_where_the_class_says_so(kind: str) -> None:
    async with world(kind) as found:
        await claim(found, "c", storageClassName="immediate")
        bound = await found.until(f"{CLAIMS}/c", phase="Bound")
        assert bound["status"]["capacity"] == {"storage": "2Gi"}
        volume = await found.until(f"{VOLUMES}/{bound['spec']['volumeName']}", phase="Bound")
        assert volume["spec"]["claimRef"]["name"] == "c" and "nodeAffinity" not in volume["spec"]


@on_both
async def test_a_volume_waits_for_the_node_that_a_scheduler_chooses(kind: str) -> None:
    async with world(kind) as found:
        await claim(found, "c")
        await settle(found)
        assert await phase(found, f"{CLAIMS}/c") == "Pending"
        assert (await found.ask("GET", f"{CLAIMS}/c"))["spec"]["storageClassName"] == "standard"
        await found.ask("PATCH", f"{CLAIMS}/c", {"metadata": {"annotations": {SELECTED: "n1"}}}, MERGE)
        bound = await found.until(f"{CLAIMS}/c", phase="Bound")
        volume = await found.ask("GET", f"{VOLUMES}/{bound['spec']['volumeName']}")
        [term] = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}
        assert term["matchExpressions"] == [zone]


@on_both
async def test_without_a_provisioner_the_smallest_volume_that_will_do_is_taken(kind: str) -> None:
    async with world(kind) as found:
        for name, size in (("small", "1Gi"), ("large", "9Gi"), ("middle", "3Gi")):
            await disk(found, name, size)
        await claim(found, "c", storageClassName="local")
        assert (await found.until(f"{CLAIMS}/c", phase="Bound"))["spec"]["volumeName"] == "middle"
        await found.until(f"{VOLUMES}/large", phase="Available")
        await claim(found, "more", storageClassName="local")
        assert (await found.until(f"{CLAIMS}/more", phase="Bound"))["spec"]["volumeName"] == "large"
        await claim(found, "none", storageClassName="local")
        await settle(found)
        assert await phase(found, f"{CLAIMS}/none") == "Pending"


@on_both
async def test_a_volume_that_a_scheduler_gave_to_a_claim_is_bound_to_it(kind: str) -> None:
    async with world(kind) as found:
        reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "c"}
        await disk(found, "mine", "5Gi", claimRef=reference)
        await disk(found, "smaller", "2Gi")
        await claim(found, "c", storageClassName="local")
        assert (await found.until(f"{CLAIMS}/c", phase="Bound"))["spec"]["volumeName"] == "mine"


@on_both
async def test_when_its_claim_is_gone_a_volume_is_deleted_or_released(kind: str) -> None:
    async with world(kind) as found:
        await disk(found, "kept", "5Gi", persistentVolumeReclaimPolicy="Retain")
        await claim(found, "a", storageClassName="local")
        await claim(found, "b", storageClassName="immediate")
        await found.until(f"{CLAIMS}/a", phase="Bound")
        made = (await found.until(f"{CLAIMS}/b", phase="Bound"))["spec"]["volumeName"]
        for name in ("a", "b"):
            await found.ask("DELETE", f"{CLAIMS}/{name}")
        await found.until(f"{VOLUMES}/kept", phase="Released")
        await found.until_gone(f"{VOLUMES}/{made}")
