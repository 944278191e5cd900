"""Asking the schedulers that run in a kubeconfig's cluster, from a command."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from policyengine.clock import SystemClock
from policyengine.commands.cluster_client import connected
from policyengine.commands.progress import progress
from policyengine.kube.config.credentials import Server
from policyengine.kube.http.client import Client
from policyengine.kube.scheduler_pages import RunningScheduler, ServerSilent, UnknownPod, ask, find

Page = dict[str, Any]
T = TypeVar("T")


def pages(server: Server, namespace: str, path: str) -> list[Page]:
    """A page of each scheduler that runs, with its `lease`; `namespace`: of Leases. Raises as `find` and `ask`."""

    async def asked(client: Client, running: list[RunningScheduler]) -> list[Page]:
        return [{"lease": f"{one.namespace}/{one.lease}", **await ask(client, one, path)} for one in running]

    return _with_running(server, namespace, asked)


def timeline(server: Server, leases: str, namespace: str, name: str) -> Page:
    """What the scheduler that serves a pod knows of it; where none does, what one of them does. Raises as `find` and
    `ask`."""

    async def asked(client: Client, running: list[RunningScheduler]) -> Page:
        found: Page | None = None
        for one in running:
            try:
                page = await ask(client, one, f"/debug/pods/{namespace}/{name}")
            except UnknownPod:
                continue
            if page["policy"] is not None:
                return page
            found = found or page
        if found is None:
            raise UnknownPod(f"{running[0]} knows no pod `{namespace}/{name}`")
        return found

    return _with_running(server, leases, asked)


def _with_running(server: Server, leases: str, act: Callable[[Client, list[RunningScheduler]], Awaitable[T]]) -> T:
    async def work() -> T:
        async with connected(server, check=False) as client:
            return await act(client, await find(client, SystemClock().now(), leases))

    try:
        with progress(f"asking {server.url}"):
            return asyncio.run(work())
    except ServerSilent as error:
        raise ServerSilent(f"{error}; is it up, and is `{server.url}` of {server.source} its address?") from None
