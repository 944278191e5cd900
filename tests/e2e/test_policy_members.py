"""Annotations of a binding, a delay and a quota, on the embedded API server and on the real one, in real time."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from policyengine.clock import SystemClock
from policyengine.kube.http.client import Client, Transport
from policyengine.kube.scheduling import Scheduler
from policyengine.policy_compiler import compile_policy
from policyengine.simulator.api_server import ApiServer, MemoryTransport
from policyengine.simulator.api_server.http_requests import ADMIN
from policyengine.simulator.real_server import ASSETS, connect, real_server
from policyengine.simulator.sandbox import create, node
from tests.scheduler.invariants import validate

PODS = "/api/v1/namespaces/default/pods"
POLICY = """policy "t" {
  quota "a" when pod.labels[?"team"].orValue("") == "a" { limit: {cpu: 1} }
  permit "slow" when pod.name == "held" { delay: 1s }
  bind { annotations: {"example.com/placed": "on {node.name}, {node.free.cpu} left"} }
}"""


@asynccontextmanager
async def server(kind: str) -> AsyncIterator[Transport]:
    if kind == "embedded":
        yield MemoryTransport(ApiServer(SystemClock()), user=ADMIN)
        return
    if not os.environ.get(ASSETS):
        pytest.skip(f"${ASSETS} names no folder with etcd and kube-apiserver")
    async with real_server() as (url, token):
        transport = connect(url, token)
        await create(transport, "/api/v1/namespaces/default/serviceaccounts", _named("ServiceAccount", "default"))
        yield transport
        await transport.close()


def _named(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": name, **more}}


async def make(transport: Transport, name: str, **labels: str) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    spec = {"schedulerName": "policy-scheduler", "containers": [container]}
    annotations = {"example.com/own": "stays"}
    await create(transport, PODS, {**_named("Pod", name, labels=labels, annotations=annotations), "spec": spec})


async def once(transport: Transport, name: str, condition: str, status: str) -> dict[str, Any]:
    """The pod, once its PodScheduled condition has this status."""
    async with asyncio.timeout(30):
        while True:
            response = await transport.request("GET", f"{PODS}/{name}", timeout=10.0)
            pod: dict[str, Any] = json.loads(await response.read())
            await response.close()
            found = {one["type"]: one["status"] for one in pod.get("status", {}).get("conditions", ())}
            if found.get(condition) == status:
                return pod
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("kind", ["embedded", "real"])
async def test_members_of_a_policy_act_on_the_server(kind: str) -> None:
    async with server(kind) as transport:
        await create(transport, "/api/v1/nodes", node("n1", "z1"))
        scheduler = Scheduler(Client(transport), SystemClock(), Random(1), [compile_policy(POLICY)])
        stop = asyncio.Event()
        task = asyncio.create_task(scheduler.run(stop))
        await make(transport, "p", team="a")
        pod = await once(transport, "p", "PodScheduled", "True")
        assert pod["metadata"]["annotations"]["example.com/own"] == "stays"
        assert pod["metadata"]["annotations"]["example.com/placed"].startswith("on n1, ")
        await make(transport, "q", team="a")
        refused = await once(transport, "q", "PodScheduled", "False")
        told = [one["message"] for one in refused["status"]["conditions"] if one["type"] == "PodScheduled"]
        assert "quota a: 1 of 1 cpu are in use, the pod asks for 1" in told[0]
        await make(transport, "held")
        began = asyncio.get_running_loop().time()
        await once(transport, "held", "PodScheduled", "True")
        assert asyncio.get_running_loop().time() - began >= 0.9
        validate(scheduler.state)
        stop.set()
        await asyncio.wait_for(task, 30)
