"""A cluster of processes: an API server that can be killed (the embedded one, or etcd and kube-apiserver), and replicas
of the scheduler, each behind a wire of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp.test_utils import unused_port

from policyengine.clock import SystemClock
from policyengine.kube.http.client import ConnectionFailed
from policyengine.kube.watching.reflector import STALL_AFTER
from policyengine.recording.directory import files
from policyengine.recording.replay import Replay
from policyengine.recording.segment import UnusableRecording
from policyengine.simulator.controllers.controller_client import MERGE, Caller
from policyengine.simulator.real_server import ASSETS, Daemon, RealServer, connect, real_processes
from policyengine.simulator.sandbox import kubeconfig, write_kubeconfig
from tests.faults.objects import MAPS, NODES, PODS, node, pod
from tests.faults.process_evidence import Bystander
from tests.faults.process_proxy import Proxy, proxy

ROOT = Path(__file__).resolve().parents[2]
ADMIN = "admin"
REPLICAS = ("scheduler-a", "scheduler-b", "scheduler-c")
LEASE, RENEW, RETRY = 3.0, 2.0, 0.5
SHORT = (
    *("--leader-elect-lease-duration", f"{LEASE:g}s"),
    *("--leader-elect-renew-deadline", f"{RENEW:g}s"),
    *("--leader-elect-retry-period", f"{RETRY:g}s"),
)
SERVES = "ours"
POLICY = f'policy "main" {{ scheduler "{SERVES}" }}'
PATIENT = 60.0
"""Seconds that anything may take on a machine with much else to do; none of them is waited for in vain."""

Json = dict[str, Any]


class Embedded:
    """The embedded server over its journal; `binders`: by its own record, pod -> who bound it."""

    def __init__(self, folder: Path) -> None:
        self._port = unused_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._journal = folder / "journal"
        names = (ADMIN, *REPLICAS)
        self._copy = b""
        self._bound_before: dict[str, str] = {}
        """By bindings that the server has forgotten."""
        command = ("-m", "tests.faults.process_server", str(self._port), str(self._journal), *names)
        self._daemon = Daemon(folder / "server.log", Path(sys.executable), *command)

    async def kill(self) -> None:
        await self._daemon.kill()

    async def start(self) -> None:
        await self._daemon.start()
        while True:
            with suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", self._port)
                writer.close()
                return
            assert self._daemon.running, self._daemon.last_line()
            await asyncio.sleep(0.02)

    async def copy(self) -> None:
        """Take one of all it holds."""
        self._copy = self._journal.read_bytes()

    async def go_back(self) -> None:
        """Put the copy in its place; it does not run."""
        self._bound_before = self.binders()
        self._journal.write_bytes(self._copy)

    def binders(self) -> dict[str, str]:
        lines = map(json.loads, self._journal.read_text().splitlines())
        binders = {one["object"]["metadata"]["name"]: one["user"] for one in lines if one["subresource"] == "binding"}
        return self._bound_before | binders


class Real:
    """etcd and kube-apiserver; who bound what stands in its audit log, be it that it was killed before it answered."""

    def __init__(self, server: RealServer, audit_log: Path) -> None:
        self.url = server.url
        self.etcd = server.etcd
        self._server = server
        self._audit_log = audit_log
        flag = next(one for one in server.etcd._command if one.startswith("--data-dir="))
        self._files = Path(flag.partition("=")[2])
        self._copy = self._files.with_name("etcd-copy")

    async def kill(self) -> None:
        await self._server.apiserver.kill()

    async def start(self) -> None:
        await self._server.apiserver.start()
        await self._server.ready()

    async def copy(self) -> None:
        """Take one of etcd's files, which stands still for that."""
        await self.etcd.kill()
        shutil.rmtree(self._copy, ignore_errors=True)
        shutil.copytree(self._files, self._copy)
        await self.etcd.start()
        await self._server.ready()

    async def go_back(self) -> None:
        """Put the copy in the place of etcd's files; kube-apiserver does not run."""
        await self.etcd.kill()
        shutil.rmtree(self._files)
        shutil.copytree(self._copy, self._files)
        await self.etcd.start()

    def binders(self) -> dict[str, str]:
        requests: dict[str, Json] = {}
        for line in self._audit_log.read_text().splitlines():
            event = json.loads(line)
            if event.get("objectRef", {}).get("subresource") == "binding":
                requests[event["auditID"]] = event  # the last there is: of one cut short, that it came
        answered: dict[str, str] = {}
        cut_short: dict[str, str] = {}
        refused: dict[str, str] = {}
        for event in requests.values():
            code = event.get("responseStatus", {}).get("code", 0)
            found = answered if code == 201 else refused if 400 <= code < 500 else cut_short
            found[event["objectRef"]["name"]] = event["user"]["username"]
        # Where etcd ends before it answers, kube-apiserver asks again, and finds a conflict with what it wrote itself.
        return refused | cut_short | answered


@asynccontextmanager
async def server(kind: str, folder: Path) -> AsyncIterator[Embedded | Real]:
    """An API server of the kind; a test without the programs for it is skipped."""
    if kind == "embedded":
        embedded = Embedded(folder)
        await embedded.start()
        try:
            yield embedded
        finally:
            await embedded.kill()
        return
    if not os.environ.get(ASSETS):
        pytest.skip(f"${ASSETS} names no real API server")
    audit_log = folder / "audit.log"
    async with real_processes(audit_log=audit_log, administrators=(ADMIN, *REPLICAS)) as running:
        yield Real(running, audit_log)


class Replica:
    """One `policyengine run` as a process."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, wire: Proxy, recording: Path) -> None:
        self.name = name
        self.wire = wire
        self.recording = recording
        """What it is told and does."""
        self.identity = ""
        """How it calls itself on the lease."""
        self.said: list[str] = []
        self._process = process
        self._spoke = asyncio.Event()
        self._listening = asyncio.ensure_future(self._listen())
        self._listening.add_done_callback(lambda listened: self._spoke.set())

    async def _listen(self) -> None:
        assert self._process.stderr is not None
        async for line in self._process.stderr:
            text = line.decode()
            self.said.append(text)
            if "waiting for lease" in text:
                self.identity = text.rpartition("as `")[2].partition("`")[0]
            self._spoke.set()

    async def says(self, text: str) -> None:
        """Wait until its log has the text. Fails with what it said where it ends first, or says it not."""
        try:
            async with asyncio.timeout(PATIENT):
                while not any(text in line for line in self.said):
                    assert not self._listening.done(), self.timeline()
                    self._spoke.clear()
                    await self._spoke.wait()
        except TimeoutError:
            raise AssertionError(f"`{text}` is not said within {PATIENT:g} s: {self.timeline()}") from None

    @property
    def runs(self) -> bool:
        return self._process.returncode is None

    def signal(self, number: signal.Signals) -> None:
        code = self._process.returncode
        assert code is None, f"it has ended of itself, with code {code}: {self.timeline()}"
        self._process.send_signal(number)

    async def ended(self) -> int:
        """Its exit code."""
        async with asyncio.timeout(PATIENT):
            return await self._process.wait()

    async def end(self) -> None:
        """Kill it, standing still or not."""
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        await self._listening

    def timeline(self) -> str:
        """What it said last."""
        return f"{self.name}, recorded in {self.recording}:\n{''.join(self.said[-15:])}"

    def replay(self) -> None:
        """What it decided is decided again by what it was told, up to the last frame that it wrote whole."""
        if not files(self.recording):
            return  # it was killed before the first frame
        replay = Replay(self.recording)
        try:
            replay.play()
        except UnusableRecording as error:
            assert "nothing in it was written whole" in str(error), self.recording
        assert replay.difference is None and replay.cut_only, (self.recording, replay.difference, replay.notes)


class Cluster:
    """A server, a bystander, replicas."""

    def __init__(self, running: Embedded | Real, caller: Caller, bystander: Bystander, stack: AsyncExitStack) -> None:
        self.server = running
        self.bystander = bystander
        self.replicas: list[Replica] = []
        self._caller = caller
        self._stack = stack

    async def start(self, name: str, folder: Path, *flags: str, patience: float = STALL_AFTER) -> Replica:
        """A replica that leads, or stands by. `patience`: seconds for which it lets a watch be silent."""
        port = urlsplit(self.server.url).port
        assert port is not None
        wire = await self._stack.enter_async_context(proxy(port))
        at, policy = folder / f"{name}.kubeconfig", folder / "main.policy"
        policy.write_text(POLICY)
        scheme = urlsplit(self.server.url).scheme
        write_kubeconfig(at, kubeconfig(f"{scheme}://127.0.0.1:{wire.port}", f"{name}-token"))
        command = ("-m", "tests.faults.process_scheduler", str(patience), "run", "--kubeconfig", str(at))
        recording = folder / f"{name}-{len(self.replicas)}"
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *command,
            *("--policy", str(policy), "--listen", "", "--request-timeout", "2s", "--record", str(recording), *flags),
            cwd=ROOT,
            stderr=asyncio.subprocess.PIPE,
        )
        replica = Replica(name, process, wire, recording)
        self._stack.push_async_callback(replica.end)
        self.replicas.append(replica)
        runs = any(one.runs for one in self.replicas[:-1])
        await replica.says("standing by: " if runs else "leading: ")
        return replica

    # ---- what users do

    async def call(self, method: str, path: str, body: object = None, content: str = "application/json") -> Json:
        """A request of the administrator, again and again where the server is away."""
        deadline = time.monotonic() + PATIENT
        while True:
            try:
                return await self._caller.call(method, path, body, content)
            except ConnectionFailed:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.05)

    async def nodes(self, count: int, cpu: str, first: int = 0) -> None:
        for number in range(first, first + count):
            await self.call("POST", NODES, node(f"n{number}", cpu))

    async def pods(self, count: int, prefix: str = "p") -> None:
        """All at once."""
        made = [pod(f"{prefix}{number}", "1", scheduler=SERVES) for number in range(count)]
        await asyncio.gather(*(self.call("POST", PODS, one) for one in made))

    async def config_map(self, name: str, text: str, method: str = "POST") -> None:
        labels = {"policyengine.io/policy": "true"}
        data = {"data": {"main.policy": text}}
        if method == "PATCH":
            await self.call("PATCH", f"{MAPS}/{name}", data, MERGE)
            return
        item = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "labels": labels}}
        await self.call("POST", MAPS, item | data)

    async def status(self, name: str, state: str) -> Json:
        """What a ConfigMap's status says once it is in the state."""
        deadline = time.monotonic() + PATIENT
        while True:
            meta = (await self.call("GET", f"{MAPS}/{name}"))["metadata"]
            status: Json = json.loads(meta.get("annotations", {}).get("policyengine.io/status", "{}"))
            if status.get("state") == state:
                return status
            assert time.monotonic() < deadline, status
            await asyncio.sleep(0.05)

    # ---- what came of it

    async def bound(self, count: int) -> float:
        """Wait until so many pods are bound; how long that took."""
        return await self._until(lambda: len(self.bystander.bound) >= count, f"{count} pods bound")

    async def _until(self, holds: Callable[[], bool], what: str) -> float:
        try:
            return await self.bystander.until(holds, PATIENT, what)
        except AssertionError as error:
            raise AssertionError("\n".join([str(error), *(one.timeline() for one in self.replicas)])) from None

    async def settled(self, bound: int) -> None:
        """So many pods are bound, and all others say why they are not."""
        seen = self.bystander

        def holds() -> bool:
            return len(seen.bound) >= bound and all(name in seen.bound or seen.told(name) for name in seen.pods)

        await self._until(holds, f"{bound} pods bound, and a reason for every other")
        await asyncio.sleep(0.3)
        assert len(seen.bound) == bound

    def leader_is(self, replica: Replica) -> bool:
        return self.bystander.lease.get("holderIdentity") == replica.identity != ""

    def bound_by(self) -> Mapping[str, list[str]]:
        """Replica -> the pods it bound, in the order of the server's versions."""
        binders = self.server.binders()
        found: dict[str, list[str]] = {name: [] for name in REPLICAS}
        for write in self.bystander.bindings():
            found[binders[write.name]].append(write.name)
        return found

    def evaluate(self) -> None:
        """No objection of the auditor."""
        identities = {replica.identity: replica.name for replica in self.replicas}
        objections = self.bystander.objections(self.server.binders(), identities, SERVES)
        assert not objections, "\n".join([*objections, *(one.timeline() for one in self.replicas)])


@asynccontextmanager
async def cluster(kind: str, folder: Path) -> AsyncIterator[Cluster]:
    """A cluster without nodes, for as long as the block runs; at the end the auditor has no objection, and every
    replica's recording plays to what it decided."""
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(server(kind, folder))
        transport = connect(running.url, f"{ADMIN}-token")
        stack.push_async_callback(transport.close)
        bystander = Bystander(transport)
        watching = asyncio.ensure_future(bystander.watch())
        made = Cluster(running, Caller(transport, SystemClock(), "tests"), bystander, stack)
        try:
            yield made
            made.evaluate()
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
    for replica in made.replicas:
        replica.replay()
