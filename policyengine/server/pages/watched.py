"""A cluster as a source, whoever schedules it: watched as `policyengine record` does, and never written to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from random import Random

from policyengine.clock import Clock
from policyengine.compiler.assemble import PluginRegistry
from policyengine.framework.profile import Profile
from policyengine.kube.http.client import Client
from policyengine.kube.listing import list_policies
from policyengine.kube.policies.serving import serving
from policyengine.kube.runner import Onlooker, Runner
from policyengine.plugins.registry import with_default_profile
from policyengine.scheduler.state import SchedulerState
from policyengine.server.pages.source import Moment


class WatchedSource:
    """A cluster, as it is."""

    is_live = True
    span = None

    def __init__(self, title: str, state: SchedulerState, clock: Clock, runner: Runner, notes: tuple[str, ...]) -> None:
        self.title = title
        self._state = state
        self._clock = clock
        self._runner = runner
        self._notes = notes

    @asynccontextmanager
    async def moment(self, at: float | None = None) -> AsyncIterator[Moment]:
        """As far as it is known by now."""
        missing = () if self._runner.synced.is_set() else ("the first lists are not in yet: reload soon",)
        stale = [one.resource.plural for one in self._runner.informers.reflectors if one.failing_since is not None]
        lost = (
            (f"{', '.join(stale)} cannot be watched at the moment; what is shown of them may be old",) if stale else ()
        )
        yield Moment(self._state, self._clock.now(), self.title, notes=(*missing, *lost, *self._notes))


@asynccontextmanager
async def watched(
    client: Client, title: str, registry: PluginRegistry, clock: Clock, random: Random, given: Sequence[Profile] = ()
) -> AsyncIterator[WatchedSource]:
    """Watch a cluster while the block runs, under the policies given, or those that serve in it as it begins.

    Raises `ApiError`, `ConnectionFailed` where these cannot be listed.
    """
    sources, left_out = await list_policies(client)
    found = serving(sources, registry)
    state = SchedulerState(with_default_profile(given or found.profiles))
    runner = Runner(Onlooker(state.handle), client, clock, random, profiles=state.profiles)
    said = "the cluster is only watched: why a pod waits is what its own scheduler last said of it"
    stop = asyncio.Event()
    work = asyncio.create_task(runner.run(stop))
    try:
        yield WatchedSource(title, state, clock, runner, (said, *left_out, *found.refused))
    finally:
        stop.set()
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work
