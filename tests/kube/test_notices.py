"""Events about pods that nobody serves and policies that nobody reads: once, and never about what another serves."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from policyengine.kube import notices
from policyengine.kube.http.client import Client
from policyengine.kube.notices import PATIENCE, PERIOD
from policyengine.kube.policies.config_map import STATUS
from policyengine.kube.scheduling import Scheduler
from policyengine.policy_compiler import compile_policy
from policyengine.server.metrics.readings import read_before_scrape
from policyengine.server.metrics.scheduler_metrics import SchedulerMetrics
from policyengine.simulator.api_server.access.authentication import service_account
from policyengine.simulator.api_server.http_requests import ADMIN, User
from policyengine.simulator.api_server.memory import MemoryTransport
from policyengine.simulator.sandbox import create
from tests.kube import scenes
from tests.kube.scenes import EVENTS, PODS, pod
from tests.kube.virtual_time import VirtualClock

LABELS = {"policyengine.io/policy": "true"}
TEXT = 'policy "p" { scheduler "policy-scheduler" }'
MOST_AT_ONCE = 4
LONG = PATIENCE + 10 * PERIOD


class World(scenes.World):
    user: User | None = None

    def start(self, **how: Any) -> asyncio.Task[None]:
        client = Client(MemoryTransport(self.api, user=self.user))
        given = {"with_notices": True, "namespace": "policies", **how}
        profiles = given.pop("profiles", [compile_policy(TEXT)])
        scheduler = Scheduler(client, VirtualClock(), random.Random(1), profiles, host="host", **given)
        self.metrics = SchedulerMetrics()
        read_before_scrape(self.metrics, scheduler, VirtualClock())
        return asyncio.ensure_future(scheduler.run(self.stop))

    @property
    def not_served(self) -> dict[str, float]:
        """schedulerName -> its pods that nobody serves, as the metrics have it."""
        list(self.metrics.collect())
        return {name: count for (name,), count in self.metrics.not_served.values.items()}

    async def events(self, path: str = EVENTS) -> list[tuple[str, str, str, int]]:
        """(reason, of what, note, how often) of the notices."""
        found = (await self.call("GET", path))["items"]
        return sorted(
            (one["reason"], one["regarding"]["name"], one["note"], one.get("series", {}).get("count", 1))
            for one in found
            if one["reportingController"] == "policyengine"
        )

    async def config_map(self, namespace: str, name: str, **annotations: str) -> None:
        about = {"name": name, "labels": LABELS, "annotations": annotations}
        body = {"metadata": about, "data": {"p.policy": TEXT}}
        await create(self.outside, f"/api/v1/namespaces/{namespace}/configmaps", body)


async def play(work: Callable[[World], Awaitable[None]]) -> None:
    world = World()
    for name in ("policies", "team"):
        await create(world.outside, "/api/v1/namespaces", {"metadata": {"name": name}})
    await world.nodes(1)
    await work(world)
    world.stop.set()


scene = scenes.scene_of(play)


@scene
async def test_a_pod_that_nobody_serves_for_a_minute_is_told_so_once(world: World) -> None:
    running = world.start()
    await create(world.outside, PODS, pod("lost", scheduler="polcy-scheduler"))
    await asyncio.sleep(PATIENCE - 1)
    assert await world.events() == []
    await asyncio.sleep(LONG)
    note = "nobody serves schedulerName `polcy-scheduler`; served by policies: policy-scheduler"
    assert await world.events() == [("NotServed", "lost", note, 1)]
    assert not running.done()
    assert world.not_served == {"polcy-scheduler": 1}
    await world.call("DELETE", f"{PODS}/lost?gracePeriodSeconds=0")
    await asyncio.sleep(PERIOD)
    assert world.not_served == {}


@scene
async def test_a_cluster_without_a_policy_says_so_of_its_pods(world: World) -> None:
    world.start(profiles=[])
    await create(world.outside, PODS, pod("lost", scheduler="policy-scheduler"))
    await asyncio.sleep(LONG)
    note = "nobody serves schedulerName `policy-scheduler`; served by policies: none"
    assert await world.events() == [("NotServed", "lost", note, 1)]
    assert world.not_served == {"policy-scheduler": 1}


@scene
async def test_pods_that_another_scheduler_serves_or_that_nobody_is_to_serve_yet_are_left_alone(world: World) -> None:
    world.start()
    await create(world.outside, PODS, pod("kube", scheduler="default-scheduler"))
    await create(world.outside, PODS, pod("gated", scheduler="nobody", schedulingGates=[{"name": "later"}]))
    for name, scheduler in (("waits", "volcano"), ("runs", "batch")):
        await create(world.outside, PODS, pod(f"{name}-too", scheduler=scheduler))
        await create(world.outside, PODS, pod(name, scheduler=scheduler))
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    await world.call("PATCH", f"{PODS}/waits/status", {"status": {"conditions": [condition]}}, scenes.MERGE)
    await create(world.outside, f"{PODS}/runs/binding", {"metadata": {"name": "runs"}, "target": {"name": "node-1"}})
    await asyncio.sleep(LONG)
    assert await world.events() == []


@scene
async def test_a_policy_where_nobody_reads_is_told_so_once_and_one_that_another_reads_is_not(world: World) -> None:
    world.start()
    await world.config_map("policies", "ours")
    await world.config_map("team", "stray")
    await world.config_map("team", "theirs", **{STATUS: '{"state": "rejected"}'})
    await asyncio.sleep(LONG)
    note = "policies are read in namespace `policies`; nobody reads this one"
    told = await world.events(EVENTS.replace("default", "team"))
    assert told == [("PolicyNotRead", "stray", note, 1)]


async def bind_to_node(world: World, name: str, scheduler: str, **more: Any) -> None:
    await create(world.outside, PODS, {**pod(name, scheduler=scheduler), **more})
    await asyncio.sleep(1)
    await create(world.outside, f"{PODS}/{name}/binding", {"metadata": {"name": name}, "target": {"name": "node-1"}})


@scene
async def test_another_scheduler_on_the_same_nodes_is_told_of_once_for_each_of_its_names(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.start()
    await create(world.outside, PODS, pod("ours", scheduler="policy-scheduler"))
    await asyncio.sleep(1)
    for name in ("one", "two"):
        await bind_to_node(world, name, "default-scheduler")
    await asyncio.sleep(LONG)
    note = (
        "another scheduler binds pods of schedulerName `default-scheduler` to node node-1 beside pods of this one: "
        "each may overfill it for the other; let one process serve all names, give each its own nodes, or have "
        "bindings verified (docs/operations.md, Beside another scheduler)"
    )
    assert await world.events() == [("SharedWithOtherScheduler", "node-1", note, 1)]
    assert [line.message for line in caplog.records if line.levelname == "WARNING"] == [note]


@scene
async def test_who_binds_pods_of_our_own_name_is_told_of_as_another_installation(world: World) -> None:
    world.start()
    await asyncio.sleep(1)
    gated = pod("ours", scheduler="policy-scheduler", nodeSelector={"no": "node"})
    await create(world.outside, PODS, gated)
    await asyncio.sleep(1)
    await create(world.outside, f"{PODS}/ours/binding", {"metadata": {"name": "ours"}, "target": {"name": "node-1"}})
    await asyncio.sleep(LONG)
    ((reason, name, note, _),) = await world.events()
    assert (reason, name) == ("SharedWithOtherScheduler", "node-1")
    assert "though this one serves that name" in note


@scene
async def test_daemon_sets_and_nodes_without_pods_of_ours_are_no_reason_to_tell(world: World) -> None:
    world.start()
    await bind_to_node(world, "alone", "default-scheduler")
    await create(world.outside, PODS, pod("ours", scheduler="policy-scheduler"))
    await asyncio.sleep(1)
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agents", "uid": "1", "controller": True}
    await bind_to_node(world, "agent", "default-scheduler", metadata={"name": "agent", "ownerReferences": [owner]})
    await asyncio.sleep(LONG)
    assert await world.events() == []


@scene
async def test_where_bindings_are_verified_nobody_is_told_of_neighbours(world: World) -> None:
    world.start(verifies_bindings=True)
    await create(world.outside, PODS, pod("ours", scheduler="policy-scheduler"))
    await asyncio.sleep(1)
    await bind_to_node(world, "one", "default-scheduler")
    await asyncio.sleep(LONG)
    assert await world.events() == []


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notices, "MOST", MOST_AT_ONCE)


@scene
async def test_of_very_many_each_is_told_once_some_at_a_look(world: World) -> None:
    task = world.start()
    for number in range(3 * MOST_AT_ONCE):
        await create(world.outside, PODS, pod(f"lost-{number}", scheduler="polcy-scheduler"))
    await asyncio.sleep(PATIENCE + PERIOD)
    assert 0 < len(await world.events()) <= 2 * MOST_AT_ONCE
    await asyncio.sleep(LONG)
    assert [count for *_, count in await world.events()] == [1] * 3 * MOST_AT_ONCE
    assert not task.done()


@scene
async def test_it_can_be_turned_off(world: World) -> None:
    world.start(with_notices=False)
    await create(world.outside, PODS, pod("lost", scheduler="polcy-scheduler"))
    await world.config_map("team", "stray")
    await asyncio.sleep(LONG)
    assert await world.events() == [] and await world.events(EVENTS.replace("default", "team")) == []


def test_without_the_right_to_other_namespaces_nothing_is_refused() -> None:
    async def work() -> None:
        world = World(tokens={"admin": ADMIN})
        world.outside = MemoryTransport(world.api, user=ADMIN)
        rules = [
            {
                "apiGroups": ["", "apps", "policy", "storage.k8s.io", "resource.k8s.io"],
                "resources": ["*"],
                "verbs": ["*"],
            },
            {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["*"]},
        ]
        rules[0]["resources"] = ["nodes", "pods", "pods/status", "pods/binding", "namespaces"]
        root = "/apis/rbac.authorization.k8s.io/v1"
        await create(world.outside, f"{root}/clusterroles", {"metadata": {"name": "few"}, "rules": rules})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "few"}
        who = {"kind": "ServiceAccount", "name": "few", "namespace": "default"}
        await create(
            world.outside,
            f"{root}/clusterrolebindings",
            {"metadata": {"name": "few"}, "roleRef": role, "subjects": [who]},
        )
        world.user = service_account("default", "few")
        task = world.start()
        await world.config_map("kube-system", "stray")
        await asyncio.sleep(LONG)
        elsewhere = [one for one in world.api.authorizer.refusals if one.endswith("list /api/v1/configmaps")]
        assert elsewhere == []
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    from tests.kube.virtual_time import run

    run(work())
