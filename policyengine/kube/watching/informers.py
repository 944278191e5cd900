"""What the core is told of the cluster: nodes, pods and what its policies read, listed and watched into its inbox."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from random import Random
from typing import Any

from policyengine.clock import Clock
from policyengine.cluster import objects
from policyengine.cluster.kinds import NODES, PODS, Kind
from policyengine.framework.profile import Profile
from policyengine.kube.http.client import Client
from policyengine.kube.watching.message_queue import Inbox
from policyengine.kube.watching.reflector import Reflector
from policyengine.kube.watching.store import Change, Observed
from policyengine.kube.watching.watched_kinds import Following, PolicyMessage
from policyengine.scheduler.messages import (
    Message,
    NodeDeleted,
    NodeObserved,
    ObjectDeleted,
    ObjectObserved,
    PodDeleted,
    PodObserved,
)

logger = logging.getLogger(__name__)


class Informers:
    """One reflector for each kind, whose changes go into the inbox no faster than the core takes them."""

    def __init__(self, client: Client, clock: Clock, random: Random, inbox: Inbox, profiles: Iterable[Profile]) -> None:
        """`profiles` are those that the core serves from the start."""

        def reflector(resource: Kind[Any]) -> Reflector[Any]:
            return Reflector(client, resource, clock, random, on_problem=logger.warning)

        self.pods: Reflector[objects.Pod] = reflector(PODS)
        self.nodes: Reflector[objects.Node] = reflector(NODES)
        self._others = Following(reflector, self._follow_other, inbox.put, profiles)
        self._clock = clock
        self._inbox = inbox

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
            await self._inbox.fill(map(message_of, batch))

    async def _follow_other(self, reflector: Reflector[Any]) -> None:
        await self._follow(reflector, _of_kind(reflector.resource.kind))


def _of_node(change: Change[objects.Node]) -> Message:
    return NodeObserved(change.object) if isinstance(change, Observed) else NodeDeleted(change.name)


def _of_pod(change: Change[objects.Pod]) -> Message:
    if isinstance(change, Observed):
        return PodObserved(change.object)
    return PodDeleted(change.namespace, change.name, change.uid)


def _of_kind(kind: str) -> Callable[[Change[Any]], Message]:
    def message_of(change: Change[Any]) -> Message:
        if isinstance(change, Observed):
            return ObjectObserved(kind, change.object)
        return ObjectDeleted(kind, change.namespace, change.name)

    return message_of
