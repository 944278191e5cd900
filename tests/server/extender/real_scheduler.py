"""The real kube-scheduler and API server with our extender between them, all on loopback."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from policyengine.compiler.conversion.kube_scheduler import kube_scheduler_configuration
from policyengine.kube.config import credentials
from policyengine.kube.http.client import Client, Transport
from policyengine.plugins.registry import IN_TREE
from policyengine.policy_compiler import compile_text
from policyengine.server.certificate import CertificateFiles
from policyengine.simulator.real_server import ASSETS, real_server
from policyengine.simulator.sandbox import kubeconfig, write_kubeconfig
from tests.server.extender.recorded import serving
from tests.server.extender.test_verbs import node, pod

Json = dict[str, Any]
PODS, NODES = "/api/v1/namespaces/default/pods", "/api/v1/nodes"
SECONDS = 60.0


def scheduler_binary() -> Path:
    """kube-scheduler beside etcd and kube-apiserver; skips where one is missing."""
    folder = Path(os.environ.get(ASSETS) or "/nowhere")
    for name in ("etcd", "kube-apiserver", "kube-scheduler"):
        if not os.access(folder / name, os.X_OK):
            pytest.skip(f"${ASSETS} names no folder with {name}")
    return folder / "kube-scheduler"


class World:
    """A real API server, and what a test asks of it."""

    def __init__(self, transport: Transport, path: Path) -> None:
        self._transport = transport
        self.kubeconfig = path

    async def ask(self, method: str, path: str, body: Json | None = None) -> Json:
        status, raw = await self._answer(method, path, body)
        assert status in (200, 201, 202, 404), raw
        found: Json = json.loads(raw)
        return found

    async def _answer(
        self, method: str, path: str, body: Json | None, query: Mapping[str, str] | None = None
    ) -> tuple[int, bytes]:
        sent = None if body is None else json.dumps(body).encode()
        response = await self._transport.request(
            method, path, query=query, body=sent, headers={"Content-Type": "application/json"}, timeout=30.0
        )
        raw = await response.read()
        await response.close()
        return response.status, raw

    async def add_node(self, name: str, cpu: str = "1", memory: str = "8Gi", **annotations: str) -> None:
        made = node(name)
        del made["metadata"]["resourceVersion"]
        made["metadata"]["annotations"] = {key.replace("_", "-"): value for key, value in annotations.items()}
        made["status"]["allocatable"] = made["status"]["capacity"] = {"cpu": cpu, "memory": memory, "pods": "110"}
        await self.ask("POST", NODES, made)

    async def add_pod(
        self, name: str, cpu: str = "100m", memory: str = "64Mi", on: str = "", priority: int = 0
    ) -> None:
        made = pod(name, cpu, memory, on)
        made["spec"]["terminationGracePeriodSeconds"] = 0  # there is no kubelet that would end it
        if priority:
            made["spec"]["priorityClassName"] = f"p{priority}"
            await self._add_priority_class(priority, made)
        await self.ask("POST", PODS, made)

    async def _add_priority_class(self, priority: int, pod: Json) -> None:
        """The class that the pod names, and wait until admission knows of it, which it does by a watch."""
        made = {"metadata": {"name": pod["spec"]["priorityClassName"]}, "value": priority}
        await self.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", made)
        for _ in range(200):
            status, raw = await self._answer("POST", PODS, pod, {"dryRun": "All"})
            if status != 403:
                return
            await asyncio.sleep(0.05)
        raise AssertionError(raw)

    async def node_of(self, name: str, seconds: float = SECONDS) -> str:
        """Where the pod was placed; empty where it was not in time."""
        deadline = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < deadline:
            placed: str = (await self.ask("GET", f"{PODS}/{name}")).get("spec", {}).get("nodeName", "")
            if placed:
                return placed
            await asyncio.sleep(0.1)
        return ""

    async def empty(self) -> None:
        """Without pods and nodes again."""
        await self.ask("DELETE", PODS, {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
        await self.ask("DELETE", NODES)
        await self.ask("DELETE", "/apis/scheduling.k8s.io/v1/priorityclasses")


@asynccontextmanager
async def world(folder: Path) -> AsyncIterator[World]:
    scheduler_binary()
    async with real_server() as (url, token):
        path = folder / "kubeconfig"
        write_kubeconfig(path, kubeconfig(url, token))
        transport = credentials.load(path).connect()
        try:
            yield World(transport, path)
        finally:
            await transport.close()


@asynccontextmanager
async def extender(
    at: World, policy: str, port: int = 0, tls: CertificateFiles | None = None, client_names: tuple[str, ...] = ()
) -> AsyncIterator[str]:
    """`policyengine extender` on the world; its URL."""
    client = Client(credentials.load(at.kubeconfig).connect())
    try:
        async with serving(policy, port=port, client=client, tls=tls, client_names=client_names) as bound:
            url = f"{'https' if tls else 'http'}://127.0.0.1:{bound}"
            async with aiohttp.ClientSession(url) as session:
                while (await session.get("/readyz", ssl=False)).status != 200:  # noqa: ASYNC110  (it tells nobody)
                    await asyncio.sleep(0.05)
            yield url
    finally:
        await client.close()


async def asked(url: str) -> set[str]:
    """The verbs that the extender answered well so far."""
    async with aiohttp.ClientSession(url) as session, session.get("/metrics") as response:
        lines = (await response.text()).splitlines()
    told = [line for line in lines if line.startswith("policyengine_extender_requests_total")]
    assert not [line for line in told if 'result="error"' in line], told
    return {line.partition('verb="')[2].partition('"')[0] for line in told}


@asynccontextmanager
async def kube_scheduler(at: World, policy: str, url: str, **changed: Any) -> AsyncIterator[None]:
    """The real one with the configuration that `convert --to kube-scheduler` prints; `changed` is of its extender."""
    printed = kube_scheduler_configuration(compile_text(policy).policies, IN_TREE, url)
    printed["extenders"][0] |= changed
    async with started(at, printed, "--secure-port=0"):
        yield


@asynccontextmanager
async def started(at: World, configuration: Mapping[str, Any], *flags: str) -> AsyncIterator[None]:
    """The real kube-scheduler on the world, until the block is over."""
    own: Mapping[str, Any] = {
        "clientConnection": {"kubeconfig": str(at.kubeconfig)},
        "leaderElection": {"leaderElect": False},
    }
    path = at.kubeconfig.with_name("kube-scheduler.yaml")
    path.write_text(json.dumps({**configuration, **own}))
    with at.kubeconfig.with_name("kube-scheduler.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            str(scheduler_binary()), f"--config={path}", "-v=3", *flags, stdout=log, stderr=log
        )
    try:
        yield
        assert process.returncode is None, log.name
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
