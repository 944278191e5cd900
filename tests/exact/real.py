"""etcd, kube-apiserver and kube-scheduler as they are, and what a world asks of them. All on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from policyengine.clock import SystemClock
from policyengine.kube.config import credentials
from policyengine.kube.http.client import Transport
from policyengine.simulator.controllers.controller_client import Caller
from policyengine.simulator.real_server import real_server
from policyengine.simulator.sandbox import kubeconfig, write_kubeconfig
from tests.alpha_gates import TOLERATIONS, flag
from tests.exact.random_pods import NAMESPACES
from tests.exact.random_world import PATHS, classes, collection
from tests.exact.score_log import FLAGS, ScoreLog
from tests.server.extender.real_scheduler import scheduler_binary

Json = dict[str, Any]

SCHEDULER = "exact"
"""The scheduler name of kube-scheduler's profile and of our policy."""
GATES = flag(TOLERATIONS)
"""A pod that does not use what they bring is decided about as without them."""
PATIENCE = 60.0
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
KEPT = ("PriorityClass", "RuntimeClass", "Namespace")
AT_ONCE = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}


class Real:
    """The server, its pods and events as watched, and a kube-scheduler whenever one is asked for."""

    def __init__(self, transport: Transport, folder: Path) -> None:
        self._transport = transport
        self._folder = folder
        self._caller = Caller(transport, SystemClock(), "exact")
        self._changed = asyncio.Event()
        self.pods: dict[str, Json] = {}
        """By UID, as last seen; those that are gone too."""
        self.conditions: dict[str, Json] = {}
        """By UID, the last PodScheduled condition that said False."""
        self.messages: dict[str, list[str]] = {}
        """By UID, what such conditions said, one after the other."""
        self.gone: set[str] = set()
        self.events: dict[str, list[Json]] = {}
        """By the UID of the pod they are about."""

    async def watch(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch_pods())
            group.create_task(self._watch_events())

    async def _watch_pods(self) -> None:
        async for kind, pod in self._caller.follow("/api/v1/pods"):
            if pod:
                uid = pod["metadata"]["uid"]
                self.pods[uid] = pod
                said = condition(pod, "PodScheduled")
                if said.get("status") == "False":
                    self.conditions[uid] = said
                    before = self.messages.setdefault(uid, [])
                    if before[-1:] != [said.get("message")]:
                        before.append(said.get("message", ""))
                if kind == "DELETED":
                    self.gone.add(uid)
                self._tell()

    async def _watch_events(self) -> None:
        async for kind, event in self._caller.follow("/apis/events.k8s.io/v1/events"):
            if event and kind != "DELETED":
                self.events.setdefault(event["regarding"].get("uid", ""), []).append(event)
                self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def until(self, holds: Callable[[], bool], seconds: float = PATIENCE) -> bool:
        """Whether it came to hold in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not holds():
                    await self._changed.wait()
        return holds()

    async def ask(self, method: str, path: str, body: Json | None = None, content: str = "application/json") -> Json:
        """AssertionError where the server refuses."""
        sent = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        headers = {"Content-Type": content}
        response = await self._transport.request(method, path, body=sent, headers=headers, timeout=30.0)
        raw = await response.read()
        await response.close()
        assert response.status in (200, 201, 202), f"{method} {path}: {raw.decode()}\n{json.dumps(body)}"
        found: Json = json.loads(raw)
        return found

    async def make(self, obj: Json) -> Json:
        """The object, and its status where the server takes that apart from it."""
        where, status = collection(obj), obj.get("status")
        claim = obj.get("spec", {}).get("claimRef")
        if claim:
            path = f"/api/v1/namespaces/{claim['namespace']}/persistentvolumeclaims/{claim['name']}"
            claim["uid"] = (await self.ask("GET", path))["metadata"]["uid"]
        made = await self.ask("POST", where, obj)
        if (status and "status" not in made) or (status and obj["kind"] != "Node"):
            path = f"{where}/{obj['metadata']['name']}/status"
            return await self.ask("PATCH", path, {"status": status}, MERGE)
        return made

    async def everything(self) -> list[Json]:
        """Every object that a decision may rest on."""
        found: list[Json] = []
        for kind, path in PATHS.items():
            if kind not in ("PriorityClass", "RuntimeClass"):
                everywhere = path.replace("/namespaces/{}", "")
                found += [one | {"kind": kind} for one in (await self.ask("GET", everywhere))["items"]]
        return found

    async def empty(self) -> None:
        """As it was before the first world."""
        for claim in (await self.ask("GET", "/apis/resource.k8s.io/v1/resourceclaims"))["items"]:
            if "finalizers" in claim["metadata"]:
                path = f"{collection(claim | {'kind': 'ResourceClaim'})}/{claim['metadata']['name']}"
                await self.ask("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
        for kind, path in PATHS.items():
            if kind not in KEPT:
                await asyncio.gather(*(self.ask("DELETE", place, AT_ONCE) for place in _places(path)))
        self.forget()

    def forget(self) -> None:
        """All that was seen."""
        for seen in (self.pods, self.conditions, self.messages, self.gone, self.events):
            seen.clear()

    async def remove(self, pod: Json) -> None:
        """The pod goes at once."""
        await self.ask("DELETE", f"{collection(pod)}/{pod['metadata']['name']}", AT_ONCE)
        uid = pod["metadata"]["uid"]
        assert await self.until(lambda: uid in self.gone)

    @asynccontextmanager
    async def scheduler(self, flags: Sequence[str] = FLAGS) -> AsyncIterator[ScoreLog]:
        """A kube-scheduler that has just been started, and what it says of scores."""
        path = self._folder / "kube-scheduler.json"
        path.write_text(json.dumps(_configuration(self._folder / "kubeconfig")))
        told = self._folder / "kube-scheduler.log"
        with told.open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                str(scheduler_binary()),
                f"--config={path}",
                "--secure-port=0",
                GATES,
                *flags,
                stdout=log,
                stderr=log,
            )
        try:
            yield ScoreLog(told)
            assert process.returncode is None, log.name
        finally:
            with suppress(ProcessLookupError):
                process.terminate()
            await process.wait()


def condition(pod: Json, kind: str) -> Json:
    """The pod's condition of the kind; {} where it has none."""
    said = pod.get("status", {}).get("conditions", ())
    return next((one for one in said if one["type"] == kind), {})


def _places(path: str) -> Iterable[str]:
    return {path.format(namespace) for namespace in NAMESPACES}


def _configuration(path: Path) -> Json:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(path), "qps": 5000, "burst": 10000},
        "leaderElection": {"leaderElect": False},
        "percentageOfNodesToScore": 100,
        "profiles": [{"schedulerName": SCHEDULER}],
    }


@asynccontextmanager
async def real(folder: Path, flags: Sequence[str] = ()) -> AsyncIterator[Real]:
    """An API server with what outlives worlds; skips where a program is missing. `flags`: more of the API server's."""
    scheduler_binary()
    async with real_server(flags=[GATES, *flags]) as (url, token):
        path = folder / "kubeconfig"
        write_kubeconfig(path, kubeconfig(url, token))
        transport = credentials.load(path).connect()
        made = Real(transport, folder)
        for one in classes():
            await made.make(one)
        watching = asyncio.ensure_future(made.watch())
        try:
            yield made
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
            await transport.close()
