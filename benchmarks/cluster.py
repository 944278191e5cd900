"""The cluster a benchmark runs on, from outside: filled, watched while another process schedules, emptied.

It must be the benchmark's own: a cluster with nodes that no benchmark made is refused. What a benchmark makes is
marked by an annotation on its nodes, and by its namespace.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from itertools import islice
from random import Random
from typing import Any, Generic, TypeVar

import msgspec

from benchmarks.workloads import HIGH_PRIORITY, IMPORTANT, MEASURED, NAMESPACE, Json, Workload
from policyengine.clock import SystemClock
from policyengine.cluster.kinds import Kind
from policyengine.kube.http.client import ApiError, Client, Transport, error_of
from policyengine.kube.watching.reflector import Reflector
from policyengine.kube.watching.store import Observed

GLANCE = 0.01
"""Seconds."""
MARK = "policyengine.io/bench"
WORKERS = 32
PODS_PATH = f"/api/v1/namespaces/{NAMESPACE}/pods"
EVENTS_PATH = f"/api/v1/namespaces/{NAMESPACE}/events"
SERVICES_PATH = f"/api/v1/namespaces/{NAMESPACE}/services"
LEASES_PATH = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
CLASSES_PATH = "/apis/scheduling.k8s.io/v1/priorityclasses"
_HEADERS = {"Content-Type": "application/json"}
_NOW = json.dumps({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}).encode()
_PART = {"limit": "2000"}


_Item = TypeVar("_Item")


class NotOurs(Exception):
    """The cluster has nodes that no benchmark made."""


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class Placed(msgspec.Struct):
    """A pod, as far as it is watched here."""

    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Event(msgspec.Struct):
    metadata: _Meta
    reason: str = ""


class _Page(msgspec.Struct, Generic[_Item]):
    metadata: dict[str, Any]
    items: list[_Item] | None = None


async def call(
    transport: Transport, method: str, path: str, body: bytes = b"", query: Mapping[str, str] | None = None
) -> bytes:
    """One request. Raises `ApiError`, `ConnectionFailed`."""
    headers = _HEADERS if body else None
    response = await transport.request(method, path, query=query, body=body or None, headers=headers, timeout=120.0)
    try:
        answer = await response.read()
    finally:
        await response.close()
    if response.status >= 300:
        raise error_of(response.status, answer)
    return answer


class Cluster:
    """One API server while benchmarks run on it."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._made = 0
        """How many of the workload's nodes are there already."""

    async def version(self) -> str:
        """The server's version; of a build without one, the minor version it speaks."""
        found: dict[str, Any] = json.loads(await call(self._transport, "GET", "/version"))
        told = str(found.get("gitVersion", ""))
        return told if told and not told.startswith("v0.0.0") else f"{found.get('major')}.{found.get('minor')}"

    async def fill(self, workload: Workload, scheduler_name: str) -> None:
        """Make nodes, initial pods and waiting pods, in their order."""
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        important = {"metadata": {"name": IMPORTANT}, "value": HIGH_PRIORITY}
        important |= {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
        await self._create([("/api/v1/namespaces", namespace), (CLASSES_PATH, important)])
        mark = _mark_of(workload)
        nodes = islice(workload.node_objects(), self._made, None)
        await self._create(("/api/v1/nodes", _marked(node, mark)) for node in nodes)
        self._made = workload.nodes
        await self.fill_pods(workload, scheduler_name)

    async def fill_pods(self, workload: Workload, scheduler_name: str) -> None:
        """Make the pods alone; those that come during the run, not yet."""
        await self._create((PODS_PATH, pod) for pod in workload.initial_objects())
        if not workload.during:
            await self.fill_waiting(workload, scheduler_name)

    async def fill_waiting(self, workload: Workload, scheduler_name: str) -> None:
        """Make the pods that are measured."""
        await self._create((PODS_PATH, pod) for pod in workload.pod_objects(scheduler_name))

    async def empty_pods(self) -> None:
        """Delete every pod, event, service and lease of the benchmark's namespace."""
        for path in (PODS_PATH, EVENTS_PATH, SERVICES_PATH, LEASES_PATH):
            while await self._has_any(path):  # an answer holds what was deleted: of all at once it would be too long
                await self._ignore_missing(call(self._transport, "DELETE", path, _NOW, _PART))

    async def clear(self, workload: Workload) -> None:
        """Delete what an earlier benchmark left, but not nodes that are just those of this workload.

        Raises `NotOurs` before anything is deleted.
        """
        marks = [(node.metadata.annotations or {}).get(MARK) for node in await self._nodes()]
        if marks == [_mark_of(workload)] * workload.nodes:
            self._made = workload.nodes
            await self.empty_pods()
        else:
            await self.empty()

    async def empty(self) -> None:
        """Delete what an earlier benchmark left, pods first. Raises `NotOurs` before anything is deleted."""
        nodes = await self._nodes()
        self._made = 0
        foreign = [node.metadata.name for node in nodes if MARK not in (node.metadata.annotations or {})]
        if foreign:
            raise NotOurs(
                f"a benchmark needs a cluster of its own, and this one has node `{foreign[0]}`"
                + (f" and {len(foreign) - 1} more" if len(foreign) > 1 else "")
            )
        await self.empty_pods()
        paths = iter([f"/api/v1/nodes/{node.metadata.name}" for node in nodes])
        await asyncio.gather(*(self._delete(paths) for _ in range(WORKERS)))
        await self._delete(iter([f"{CLASSES_PATH}/{IMPORTANT}"]))

    async def _has_any(self, path: str) -> bool:
        return bool(json.loads(await call(self._transport, "GET", path, query={"limit": "1"}))["items"])

    async def recreate(self, items: Iterable[Json]) -> None:
        """Create objects of any of the kinds churn makes."""
        await self._create((_path_of(item), _marked(item) if item["kind"] == "Node" else item) for item in items)

    async def remove(self, items: Iterable[Json]) -> None:
        """Delete such objects."""
        for item in items:
            path = f"{_path_of(item)}/{item['metadata']['name']}"
            await self._ignore_missing(call(self._transport, "DELETE", path, _NOW))

    async def scheduled_events(self) -> int:
        """How many measured pods have their Scheduled event."""
        found = 0
        async for events in self._pages(EVENTS_PATH, _Event):
            found += sum(event.reason == "Scheduled" and event.metadata.name.startswith(MEASURED) for event in events)
        return found

    async def event_count(self) -> int:
        """How many events there are, of whatever reason: one page of one, and what the server says remains."""
        page = json.loads(await call(self._transport, "GET", EVENTS_PATH, query={"limit": "1"}))
        return len(page["items"] or ()) + int(page["metadata"].get("remainingItemCount", 0))

    async def placed(self) -> dict[str, str]:
        """Measured pod -> its node, as the server has it."""
        return {
            pod.metadata.name: pod.spec.node_name
            async for pods in self._pages(PODS_PATH, Placed)
            for pod in pods
            if pod.spec.node_name and pod.metadata.name.startswith(MEASURED)
        }

    async def _nodes(self) -> list[Placed]:
        return [node async for nodes in self._pages("/api/v1/nodes", Placed) for node in nodes]

    async def _pages(self, path: str, kind: type[_Item]) -> AsyncIterator[list[_Item]]:
        """A list, page by page."""
        decode, token = msgspec.json.Decoder(_Page[kind]).decode, ""  # type: ignore[valid-type]
        while True:
            query = {"limit": "500"} | ({"continue": token} if token else {})
            page = decode(await call(self._transport, "GET", path, query=query))
            yield page.items or []
            token = page.metadata.get("continue", "")
            if not token:
                return

    async def _create(self, items: Iterable[tuple[str, Json]]) -> None:
        shared = iter(items)
        await asyncio.gather(*(self._create_next(shared) for _ in range(WORKERS)))

    async def _create_next(self, items: Iterable[tuple[str, Json]]) -> None:
        for path, item in items:
            try:
                await call(self._transport, "POST", path, msgspec.json.encode(item))
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    raise

    async def _delete(self, paths: Iterable[str]) -> None:
        for path in paths:
            await self._ignore_missing(call(self._transport, "DELETE", path))

    async def _ignore_missing(self, calling: Awaitable[bytes]) -> None:
        try:
            await calling
        except ApiError as error:
            if error.status != 404:
                raise


class Watcher:
    """Sees every measured pod get its node; `times` and `nodes` grow as it does."""

    def __init__(self, client: Client, *, alone: bool = False) -> None:
        """`alone`: nothing else is to be done meanwhile, so changes are looked at every `GLANCE`, and not one by one,
        which would take a processor from those who are measured."""
        kind: Kind[Any] = Kind("Pod", "pods", Placed)
        self._reflector: Reflector[Any] = Reflector(client, kind, SystemClock(), Random(), namespace=NAMESPACE)
        self._hold: Callable[[], None] = (lambda: time.sleep(GLANCE)) if alone else (lambda: None)
        self.times: list[float] = []
        """Moments, on the monotonic clock, in the order seen."""
        self.nodes: dict[str, str] = {}
        """Pod -> node."""
        self.moved: list[str] = []
        """Pods seen on another node than before: there must be none."""

    @property
    def synced(self) -> asyncio.Event:
        """Set once the pods there are have been listed."""
        return self._reflector.synced

    async def run(self) -> None:
        """Watch until cancelled."""
        async for batch in self._reflector.batches():
            for change in batch:
                if isinstance(change, Observed):
                    self._see(change.object)
            if self.times:
                self._hold()

    def _see(self, pod: Placed) -> None:
        name, node = pod.metadata.name, pod.spec.node_name
        if not node or not name.startswith(MEASURED):
            return
        if name not in self.nodes:
            self.nodes[name] = node
            self.times.append(time.monotonic())
        elif self.nodes[name] != node:
            self.moved.append(name)


def _mark_of(workload: Workload) -> str:
    """What tells the nodes of one workload from those of others: its name and size."""
    return f"{workload.name}-{workload.nodes}"


def _marked(node: Json, mark: str = "true") -> Json:
    node["metadata"]["annotations"] = {MARK: mark}
    return node


def _path_of(item: Json) -> str:
    """The collection of an object of the core group."""
    plural = item["kind"].lower() + "s"
    return "/api/v1/nodes" if plural == "nodes" else f"/api/v1/namespaces/{NAMESPACE}/{plural}"
