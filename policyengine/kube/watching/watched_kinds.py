"""Which kinds of objects are followed besides nodes and pods: those that a profile's plugins read.

Each kind costs a list and a watch, and a right to both, so none is followed that nobody reads. A policy that reads
another kind takes effect once that kind's first list is in: until then its plugins would see an empty cluster. A kind
once followed is followed to the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from policyengine.cluster.kinds import BY_KIND, NAMESPACES, SERVICES, Kind
from policyengine.framework.plugin import ObjectReader
from policyengine.framework.profile import Profile
from policyengine.framework.reservation import PreBindPlugin
from policyengine.kube.watching.reflector import Reflector
from policyengine.scheduler.messages import CandidateLoaded, CandidateRemoved, Message, ProfileRemoved, ProfileReplaced

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


class Following:
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
