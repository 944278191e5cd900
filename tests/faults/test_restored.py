"""Fault 31: etcd is restored from an older copy, or another cluster answers. One scene for each way of finding out."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from policyengine.kube.http.client import Client
from policyengine.kube.leader import LeaderElector
from policyengine.kube.runner import Runner
from policyengine.kube.watching.reflector import Reflector
from policyengine.kube.watching.server_versions import ServerHistory
from policyengine.kube.watching.store import Store
from tests.faults.defence import fault
from tests.faults.objects import NODES
from tests.faults.restored import Copy, another_cluster, copy_of, others_write, restore, soon_right, switch
from tests.faults.world import World
from tests.faulty_server import effects


async def full_of_what_the_copy_has_not(world: World, name: str = "scheduler-a") -> Any:
    """A copy, and then two pods on a node that has room for two."""
    await world.node("n1", "2")
    await world.pod("before", "10m")
    world.start(name)
    await asyncio.sleep(3)
    copy = copy_of(world)
    await world.delete("before")
    await world.pod("ghost", "1500m")
    await asyncio.sleep(2)
    return copy


async def comes_back(world: World, copy: Any, seconds: float = 2.0, **how: Any) -> None:
    """The copy is there, and a pod that has room in it."""
    restore(world, copy, seconds, **how)
    await asyncio.sleep(seconds)
    await world.pod("new", "1500m")
    await soon_right(world)


def resuming_blindly(patch: pytest.MonkeyPatch) -> None:
    async def as_it_is(self: Any, since: float) -> None: ...

    patch.setattr(Reflector, "_ask_whether_it_came_as_far", as_it_is)


@fault(
    31,
    "I3 I7",
    defence="before a watch is resumed the server is asked whether it has come as far (`kube/watching/reflector.py`)",
    taken_out="it is resumed from a version that the server has not reached, and is silent",
    without=resuming_blindly,
)
async def test_31_a_copy_is_restored_while_watches_are_broken(world: World) -> None:
    copy = await full_of_what_the_copy_has_not(world)
    await comes_back(world, copy, 0.0)
    await asyncio.sleep(60)


def believing_lists(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Store, "_refuse_contradiction", lambda self, meta, listed: None)


@fault(
    31,
    "I3 I7",
    defence="a list that shows an object older than it was seen: the server has gone back (`kube/watching/store.py`)",
    taken_out="what is older is no news",
    without=believing_lists,
)
async def test_31_a_copy_that_has_come_further_by_the_time_it_is_asked(world: World) -> None:
    await world.node("n1", "1")
    await world.node("n2", "1")
    world.start()
    await asyncio.sleep(2)
    copy = copy_of(world)
    await world.shrink("n1", "100m")
    await asyncio.sleep(1)
    world.replicas[0].wire.is_cut = True
    restore(world, copy)
    await others_write(world, 30)
    await asyncio.sleep(8)
    world.replicas[0].wire.is_cut = False
    await world.patch_node("n2", {"spec": {"unschedulable": True}})
    await world.pod("new")
    await soon_right(world)
    await asyncio.sleep(60)


def keeping_what_is_newer(patch: pytest.MonkeyPatch) -> None:
    def believe_anything(self: Any, generation: int) -> None:
        self.generation, self.version = generation, ""

    patch.setattr(Store, "believe_anything", believe_anything)


@fault(
    31,
    "I3 I7",
    defence="once the server is known to have gone back, whatever it lists replaces what was known "
    "(`kube/watching/store.py`, `cluster/view.py`)",
    taken_out="no object goes back behind a version seen before",
    without=keeping_what_is_newer,
)
async def test_31_pods_that_were_bound_wait_again_and_nodes_are_what_they_were(world: World) -> None:
    await world.node("n1", "1")
    await world.pod("p")
    world.start()
    await asyncio.sleep(2)
    await world.delete("p")
    await world.pod("waits", "2")
    await asyncio.sleep(2)
    copy = copy_of(world)
    await world.shrink("n1", "2")
    await asyncio.sleep(20)
    restore(world, copy, 1.0)
    await asyncio.sleep(3)
    await world.shrink("n1", "3")
    await soon_right(world)
    await asyncio.sleep(60)


def deciding_meanwhile(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Runner, "_lose_cache", lambda self: None)


@fault(
    31,
    "I2 I9",
    defence="nothing is decided until everything was listed anew (`kube/runner.py`, `scheduler/state.py`)",
    taken_out="cycles go on with one kind as it was and another as it is",
    without=deciding_meanwhile,
)
async def test_31_nodes_are_known_before_the_pods_on_them(world: World) -> None:
    await world.node("n1", "3")
    await world.pod("stays", "2")
    world.start()
    await asyncio.sleep(2)
    await world.pod("waits", "2")
    await asyncio.sleep(2)
    copy = copy_of(world)
    await world.shrink("n1", "1")
    await asyncio.sleep(2)
    await world.delete("stays")
    await asyncio.sleep(20)
    world.faults.add(effects.Delay(3.0), verb="list", resource="pods", client="scheduler")
    restore(world, copy)
    await asyncio.sleep(60)


def not_looking_at_the_lease(patch: pytest.MonkeyPatch) -> None:
    original = LeaderElector._observe

    def observe(self: Any, lease: Any) -> None:
        self._seen_in = -1
        original(self, lease)

    patch.setattr(LeaderElector, "_observe", observe)


@fault(
    31,
    "I3 I7",
    defence="a Lease whose version went back shows it, be every watch open and silent (`kube/leader.py`)",
    taken_out="the Lease is written anew, and that is that",
    without=not_looking_at_the_lease,
    elects=True,
)
async def test_31_a_copy_behind_a_proxy_that_keeps_the_watches_open(world: World) -> None:
    copy = await full_of_what_the_copy_has_not(world)
    await comes_back(world, copy, 0.0, ends_watches=False)
    await asyncio.sleep(60)


def believing_bookmarks(patch: pytest.MonkeyPatch) -> None:
    original = Store._advance

    def advance(self: Any, version: str) -> None:
        self.since = 0
        original(self, version)

    patch.setattr(Store, "_advance", advance)


@fault(
    31,
    "I3 I7",
    defence="a bookmark from before the watch began ends it (`kube/watching/store.py`)",
    taken_out="it is no news",
    without=believing_bookmarks,
)
async def test_31_nobody_is_elected_and_the_watches_stay_open(world: World) -> None:
    copy = await full_of_what_the_copy_has_not(world)
    await asyncio.sleep(62)
    restore(world, copy, ends_watches=False)
    await world.pod("new", "1500m")
    await asyncio.sleep(62)
    await soon_right(world)


async def beside_another_cluster(world: World) -> Copy:
    """The other one, which lacks a pod that this one has."""
    await world.starts_with(2, n1="1")
    other = another_cluster(world)
    await world.pod("of-the-first")
    await asyncio.sleep(2)
    return other


def not_asking_who_it_is(patch: pytest.MonkeyPatch) -> None:
    original = ServerHistory._look

    async def look(self: Any, client: Client) -> int:
        self._cluster = ""
        return await original(self, client)

    patch.setattr(ServerHistory, "_look", look)


@fault(
    31,
    "I3 I7",
    defence="the UID of the namespace kube-system is asked for before a watch is resumed "
    "(`kube/watching/server_versions.py`)",
    taken_out="a cluster whose versions are ahead continues the watches of another",
    without=not_asking_who_it_is,
)
async def test_31_another_cluster_answers_under_the_address(world: World) -> None:
    other = await beside_another_cluster(world)
    switch(world, other)
    await world.pod("new")
    await soon_right(world)
    await asyncio.sleep(60)


@fault(
    31,
    "I3 I7",
    defence="whose UID the namespace kube-system has is asked for again and again (`kube/watching/server_versions.py`)",
    taken_out="two clusters pass for one where the versions allow it",
    without=not_asking_who_it_is,
)
async def test_31_two_clusters_answer_under_one_address_in_turn(world: World) -> None:
    other = await beside_another_cluster(world)
    for turn in range(5):
        other = switch(world, other)
        if turn == 0:
            await world.call("DELETE", f"{NODES}/n1")
            await world.node("n2", "2")
        await world.pod(f"new-{turn}")
        await soon_right(world)
    await asyncio.sleep(60)
