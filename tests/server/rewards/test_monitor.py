"""The rewards over an API server: learnt from pods, written to nodes, kept through a restart, read by the policy."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from policyengine.clock import Clock
from policyengine.commands.policies import load_profiles
from policyengine.kube.http.client import Client
from policyengine.kube.scheduling import Scheduler
from policyengine.kube.stores import ConfigMapStore, SqliteStore, Store, StoreError
from policyengine.server.rewards.book import Book, Learning, Reward
from policyengine.server.rewards.monitor import KEY, OF_NODE, PREFIX, Monitor, Settings, changes, is_ours, said_of_nodes
from policyengine.simulator.api_server import statuses
from policyengine.simulator.api_server.access.authentication import service_account
from policyengine.simulator.api_server.http_requests import ADMIN
from policyengine.simulator.api_server.memory import MemoryTransport
from policyengine.simulator.sandbox import create, node
from tests.deploy.rights import apply, manifests
from tests.faulty_server import effects
from tests.faulty_server.server import FaultyServer
from tests.kube.virtual_time import VirtualClock, run
from tests.server.on_virtual_time import virtually

PODS = "/api/v1/namespaces/default/pods"
POLICY = Path(__file__).resolve().parents[3] / "policies" / "rewards.policy"
SETTINGS = Settings(Learning(forget_after=3600.0), patience=60.0, interval=10.0)
WEB = f"default.{PREFIX}web"
MakeStore = Callable[["World"], Store]


class World:
    """A server with two nodes."""

    def __init__(self) -> None:
        self.clock: Clock = VirtualClock()
        self.api = FaultyServer(self.clock, tokens={})
        self.transport = MemoryTransport(self.api, user=ADMIN)
        self.client = Client(self.transport)

    async def begin(self) -> World:
        for name in ("a", "b"):
            await create(self.transport, "/api/v1/nodes", node(name, "z"))
        config_map = {"kind": "ConfigMap", "metadata": {"name": "rewards", "namespace": "kube-system"}}
        await create(self.transport, "/api/v1/namespaces/kube-system/configmaps", config_map)
        return self

    async def pod(self, name: str, on: str = "", **status: Any) -> None:
        spec: dict[str, Any] = {"schedulerName": "rewards", "containers": [{"name": "c", "image": "i"}]}
        if on:
            spec["nodeName"] = on
        metadata = {"name": name, "namespace": "default", "labels": {"app": "web"}}
        await create(self.transport, PODS, {"kind": "Pod", "metadata": metadata, "spec": spec})
        if status:
            await self.client.patch_pod_status("default", name, status)

    async def get(self, path: str) -> dict[str, Any]:
        response = await self.transport.request("GET", path)
        found: dict[str, Any] = json.loads(await response.read())
        return found

    async def rewards(self) -> dict[str, str]:
        """Node -> what it says of the group `web`."""
        nodes = (await self.get("/api/v1/nodes"))["items"]
        said = {one["metadata"]["name"]: one["metadata"].get("annotations", {}) for one in nodes}
        return {name: texts[WEB] for name, texts in said.items() if WEB in texts}

    @asynccontextmanager
    async def learning(self, store: Store, told: Callable[[str], None] = print) -> Any:
        monitor = Monitor(self.client, store, self.clock, random.Random(1), SETTINGS, told)
        stop = asyncio.Event()
        task = asyncio.create_task(monitor.run(stop))
        try:
            yield
        finally:
            stop.set()
            await task
            store.close()


@pytest.fixture(params=["sqlite", "configmap"])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> MakeStore:
    if request.param == "sqlite":
        return lambda world: SqliteStore(tmp_path / "rewards.sqlite")
    return lambda world: ConfigMapStore(world.client, "kube-system", "rewards", KEY)


def restarted(times: int) -> dict[str, Any]:
    killed = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    container = {"name": "c", "restartCount": times, "lastState": killed, "ready": True, "image": "i", "imageID": "i"}
    return {"phase": "Running", "containerStatuses": [container]}


@virtually
async def test_what_pods_experience_is_written_to_their_nodes(make_store: MakeStore) -> None:
    world = await World().begin()
    async with world.learning(make_store(world)):
        await world.pod("ended", "a", phase="Failed")
        await world.pod("killed", "a", **restarted(2))
        await world.pod("fine", "b", phase="Succeeded")
        await asyncio.sleep(15)
        assert await world.rewards() == {"a": "0.729", "b": "1.000"}
        await world.pod("late", "b")
        await asyncio.sleep(75)
        assert await world.rewards() == {"a": "0.729", "b": "0.900"}
        nodes = (await world.get("/api/v1/nodes"))["items"]
        assert [one["metadata"]["annotations"][OF_NODE] for one in nodes] == ["0.729", "0.900"]
        unready = restarted(2)
        unready["containerStatuses"][0]["ready"] = False
        await world.client.patch_pod_status("default", "killed", unready)  # its health would be evidence
        await asyncio.sleep(SETTINGS.learning.forget_after + 60)
        nodes = (await world.get("/api/v1/nodes"))["items"]
        assert not any(is_ours(key) for one in nodes for key in one["metadata"].get("annotations", {}))


@virtually
async def test_a_restart_forgets_nothing_and_counts_nothing_twice(make_store: MakeStore) -> None:
    world = await World().begin()
    async with world.learning(make_store(world)):
        await world.pod("killed", "a", **restarted(2))
        await asyncio.sleep(15)
        before = await world.rewards()
    async with world.learning(make_store(world)):
        await asyncio.sleep(15)
        assert await world.rewards() == before == {"a": "0.810"}
        await world.client.patch_pod_status("default", "killed", restarted(3))
        await asyncio.sleep(15)
        assert (await world.rewards())["a"] == "0.729"


@virtually
async def test_refused_bindings_count_against_the_node_each_once(make_store: MakeStore) -> None:
    """By the events that the scheduler writes of them, which name the node."""
    world = await World().begin()
    scheduler = Scheduler(world.client, world.clock, random.Random(1), load_profiles([POLICY]))
    refusal = effects.Fail(statuses.forbidden("pods", "", "p", "not there"))
    world.api.faults.add(refusal, subresource="binding", times=2)
    stop = asyncio.Event()
    task = asyncio.create_task(scheduler.run(stop))
    async with world.learning(make_store(world)):
        await world.pod("p")
        await asyncio.sleep(30)
        before = await world.rewards()
        events = (await world.get("/apis/events.k8s.io/v1/namespaces/default/events"))["items"]
        failed = [one for one in events if one["reason"] == "FailedScheduling"]
        assert {one["related"]["kind"] for one in failed} == {"Node"}
        # Two refusals on one node, or one on each.
        assert sorted(before.values()) in (["0.810"], ["0.900", "0.900"])
        assert before.keys() == {one["related"]["name"] for one in failed}
    stop.set()
    await task
    async with world.learning(make_store(world)):
        await asyncio.sleep(15)
        assert await world.rewards() == before


def test_as_its_own_account_it_learns_and_replicas_go_on_with_what_the_last_one_knew(tmp_path: Path) -> None:
    """The manifests' account and nothing more; two replicas at once, then a third after both have gone."""

    async def work() -> None:
        world = await World().begin()
        for one in manifests():
            await apply(world.transport, one)
        state = {"kind": "ConfigMap", "metadata": {"name": "policyengine-rewards", "namespace": "kube-system"}}
        await create(world.transport, "/api/v1/namespaces/kube-system/configmaps", state)
        account = service_account("kube-system", "policyengine-rewards")
        world.client = Client(MemoryTransport(world.api, user=account))
        stores = [ConfigMapStore(world.client, "kube-system", "policyengine-rewards", KEY) for _ in range(3)]
        async with world.learning(stores[0]), world.learning(stores[1]):
            world_as_admin = Client(world.transport)
            await create(world.transport, PODS, placed("killed", "a"))
            await world_as_admin.patch_pod_status("default", "killed", restarted(2))
            await asyncio.sleep(25)
            before = await world.rewards()
        async with world.learning(stores[2]):
            await asyncio.sleep(15)
            assert await world.rewards() == before == {"a": "0.810"}

    run(work())


def placed(name: str, on: str) -> dict[str, Any]:
    spec = {"nodeName": on, "containers": [{"name": "c", "image": "i"}]}
    return {"kind": "Pod", "metadata": {"name": name, "labels": {"app": "web"}}, "spec": spec}


@virtually
async def test_the_policy_sends_pods_where_the_reward_is_higher(tmp_path: Path) -> None:
    world = await World().begin()
    profiles = load_profiles([POLICY])
    scheduler = Scheduler(world.client, world.clock, random.Random(1), profiles)
    stop = asyncio.Event()
    task = asyncio.create_task(scheduler.run(stop))
    async with world.learning(SqliteStore(tmp_path / "rewards.sqlite")):
        for number in range(10):
            await world.pod(f"ended-{number}", "a", phase="Failed")
        await asyncio.sleep(15)
        for number in range(4):
            await world.pod(f"new-{number}")
        await asyncio.sleep(15)
    stop.set()
    await task
    items = (await world.get(PODS))["items"]
    where = {one["metadata"]["name"]: one["spec"].get("nodeName") for one in items}
    assert {where[f"new-{number}"] for number in range(4)} == {"b"}


def test_a_store_that_cannot_be_used_is_told_with_what_to_do(tmp_path: Path) -> None:
    async def work() -> None:
        world = await World().begin()
        with pytest.raises(StoreError, match="kubectl -n default create configmap none"):
            await ConfigMapStore(world.client, "default", "none", KEY).load()

    run(work())
    (tmp_path / "x").write_text("no database at all, but quite some text " * 10)
    with pytest.raises(StoreError, match="cannot hold what is learnt"):
        SqliteStore(tmp_path / "x")


@virtually
async def test_what_cannot_be_written_is_one_message_until_it_can(tmp_path: Path) -> None:
    world, told = await World().begin(), list[str]()
    refusal = effects.Fail(statuses.forbidden("nodes", "", "a", "you may not"))
    world.api.faults.add(refusal, resource="nodes", verb="patch", times=None, seconds=40.0)
    async with world.learning(SqliteStore(tmp_path / "rewards.sqlite"), told.append):
        await world.pod("p", "a", phase="Failed")
        await world.pod("q", "b", phase="Failed")
        await asyncio.sleep(35)
        assert len(told) == 1 and "node `a` and others cannot be annotated: " in told[0]
        await asyncio.sleep(20)
        assert await world.rewards() == {"a": "0.900", "b": "0.900"}
    assert len(told) == 1


def test_only_what_changed_is_written_and_only_under_the_prefix() -> None:
    written = {f"{PREFIX}web": "0.500", f"{PREFIX}old": "0.5", f"{PREFIX}odd": "much"}
    assert changes(written, {f"{PREFIX}web": 0.5049, f"{PREFIX}odd": 0.1, f"{PREFIX}new": 0.2}) == {
        f"{PREFIX}old": None,
        f"{PREFIX}odd": "0.100",
        f"{PREFIX}new": "0.200",
    }
    assert changes(written, {f"{PREFIX}web": 0.511})[f"{PREFIX}web"] == "0.511"


def test_groups_of_a_namespace_and_shared_ones_have_annotations_of_their_own() -> None:
    book = Book(pairs={("team/web", "a"): Reward(0.5, 0.0), ("web", "a"): Reward(0.7, 0.0)})
    book.nodes["a"] = Reward(0.6, 0.0)
    said = said_of_nodes(book)
    assert said == {"a": {OF_NODE: 0.6, f"team.{PREFIX}web": 0.5, f"{PREFIX}web": 0.7}}
    assert all(map(is_ours, said["a"]))
    assert not any(map(is_ours, ("policyengine.io/usage-at", "xrewards.policyengine.io/web", "team.io/web")))


@pytest.mark.parametrize("text", ["{", '{"evidence": [], "runtimes": [], "pods": {}}', '{"version": 3}'])
@virtually
async def test_a_state_that_cannot_be_read_is_told_once_and_not_written_over(tmp_path: Path, text: str) -> None:
    world = await World().begin()
    store, told = SqliteStore(tmp_path / "rewards.sqlite"), list[str]()
    await store.save(text)
    async with world.learning(store, told.append):
        await world.pod("ended", "a", phase="Failed")
        await asyncio.sleep(35)
    assert await world.rewards() == {"a": "0.900"}
    store = SqliteStore(tmp_path / "rewards.sqlite")
    assert await store.load() == text
    store.close()
    assert len(told) == 1 and "it begins anew, and is not saved" in told[0]
