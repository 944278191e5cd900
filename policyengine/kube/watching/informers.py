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
from collections.abc import Callable, Coroutine, Iterable
from random import Random
from typing import Any

from policyengine.clock import Clock
from policyengine.cluster.kinds import BY_KIND, NAMESPACES, NODES, PODS, SERVICES, Kind
from policyengine.cluster.node_objects import Node
from policyengine.cluster.pod_objects import Pod
from policyengine.framework.plugin import ObjectReader
from policyengine.framework.profile import Profile
from policyengine.framework.reservation import PreBindPlugin
from policyengine.kube.http.client import Client
from policyengine.kube.watching.reflector import Reflector
from policyengine.kube.watching.store import Change, Observed
from policyengine.scheduler.messages import (
    CandidateLoaded,
    CandidateRemoved,
    Message,
    NodeDeleted,
    NodeObserved,
    ObjectDeleted,
    ObjectObserved,
    PodDeleted,
    PodObserved,
    ProfileRemoved,
    ProfileReplaced,
)

logger = logging.getLogger(__name__)


class Informers:
    """One reflector for each kind, whose changes go into the queue no faster than the core takes them."""

    def __init__(
        self, client: Client, clock: Clock, random: Random, messages: MessageQueue, profiles: Iterable[Profile]
    ) -> None:
        """`profiles` are those that the core serves from the start."""

        def reflector(resource: Kind[Any]) -> Reflector[Any]:
            return Reflector(client, resource, clock, random, on_problem=logger.warning)

        self.pods: Reflector[Pod] = reflector(PODS)
        self.nodes: Reflector[Node] = reflector(NODES)
        self._others = WatchedKinds(reflector, self._follow_other, messages.put, profiles)
        self._clock = clock
        self._messages = messages

    @property
    def reflectors(self) -> list[Reflector[Any]]:
        """What is listed and watched."""
        return [self.nodes, self.pods, *self._others.reflectors]

    def work(self) -> list[Coroutine[Any, Any, None]]:
        """What is to run until cancelled."""
        return [self._follow(self.nodes, _of_node), self._follow(self.pods, _of_pod), self._others.run()]

    def admit(self, message: PolicyMessage) -> None:
        """Pass a policy on to the core, once all it reads is known."""
        self._others.admit(message)

    async def wait_for_sync(self) -> None:
        """Return once every kind's first list is in, and every policy admitted was passed on."""
        await self.nodes.synced.wait()
        await self.pods.synced.wait()
        await self._others.synced()

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

    async def _follow(self, reflector: Reflector[Any], message_of: Callable[[Change[Any]], Message]) -> None:
        async for batch in reflector.batches():
            await self._messages.fill(map(message_of, batch))

    async def _follow_other(self, reflector: Reflector[Any]) -> None:
        await self._follow(reflector, _of_kind(reflector.resource.kind))


def _of_node(change: Change[Node]) -> Message:
    return NodeObserved(change.object) if isinstance(change, Observed) else NodeDeleted(change.name)


def _of_pod(change: Change[Pod]) -> Message:
    if isinstance(change, Observed):
        return PodObserved(change.object)
    return PodDeleted(change.namespace, change.name, change.uid)


def _of_kind(kind: str) -> Callable[[Change[Any]], Message]:
    def message_of(change: Change[Any]) -> Message:
        if isinstance(change, Observed):
            return ObjectObserved(kind, change.object)
        return ObjectDeleted(kind, change.namespace, change.name)

    return message_of


class MessageQueue:
    """Messages that the core has not taken in yet."""

    def __init__(self, limit: int) -> None:
        self.waiting: deque[Message] = deque()
        """The oldest first; the loop takes them from here, and says so (`taken`)."""
        self._limit = limit
        self._wake = asyncio.Event()
        self._room = asyncio.Event()

    def put(self, message: Message) -> None:
        """Behind those that wait already."""
        self.waiting.append(message)
        self._wake.set()

    async def fill(self, messages: Iterable[Message]) -> None:
        """Put many, and return once there is room for more."""
        self.waiting.extend(messages)
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
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            pass


ALWAYS: tuple[Kind[Any], ...] = (NAMESPACES, SERVICES)
"""Rules may read these without a plugin's help."""

PolicyMessage = ProfileReplaced | ProfileRemoved | CandidateLoaded | CandidateRemoved


def kinds_read(profile: Profile) -> set[str]:
    """The kinds that the profile's plugins and rules read. KeyError for one that is not known here: a plugin's bug."""
    found = {BY_KIND[kind].kind for kind in profile.kinds}
    for plugin in profile.plugins():
        if isinstance(plugin, ObjectReader | PreBindPlugin):
            found.update(BY_KIND[kind].kind for kind in plugin.kinds)
    return found


class WatchedKinds:
    """Follows kinds as policies come to read them, and passes the policies on."""

    def __init__(
        self,
        reflector: Callable[[Kind[Any]], Reflector[Any]],
        follow: Callable[[Reflector[Any]], Coroutine[Any, Any, None]],
        put: Callable[[Message], None],
        profiles: Iterable[Profile] = (),
    ) -> None:
        """`follow` feeds a reflector's changes to the core for ever; `profiles` serve from the start."""
        self._reflector = reflector
        self._follow = follow
        self._put = put
        kinds = {resource.kind for resource in ALWAYS}.union(*map(kinds_read, profiles))
        self._followed = {kind: reflector(BY_KIND[kind]) for kind in sorted(kinds)}
        self._waiting: dict[tuple[str, bool], PolicyMessage] = {}
        """(scheduler name, whether it is about its candidate) -> the newest word on that policy."""
        self._changed = asyncio.Event()
        self._settled = asyncio.Event()
        self._settled.set()

    @property
    def kinds(self) -> set[str]:
        """The kinds followed."""
        return set(self._followed)

    @property
    def reflectors(self) -> list[Reflector[Any]]:
        """One for each kind."""
        return list(self._followed.values())

    def admit(self, message: PolicyMessage) -> None:
        """Pass a policy on, at once where all it reads is known, else as soon as it is."""
        if isinstance(message, ProfileReplaced | CandidateLoaded):
            scheduler_name = message.profile.scheduler_name
        else:
            scheduler_name = message.scheduler_name
        name = scheduler_name, isinstance(message, CandidateLoaded | CandidateRemoved)
        if not self._waiting and self._settled.is_set() and self._knows(message):
            self._put(message)
            return
        self._waiting.pop(name, None)
        self._waiting[name] = message
        self._settled.clear()
        self._changed.set()

    async def run(self) -> None:
        """Follow until cancelled."""
        async with asyncio.TaskGroup() as group:
            for reflector in self._followed.values():
                group.create_task(self._follow(reflector))
            while True:
                if not self._waiting:
                    self._settled.set()
                    self._changed.clear()
                    await self._changed.wait()
                name = next(iter(self._waiting))
                message = self._waiting.pop(name)
                if isinstance(message, ProfileReplaced | CandidateLoaded):
                    for kind in sorted(kinds_read(message.profile) - self._followed.keys()):
                        self._followed[kind] = self._reflector(BY_KIND[kind])
                        group.create_task(self._follow(self._followed[kind]))
                    for kind in kinds_read(message.profile):
                        await self._followed[kind].synced.wait()
                self._put(message)

    async def synced(self) -> None:
        """Return once every kind's first list is in, and every policy admitted was passed on."""
        await self._settled.wait()
        for reflector in list(self._followed.values()):
            await reflector.synced.wait()

    def _knows(self, message: PolicyMessage) -> bool:
        if isinstance(message, ProfileRemoved | CandidateRemoved):
            return True
        return all(
            kind in self._followed and self._followed[kind].synced.is_set() for kind in kinds_read(message.profile)
        )
