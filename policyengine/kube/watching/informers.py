"""What the core is told of the cluster: nodes, pods and the kinds its policies read, listed and watched into its queue.

Rules:
1. Messages are handed over in the order they came, by one loop. Whoever brings many waits while more than `limit` are
   there; a message that answers an action never waits, as there are no more of those than actions under way.
2. Each kind costs a list and a watch, and a right to both, so a kind is watched only once a policy reads it. Such a
   policy takes effect when that kind's first list is in: until then its plugins would see an empty cluster.
3. A kind once watched is watched to the end.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from random import Random
from typing import Any

from policyengine.clock import Clock
from policyengine.cluster.kinds import (
    FINISHED_MEMBERS,
    FINISHED_PODS,
    NAMESPACES,
    NODES,
    POD_KINDS,
    PODS,
    SERVICES,
    WATCHED,
    Kind,
)
from policyengine.cluster.pod_groups import POD_GROUP
from policyengine.framework.plugin import ObjectReader
from policyengine.framework.profile import Profile
from policyengine.framework.reservation import PreBindPlugin
from policyengine.kube.http.client import Client
from policyengine.kube.watching.reflector import Reflector
from policyengine.kube.watching.server_versions import ServerHistory
from policyengine.kube.watching.store import Change, Observed
from policyengine.scheduler import messages

logger = logging.getLogger(__name__)

ALWAYS: tuple[Kind[Any], ...] = (NODES, PODS, NAMESPACES, SERVICES)
"""Rules may read these without a plugin's help."""

PolicyLoaded = messages.ProfileReplaced | messages.CandidateLoaded
PolicyMessage = PolicyLoaded | messages.ProfileRemoved | messages.CandidateRemoved


class MessageQueue:
    """Messages that the core has not taken in yet."""

    def __init__(self, limit: int) -> None:
        self.waiting: deque[messages.Message] = deque()
        """The oldest first; the loop takes them from here, and says so (`taken`)."""
        self._limit = limit
        self._wake = asyncio.Event()
        self._room = asyncio.Event()

    def put(self, message: messages.Message) -> None:
        """Behind those that wait already."""
        self.waiting.append(message)
        self._wake.set()

    async def fill(self, many: Iterable[messages.Message]) -> None:
        """Put many, and return once there is room for more."""
        self.waiting.extend(many)
        self._wake.set()
        while len(self.waiting) > self._limit:
            self._room.clear()
            await self._room.wait()

    def taken(self) -> None:
        """Some were taken out: those who wait for room may look again."""
        if len(self.waiting) <= self._limit:
            self._room.set()

    def wake(self) -> None:
        """End a `sleep`, though there is no message."""
        self._wake.set()

    async def sleep(self, seconds: float | None) -> None:
        """Until a message comes or somebody calls `wake`, `seconds` at most; None for however long it takes."""
        self._wake.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()


def kinds_read(profile: Profile) -> set[str]:
    """The kinds that the profile's plugins and rules read. KeyError for one that is not known here: a plugin's bug."""
    found = {WATCHED[kind].kind for kind in profile.kinds}
    for plugin in profile.plugins():
        if isinstance(plugin, ObjectReader | PreBindPlugin):
            found.update(WATCHED[kind].kind for kind in plugin.kinds)
    return found


class Informers:
    """One reflector for each kind, whose changes go into the queue no faster than the core takes them."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        random: Random,
        queue: MessageQueue,
        profiles: Iterable[Profile],
        history: ServerHistory,
    ) -> None:
        """`profiles` are those that the core serves from the start."""
        self.history = history
        self._client = client
        self._clock = clock
        self._random = random
        self._queue = queue
        kinds = set[str]().union(*map(_followed, profiles))
        resources = dict.fromkeys([*ALWAYS, *(WATCHED[kind] for kind in sorted(kinds))])
        self._by_kind = {resource.kind: self._reflector(resource) for resource in resources}
        self._admitted: dict[tuple[str, bool], PolicyMessage] = {}
        """(scheduler name, whether it is about its candidate) -> the newest word on that policy, not passed on yet."""
        self._changed = asyncio.Event()
        self._settled = asyncio.Event()
        self._settled.set()

    @property
    def reflectors(self) -> list[Reflector[Any]]:
        """What is listed and watched."""
        return list(self._by_kind.values())

    @property
    def nodes(self) -> Reflector[Any]:
        """That of the nodes."""
        return self._by_kind[NODES.kind]

    @property
    def pods(self) -> Reflector[Any]:
        """That of the pods."""
        return self._by_kind[PODS.kind]

    async def run(self) -> None:
        """Follow every kind, and pass policies on, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for reflector in self.reflectors:
                group.create_task(self._follow(reflector))
            while True:
                if not self._admitted:
                    self._settled.set()
                    self._changed.clear()
                    await self._changed.wait()
                message = self._admitted.pop(next(iter(self._admitted)))
                kinds = _kinds_of(message)
                for kind in sorted(kinds - self._by_kind.keys()):
                    self._by_kind[kind] = self._reflector(WATCHED[kind])
                    group.create_task(self._follow(self._by_kind[kind]))
                for kind in kinds:
                    await self._by_kind[kind].synced.wait()
                self._queue.put(message)

    def admit(self, message: PolicyMessage) -> None:
        """Pass a policy on to the core, at once where all it reads is known, else as soon as it is."""
        if self._settled.is_set() and all(
            kind in self._by_kind and self._by_kind[kind].synced.is_set() for kind in _kinds_of(message)
        ):
            self._queue.put(message)
            return
        about = message.profile if isinstance(message, PolicyLoaded) else message
        name = about.scheduler_name, isinstance(message, messages.CandidateLoaded | messages.CandidateRemoved)
        self._admitted.pop(name, None)
        self._admitted[name] = message
        self._settled.clear()
        self._changed.set()

    async def wait_for_sync(self) -> None:
        """Return once every kind's first list is in, and every policy admitted was passed on."""
        await self._settled.wait()
        for reflector in self.reflectors:
            await reflector.synced.wait()

    async def catch_up(self) -> None:
        """What a predecessor decided last may not have been seen here yet: nothing is decided before it is.

        kube-scheduler does not wait: where an informer of the new leader is behind it decides by what it has, and the
        kubelet refuses what does not fit.
        """
        began = self._clock.monotonic()
        async with asyncio.TaskGroup() as group:
            for reflector in self.reflectors:
                if reflector.resource.holds_decisions:
                    group.create_task(reflector.catch_up())
        logger.info("what was decided before is known, after %.1f s", self._clock.monotonic() - began)

    def _reflector(self, resource: Kind[Any]) -> Reflector[Any]:
        return Reflector(
            self._client, resource, self._clock, self._random, history=self.history, on_problem=logger.warning
        )

    async def _follow(self, reflector: Reflector[Any]) -> None:
        kind = reflector.resource.kind
        async for batch in reflector.batches():
            await self._queue.fill([_message(kind, change) for change in batch])


def _kinds_of(message: PolicyMessage) -> set[str]:
    """The kinds that have to be known before the core is told."""
    return _followed(message.profile) if isinstance(message, PolicyLoaded) else set()


def _followed(profile: Profile) -> set[str]:
    """What is watched for a profile: what it reads, and what the status of its PodGroups counts."""
    found = kinds_read(profile)
    return found | {FINISHED_MEMBERS.kind} if POD_GROUP in found else found


def _message(kind: str, change: Change[Any]) -> messages.Message:
    if isinstance(change, Observed):
        if kind in POD_KINDS:
            return messages.PodObserved(change.object, change.anew)
        if kind == NODES.kind:
            return messages.NodeObserved(change.object, change.anew)
        return messages.ObjectObserved(kind, change.object, change.anew)
    if kind == PODS.kind:
        return messages.PodDeleted(change.namespace, change.name, change.uid)
    if kind == NODES.kind:
        return messages.NodeDeleted(change.name)
    kind = FINISHED_PODS.kind if kind in POD_KINDS else kind
    return messages.ObjectDeleted(kind, change.namespace, change.name)
