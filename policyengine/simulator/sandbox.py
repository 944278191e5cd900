"""A small world in one process: an API server, nodes, a stand-in kubelet and controllers, and the scheduler.

With the embedded server the scheduler and the kubelet reach it in memory, and everybody else over HTTP; with the
real one (`envtest`) everything goes over HTTPS.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from random import Random
from typing import Any, Literal

import yaml

from policyengine import regular_file
from policyengine.clock import Clock, SystemClock
from policyengine.cluster.kinds import SCHEDULING_POLICIES
from policyengine.framework.profile import Profile
from policyengine.kube.http.client import ApiError, Client, Transport, object_of
from policyengine.kube.scheduling import Scheduler
from policyengine.plugins.registry import default_profile
from policyengine.simulator.api_server.handler import ApiServer
from policyengine.simulator.api_server.http import serve
from policyengine.simulator.api_server.memory import MemoryTransport
from policyengine.simulator.controllers.controller_client import Object
from policyengine.simulator.controllers.kubelet import NODE_SIZE, READY, Kubelet
from policyengine.simulator.controllers.manager import ControllerManager
from policyengine.simulator.controllers.volumes import DEFAULT_CLASS
from policyengine.simulator.real_server import connect, real_server

Kind = Literal["embedded", "envtest"]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CLUSTER = "policyengine-sandbox"
"""The name of the cluster, user and context in its kubeconfig."""
_LARGEST_KUBECONFIG = 16 << 20
Scheduling = Callable[[Transport, Clock, Sequence[Profile]], AbstractAsyncContextManager[Scheduler]]
"""Makes the scheduler that speaks by a transport, ready to run."""
ZONES = ("a", "b", "c")
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
logger = logging.getLogger(__name__)


class SandboxError(Exception):
    """The API server refused what a sandbox begins with, or its kubeconfig would take another file's place."""


class NotServed(SandboxError):
    """The API server does not serve the kind."""


@dataclass(frozen=True)
class World:
    """An API server that runs: how to reach it from outside, and from here."""

    url: str
    kubeconfig: dict[str, object]
    connect: Callable[[], Transport]


@dataclass(frozen=True)
class Sandbox:
    """A world with nodes, whose pods are scheduled."""

    world: World
    scheduler: Scheduler
    transport: Transport


@asynccontextmanager
async def world(kind: Kind, port: int = 0) -> AsyncIterator[World]:
    """An API server, for as long as the block runs. Raises `PortInUse`, `ServerError`."""
    if kind == "envtest":
        async with real_server(port) as (url, token):
            yield World(url, kubeconfig(url, token), lambda: connect(url, token))
        return
    api = ApiServer(SystemClock())
    site = await serve(api, port=port)
    try:
        yield World(site.url, kubeconfig(site.url), lambda: MemoryTransport(api))
    finally:
        await site.stop()


@asynccontextmanager
async def sandbox(
    running: World,
    nodes: int,
    profiles: Sequence[Profile],
    scheduling: Scheduling | None = None,
    start: Sequence[tuple[str, Object]] = (),
) -> AsyncIterator[Sandbox]:
    """Nodes, kubelet, controllers and scheduler in a world, for as long as the block runs; the scheduler ends cleanly.

    `start`: (path, object) of what is there besides the `nodes` of one size; what the server does not serve is left
    out. Where no StorageClass is among it there are two: `standard`, the default, and `immediate`.

    SchedulingPolicies are served. `scheduling` makes the scheduler; by default one without lease and pages.

    `default-scheduler` is served by the in-tree plugins unless a policy takes it, because nobody else would.
    """
    clock = SystemClock()
    transport = running.connect()
    await _define_scheduling_policies(transport, clock)
    for number in range(1, nodes + 1):
        await create(transport, "/api/v1/nodes", node(f"node-{number}", ZONES[(number - 1) % len(ZONES)]))
    if not any(path == CLASSES for path, _ in start):
        start = [*((CLASSES, one) for one in storage_classes()), *start]
    left_out = 0
    for path, item in start:
        try:
            await create(transport, path, item)
        except NotServed:
            left_out += 1
    if left_out:
        logger.warning("%d objects of kinds that this server does not serve are left out", left_out)
    default = default_profile()
    if all(profile.scheduler_name != default.scheduler_name for profile in profiles):
        profiles = [*profiles, default]
    stop = asyncio.Event()
    others = [
        asyncio.create_task(Kubelet(transport, clock, stop_after=1.0, makes_ready=True).run()),
        asyncio.create_task(ControllerManager(transport, clock, with_volumes=True).run()),
    ]
    to_schedule = running.connect()
    async with (scheduling or _unseen)(to_schedule, clock, profiles) as scheduler:
        work = asyncio.create_task(scheduler.run(stop))
        work.add_done_callback(lambda task: None if task.cancelled() else task.exception())
        try:
            yield Sandbox(running, scheduler, transport)
        finally:
            stop.set()
            await work
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await to_schedule.close()
            await transport.close()


@asynccontextmanager
async def _unseen(transport: Transport, clock: Clock, profiles: Sequence[Profile]) -> AsyncIterator[Scheduler]:
    yield Scheduler(Client(transport), clock, Random(), profiles, host="sandbox")


def storage_classes() -> Iterator[Object]:
    """Of disks that the stand-in provisions: once a pod has its node, or at once."""
    for name, mode in (("standard", "WaitForFirstConsumer"), ("immediate", "Immediate")):
        annotations = {DEFAULT_CLASS: "true"} if name == "standard" else {}
        head = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass"}
        metadata = {"name": name, "annotations": annotations}
        yield {**head, "metadata": metadata, "provisioner": "sandbox.policyengine.io/disks", "volumeBindingMode": mode}


async def _define_scheduling_policies(transport: Transport, clock: Clock) -> None:
    """Create their definition, and wait until they are served: a real server takes a second."""
    await create(transport, CRDS, _definition())
    for _ in range(100):
        with suppress(ApiError):
            await Client(transport).list_page(SCHEDULING_POLICIES)
            return
        await clock.sleep(0.1)


def _definition() -> dict[str, Any]:
    here = Path(__file__).resolve().parent
    packed = here / "schedulingpolicies.yaml"  # in a wheel; a checkout has it where it is applied from
    path = packed if packed.is_file() else here.parent.parent / "deploy" / "base" / packed.name
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


async def create(transport: Transport, path: str, item: Mapping[str, Any]) -> dict[str, Any]:
    """POST one object; gives it as the server made it. One that exists is left as it is: `{}`.

    Raises:
        SandboxError: it is refused; `NotServed` where the server does not serve its kind.
    """
    try:
        return object_of(await Client(transport).call("POST", path, item))
    except ApiError as error:
        if error.status == HTTPStatus.CONFLICT:
            return {}
        if error.status == HTTPStatus.NOT_FOUND:
            raise NotServed(f"`{path}` is not served") from error
        who = f"{item.get('kind')} `{item['metadata'].get('name')}`"
        raise SandboxError(f"{who} was refused: {error.message}") from error


def node(name: str, zone: str, size: Mapping[str, str] = NODE_SIZE) -> dict[str, Any]:
    """A ready node."""
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/region": "sandbox",
        "topology.kubernetes.io/zone": zone,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": dict(size), "allocatable": dict(size), "conditions": [dict(READY)]},
    }


def kubeconfig(url: str, token: str = "") -> dict[str, object]:
    """One cluster, one user, one context. A server with TLS has a certificate of its own making, on loopback."""
    cluster: dict[str, object] = {"server": url}
    if url.startswith("https://"):
        cluster["insecure-skip-tls-verify"] = True
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CLUSTER, "cluster": cluster}],
        "users": [{"name": CLUSTER, "user": {"token": token} if token else {}}],
        "contexts": [{"name": CLUSTER, "context": {"cluster": CLUSTER, "user": CLUSTER}}],
        "current-context": CLUSTER,
    }


def write_kubeconfig(path: Path, content: dict[str, object]) -> None:
    """Write it for the owner alone, as kubectl does; JSON is YAML.

    Raises `SandboxError` where something is there that is not the kubeconfig of an earlier sandbox, and OSError.
    """
    if os.path.lexists(path):
        if not _is_of_sandbox(path):
            raise SandboxError(
                f"`{path}` is there and was not written by a sandbox; it stays as it is, so name a new file"
            )
        path.unlink()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(json.dumps(content, indent=2) + "\n")


def _is_of_sandbox(path: Path) -> bool:
    """Whether the file is a kubeconfig that describes a sandbox and nothing else."""
    if path.is_symlink() or not path.is_file():
        return False
    try:
        found = json.loads(regular_file.read(path, _LARGEST_KUBECONFIG))
        names = [[one["name"] for one in found[what]] for what in ("clusters", "users", "contexts")]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False
    return names == [[CLUSTER]] * 3
