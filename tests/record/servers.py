"""Ways to a server: one named by a kubeconfig, or the embedded one in memory."""

import asyncio
import base64
import json
from collections.abc import Mapping
from pathlib import Path

import aiohttp

from policyengine.clock import SystemClock
from policyengine.kube.config import credentials
from policyengine.kube.http.client import Response, Transport
from policyengine.simulator.api_server import ApiServer, MemoryTransport
from policyengine.simulator.api_server.handler import DISABLED_ADMISSION
from policyengine.simulator.api_server.http_requests import ADMIN, User
from policyengine.simulator.real_server import connect as connect_bearer
from tests.record.session import Session

COMPACTED = "compact_rev_key"


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def real(kubeconfig: Path, etcd: str = "") -> Session:
    """A session with the server of a kubeconfig; `etcd`, the URL of its store, lets its past be forgotten."""
    server = credentials.load(kubeconfig)

    def connect(authorization: str | None) -> Transport:
        if authorization is None:
            return server.connect()
        return connect_bearer(server.url, authorization.removeprefix("Bearer "))

    async def compact() -> None:
        async with aiohttp.ClientSession() as client:
            async with client.post(f"{etcd}/v3/kv/range", data=json.dumps({"key": "AA=="})) as answer:
                revision = (await answer.json())["header"]["revision"]
            # The API server follows this key to know how far its own past reaches.
            noted = {"key": _base64(COMPACTED), "value": _base64(str(revision))}
            for what, body in (("kv/put", noted), ("kv/compaction", {"revision": revision})):
                await (await client.post(f"{etcd}/v3/{what}", data=json.dumps(body))).read()
        # Its caches look every 15 seconds.
        await asyncio.sleep(17)

    return Session(connect, compact=compact if etcd else None, patience=0.5)


class As:
    """A way into the embedded server with an Authorization header on every request."""

    def __init__(self, api: ApiServer, authorization: str) -> None:
        self._inner = MemoryTransport(api)
        self._extra = {"Authorization": authorization} if authorization else {}

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  (the protocol's own name)
    ) -> Response:
        sent = {**(headers or {}), **self._extra}
        return await self._inner.request(method, path, query=query, body=body, headers=sent, timeout=timeout)

    async def close(self) -> None:
        await self._inner.close()


class HurriedClock(SystemClock):
    """The machine's clock, twenty times as fast to sleep and measure by."""

    def monotonic(self) -> float:
        return super().monotonic() * 20

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds / 20)


def embedded(*disabled_admission: str) -> Session:
    """A session with a fresh embedded server with RBAC on; some admission plugins may be off besides the usual ones."""
    tokens = {"admin": User(ADMIN.name, ADMIN.groups)}
    api = ApiServer(
        HurriedClock(), seed=1, tokens=tokens, disabled_admission=(*DISABLED_ADMISSION, *disabled_admission)
    )

    async def compact() -> None:
        api.store.compact()

    return Session(lambda header: As(api, "Bearer admin" if header is None else header), compact=compact)
