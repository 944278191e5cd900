"""A cluster without a scheduler, as a process of its own: `python -m tests.e2e.serve_world KIND FOLDER NODES`.

RBAC is on. Kubeconfigs of the administrator and of the scheduler's account are written to FOLDER, and at the end what
that account was refused.
"""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policyengine.clock import SystemClock
from policyengine.kube.http.client import Transport
from policyengine.simulator.api_server import ApiServer, MemoryTransport
from policyengine.simulator.api_server.access.authentication import server_context
from policyengine.simulator.api_server.http import serve
from policyengine.simulator.api_server.http_requests import ADMIN as ADMINISTRATOR
from policyengine.simulator.api_server.http_requests import User
from policyengine.simulator.controllers.kubelet import Kubelet
from policyengine.simulator.real_server import connect, real_server
from policyengine.simulator.sandbox import create, kubeconfig, node, write_kubeconfig
from tests.e2e.account import ADMIN, BY_CERTIFICATE, BY_TOKEN, REFUSED, SCHEDULER, set_up
from tests.simulator.api_server.keys import Keys

ADMIN_TOKEN = "admin-token"


@dataclass(frozen=True)
class Guarded:
    """A server with RBAC on; `refused` is told as `USER VERB PATH`."""

    url: str
    token: str
    admin: Transport
    refused: Callable[[], list[str]]


@asynccontextmanager
async def embedded(folder: Path) -> AsyncIterator[Guarded]:
    keys = Keys(folder)
    keys.sign("scheduler", "".join(f"/O={group}" for group in SCHEDULER.groups) + f"/CN={SCHEDULER.name}")
    api = ApiServer(SystemClock(), tokens={ADMIN_TOKEN: User(ADMINISTRATOR.name, ADMINISTRATOR.groups)})
    tls = server_context(*keys.sign("server", "/CN=127.0.0.1"), client_ca=folder / "ca.crt")
    site = await serve(api, tls=tls)
    admin = MemoryTransport(api, user=ADMINISTRATOR)
    try:
        yield Guarded(site.url, ADMIN_TOKEN, admin, lambda: list(api.authorizer.refusals))
    finally:
        await site.stop()


@asynccontextmanager
async def envtest(folder: Path) -> AsyncIterator[Guarded]:
    log = folder / "audit.log"
    async with real_server(audit_log=log) as (url, token):
        admin = connect(url, token)
        try:
            yield Guarded(url, token, admin, lambda: refusals(log))
        finally:
            await admin.close()


def refusals(log: Path) -> list[str]:
    """What a real server's audit log says RBAC refused."""
    events = [json.loads(line) for line in log.read_text().splitlines()]
    return [
        f"{event['user']['username']} {event['verb']} {event['requestURI'].partition('?')[0]}"
        for event in events
        if event.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid"
    ]


def write_kubeconfigs(folder: Path, at: Guarded, token: str) -> None:
    write_kubeconfig(folder / ADMIN, kubeconfig(at.url, at.token))
    write_kubeconfig(folder / BY_TOKEN, kubeconfig(at.url, token))
    by_certificate: dict[str, Any] = kubeconfig(at.url)
    shown = {"client-certificate": str(folder / "scheduler.crt"), "client-key": str(folder / "scheduler.key")}
    by_certificate["users"][0]["user"] = shown
    write_kubeconfig(folder / BY_CERTIFICATE, by_certificate)


async def main(kind: str, folder: Path, nodes: int) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with (envtest if kind == "envtest" else embedded)(folder) as at:
        write_kubeconfigs(folder, at, await set_up(at.admin))
        for number in range(1, nodes + 1):
            await create(at.admin, "/api/v1/nodes", node(f"node-{number}", "a"))
        kubelet = asyncio.create_task(Kubelet(at.admin, SystemClock(), stop_after=0.0).run())
        print("the world is up", flush=True)
        await stop.wait()
        kubelet.cancel()
        ours = [line.removeprefix(f"{SCHEDULER.name} ") for line in at.refused() if line.startswith(SCHEDULER.name)]
        (folder / REFUSED).write_text("\n".join(ours))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))
