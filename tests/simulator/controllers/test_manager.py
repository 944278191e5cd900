"""The stand-in controllers beside a kubelet: in memory on virtual time, and on a real server where there is one."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest

from policyengine.clock import SystemClock
from policyengine.kube.http.client import Transport
from policyengine.simulator.api_server import ApiServer, MemoryTransport
from policyengine.simulator.api_server.http_requests import ADMIN
from policyengine.simulator.controllers.kubelet import Kubelet
from policyengine.simulator.controllers.manager import ControllerManager
from policyengine.simulator.real_server import ASSETS, connect, real_server
from policyengine.simulator.sandbox import node
from tests.simulator.api_server.server_bench import VirtualClock

Json = dict[str, Any]
T = TypeVar("T")
CORE, SPACE = "/api/v1", "/api/v1/namespaces/default"
APPS, BATCH = "/apis/apps/v1/namespaces/default", "/apis/batch/v1/namespaces/default"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
MERGE = "application/merge-patch+json"
# Bound from the start: there is no scheduler here.
SPEC: Json = {"nodeName": "n1", "terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "i"}]}
LABELS = {"app": "web"}
WORKLOAD: Json = {
    "selector": {"matchLabels": LABELS},
    "template": {"metadata": {"labels": LABELS}, "spec": SPEC},
}


class World:
    """A cluster of one node."""

    def __init__(self, transport: Transport, wait: Callable[[], Awaitable[None]]) -> None:
        self.transport = transport
        self.wait = wait

    async def ask(
        self, method: str, path: str, body: Any = None, content: str = "application/json", **query: str
    ) -> Json:
        raw = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": content} if raw else {}
        response = await self.transport.request(method, path, query=query, body=raw, headers=headers, timeout=30.0)
        answer: Json = json.loads(await response.read())
        await response.close()
        return answer

    async def make(self, path: str, name: str, spec: Json) -> Json:
        made = await self.ask("POST", path, {"metadata": {"name": name}, "spec": spec})
        assert made.get("kind") != "Status", made
        return made

    async def pods(self, what: str = "name") -> list[str]:
        """The names (or UIDs) of the pods that are there, in order."""
        items = (await self.ask("GET", f"{SPACE}/pods"))["items"]
        return sorted(item["metadata"][what] for item in items)

    async def asked_until(self, ask: Callable[[], Awaitable[T]], holds: Callable[[T], bool]) -> T:
        """The first answer for which it holds."""
        for _ in range(600):
            found = await ask()
            if holds(found):
                return found
            await self.wait()
        raise AssertionError(found)

    async def until(self, path: str, **status: Any) -> Json:
        """The object once its status has these values."""

        def holds(found: Json) -> bool:
            held = found.get("status") or {}
            return isinstance(held, dict) and all((held.get(name) or 0) == value for name, value in status.items())

        return await self.asked_until(lambda: self.ask("GET", path), holds)

    async def until_gone(self, path: str) -> None:
        await self.asked_until(lambda: self.ask("GET", path), lambda found: found.get("code") == 404)

    async def until_pods(self, reached: Callable[[list[str]], bool], what: str = "name") -> list[str]:
        return await self.asked_until(lambda: self.pods(what), reached)


@asynccontextmanager
async def world(kind: str, *given: tuple[str, Json], **how: bool) -> AsyncIterator[World]:
    """One with these (path, object), and controllers made so."""
    if kind == "envtest" and not os.environ.get(ASSETS):
        pytest.skip(f"${ASSETS} names no folder with etcd and kube-apiserver")
    async with real() if kind == "envtest" else embedded() as (found, clock):
        tasks = [
            asyncio.create_task(Kubelet(found.transport, clock, stop_after=0.0).run()),
            asyncio.create_task(ControllerManager(found.transport, clock, **how).run()),
        ]
        for path, one in ((f"{CORE}/nodes", node("n1", "a")), *given):
            await found.ask("POST", path, one)
        try:
            yield found
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(one, asyncio.CancelledError) for one in ended), ended


@asynccontextmanager
async def embedded() -> AsyncIterator[tuple[World, VirtualClock]]:
    clock = VirtualClock()
    transport = MemoryTransport(ApiServer(clock), user=ADMIN)
    yield World(transport, lambda: clock.advance(0.1)), clock


@asynccontextmanager
async def real() -> AsyncIterator[tuple[World, SystemClock]]:
    async with real_server() as (url, token):
        transport = connect(url, token)
        yield World(transport, lambda: asyncio.sleep(0.1)), SystemClock()
        await transport.close()


on_both = pytest.mark.parametrize("kind", ["embedded", "envtest"])


@on_both
async def test_workloads_have_the_pods_they_wish_for(kind: str) -> None:
    async with world(kind) as found:
        await deployment(found)
        await stateful_set(found)
        await job(found)
        await namespace(found)


async def deployment(found: World) -> None:
    """Scaled, replaced, left to itself, deleted."""
    path = f"{APPS}/deployments/web"
    await found.make(f"{APPS}/deployments", "web", {"replicas": 3, **WORKLOAD})
    await found.until(path, replicas=3, readyReplicas=3, availableReplicas=3, updatedReplicas=3)
    first, one = await found.pods("uid"), (await found.pods())[0]
    await found.ask("DELETE", f"{SPACE}/pods/{one}", gracePeriodSeconds="0")
    await found.until_pods(lambda uids: len(uids) == 3 and uids != first, "uid")
    await found.ask("PATCH", path, {"spec": {"replicas": 1}}, MERGE)
    await found.until(path, replicas=1, readyReplicas=1)
    changed = {"spec": {"template": {"metadata": {"labels": {"version": "two"}}}}}
    await found.ask("PATCH", path, changed, MERGE)
    await found.until_pods(lambda names: len(names) == 1 and not names[0].startswith(one[:-5]))
    told = await found.until(path, replicas=1, updatedReplicas=1, availableReplicas=1, observedGeneration=3)
    conditions = {one["type"]: one["status"] for one in told["status"]["conditions"]}
    assert conditions == {"Available": "True", "Progressing": "True"}
    assert len((await found.ask("GET", f"{APPS}/replicasets"))["items"]) == 2
    await found.make(BUDGETS, "keep", {"minAvailable": 1, "selector": {"matchLabels": LABELS}})
    await found.until(f"{BUDGETS}/keep", currentHealthy=1, desiredHealthy=1, disruptionsAllowed=0, expectedPods=1)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": (await found.pods())[0]}}
    refused = await found.ask("POST", f"{SPACE}/pods/{eviction['metadata']['name']}/eviction", eviction)
    assert refused["code"] == 429
    await found.ask("DELETE", path)
    await found.until_pods(lambda names: names == [])
    assert (await found.ask("GET", f"{APPS}/replicasets"))["items"] == []


async def stateful_set(found: World) -> None:
    """In order up and down, each with a claim that stays."""
    path = f"{APPS}/statefulsets/db"
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    templates = [{"metadata": {"name": "data"}, "spec": claim}]
    await found.make(f"{APPS}/statefulsets", "db", {"replicas": 2, "volumeClaimTemplates": templates, **WORKLOAD})
    await found.until(path, readyReplicas=2)
    assert await found.pods() == ["db-0", "db-1"]
    pod = await found.ask("GET", f"{SPACE}/pods/db-1")
    assert pod["spec"]["volumes"][0]["persistentVolumeClaim"] == {"claimName": "data-db-1"}
    assert pod["spec"]["hostname"] == "db-1"
    await found.ask("PATCH", path, {"spec": {"replicas": 1}}, MERGE)
    await found.until_pods(lambda names: names == ["db-0"])
    claims = (await found.ask("GET", f"{SPACE}/persistentvolumeclaims"))["items"]
    assert [one["metadata"]["name"] for one in claims] == ["data-db-0", "data-db-1"]
    # In the foreground: the set goes last.
    await found.ask("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"})
    await found.until_pods(lambda names: names == [])
    await found.until_gone(path)


async def job(found: World) -> None:
    """Two at once until three have ended; their pods stay, and stay when the job is orphaned."""
    path = f"{BATCH}/jobs/sum"
    template = {"spec": {**SPEC, "restartPolicy": "Never"}}
    template["metadata"] = {"annotations": {"policyengine.io/run-for": "1s"}}
    await found.make(f"{BATCH}/jobs", "sum", {"parallelism": 2, "completions": 3, "template": template})
    told = await found.until(path, succeeded=3, active=0)
    assert {one["type"] for one in told["status"]["conditions"]} == {"SuccessCriteriaMet", "Complete"}
    assert told["status"]["completionTime"] > told["status"]["startTime"]
    assert len(await found.pods()) == 3
    await found.ask("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Orphan"})
    await found.until_gone(path)
    assert len(await found.pods()) == 3
    await found.ask("DELETE", f"{SPACE}/pods", gracePeriodSeconds="0")
    await found.until_pods(lambda names: names == [])


async def namespace(found: World) -> None:
    """What is in it goes, then it goes."""
    await found.ask("POST", f"{CORE}/namespaces", {"metadata": {"name": "team"}})
    await found.ask("POST", f"{CORE}/namespaces/team/configmaps", {"metadata": {"name": "m"}})
    await found.ask("POST", f"{CORE}/namespaces/team/pods", {"metadata": {"name": "p"}, "spec": SPEC})
    going = await found.ask("DELETE", f"{CORE}/namespaces/team")
    assert going["status"]["phase"] == "Terminating"
    await found.until_gone(f"{CORE}/namespaces/team")


async def test_a_job_whose_pods_fail_gives_up() -> None:
    async with world("embedded") as found:
        template = {"spec": {**SPEC, "restartPolicy": "Never"}}
        await found.make(f"{BATCH}/jobs", "bad", {"backoffLimit": 1, "template": template})
        for number in (1, 2):
            names = await found.until_pods(lambda names, number=number: len(names) == number)  # type: ignore[misc]
            for name in names:
                failed = {"status": {"phase": "Failed"}}
                await found.ask("PATCH", f"{SPACE}/pods/{name}/status", failed, MERGE)
        told = await found.until(f"{BATCH}/jobs/bad", failed=2)
        while "conditions" not in told["status"]:
            await found.wait()
            told = await found.ask("GET", f"{BATCH}/jobs/bad")
        assert told["status"]["conditions"][-1]["reason"] == "BackoffLimitExceeded"
