"""A server on which RBAC is on and everything of `deploy/` holds: the embedded one on virtual time, or the real one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from policyengine.clock import Clock, SystemClock
from policyengine.kube.http.client import Client, ConnectionFailed, Response, Transport
from policyengine.simulator.api_server import ApiServer
from policyengine.simulator.api_server.http_requests import ADMIN
from policyengine.simulator.real_server import connect, real_server
from tests.alpha_gates import GROUPS, GROUPS_API, flag
from tests.deploy import rights
from tests.kube.virtual_time import VirtualClock
from tests.record.servers import As

VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def right_of(method: str, path: str, query: Mapping[str, str] | None) -> tuple[str, str, str]:
    """(group, resource with its subresource, verb) that a request needs."""
    parts = path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    if rest[0] == "namespaces" and len(rest) > 2:
        rest = rest[2:]
    read = "watch" if "watch" in (query or {}) else "get" if len(rest) > 1 else "list"
    return group, "/".join([rest[0], *rest[2:]]), VERBS.get(method, read)


class Wire:
    """A way to the server that remembers which rights its requests needed, and which they lacked."""

    def __init__(self, inner: Transport) -> None:
        self.used: set[tuple[str, str, str]] = set()
        self.refused: list[str] = []
        """The answers that say so."""
        self.was_refused = asyncio.Event()
        self.lost: set[str] = set()
        """Pods whose next binding does not reach the server, and nobody knows."""
        self._inner = inner

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  (the protocol's own name)
        before: Callable[[], None] | None = None,
    ) -> Response:
        """One request."""
        if path.endswith("/binding") and (name := path.split("/")[-2]) in self.lost:
            self.lost.remove(name)
            raise ConnectionFailed("lost", sent=True)
        if before is not None:
            before()
        response = await self._inner.request(method, path, query=query, body=body, headers=headers, timeout=timeout)
        if response.status in (403, 422):  # 422: a right to a part of an object
            told = (await response.read()).decode()
            if " is forbidden: User " in told:
                self.refused.append(told)
                self.was_refused.set()
            await response.close()
            return await self._inner.request(method, path, query=query, body=body, headers=headers, timeout=timeout)
        self.used.add(right_of(method, path, query))
        return response

    async def close(self) -> None:
        """Close every connection."""
        await self._inner.close()


@dataclass
class Stage:
    """The server: its administrator, and its accounts."""

    admin: Transport
    clock: Clock
    tokens: Mapping[str, str]
    way: Callable[[str], Transport]
    """A token -> a way to the server."""
    runs: int = 0
    wires: list[Wire] = field(default_factory=list)

    def wire(self, account: str) -> Wire:
        """A way to the server as that account."""
        made = Wire(self.way(self.tokens[account]))
        self.wires.append(made)
        return made

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        """A request as administrator."""
        client = Client(self.admin)
        return json.loads(await client.call(method, path, body))


@asynccontextmanager
async def embedded() -> AsyncIterator[Stage]:
    """The embedded server, on the clock of a `VirtualLoop`."""
    api = ApiServer(VirtualClock(), tokens={"admin": ADMIN})
    async with _set(As(api, "Bearer admin"), VirtualClock(), lambda token: As(api, f"Bearer {token}")) as stage:
        yield stage


@asynccontextmanager
async def real() -> AsyncIterator[Stage]:
    """etcd and kube-apiserver, where `$KUBEBUILDER_ASSETS` says."""
    async with (
        real_server(flags=[flag(GROUPS), GROUPS_API]) as (url, admins),
        _set(connect(url, admins), SystemClock(), lambda token: connect(url, token)) as stage,
    ):
        yield stage


@asynccontextmanager
async def _set(admin: Transport, clock: Clock, way: Callable[[str], Transport]) -> AsyncIterator[Stage]:
    for one in rights.manifests():
        await rights.apply(admin, one)
    accounts = {grant.account for grant in rights.grants()}
    stage = Stage(admin, clock, {name: await rights.token(admin, name) for name in accounts}, way)
    try:
        yield stage
    finally:
        for transport in (*stage.wires, admin):
            await transport.close()
