"""Pods with volumes against the embedded API server, as system:kube-scheduler, on virtual time.

A stand-in volume controller binds claims, a stand-in provisioner makes volumes for the node a claim names.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

from policyengine.kube.http.client import Client
from policyengine.kube.runner import Runner
from policyengine.plugins.registry import default_profile
from policyengine.scheduler.state import SchedulerState
from policyengine.simulator.api_server.http_requests import ADMIN, User
from policyengine.simulator.api_server.memory import MemoryTransport
from policyengine.simulator.sandbox import create
from tests.faulty_server import effects as fault
from tests.kube import scenes
from tests.kube.scenes import MERGE, PODS, whatever_becomes_of_requests
from tests.scheduler.invariants import validate

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
SELECTED = "volume.kubernetes.io/selected-node"
BOUND = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}


def pod(name: str, *claims: str) -> dict[str, Any]:
    volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    spec = {"containers": [{"name": "c", "image": "i"}], "volumes": volumes}
    return {"kind": "Pod", "metadata": {"name": name}, "spec": spec}


def storage_class(name: str, provisioner: str) -> dict[str, Any]:
    mode = "WaitForFirstConsumer"
    return {
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
    }


def claim(name: str, of: str) -> dict[str, Any]:
    resources = {"requests": {"storage": "1Gi"}}
    spec = {"storageClassName": of, "accessModes": ["ReadWriteOnce"], "resources": resources}
    return {"kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def volume(name: str, of: str, on: str) -> dict[str, Any]:
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [on]}
    return {
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "storageClassName": of,
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "2Gi"},
            "local": {"path": "/mnt/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
            "persistentVolumeReclaimPolicy": "Retain",
        },
    }


class World(scenes.World):
    """An API server with RBAC, three nodes, two classes, and a scheduler with no more rights than it needs."""

    def __init__(self) -> None:
        super().__init__(User(ADMIN.name, ADMIN.groups), tokens={})
        self.state = SchedulerState([default_profile()])

    async def make(self, *items: dict[str, Any]) -> None:
        await self.nodes(3)
        await create(self.outside, CLASSES, storage_class("local", "kubernetes.io/no-provisioner"))
        await create(self.outside, CLASSES, storage_class("made", "example.com/disks"))
        paths = {"PersistentVolume": VOLUMES, "PersistentVolumeClaim": CLAIMS, "Pod": PODS}
        for item in items:
            made = await create(self.outside, paths[item["kind"]], item)
            if item["kind"] == "PersistentVolume":
                await self.call("PATCH", f"{VOLUMES}/{made['metadata']['name']}/status", AVAILABLE, MERGE)

    async def schedule(self, seconds: float) -> None:
        """Have the pods placed, beside the volume controller."""
        user = User("system:kube-scheduler", ("system:authenticated",))
        client = Client(MemoryTransport(self.api, user=user, user_agent="scheduler"))
        runner = Runner(self.state, client, self.clock, random.Random(3), profiles=[default_profile()], host="test")
        control = asyncio.ensure_future(self.control())
        task = asyncio.ensure_future(runner.run(self.stop))
        await asyncio.sleep(seconds)
        self.stop.set()
        await asyncio.wait_for(task, 60)
        assert not control.done()
        control.cancel()
        validate(self.state)

    def writes_of_scheduler(self) -> list[tuple[str, str]]:
        return [
            (one.kind, one.verb)
            for one in self.api.writes
            if one.user == "system:kube-scheduler" and one.kind.startswith("PersistentVolume")
        ]

    async def control(self) -> None:
        """The volume controller and a provisioner."""
        while True:
            await asyncio.sleep(0.7)
            for one in (await self.call("GET", VOLUMES))["items"]:
                ref = one["spec"].get("claimRef")
                if ref and ref.get("uid") and one.get("status", {}).get("phase") == "Available":
                    await self._bind(ref["name"], one["metadata"]["name"])
            for one in (await self.call("GET", CLAIMS))["items"]:
                on = one["metadata"].get("annotations", {}).get(SELECTED)
                if not on or one["spec"].get("volumeName"):
                    continue
                name = one["metadata"]["name"]
                made = volume(f"pvc-{name}", "made", on)
                uid = one["metadata"]["uid"]
                ref = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": name, "uid": uid}
                made["spec"]["claimRef"] = ref
                await create(self.outside, VOLUMES, made)
                await self._bind(name, f"pvc-{name}")

    async def _bind(self, claim: str, volume: str) -> None:
        await self.call("PATCH", f"{VOLUMES}/{volume}/status", {"status": {"phase": "Bound"}}, MERGE)
        change = {"metadata": {"annotations": BOUND}, "spec": {"volumeName": volume}}
        await self.call("PATCH", f"{CLAIMS}/{claim}", change, MERGE)
        await self.call("PATCH", f"{CLAIMS}/{claim}/status", {"status": {"phase": "Bound"}}, MERGE)


AVAILABLE = {"status": {"phase": "Available"}}


async def play(work: Callable[[World], Awaitable[None]]) -> None:
    await work(World())


scene = scenes.scene_of(play)


@scene
async def test_a_pod_goes_to_its_local_volume_and_is_bound_once_its_claim_is(world: World) -> None:
    await world.make(volume("disk", "local", "node-2"), claim("data", "local"), pod("p", "data"))
    await world.schedule(10)
    assert await world.nodes_of() == {"p": "node-2"}
    disk = await world.call("GET", f"{VOLUMES}/disk")
    data = await world.call("GET", f"{CLAIMS}/data")
    assert disk["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}
    ref = disk["spec"]["claimRef"]
    assert (ref["kind"], ref["apiVersion"], ref["namespace"], ref["name"], ref["uid"]) == (
        "PersistentVolumeClaim",
        "v1",
        "default",
        "data",
        data["metadata"]["uid"],
    )
    assert disk["spec"]["local"] == {"path": "/mnt/disk"}
    assert world.writes_of_scheduler() == [("PersistentVolume", "patch")]


@scene
async def test_a_volume_is_made_where_the_pod_was_placed(world: World) -> None:
    await world.make(claim("data", "made"), pod("p", "data"))
    await world.schedule(10)
    on = (await world.nodes_of())["p"]
    data = await world.call("GET", f"{CLAIMS}/data")
    assert on
    assert data["metadata"]["annotations"][SELECTED] == on
    assert data["spec"]["volumeName"] == "pvc-data"
    assert world.writes_of_scheduler() == [("PersistentVolumeClaim", "patch")]


@whatever_becomes_of_requests
@scene
async def test_whatever_becomes_of_the_patches_every_pod_gets_its_volume(world: World, effect: fault.Effect) -> None:
    disks = [volume(f"disk-{number}", "local", f"node-{number}") for number in (1, 2, 3)]
    pods = [item for number in range(3) for item in (claim(f"c{number}", "local"), pod(f"p{number}", f"c{number}"))]
    await world.make(*disks, *pods)
    world.api.faults.add(effect, verb="patch", client="scheduler", times=4)
    await world.schedule(400)
    assert sorted((await world.nodes_of()).values()) == ["node-1", "node-2", "node-3"]
