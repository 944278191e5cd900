"""The cluster as an extender knows it: watched, or only the nodes that requests bring.

Rules:
1. A watched cluster (`--kubeconfig`) is the fast way: kube-scheduler sends names (nodeCacheCapable: true), and rules
   see what stands on every node. Node objects in a request are taken where they are newer.
2. A given cluster knows nothing but the nodes that were sent to it. Names alone cannot be answered there, and a rule
   that reads pods is refused before the extender starts.
3. The time is known before an object is read: which pods ended within the last hour depends on it.
4. A node is decoded once a resourceVersion, however often it is sent.
5. One request is answered at a time (`turn`). Between the nodes that it brings, probes are answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any

import msgspec

from policyengine.clock import Clock
from policyengine.cluster.kinds import FINISHED_PODS, NODES, PODS, WATCHED, Kind
from policyengine.cluster.view import ClusterView
from policyengine.framework.profile import Profile
from policyengine.kube.http.client import Client
from policyengine.kube.watching.informers import kinds_read
from policyengine.kube.watching.reflector import Reflector
from policyengine.kube.watching.server_versions import ServerHistory
from policyengine.kube.watching.store import Change, Observed
from policyengine.server.extender.wire import MAX_NODES, decode_node, identity

PAUSE = 64 * 1024
"""Bytes of nodes that are read before others have their turn."""
STEP = 1024
"""Bytes that stand for what reading any node costs."""


class ExtenderCluster:
    """The nodes that requests brought."""

    is_watched = False
    """Whether nodes are known that no request brought."""

    def __init__(self) -> None:
        self.view = ClusterView()
        self.turn = asyncio.Lock()
        self._seen: dict[str, tuple[str, str]] = {}
        """Node -> UID and resourceVersion that a request brought last; the `MAX_NODES` that were brought last."""

    @property
    def is_ready(self) -> bool:
        """Whether requests can be answered."""
        return True

    async def take(self, sent: list[msgspec.Raw]) -> Mapping[str, msgspec.Raw]:
        """Adds the nodes of a request that are new or newer to the view; gives all of them by name.

        Raises `BadRequest`.
        """
        nodes: dict[str, msgspec.Raw] = {}
        since = 0
        for raw in sent:
            since += STEP + memoryview(raw).nbytes
            if since >= PAUSE:
                since = await asyncio.sleep(0, 0)
            name, uid, version = identity(raw)
            nodes[name] = raw
            if not version or self._seen.pop(name, None) != (uid, version):
                self.view.add_or_update_node(decode_node(raw))
            self._seen[name] = (uid, version)
        self._forget()
        return nodes

    def _forget(self) -> None:
        """Let go of the nodes that no request has brought for longest: nobody says here that one has left."""
        while len(self._seen) > MAX_NODES:
            oldest = next(iter(self._seen))
            del self._seen[oldest]
            if not self.is_watched:
                self.view.remove_node(oldest)


class WatchedCluster(ExtenderCluster):
    """Nodes, pods, and what else the rules read, followed by list and watch."""

    is_watched = True

    def __init__(
        self,
        client: Client,
        clock: Clock,
        random: Random,
        profiles: Iterable[Profile],
        on_problem: Callable[[str], None] = lambda message: None,
    ) -> None:
        super().__init__()
        self._clock = clock
        self.synced = asyncio.Event()
        """Set once every first list is in."""
        kinds = {kind for profile in profiles for kind in kinds_read(profile)} - {NODES.kind, PODS.kind}
        resources: list[Kind[Any]] = [NODES, PODS, *(WATCHED[kind] for kind in sorted(kinds))]
        self._history = ServerHistory(client, clock)
        self._reflectors: list[Reflector[Any]] = [
            Reflector(client, resource, clock, random, history=self._history, on_problem=on_problem)
            for resource in resources
        ]

    @property
    def is_ready(self) -> bool:
        """Whether every list is in, and none is of a server that has gone back since."""
        return self.synced.is_set() and not self._history.behind

    async def run(self) -> None:
        """Follow until cancelled."""
        async with asyncio.TaskGroup() as group:
            for reflector in self._reflectors:
                group.create_task(self._follow(reflector))
            for reflector in self._reflectors:
                await reflector.synced.wait()
            self.synced.set()

    async def _follow(self, reflector: Reflector[Any]) -> None:
        kind = reflector.resource.kind
        async for change in reflector.changes():
            self._apply(kind, change)

    def _apply(self, kind: str, change: Change[Any]) -> None:
        view = self.view
        view.now = self._clock.now()
        if isinstance(change, Observed):
            if kind == NODES.kind:
                view.add_or_update_node(change.object, change.anew)
            elif kind in (PODS.kind, FINISHED_PODS.kind):
                view.add_or_update_pod(change.object, change.anew)
            else:
                view.set_object(kind, change.object, change.anew)
                view.regroup(kind, change.object.metadata.key)
        elif kind == NODES.kind:
            view.remove_node(change.name)
            self._seen.pop(change.name, None)
        elif kind in (PODS.kind, FINISHED_PODS.kind):
            view.remove_pod(change.uid or f"{change.namespace}/{change.name}")
        else:
            key = f"{change.namespace}/{change.name}" if change.namespace else change.name
            view.remove_object(kind, key)
            view.regroup(kind, key)
