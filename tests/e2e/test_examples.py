"""The examples do what their READMEs say, in memory and on virtual time, with the rights of `deploy/base/rbac.yaml`."""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import yaml

from policyengine.commands.policies import load_profiles
from policyengine.kube.http.client import Client
from policyengine.kube.scheduling import Scheduler
from policyengine.simulator.api_server.http_requests import ADMIN
from policyengine.simulator.api_server.memory import MemoryTransport
from policyengine.simulator.sandbox import create, node
from tests.e2e.account import SCHEDULER, set_up
from tests.e2e.cluster import POLICIES
from tests.faulty_server.server import FaultyServer
from tests.kube.virtual_time import VirtualClock, run

ROOT = Path(__file__).resolve().parent.parent.parent
PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"


class Tour:
    """What a reader does with kubectl."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.api = FaultyServer(self.clock, tokens={})
        self.outside = MemoryTransport(self.api, user=ADMIN)

    async def apply(self, example: str) -> None:
        for item in yaml.safe_load_all((ROOT / "examples" / example).read_text(encoding="utf-8")):
            await create(self.outside, NODES if item["kind"] == "Node" else PODS, item)

    async def pods(self) -> dict[str, Any]:
        response = await self.outside.request("GET", PODS)
        return {item["metadata"]["name"]: item for item in json.loads(await response.read())["items"]}

    async def messages(self) -> dict[str, str]:
        """pod -> why it waits."""
        return {
            name: condition["message"]
            for name, pod in (await self.pods()).items()
            for condition in pod["status"].get("conditions") or ()
            if condition["type"] == "PodScheduled" and condition["status"] == "False"
        }

    def bound(self) -> list[str]:
        """Pods in the order in which they were bound."""
        return [one.name for one in self.api.writes if one.subresource == "binding"]


def tour(work: Callable[[Tour], Awaitable[None]], nodes: int, before: str = "") -> None:
    """Run riya's policy on a cluster; `before` is applied before the scheduler starts, so that it queues together."""

    async def whole() -> None:
        taken = Tour()
        await set_up(taken.outside)
        for number in range(1, nodes + 1):
            await create(taken.outside, NODES, node(f"node-{number}", "a"))
        if before:
            await taken.apply(before)
        profiles = load_profiles([ROOT / "policies" / "riya.policy"])
        account = MemoryTransport(taken.api, user=SCHEDULER)
        scheduler = Scheduler(Client(account), taken.clock, random.Random(1), profiles, namespace=POLICIES)
        stop = asyncio.Event()
        task = asyncio.ensure_future(scheduler.run(stop))
        await asyncio.sleep(5)
        await work(taken)
        stop.set()
        await task
        assert not taken.api.authorizer.refusals

    run(whole())


def test_too_few_members_wait_and_enough_run() -> None:
    async def work(taken: Tour) -> None:
        await taken.apply("riya/1-pre-filter/too-few.yaml")
        await asyncio.sleep(5)
        waits = "gang pod-group: 2 of 3 members exist"
        assert await taken.messages() == {"crew-1": waits, "crew-2": waits}
        assert taken.bound() == []
        await taken.apply("riya/1-pre-filter/enough.yaml")
        await asyncio.sleep(5)
        assert sorted(taken.bound()) == ["crew-1", "crew-2", "crew-3"]

    tour(work, nodes=3)


def test_groups_go_by_priority_and_an_incomplete_one_waits() -> None:
    async def work(taken: Tour) -> None:
        groups = [name.split("-")[0] for name in taken.bound()]
        assert groups == ["green"] * 3 + ["red"] * 3 + ["yellow"] * 3
        assert await taken.messages() == {"blue-1": "gang pod-group: 1 of 2 members exist"}

    tour(work, nodes=3, before="riya/2-groups/groups.yaml")


def test_the_better_quality_of_service_goes_first() -> None:
    async def work(taken: Tour) -> None:
        assert taken.bound() == ["guaranteed", "burstable", "best-effort"]

    tour(work, nodes=3, before="riya/3-qos/qos.yaml")


def test_a_pod_with_neither_label_waits_for_nobody() -> None:
    async def work(taken: Tour) -> None:
        assert taken.bound()[0] == "ranked"
        assert sorted(taken.bound()) == ["odd", "plain", "ranked"]

    tour(work, nodes=3, before="riya/4-neither/plain.yaml")


def test_the_first_steps_end_on_the_tenth_node() -> None:
    async def work(taken: Tour) -> None:
        await taken.apply("first-steps/nodes.yaml")
        await taken.apply("first-steps/pod.yaml")
        await asyncio.sleep(5)
        message = (await taken.messages())["first"]
        assert message.startswith("0/9 nodes are available: 9 node(s) were unschedulable.")
        await taken.apply("first-steps/tenth-node.yaml")
        await asyncio.sleep(15)
        assert (await taken.pods())["first"]["spec"]["nodeName"] == "node-10"

    tour(work, nodes=0)
