"""A server that is restored from an older copy: `copy_of` takes one, `restore` goes back to it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Any

from policyengine.kube.leader import LeaseSettings
from policyengine.simulator.api_server.storage import Entry, encode
from tests.faults.objects import MERGE
from tests.faults.recorded import cache_of
from tests.faults.world import Replica, World
from tests.faulty_server import effects

Json = dict[str, Any]


@dataclass(frozen=True)
class Copy:
    """What etcd held: (group, plural) -> key -> object, at a revision."""

    entries: dict[tuple[str, str], dict[str, Entry]]
    revision: int

    def objects(self, group: str, plural: str) -> list[Json]:
        return [entry.object() for entry in self.entries.get((group, plural), {}).values()]

    @property
    def lease(self) -> Json:
        """The schedulers' own."""
        leases = self.objects("coordination.k8s.io", "leases")
        return next((one for one in leases if one["metadata"]["name"] == LeaseSettings().name), {})


def copy_of(world: World) -> Copy:
    """The server as it is."""
    store = world.api.store
    return Copy({key: dict(one.entries) for key, one in store.collections.items()}, store.revision)


def restore(world: World, copy: Copy, seconds: float = 0.0, ends_watches: bool = True) -> None:
    """The server is away for `seconds` and comes back as it was. Watches end, unless a proxy keeps them open."""
    store = world.api.store
    if seconds:
        world.faults.add(effects.Drop(reached=False), times=None, seconds=seconds)
    if ends_watches:
        world.api.end_watches()
    for key, collection in store.collections.items():
        collection.entries = dict(copy.entries.get(key, {}))
        collection._order = sorted(collection.entries)
        collection.changes.clear()
        collection.oldest = copy.revision
    store.revision = copy.revision
    pods = {item["metadata"]["uid"]: item for item in copy.objects("", "pods")}
    nodes = {item["metadata"]["name"]: item for item in copy.objects("", "nodes")}
    world.put("restored", (pods, nodes, copy.lease))


def another_cluster(world: World) -> Copy:
    """Which has the same objects, but for its namespace kube-system, and greater versions."""
    copy = copy_of(world)
    system = copy.entries["", "namespaces"]["kube-system"]
    named = system.object()
    named["metadata"]["uid"] = "of-another-cluster"  # type: ignore[index,call-overload]
    copy.entries["", "namespaces"]["kube-system"] = replace(system, uid="of-another-cluster", raw=encode(named))
    return replace(copy, revision=copy.revision + 500)


def switch(world: World, other: Copy) -> Copy:
    """From now on the other one answers, which knows its own past; the one that did until now."""
    copy = copy_of(world)
    restore(world, other)
    for collection in world.api.store.collections.values():
        collection.oldest = 0
    return copy


def knows_what_there_is(world: World, replica: Replica) -> bool:
    """Whether the replica's cache equals a fresh list."""
    copy, cache = copy_of(world), cache_of(replica.state)
    pods = {item["metadata"]["uid"]: item["spec"].get("nodeName", "") for item in copy.objects("", "pods")}
    return bool(
        cache["pods"] == pods and set(cache["nodes"]) == {one["metadata"]["name"] for one in copy.objects("", "nodes")}
    )


async def soon_right(world: World, seconds: float = 5.0) -> None:
    """So long after the server's return every replica's cache equals a fresh list, and all pods are placed that fit."""
    await asyncio.sleep(seconds)
    for replica in world.replicas:
        holds = knows_what_there_is(world, replica)
        world.put("found", ("I7", holds, f"{replica.name} knows what there is {seconds:g} s after the server's return"))


async def others_write(world: World, count: int) -> None:
    """The server's version grows, and nothing that is watched here changes."""
    path = "/api/v1/namespaces/default/configmaps"
    await world.call("POST", path, {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "busy"}})
    for number in range(count):
        await world.call("PATCH", f"{path}/busy", {"data": {"a": str(number)}}, MERGE)
