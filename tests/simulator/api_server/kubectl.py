"""A real kubectl against the embedded server over HTTP, with a kubelet and controllers at work."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from policyengine.clock import SystemClock
from policyengine.simulator.api_server import ApiServer, MemoryTransport
from policyengine.simulator.api_server.access.authentication import server_context
from policyengine.simulator.api_server.http import serve
from policyengine.simulator.api_server.http_requests import ADMIN, User
from policyengine.simulator.controllers.kubelet import Kubelet
from policyengine.simulator.controllers.manager import ControllerManager
from tests.simulator.api_server.keys import Keys

KUBECTL = shutil.which("kubectl")
needs_kubectl = pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl on the PATH")
PATIENCE = 60

CONFIG = """apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "%s", insecure-skip-tls-verify: %s}}]
users: [{name: u, user: {token: admin}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
"""


class Kubectl:
    """A kubectl with a home and a kubeconfig of its own."""

    def __init__(self, home: Path, url: str) -> None:
        self.home = home
        (home / "config").write_text(CONFIG % (url, "true" if url.startswith("https") else "false"))
        self.environment = {"HOME": str(home), "KUBECONFIG": str(home / "config"), "PATH": "/usr/bin:/bin"}

    async def start(self, *words: str) -> asyncio.subprocess.Process:
        assert KUBECTL is not None
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            KUBECTL, *words, stdin=pipe, stdout=pipe, stderr=pipe, env=self.environment
        )

    async def __call__(self, *words: str, stdin: str = "", fails: bool = False) -> str:
        process = await self.start(*words)
        out, err = await asyncio.wait_for(process.communicate(stdin.encode()), PATIENCE)
        assert bool(process.returncode) is fails, (words, out.decode(), err.decode())
        return out.decode() + (err.decode() if fails else "")


@asynccontextmanager
async def cluster(home: Path, tokens: Mapping[str, User] | None = None) -> AsyncIterator[tuple[ApiServer, Kubectl]]:
    """A server and an administrator's kubectl; with `tokens` RBAC is on (`admin` is always one of them)."""
    known = None if tokens is None else {"admin": User(ADMIN.name, ADMIN.groups), **tokens}
    api = ApiServer(SystemClock(), tokens=known)
    # kubectl sends no credentials without TLS.
    tls = None if known is None else server_context(*Keys(home).sign("server", "/CN=127.0.0.1"))
    site = await serve(api, tls=tls)
    kubelet = Kubelet(MemoryTransport(api, user=ADMIN), api.clock)
    manager = ControllerManager(MemoryTransport(api, user=ADMIN), api.clock)
    tasks = [asyncio.create_task(kubelet.run()), asyncio.create_task(manager.run())]
    try:
        yield api, Kubectl(home, site.url)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await site.stop()
