"""A whole scheduler on one API server: the core, its runner, and the policies that may be replaced under it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from random import Random

from policyengine.clock import Clock
from policyengine.framework.profile import Profile
from policyengine.kube.client import Client
from policyengine.kube.compiling import compile_beside
from policyengine.kube.reload import DEFAULT_NAMESPACE, LABEL_SELECTOR, Compile, PolicyReloader
from policyengine.kube.runner import Limits, Runner
from policyengine.scheduler.state import SchedulerState

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
        compile_text: Compile = compile_beside,
        host: str = "",
        limits: Limits = Limits(),  # noqa: B008  (frozen)
    ) -> None:
        self.state = SchedulerState(profiles)
        self.runner = Runner(self.state, client, clock, random, profiles=profiles, host=host, limits=limits)
        self.reloader = PolicyReloader(
            client,
            clock,
            random,
            compile_text,
            self.runner.put,
            files=profiles,
            namespace=namespace,
            label_selector=label_selector,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Schedule until `stop` is set; returns when everything decided was said."""
        policies = asyncio.create_task(self.reloader.run())
        schedule = asyncio.create_task(self.runner.run(stop, [self.reloader.settled]))
        try:
            await asyncio.wait({policies, schedule}, return_when=asyncio.FIRST_COMPLETED)
            if policies.done():
                policies.result()
            await schedule
            await self.reloader.flush(STATUS_DEADLINE)
        finally:
            for task in (policies, schedule):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
