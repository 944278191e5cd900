"""The running scheduler, put together from its configuration: connections, election, metrics, endpoints."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from policyengine import quantity
from policyengine.clock import Clock
from policyengine.framework.profile import Profile
from policyengine.kube.config import process
from policyengine.kube.config.configuration import Configuration
from policyengine.kube.config.credentials import Server
from policyengine.kube.demand_memory import history_store
from policyengine.kube.extenders.http_extender import HttpExtender
from policyengine.kube.http.client import Client, Transport
from policyengine.kube.http.rate_limit import TokenBucket
from policyengine.kube.leader import LeaderElector, new_identity
from policyengine.kube.leaders_transport import LeadersTransport
from policyengine.kube.policies.precedence import Compile
from policyengine.kube.record_writer import RecordingUnusable, RecordWriter
from policyengine.kube.scheduler_pages import OFF, announced
from policyengine.kube.scheduling import Scheduler
from policyengine.recording.directory import Limits
from policyengine.recording.redaction import Redaction, UnusableKey, redaction
from policyengine.scheduler.messages import DrivenCore
from policyengine.scheduler.state import SchedulerState
from policyengine.server.callers import Reviewer
from policyengine.server.endpoints import Endpoints, served
from policyengine.server.listening import CannotListen
from policyengine.server.metrics.observed import ObservedCore, ObservedTransport
from policyengine.server.metrics.readings import read_before_scrape
from policyengine.server.metrics.scheduler_metrics import SchedulerMetrics
from policyengine.server.tracing import PodTraces, exporting

if TYPE_CHECKING:
    from policyengine.server.pages.playground.page import Playground  # loaded where it is served

logger = logging.getLogger(__name__)

LEASE_CONNECTIONS = 2
"""One is given up with the request that was not answered in time, the next is asked on another."""


@dataclass(frozen=True)
class Connection:
    """An API server, and who may change what on it."""

    client: Client
    """For everything but the lease and reviews: limited, and silent while this replica does not lead."""
    direct: Client
    """For reviews."""
    elector: LeaderElector | None
    metrics: SchedulerMetrics
    """What its requests are counted in, and everything else."""


@asynccontextmanager
async def connected(
    server: Server, configuration: Configuration, clock: Clock, random: Random
) -> AsyncIterator[Connection]:
    """Connections to the server, for as long as the block runs. The lease has some of its own: where all others wait
    for a slow server, it waits behind nobody."""
    given = configuration.data["clientConnection"]
    timeout = configuration.seconds("clientConnection", "requestTimeout")
    metrics = SchedulerMetrics()
    bare, own = (
        ObservedTransport(server.connect(connections), server.url, metrics)
        for connections in (given["connections"], LEASE_CONNECTIONS)
    )
    direct, lease = Client(bare, timeout), Client(own, timeout)
    try:
        limiter = TokenBucket(clock, given["qps"], given["burst"]) if given["qps"] else None
        transport: Transport = bare
        elector = None
        if configuration.lease is not None:
            identity = new_identity(socket.gethostname(), random)
            elector = LeaderElector(lease, clock, random, identity, configuration.lease)
            transport = LeadersTransport(bare, elector)
        yield Connection(Client(transport, timeout, limiter), direct, elector, metrics)
    finally:
        await direct.close()
        await lease.close()


@asynccontextmanager
async def live(
    connection: Connection,
    configuration: Configuration,
    clock: Clock,
    random: Random,
    profiles: Sequence[Profile],
    compile_files: Compile,
    playground: Playground | None = None,
) -> AsyncIterator[Scheduler]:
    """A scheduler that is ready to run, with its pages served. Raises `CannotListen`, `ExtenderUnusable`,
    `TracingUnusable`, `RecordingUnusable`."""
    metrics = connection.metrics

    def observe_extender(extender: str, verb: str, result: str, seconds: float) -> None:
        metrics.extender_requests.add((extender, verb, result))
        metrics.extender_duration.observe((extender, verb), seconds)

    policies, tracing = configuration.data["policies"], configuration.data["tracing"]
    async with AsyncExitStack() as stack:
        tracer = None
        if tracing["endpoint"]:
            exports = exporting(tracing["endpoint"], tracing["samplingRatePerMillion"], socket.gethostname())
            tracer = await stack.enter_async_context(exports)

        writer = await stack.enter_async_context(_recording(configuration, clock, random))

        def observed(state: SchedulerState) -> DrivenCore:
            core = ObservedCore(state, metrics, None if tracer is None else PodTraces(tracer, clock, state.view))
            return core if writer is None else writer.recorded(state, core)

        extenders = [HttpExtender(given, observe=observe_extender) for given in configuration.data["extenders"]]
        for extender in extenders:
            stack.push_async_callback(extender.close)
        scheduler = Scheduler(
            connection.client,
            clock,
            random,
            profiles,
            namespace=policies["namespace"],
            label_selector=policies["selector"],
            compile_files=compile_files,
            host=socket.gethostname(),
            elector=connection.elector,
            extenders=extenders,
            observed=observed,
            with_notices=policies["notices"],
            verifies_bindings=configuration.data["binding"]["verify"],
            history=history_store(connection.client, policies["history"]),
        )
        read_before_scrape(metrics, scheduler, clock)
        await _serve_pages(stack, connection, configuration, clock, scheduler, playground)
        quiet = asyncio.create_task(process.keep_quiet(scheduler.runner.synced))
        stack.callback(quiet.cancel)
        yield scheduler


@asynccontextmanager
async def _recording(configuration: Configuration, clock: Clock, random: Random) -> AsyncIterator[RecordWriter | None]:
    """Where what happens is recorded; None where it is not."""
    given = configuration.data["recording"]
    if not given["directory"]:
        yield None
        return
    sizes = (quantity.value(given[name]) for name in ("fileSize", "kept"))
    limits = Limits(next(sizes), configuration.seconds("recording", "fileAge"), next(sizes))
    redacting: Redaction | None = None
    if given["redact"] or given["redactKeyFile"]:
        try:
            redacting = redaction(Path(given["redactKeyFile"]) if given["redactKeyFile"] else None)
        except UnusableKey as error:
            raise RecordingUnusable(str(error)) from None
    writer = RecordWriter(Path(given["directory"]), limits, clock, random, redacting)
    async with writer.running():
        yield writer


async def _serve_pages(
    stack: AsyncExitStack,
    connection: Connection,
    configuration: Configuration,
    clock: Clock,
    scheduler: Scheduler,
    playground: Playground | None,
) -> None:
    """The pages, where an address is given. Where the default one is taken there are none, and a warning says so."""
    given = configuration.data["endpoints"]
    if connection.elector is not None:
        connection.elector.pages = OFF
    if not given["address"]:
        return
    reviewer = Reviewer(connection.direct) if given["authentication"] == "TokenReview" else None
    try:
        pages = Endpoints(
            scheduler, connection.metrics, configuration.data, connection.client, clock, reviewer, playground
        )
        url = await stack.enter_async_context(served(pages, configuration))
    except CannotListen as error:
        if "address" in configuration.written.get("endpoints", {}):
            raise
        logger.warning("no metrics, health and debug pages: %s", error)
    else:
        logger.info("metrics, health and debug pages on %s", url)
        if connection.elector is not None and given["debug"]:
            connection.elector.pages = announced(url, os.environ)
