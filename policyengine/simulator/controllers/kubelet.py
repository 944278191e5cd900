"""A stand-in for all kubelets: bound pods start, run, end when their annotation says so, and go when deleted.

It is a client like any other, over a `Transport`: on virtual time in memory, or against a real API server. Per pod:

    bound, its node there -> Running and Ready, with an IP and a start time
    annotation `policyengine.io/run-for: 30s` -> Succeeded that long after it started
    deletionTimestamp -> gone once its grace is over (`stop_after` shortens that), by a DELETE with grace 0 and its UID

It never writes about a pod it has not read, and never twice about the same state.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

from policyengine.clock import Clock
from policyengine.cluster.objects import format_time
from policyengine.cluster.pod_info import seconds_or_none
from policyengine.kube.http.client import ApiError, ConnectionFailed, Transport
from policyengine.simulator.api_server.scalars import parse_duration
from policyengine.simulator.controllers.controller_client import RETRY_SECONDS, STRATEGIC, Caller, Object

RUN_FOR = "policyengine.io/run-for"
AGENT = "kubelet/v1.36.2 (stand-in)"


def run_seconds(pod: Object) -> float | None:
    """How long a pod runs before it succeeds; None for ever, and where the annotation is no duration."""
    try:
        return parse_duration((pod["metadata"].get("annotations") or {})[RUN_FOR])
    except (KeyError, ValueError):
        return None


class Kubelet:
    """All nodes' kubelets.

    `stop_after` bounds how long a deleted pod takes to end (None: its whole grace); `start_after` is how long a bound
    pod takes to be Running, both in seconds. `makes_ready`: whether nodes that say nothing of themselves are made
    ready, with room for a few pods.
    """

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        *,
        stop_after: float | None = None,
        start_after: float = 0.0,
        makes_ready: bool = False,
    ) -> None:
        self._caller = Caller(transport, clock, AGENT)
        self._clock = clock
        self._stop_after = stop_after
        self._start_after = start_after
        self._makes_ready = makes_ready
        self._nodes: set[str] = set()
        self._pods: dict[str, Object] = {}
        self._work: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._addresses = 0

    async def run(self) -> None:
        """Serve until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._follow_nodes())
                group.create_task(self._follow_pods())
        finally:
            for task in self._work.values():
                task.cancel()

    # Following

    async def _follow_nodes(self) -> None:
        async for type_, node in self._caller.follow("/api/v1/nodes"):
            if type_ in ("LIST", "LISTED"):
                continue
            name = node["metadata"]["name"]
            if type_ == "DELETED":
                self._nodes.discard(name)
                self._drop((name, "ready"))
                continue
            wanted = node_status(node) if self._makes_ready else {}
            if wanted:
                self._begin(name, "ready", partial(self._make_ready, name, wanted), node)
            if name not in self._nodes:
                self._nodes.add(name)
                for pod in list(self._pods.values()):
                    if pod["spec"].get("nodeName") == name:
                        self._look_at(pod)

    async def _follow_pods(self) -> None:
        async for type_, pod in self._caller.follow("/api/v1/pods", {"fieldSelector": "spec.nodeName!="}):
            if type_ in ("LIST", "LISTED"):
                continue
            uid = pod["metadata"]["uid"]
            if type_ == "DELETED":
                self._pods.pop(uid, None)
                for what in ("start", "finish", "stop"):
                    self._drop((uid, what))
            else:
                self._pods[uid] = pod
                self._look_at(pod)

    # One pod

    def _look_at(self, pod: Object) -> None:
        """Begin what this pod's state asks for, once."""
        meta, status, uid = pod["metadata"], pod.get("status") or {}, pod["metadata"]["uid"]
        if pod["spec"].get("nodeName") not in self._nodes:
            return
        if meta.get("deletionTimestamp"):
            self._begin(uid, "stop", self._stop, pod)
            return
        if status.get("phase") == "Pending":
            self._begin(uid, "start", self._start, pod)
        elif status.get("phase") == "Running" and run_seconds(pod) is not None:
            self._begin(uid, "finish", self._finish, pod)

    def _begin(self, whose: str, what: str, act: Any, obj: Object) -> None:
        if (whose, what) not in self._work:
            self._work[whose, what] = asyncio.ensure_future(self._guard(act, obj))

    def _drop(self, key: tuple[str, str]) -> None:
        task = self._work.pop(key, None)
        if task is not None and task is not asyncio.current_task():
            task.cancel()

    async def _guard(self, act: Any, pod: Object) -> None:
        """Try again until it is done or the pod is gone; a pod that was replaced is somebody else's. What was done is
        done, however its answer reads (200)."""
        while True:
            try:
                await act(pod)
                return
            except ApiError as refused:
                if refused.status in (200, 404, 409, 422):
                    return
            except ConnectionFailed:
                pass
            await self._clock.sleep(RETRY_SECONDS)

    async def _make_ready(self, name: str, wanted: Object, node: Object) -> None:
        await self._caller.call("PATCH", f"/api/v1/nodes/{name}/status", {"status": wanted}, STRATEGIC)
        self._drop((name, "ready"))  # it may be taken away and come anew

    async def _start(self, pod: Object) -> None:
        await self._clock.sleep(self._start_after)
        self._addresses += 1
        await self._write_status(pod, running_status(pod, self._address(), self._clock.now()))

    def _address(self) -> str:
        number = self._addresses
        return f"10.{64 + (number >> 16 & 63)}.{number >> 8 & 255}.{number & 255}"

    async def _finish(self, pod: Object) -> None:
        started = seconds_or_none(pod["status"].get("startTime")) or self._clock.now()
        await self._clock.sleep(max(0.0, started + (run_seconds(pod) or 0.0) - self._clock.now()))
        await self._write_status(pod, succeeded_status(pod, self._clock.now()))

    async def _stop(self, pod: Object) -> None:
        meta = pod["metadata"]
        left = (seconds_or_none(meta["deletionTimestamp"]) or 0.0) - self._clock.now()
        if self._stop_after is not None:
            left = min(left, self._stop_after)
        await self._clock.sleep(max(0.0, left))
        body = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": meta["uid"]},
        }
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        await self._caller.call("DELETE", path, body)

    async def _write_status(self, pod: Object, status: Object) -> None:
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status"
        # The UID is a precondition: a pod deleted and made anew under this name is another pod.
        await self._caller.call("PATCH", path, {"metadata": {"uid": meta["uid"]}, "status": status}, STRATEGIC)


NODE_SIZE: Mapping[str, str] = {"cpu": "4", "memory": "16Gi", "ephemeral-storage": "100Gi", "pods": "110"}
"""What a node has that says nothing else."""
READY: Mapping[str, str] = {
    "type": "Ready",
    "status": "True",
    "reason": "KubeletReady",
    "message": "the sandbox says so",
}


def node_status(node: Object) -> Object:
    """What is missing in a node's status for pods to run there: a size, that it is ready. Nothing where it says so
    itself, be it that it is not."""
    held = node.get("status") or {}
    capacity = {**NODE_SIZE, **(held.get("capacity") or held.get("allocatable") or {})}
    wanted: Object = {}
    if capacity != (held.get("capacity") or {}):
        wanted["capacity"] = capacity
    allocatable = {**capacity, **(held.get("allocatable") or {})}
    if allocatable != (held.get("allocatable") or {}):
        wanted["allocatable"] = allocatable
    if not any(one.get("type") == "Ready" for one in held.get("conditions") or []):
        wanted["conditions"] = [dict(READY)]
    return wanted


def _container_statuses(pod: Object, state: Object, ready: bool) -> list[Object]:
    return [
        {
            "name": one["name"],
            "image": one.get("image", ""),
            "imageID": "",
            "containerID": f"stand-in://{pod['metadata']['uid']}/{one['name']}",
            "ready": ready,
            "started": ready,
            "restartCount": 0,
            "state": state,
        }
        for one in pod["spec"]["containers"]
    ]


def _conditions(at: str, ready: str, reason: str = "") -> list[Object]:
    rows = [
        ("PodReadyToStartContainers", ready, ""),
        ("Initialized", "True", reason),
        ("Ready", ready, reason),
        ("ContainersReady", ready, reason),
    ]
    return [
        {"type": type_, "status": status, "lastTransitionTime": at, **({"reason": why} if why else {})}
        for type_, status, why in rows
    ]


def running_status(pod: Object, address: str, now: float) -> Object:
    """The status of a pod that runs and is ready."""
    at = format_time(now)
    return {
        "phase": "Running",
        "startTime": at,
        "hostIP": "10.0.0.1",
        "hostIPs": [{"ip": "10.0.0.1"}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": _conditions(at, "True"),
        "containerStatuses": _container_statuses(pod, {"running": {"startedAt": at}}, ready=True),
    }


def succeeded_status(pod: Object, now: float) -> Object:
    """The status of a pod whose containers all ended well."""
    at = format_time(now)
    started = (pod.get("status") or {}).get("startTime") or at
    ended = {"exitCode": 0, "reason": "Completed", "startedAt": started, "finishedAt": at}
    return {
        "phase": "Succeeded",
        "conditions": _conditions(at, "False", "PodCompleted"),
        "containerStatuses": _container_statuses(pod, {"terminated": ended}, ready=False),
    }
