"""Follows everything controllers look at and makes the writes they ask for, when something has changed; among
them the disruption budgets: how many pods are healthy, how many must stay, how many may go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from fractions import Fraction
from math import ceil
from typing import Any

from policyengine.clock import Clock
from policyengine.cluster.objects import format_time
from policyengine.kube.http.client import ApiError, ConnectionFailed, Transport
from policyengine.simulator.api_server.reading.selectors import from_object
from policyengine.simulator.controllers.controller_client import (
    PATHS,
    RETRY_SECONDS,
    Caller,
    Cluster,
    Object,
    Write,
    finished,
    key_of,
    of,
    ready,
    terminating,
)
from policyengine.simulator.controllers.volumes import volumes
from policyengine.simulator.controllers.workloads import deployments, jobs, owners, replica_sets, stateful_sets


def budgets(cluster: Cluster, now: str) -> Iterator[Write]:
    """Write each budget's status that is no longer true."""
    for budget in cluster.all("PodDisruptionBudget"):
        status = _status(cluster, budget, now)
        if status != budget.get("status"):
            # A PUT of this version: pods being evicted are noted there by others.
            yield Write("PUT", of("PodDisruptionBudget", budget, "status"), {**budget, "status": status})


def _status(cluster: Cluster, budget: Object, now: str) -> Object:
    spec, held = budget["spec"], budget.get("status") or {}
    selector = from_object(spec.get("selector"))
    pods = [pod for pod in _live(cluster, budget) if selector.matches(pod["metadata"].get("labels") or {})]
    desired = len(pods)
    names = {pod["metadata"]["name"] for pod in pods}
    disrupted = {name: at for name, at in (held.get("disruptedPods") or {}).items() if name in names}
    healthy = sum(ready(pod) and pod["metadata"]["name"] not in disrupted for pod in pods)
    if spec.get("maxUnavailable") is not None:
        needed = max(0, desired - _scaled(spec["maxUnavailable"], desired))
    else:
        needed = _scaled(spec.get("minAvailable", 1), desired)
    allowed = max(0, healthy - needed) if desired else 0
    generation = budget["metadata"].get("generation", 0)
    status = {
        "observedGeneration": generation,
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": needed,
        "expectedPods": desired,
        "conditions": [_allowed(held, allowed > 0, generation, now)],
    }
    return {**status, "disruptedPods": disrupted} if disrupted else status


def _allowed(held: Object, yes: bool, generation: int, now: str) -> Object:
    word = "True" if yes else "False"
    before: Object = next((one for one in held.get("conditions") or [] if one.get("status") == word), {})
    return {
        "type": "DisruptionAllowed",
        "status": word,
        "observedGeneration": generation,
        "lastTransitionTime": before.get("lastTransitionTime") or now,
        "reason": "SufficientPods" if yes else "InsufficientPods",
        "message": "",
    }


def _live(cluster: Cluster, budget: Object) -> Iterator[Object]:
    namespace = budget["metadata"]["namespace"]
    for pod in cluster.all("Pod"):
        if pod["metadata"]["namespace"] == namespace and not terminating(pod) and not finished(pod):
            yield pod


def _scaled(value: Any, whole: int) -> int:
    """A bound in pods; a percentage is rounded up, as the disruption controller does."""
    if isinstance(value, str):
        return ceil(Fraction(int(value.rstrip("%")), 100) * whole)
    return value if isinstance(value, int) else 0


AGENT = "kube-controller-manager/v1.36.2 (stand-in)"
# A burst of changes is looked at once, and the manager's own writes have come back by then.
PAUSE_SECONDS = 0.05
STORAGE_KINDS = frozenset({"Node", "PersistentVolume", "StorageClass"})
CONTROLLERS: tuple[Callable[[Cluster, str], Iterator[Write]], ...] = (
    *(deployments, replica_sets, stateful_sets, jobs),
    *(owners, budgets),
)


class ControllerManager:
    """All controllers of one cluster; that of volumes where `with_volumes`."""

    def __init__(self, transport: Transport, clock: Clock, *, with_volumes: bool = False) -> None:
        self._kinds = [kind for kind in PATHS if with_volumes or kind not in STORAGE_KINDS]
        self._controllers = (*CONTROLLERS, volumes) if with_volumes else CONTROLLERS
        self._caller = Caller(transport, clock, AGENT)
        self._clock = clock
        self._cluster = Cluster()
        self._listed: set[str] = set()
        self._bell = asyncio.Event()

    async def run(self) -> None:
        """Serve until cancelled."""
        async with asyncio.TaskGroup() as group:
            for kind in self._kinds:
                group.create_task(self._follow(kind))
            group.create_task(self._work())

    async def _follow(self, kind: str) -> None:
        held = self._cluster.kinds[kind]
        fresh: set[tuple[str, str]] = set()
        async for type_, obj in self._caller.follow(PATHS[kind]):
            if type_ == "LIST":
                fresh = set()
                continue
            if type_ == "LISTED":
                for gone in held.keys() - fresh:
                    del held[gone]
                self._listed.add(kind)
            elif type_ == "DELETED":
                held.pop(key_of(obj), None)
            else:
                held[key_of(obj)] = obj
                fresh.add(key_of(obj))
            self._bell.set()

    async def _work(self) -> None:
        while True:
            await self._bell.wait()
            await self._clock.sleep(PAUSE_SECONDS)
            self._bell.clear()
            if len(self._listed) == len(self._kinds) and not await self._settle():
                await self._clock.sleep(RETRY_SECONDS)
                self._bell.set()

    async def _settle(self) -> bool:
        """Do everything there is to do for what is there now; whether all of it is done."""
        now = format_time(self._clock.now())
        writes = [write for controller in self._controllers for write in controller(self._cluster, now)]
        done = [await self._make(write) for write in writes]
        done += [await self._empty(one) for one in list(self._cluster.all("Namespace")) if terminating(one)]
        return all(done)

    async def _make(self, write: Write) -> bool:
        try:
            await self._caller.call(write.method, write.path, write.body, write.content)
        except ApiError as refused:
            # Gone, there already, changed meanwhile: the next look knows better.
            return refused.status in (404, 409)
        except ConnectionFailed:
            return False
        return True

    async def _empty(self, namespace: Object) -> bool:
        """Delete what is in a namespace that goes; once it is empty, let it go. Whether it is."""
        name = namespace["metadata"]["name"]
        try:
            left = 0
            for place in await self._namespaced():
                path = place.format(name)
                items = (await self._caller.call("GET", path)).get("items") or []
                left += len(items)
                if any(not terminating(one) for one in items):
                    await self._caller.call("DELETE", path)
                    left += 1
            if left == 0:
                body = {**namespace, "spec": {"finalizers": []}}
                await self._caller.call("PUT", f"{PATHS['Namespace']}/{name}/finalize", body)
        except (ApiError, ConnectionFailed):
            return False
        return left == 0

    async def _namespaced(self) -> list[str]:
        """The paths of all collections in a namespace `{}` that can be emptied."""
        groups = (await self._caller.call("GET", "/apis"))["groups"]
        roots = ["/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)]
        found = []
        for root in roots:
            for resource in (await self._caller.call("GET", root))["resources"]:
                verbs = resource.get("verbs") or []
                if resource["namespaced"] and "list" in verbs and "deletecollection" in verbs:
                    found.append(f"{root}/namespaces/{{}}/{resource['name']}")
        return found
