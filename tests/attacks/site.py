"""Our processes on loopback, as they are deployed: the scheduler, which asks the extender about each pod, and the
webhook, on an API server. Each serves HTTPS with one certificate, whose files may be replaced.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp.test_utils import unused_port

from policyengine.clock import SystemClock
from policyengine.kube.config.credentials import trusting
from policyengine.simulator.controllers.controller_client import Caller
from policyengine.simulator.real_server import connect
from policyengine.simulator.sandbox import kubeconfig, write_kubeconfig
from tests.faults.objects import NODES, node
from tests.faults.process_cluster import ADMIN, PATIENT, POLICY, REPLICAS, ROOT, server
from tests.simulator.api_server.keys import Keys

_UNVERIFIED = trusting()
COUNT = 20
"""Nodes."""
EXTENDER_POLICY = 'policy "calm" { base none filter "any" { require node.name != "" } score "same" weight 1 = 50 }'
MANIFESTS = {
    "scheduler": "deploy/base/deployment.yaml",
    "webhook": "deploy/webhook/webhook.yaml",
    "extender": "deploy/overlays/as-extender/extender.yaml",
}
"""What we run, and where the limit of its memory stands."""
PROBES = {"scheduler": "/livez", "webhook": "/healthz", "extender": "/healthz"}


@dataclass
class Service:
    """One of our processes. It is started again when it ends, as by the kubelet."""

    name: str
    port: int
    command: tuple[str, ...]
    log: Path
    restarts: int = 0
    kills: int = 0
    """Of the restarts those that were ours."""
    pid: int = 0
    is_up: bool = False
    """Whether it has answered a probe since it was started."""
    _process: asyncio.subprocess.Process | None = field(default=None, repr=False)

    @property
    def limit(self) -> int:
        """MiB that its manifest gives it."""
        found = re.search(r"limits: \{memory: (\d+)Mi\}", (ROOT / MANIFESTS[self.name]).read_text())
        assert found is not None
        return int(found[1])

    async def run(self) -> None:
        """Keep it running, until cancelled."""
        while True:
            with self.log.open("ab") as out:
                self._process = await asyncio.create_subprocess_exec(
                    sys.executable, "-m", "policyengine.commands.main", *self.command, cwd=ROOT, stdout=out, stderr=out
                )
            self.pid, self.is_up = self._process.pid, False
            try:
                await self._process.wait()
                self.restarts += 1
            finally:
                if self._process.returncode is None:
                    self._process.kill()
                    await self._process.wait()

    def kill(self) -> None:
        """End it as a power cut does."""
        assert self._process is not None
        if self._process.returncode is None:
            self._process.kill()
            self.kills += 1
            self.is_up = False

    async def healthy(self, patience: float = PATIENT) -> bool:
        """Whether its probe is answered with 200 in so many seconds."""
        head = f"GET {PROBES[self.name]} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
            async with asyncio.timeout(patience):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=_UNVERIFIED)
                try:
                    writer.write(head.encode())
                    good = b" 200 " in await reader.readline()
                    self.is_up = self.is_up or good
                    return good
                finally:
                    writer.transport.abort()
        return False

    def memory(self) -> int:
        """MiB that it takes together with its children: proportional shares of what they share."""
        return sum(_share(pid) for pid in _family(self.pid)) // 1024


def _family(pid: int) -> Iterator[int]:
    yield pid
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in (thread / "children").read_text().split():
                yield from _family(int(child))


def _share(pid: int) -> int:
    """KiB."""
    with suppress(OSError):
        found = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
        return int(found[1]) if found else 0
    return 0


@dataclass(frozen=True)
class Site:
    """Where everything is."""

    url: str
    """The API server's."""
    folder: Path
    """Of the certificate: `tls.crt`, `tls.key`, and others to replace them with, `one.crt` and so on."""
    services: dict[str, Service]
    caller: Caller

    @property
    def map(self) -> str:
        """What an attacker is told, as JSON."""
        ports = {name: service.port for name, service in self.services.items()}
        return json.dumps({"url": self.url, "token": f"{ADMIN}-token", "folder": str(self.folder), "ports": ports})


@asynccontextmanager
async def site(kind: str, folder: Path) -> AsyncIterator[Site]:
    """Everything up and healthy, for as long as the block runs. `kind`: as of `tests.faults.process_cluster`."""
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(server(kind, folder))
        transport = connect(running.url, f"{ADMIN}-token")
        stack.push_async_callback(transport.close)
        caller = Caller(transport, SystemClock(), "attacks")
        for number in range(COUNT):
            one = node(f"n{number}", "1000")
            one["status"]["allocatable"]["pods"] = one["status"]["capacity"]["pods"] = "10000"
            await caller.call("POST", NODES, one)
        keys = Keys(folder)
        for name in ("one", "two"):
            keys.sign(name, "/CN=127.0.0.1")
        for suffix in ("crt", "key"):
            shutil.copy(folder / f"one.{suffix}", folder / f"tls.{suffix}")
        services = {one.name: one for one in _services(running.url, folder)}
        for service in services.values():
            task = asyncio.create_task(service.run())
            stack.push_async_callback(_ended, task)
        for service in services.values():
            await _up(service)
        yield Site(running.url, folder, services, caller)


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _up(service: Service) -> None:
    async with asyncio.timeout(PATIENT):
        while not await service.healthy(2):
            assert not service.restarts, service.log.read_text()
            await asyncio.sleep(0.1)


def _services(url: str, folder: Path) -> Iterator[Service]:
    ports = dict(zip(MANIFESTS, (unused_port() for _ in MANIFESTS), strict=True))
    at = folder / "kubeconfig"
    scheme, port = urlsplit(url).scheme, urlsplit(url).port
    write_kubeconfig(at, kubeconfig(f"{scheme}://127.0.0.1:{port}", f"{REPLICAS[0]}-token"))
    main, given = folder / "main.policy", folder / "configuration.yaml"
    main.write_text(POLICY)
    (folder / "calm.policy").write_text(EXTENDER_POLICY)
    asked = {
        "urlPrefix": f"https://127.0.0.1:{ports['extender']}/calm",
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "weight": 1,
        "nodeCacheCapable": True,
        "enableHTTPS": True,
        "tlsConfig": {"insecure": True},
        "ignorable": True,
        "httpTimeout": "1s",
    }
    head = {"apiVersion": "policyengine.io/v1", "kind": "SchedulerConfiguration"}
    given.write_text(json.dumps({**head, "extenders": [asked]}))
    tls = ("--tls-cert-file", str(folder / "tls.crt"), "--tls-private-key-file", str(folder / "tls.key"))
    of = ("--kubeconfig", str(at))
    commands = {
        "scheduler": ("run", "--config", str(given), *of, "--policy", str(main)),
        "webhook": ("webhook",),
        "extender": ("extender", *of, "--policy", str(folder / "calm.policy")),
    }
    for name, command in commands.items():
        listen = ("--listen", f"127.0.0.1:{ports[name]}")
        yield Service(name, ports[name], (*command, *listen, *tls), folder / f"{name}.log")
