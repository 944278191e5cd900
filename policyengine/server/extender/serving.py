"""An extender at work: its cluster followed, its port open, until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from random import Random

from policyengine.clock import Clock
from policyengine.framework.profile import Profile
from policyengine.kube.http.client import Client
from policyengine.server.extender.app import ExtenderApp
from policyengine.server.extender.cluster import ExtenderCluster, WatchedCluster
from policyengine.server.extender.rules import PolicyRules, own_rules, reads_pods
from policyengine.server.extender.verbs import Verbs
from policyengine.server.listening import listening

logger = logging.getLogger(__name__)

MAX_CONNECTIONS = 128
"""kube-scheduler keeps a few; a request that is under way holds one."""
SHUTDOWN = 5.0
"""Seconds that requests under way are given at the end."""


class CannotServe(Exception):
    """A policy has rules that this extender cannot answer; one sentence that says what to do."""


def check_rules(profiles: Sequence[Profile], watched: bool) -> None:
    """Raise `CannotServe` for a rule that cannot be answered; say what of a policy has no effect here."""
    for profile in profiles:
        unanswerable = [] if watched else reads_pods(own_rules(profile))
        if unanswerable:
            rules = ", ".join(f"`{name}`" for name in unanswerable)
            raise CannotServe(
                f"policy `{profile.name}`: {rules} read what stands on the nodes (`used`, `free`, `pods`); "
                "start the extender with --kubeconfig, so that it can watch them"
            )
        idle = [what for what, there in (("gang", profile.gangs), ("permit", profile.permit)) if there]
        if idle:
            logger.warning("policy %s: %s rules have no effect in an extender", profile.name, " and ".join(idle))


async def serve(
    profiles: Sequence[Profile],
    host: str,
    port: int,
    clock: Clock,
    stop: asyncio.Event,
    *,
    client: Client | None = None,
    tls: ssl.SSLContext | None = None,
    started: asyncio.Future[int] | None = None,
    beside: Callable[[asyncio.Event], Awaitable[None]] | None = None,
) -> None:
    """Answer until `stop` is set. `client` is how the cluster is watched; `started` is told the port; `beside` runs
    meanwhile, and is given the event that the cluster has been read.

    Raises `CannotServe` where a rule cannot be answered, `CannotListen` where the port is taken.
    """
    check_rules(profiles, client is not None)
    own = [own_rules(profile) for profile in profiles]
    cluster: ExtenderCluster
    following: asyncio.Task[None] | None = None
    if client is None:
        cluster = ExtenderCluster()
    else:
        watched = WatchedCluster(client, clock, Random(), own, on_problem=logger.warning)
        cluster, following = watched, asyncio.create_task(_follow(watched, beside))
    policies = {profile.name: Verbs(PolicyRules(profile), cluster, clock, client) for profile in own}
    application = ExtenderApp(policies, cluster).application
    try:
        async with listening(application, f"{host}:{port}", tls, MAX_CONNECTIONS, SHUTDOWN) as bound:
            logger.info("extender for %s on %s:%d", ", ".join(sorted(policies)), host, bound)
            if started is not None:
                started.set_result(bound)
            await _until(stop, following)
    finally:
        if following is not None:
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following


async def _follow(cluster: WatchedCluster, beside: Callable[[asyncio.Event], Awaitable[None]] | None) -> None:
    await asyncio.gather(cluster.run(), *([beside(cluster.synced)] if beside is not None else []))


async def _until(stop: asyncio.Event, following: asyncio.Task[None] | None) -> None:
    """Until the end, or a bug in following the cluster, which is raised."""
    asked = asyncio.create_task(stop.wait())
    await asyncio.wait({asked} if following is None else {asked, following}, return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    if following is not None and following.done():
        following.result()
