"""The real thing: etcd and kube-apiserver as child processes, from the folder `$KUBEBUILDER_ASSETS` names.

RBAC is on; the admission plugins that need a controller manager are off, as on the embedded server. Everything is on
loopback, in a folder that goes.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import socket
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from policyengine.kube.config.credentials import trusting
from policyengine.kube.http.aiohttp_transport import AiohttpTransport
from policyengine.kube.http.client import ConnectionFailed
from policyengine.simulator.api_server.handler import DISABLED_ADMISSION

ASSETS = "KUBEBUILDER_ASSETS"
START_SECONDS = 60.0
_STOP_SECONDS = 10.0


class ServerError(Exception):
    """The server cannot be started; the message says what is missing."""


class Daemon:
    """A child in a session of its own, so that Ctrl-C reaches us alone; it can be killed and started again."""

    def __init__(self, log: Path, program: Path, *flags: str) -> None:
        self._log = log
        self._command = (str(program), *flags)
        self._process: asyncio.subprocess.Process | None = None

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Start it, on the files its predecessor left."""
        with self._log.open("ab") as out:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdout=out, stderr=out, start_new_session=True
            )

    async def kill(self) -> None:
        """End it as a power cut does."""
        if self._process is not None and self.running:
            self._process.kill()
            await self._process.wait()

    async def end(self) -> None:
        """Ask it to end, and wait; kill it where it does not."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            self._process.terminate()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._process.wait()
        except TimeoutError:
            await self.kill()

    def last_line(self) -> str:
        """What it said last."""
        lines = self._log.read_text("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else "it says nothing"


@dataclass(frozen=True)
class RealServer:
    """A server that runs. Its files outlive its processes, so each can be killed and started again."""

    url: str
    token: str
    etcd: Daemon
    apiserver: Daemon

    async def ready(self) -> None:
        """Wait until it answers. Raises `ServerError`."""
        try:
            await _wait_ready(self.url, self.token, self.apiserver)
        except ServerError:
            if not self.etcd.running:
                raise ServerError(f"etcd does not start: {self.etcd.last_line()}") from None
            raise


def binaries() -> tuple[Path, Path]:
    """etcd and kube-apiserver. Raises `ServerError`."""
    folder = os.environ.get(ASSETS, "")
    if not folder:
        raise ServerError(f"--apiserver envtest needs ${ASSETS}: the folder that holds `etcd` and `kube-apiserver`")
    found = Path(folder) / "etcd", Path(folder) / "kube-apiserver"
    for path in found:
        if not os.access(path, os.X_OK):
            raise ServerError(f"`{path}` is not there or cannot be run; ${ASSETS} names its folder")
    return found


@asynccontextmanager
async def real_server(
    port: int = 0, audit_log: Path | None = None, flags: Sequence[str] = ()
) -> AsyncIterator[tuple[str, str]]:
    """Start both, give (URL, administrator's token), end both. `audit_log` is given every request when it comes and
    when it is answered, a JSON event a line. `flags`: more of kube-apiserver's.

    Raises `ServerError`.
    """
    async with real_processes(port, audit_log, flags=flags) as server:
        yield server.url, server.token


@asynccontextmanager
async def real_processes(
    port: int = 0, audit_log: Path | None = None, administrators: Sequence[str] = (), flags: Sequence[str] = ()
) -> AsyncIterator[RealServer]:
    """As `real_server`, with the processes in hand. Each of the `administrators` may do everything under its own name;
    its token is `NAME-token`.

    Raises `ServerError`.
    """
    etcd, apiserver = binaries()
    with tempfile.TemporaryDirectory(prefix="policyengine-") as folder:
        place = Path(folder)
        token = secrets.token_hex(16)
        etcd_port, secure_port = _free_ports(2)
        secure_port = port or secure_port
        _make_key(place)
        users = [(token, "admin"), *((f"{name}-token", name) for name in administrators)]
        rows = [f'{shown},{name},{name},"system:masters"\n' for shown, name in users]
        (place / "tokens.csv").write_text("".join(rows))
        flags = [*_flags(place, etcd_port, secure_port), *(_audit_flags(place, audit_log) if audit_log else ()), *flags]
        async with (
            _process(place / "etcd.log", etcd, *_etcd_flags(place, etcd_port)) as store,
            _process(place / "apiserver.log", apiserver, *flags) as process,
        ):
            server = RealServer(f"https://127.0.0.1:{secure_port}", token, store, process)
            await server.ready()
            yield server


def _etcd_flags(place: Path, port: int) -> list[str]:
    """No more than any build of etcd knows; one member never talks to a peer."""
    client = f"http://127.0.0.1:{port}"
    return [
        f"--data-dir={place / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        "--listen-peer-urls=http://127.0.0.1:0",
        "--unsafe-no-fsync",
    ]


def _flags(place: Path, etcd_port: int, secure_port: int) -> list[str]:
    return [
        f"--etcd-servers=http://127.0.0.1:{etcd_port}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={secure_port}",
        f"--cert-dir={place / 'certs'}",
        f"--token-auth-file={place / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        f"--disable-admission-plugins={','.join(DISABLED_ADMISSION)}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={place / 'sa.key'}",
        f"--service-account-signing-key-file={place / 'sa.key'}",
        "--service-cluster-ip-range=10.96.0.0/16",
    ]


def _audit_flags(place: Path, log: Path) -> list[str]:
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "rules": [{"level": "Metadata"}],
    }
    (place / "audit.yaml").write_text(json.dumps(policy))
    return [f"--audit-policy-file={place / 'audit.yaml'}", f"--audit-log-path={log}"]


def _make_key(place: Path) -> None:
    """kube-apiserver does not start without a key for service account tokens, though none is asked for here."""
    key = rsa.generate_private_key(65537, 2048)
    plain = serialization.NoEncryption()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, plain)
    (place / "sa.key").write_bytes(pem)


@asynccontextmanager
async def _process(log: Path, program: Path, *flags: str) -> AsyncIterator[Daemon]:
    """A daemon for as long as the block runs; of several the one started last is ended first."""
    daemon = Daemon(log, program, *flags)
    await daemon.start()
    try:
        yield daemon
    finally:
        await daemon.end()


async def _wait_ready(url: str, token: str, daemon: Daemon) -> None:
    transport = connect(url, token)
    deadline = asyncio.get_running_loop().time() + START_SECONDS
    try:
        while asyncio.get_running_loop().time() < deadline and daemon.running:
            with suppress(ConnectionFailed):
                response = await transport.request("GET", "/readyz", timeout=5.0)
                await response.read()
                if response.status == 200:
                    return
            await asyncio.sleep(0.2)
    finally:
        await transport.close()
    raise ServerError(f"kube-apiserver does not start: {daemon.last_line()}")


def connect(url: str, token: str) -> AiohttpTransport:
    """A way to a server for the owner of a token, or for nobody; its certificate, which it made itself, is taken as it
    is: it is our child, on loopback."""

    async def authorize(fresh: bool) -> dict[str, str]:
        return {"Authorization": f"Bearer {token}"} if token else {}

    return AiohttpTransport(url, ssl_context=trusting() if url.startswith("https") else None, authorize=authorize)


def _free_ports(count: int) -> list[int]:
    """Ports that are free now, no two the same."""
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
