"""A whole scheduler on one API server: the core, its runner, and the policies that may be replaced under it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random

from policyengine.clock import Clock
from policyengine.framework.profile import Profile
from policyengine.kube.demand_memory import DemandMemory
from policyengine.kube.extenders.http_extender import HttpExtender
from policyengine.kube.http.client import Client
from policyengine.kube.leader import LeaderElector
from policyengine.kube.notices import Notices
from policyengine.kube.policies.compiling import compile_at_once
from policyengine.kube.policies.config_map import LABEL_SELECTOR
from policyengine.kube.policies.precedence import Compile
from policyengine.kube.policies.reload import PolicyReloader
from policyengine.kube.policies.sources import DEFAULT_NAMESPACE
from policyengine.kube.runner import Runner
from policyengine.kube.stores import Store
from policyengine.kube.watching.server_versions import ServerHistory
from policyengine.scheduler.messages import DemandRemembered, DrivenCore
from policyengine.scheduler.state import SchedulerState

logger = logging.getLogger(__name__)

STATUS_DEADLINE = 1.0


class Scheduler:
    """Schedules from `run` until its `stop` is set. `state` is the core, to read from."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        random: Random,
        profiles: Sequence[Profile] = (),
        *,
        namespace: str = DEFAULT_NAMESPACE,
        label_selector: str = LABEL_SELECTOR,
        compile_files: Compile = compile_at_once,
        host: str = "",
        elector: LeaderElector | None = None,
        extenders: Sequence[HttpExtender] = (),
        observed: Callable[[SchedulerState], DrivenCore] = lambda state: state,
        with_notices: bool = False,
        verifies_bindings: bool = False,
        history: Store | None = None,
    ) -> None:
        """With an `elector`, `client` is to speak through its `LeadersTransport`. `observed` gives what the runner
        drives in the core's place: the core, with somebody who looks on. `with_notices`: whether Events tell of what
        nobody serves, and nobody reads. `verifies_bindings`: as `SchedulerState`. `history`: where what policies learn
        by `history` is kept."""
        self.elector = elector
        self.waiting_for = ""
        """Why the first lists were not asked for yet, as far as is known."""
        self.history = ServerHistory(client, clock) if elector is None else elector.history
        # Those whose absence matters are heard first (buildExtenders, scheduler.go, v1.36).
        extenders = sorted(extenders, key=lambda one: one.ignorable)
        self.state = SchedulerState(profiles, [extender.described() for extender in extenders], verifies_bindings)
        self.runner = Runner(
            observed(self.state),
            client,
            clock,
            random,
            profiles=profiles,
            host=host,
            elector=elector,
            extenders=extenders,
            history=self.history,
        )
        self.reloader = PolicyReloader(
            client,
            clock,
            random,
            compile_files,
            self.runner.informers.admit,
            files=profiles,
            namespace=namespace,
            label_selector=label_selector,
            rollouts=lambda: self.state.rollouts,
            record=self.runner.writer.events.record,
            leads=self.runner.leads,
            history=self.history,
        )

        told = (self.runner.writer.events.record, self.runner.leads, namespace, label_selector)
        demand = self.state.view.demand
        self.memory = None if history is None else DemandMemory(history, demand, clock, self.runner.leads)
        self.notices = Notices(self.state, client, clock, *told) if with_notices else None

    def waits_for(self, what: str) -> None:
        """Say, once each time, what the first lists wait for; whoever asks whether this is ready is told it too."""
        if what != self.waiting_for:
            logger.warning("waiting: %s", what)
        self.waiting_for = what

    async def run(self, stop: asyncio.Event) -> None:
        """Schedule until `stop` is set; returns when everything decided was said, and the lease is given back.

        Raises `LeadershipLost`.
        """
        saved = None if self.memory is None else await self.memory.load()
        if saved is not None:
            self.runner.messages.put(DemandRemembered(saved))
        schedule = asyncio.create_task(self.runner.run(stop, [self.reloader.settled]))
        parts = (self.reloader, self.notices, self.memory, self.elector)
        beside = [asyncio.create_task(part.run()) for part in parts if part is not None]
        try:
            await asyncio.wait({schedule, *beside}, return_when=asyncio.FIRST_COMPLETED)
            for task in beside:
                if task.done():
                    task.result()
            await schedule
            await self.reloader.flush(STATUS_DEADLINE)
            if self.memory is not None:
                await self.memory.save()
            await _cancel(beside)
            if self.elector is not None:
                await self.elector.release()
        finally:
            await _cancel([schedule, *beside])


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
