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
from policyengine.server.pages.source import Moment, Present, Source


@asynccontextmanager
async def watched(
    client: Client, title: str, registry: PluginRegistry, clock: Clock, random: Random, given: Sequence[Profile] = ()
) -> AsyncIterator[Source]:
    """Watch a cluster while the block runs, under the policies given, or those that serve in it as it begins.

    Raises `ApiError`, `ConnectionFailed` where these cannot be listed.
    """
    sources, left_out = await list_policies(client)
    found = serving(sources, registry)
    state = SchedulerState(with_default_profile(given or found.profiles))
    runner = Runner(Onlooker(state.handle), client, clock, random, profiles=state.profiles)
    notes = (
        "the cluster is only watched: why a pod waits is what its own scheduler last said of it",
        *left_out,
        *found.refused,
    )

    def read() -> Moment:
        """As far as it is known by now."""
        missing = () if runner.synced.is_set() else ("the first lists are not in yet: reload soon",)
        stale = ", ".join(one.resource.plural for one in runner.informers.reflectors if one.failing_since is not None)
        lost = (f"{stale} cannot be watched at the moment; what is shown of them may be old",) if stale else ()
        return Moment(state, clock.now(), title, notes=(*missing, *lost, *notes))

    stop = asyncio.Event()
    work = asyncio.create_task(runner.run(stop))
    try:
        yield Present(title, read, is_live=True)
    finally:
        stop.set()
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work
