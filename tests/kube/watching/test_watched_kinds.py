"""Kinds are followed as policies come to read them, and a policy waits for what it reads."""

import asyncio
import random
from dataclasses import replace

import pytest
import yaml

from policyengine.cluster.kinds import BY_KIND, GROUP_LABEL
from policyengine.cluster.pod_objects import Pod
from policyengine.framework.profile import Profile
from policyengine.kube.http.client import Client
from policyengine.kube.watching.informers import ALWAYS, Informers, MessageQueue, kinds_read
from policyengine.kube.watching.server_versions import ServerHistory
from policyengine.plugins.registry import IN_TREE, build, default_profile
from policyengine.policy_compiler import compile_policy
from policyengine.scheduler.messages import (
    Message,
    ObjectDeleted,
    ObjectObserved,
    PodObserved,
    ProfileRemoved,
    ProfileReplaced,
)
from policyengine.simulator.api_server import statuses
from policyengine.simulator.api_server.memory import MemoryTransport
from tests.deploy.manifests import DEPLOY
from tests.faulty_server import effects as fault
from tests.faulty_server.server import FaultyServer
from tests.kube.virtual_time import VirtualClock, run

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POD_GROUPS = yaml.safe_load((DEPLOY / "base" / "podgroups.yaml").read_text())
BARE = Profile("bare", "bare", "hash")
ZONED = Profile("zoned", "zoned", "hash", filters=(build("VolumeZone"),))


class World:
    """A server, and what was passed on, with the kinds followed at that moment."""

    def __init__(self, *profiles: Profile) -> None:
        self.clock = VirtualClock()
        self.api = FaultyServer(self.clock)
        self._messages = MessageQueue(limit=1000)
        self.client = Client(MemoryTransport(self.api))
        history = ServerHistory(self.client, self.clock)
        self.following = Informers(self.client, self.clock, random.Random(1), self._messages, profiles, history)

    @property
    def passed(self) -> list[Message]:
        """The policies that the core was told of."""
        return [one for one in self._messages.waiting if isinstance(one, ProfileReplaced | ProfileRemoved)]

    @property
    def seen(self) -> list[Pod]:
        """The pods that the core was told of."""
        return [one.pod for one in self._messages.waiting if isinstance(one, PodObserved)]

    @property
    def groups(self) -> list[type[Message]]:
        """What the core was told of PodGroups."""
        return [
            type(one)
            for one in self._messages.waiting
            if isinstance(one, ObjectObserved | ObjectDeleted) and one.kind == "PodGroup"
        ]

    @property
    def kinds(self) -> set[str]:
        return {reflector.resource.kind for reflector in self.following.reflectors}


def test_every_kind_that_an_in_tree_plugin_reads_can_be_followed() -> None:
    for name in IN_TREE:
        kinds = getattr(build(name), "kinds", ())
        assert set(kinds) <= set(BY_KIND), name


def test_every_kind_whose_changes_a_plugin_waits_for_is_followed_for_it_alone() -> None:
    followed = {"Pod", "AssignedPod", "UnschedulablePod", "Node", "Namespace", "*"}
    for name in IN_TREE:
        plugin = build(name)
        events = plugin.events_to_register() if hasattr(plugin, "events_to_register") else ()
        kinds = followed | set(getattr(plugin, "kinds", ()))
        if name == "NodeResourcesFit":
            kinds.add("DeviceClass")  # means something only beside DynamicResources, which follows them
        assert {one.event.resource.value for one in events} <= kinds, name


def test_nothing_is_followed_that_nobody_reads() -> None:
    async def work() -> None:
        always = {resource.kind for resource in ALWAYS}
        assert World(BARE).kinds == always
        assert World(BARE, ZONED).kinds == always | set(build("VolumeZone").kinds)
        assert kinds_read(default_profile()) <= set(BY_KIND)

    run(work())


@pytest.mark.parametrize("read", ["node.finished", 'node.domain("zone").nodes.map(n, n.finished.size())'])
def test_finished_pods_are_followed_where_a_policy_reads_them(read: str) -> None:
    profile = compile_policy(f'policy "t" {{ base none filter "f" {{ require {read}.size() == 0 }} }}')
    assert kinds_read(profile) == {"FinishedPod"}


def test_pod_groups_are_known_the_moment_their_definition_is_applied_and_each_time_anew() -> None:
    async def work() -> None:
        world = World(compile_policy('policy "t" { base none filter "f" { require has(podGroup.name) } }'))
        task = asyncio.ensure_future(world.following.run())
        await world.following.wait_for_sync()
        for name in ("first", "second"):
            await asyncio.sleep(7.7)
            await world.client.call("POST", CRDS, POD_GROUPS)
            group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": name}}
            await world.client.call("POST", BY_KIND["PodGroup"].path("default"), {**group, "spec": {"minMember": 2}})
            await asyncio.sleep(0.5)
            assert world.groups[-1] == ObjectObserved
            await world.client.call("DELETE", f"{CRDS}/{POD_GROUPS['metadata']['name']}")
            await asyncio.sleep(2.0)
            assert world.groups[-1] == ObjectDeleted
        assert len(world.groups) == 4
        task.cancel()

    run(work())


def test_finished_pods_of_groups_are_followed_where_a_policy_reads_pod_groups() -> None:
    async def work() -> None:
        world = World(compile_policy('policy "t" { base none filter "f" { require has(podGroup.name) } }'))
        assert world.kinds == {resource.kind for resource in ALWAYS} | {"PodGroup", "NativePodGroup", "FinishedMember"}
        pods, container = "/api/v1/namespaces/default/pods", {"name": "c", "image": "i"}
        for name, group, phase in (("alone", "", "Succeeded"), ("runs", "g", "Running"), ("done", "g", "Succeeded")):
            labels = {GROUP_LABEL: group} if group else {}
            made = {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [container]}}
            await world.client.call("POST", pods, {"kind": "Pod", "apiVersion": "v1", **made})
            await world.client.call("PATCH", f"{pods}/{name}/status", {"status": {"phase": phase}})
        task = asyncio.ensure_future(world.following.run())
        await world.following.wait_for_sync()
        assert [pod.metadata.name for pod in world.seen if pod.status.phase == "Succeeded"] == ["done"]
        task.cancel()

    run(work())


def test_a_policy_that_reads_nothing_new_is_passed_on_at_once() -> None:
    async def work() -> None:
        world = World(ZONED)
        task = asyncio.ensure_future(world.following.run())
        await world.following.wait_for_sync()
        message = ProfileReplaced(replace(ZONED, policy_hash="new"))
        world.following.admit(message)
        assert world.passed == [message]
        task.cancel()

    run(work())


def test_a_policy_waits_for_the_first_list_of_what_it_reads_and_the_order_is_kept() -> None:
    async def work() -> None:
        world = World(BARE)
        task = asyncio.ensure_future(world.following.run())
        await world.following.wait_for_sync()
        failing = fault.Fail(statuses.internal("etcd is slow"))
        world.api.faults.add(failing, verb="list", resource="persistentvolumes", times=3)
        first, second = ProfileReplaced(ZONED), ProfileRemoved("bare")
        world.following.admit(first)
        world.following.admit(second)
        await asyncio.sleep(0.01)
        assert world.passed == []
        await world.following.wait_for_sync()
        assert world.passed == [first, second]
        assert "PersistentVolume" in world.kinds
        task.cancel()

    run(work())


def test_only_the_newest_word_on_a_policy_that_waits_is_passed_on() -> None:
    async def work() -> None:
        world = World(BARE)
        messages = [ProfileReplaced(replace(ZONED, policy_hash=f"{number}")) for number in range(5)]
        for message in messages:
            world.following.admit(message)
        task = asyncio.ensure_future(world.following.run())
        await world.following.wait_for_sync()
        assert world.passed == [messages[-1]]
        task.cancel()

    run(work())
