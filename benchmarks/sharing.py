"""Two schedulers on one pool, on a real API server: for how long is a node overfull?

    python -m benchmarks.sharing kube-scheduler --runs 100
    python -m benchmarks.sharing policyengine --runs 100 --no-verify

`policyengine run` is one of the two, with `--verify-bindings` unless told otherwise; the other is named. In each run
both stand still (SIGSTOP) while pods are made for them, and go on in the same moment: both decide about a pool that is
nearly full before they hear of each other. Stand-ins make a pod anew when it is evicted, as its controller would, and
end at once what is being deleted, as its kubelet would; no pod starts. A node is overfull while two pods exist there.
Needs etcd, kube-apiserver and kube-scheduler in $KUBEBUILDER_ASSETS.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from benchmarks.options import KUBE_SCHEDULER, KUBE_SCHEDULER_FLAGS
from benchmarks.processes import Child, ChildFailed, program, with_byte_code
from policyengine.clock import SystemClock
from policyengine.kube.http.client import ApiError, ConnectionFailed
from policyengine.simulator.controllers.controller_client import Caller
from policyengine.simulator.real_server import ASSETS, connect, real_processes
from policyengine.simulator.sandbox import kubeconfig, write_kubeconfig

NODES, PODS = 24, 16
"""Nodes that hold one pod each, and pods of each scheduler."""
PODS_PATH, NODES_PATH = "/api/v1/namespaces/default/pods", "/api/v1/nodes"
LONG = 2.0
"""Seconds after which an overfull node counts as one that stays so."""
PATIENCE, QUIET = 60.0, 1.0
AT_ONCE = 16
NOW = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
Json = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """What came of one run."""

    overfull: list[float]
    """Seconds, for each time that a node was."""
    evicted: int
    bound: int

    def __str__(self) -> str:
        long = sum(one > LONG for one in self.overfull)
        most = max(self.overfull, default=0.0)
        told = f"{len(self.overfull)} nodes overfull, at most {most:.2f} s, {long} of them over {LONG:g} s"
        return f"{told}; {self.evicted} evicted; {self.bound} of {NODES} bound"


class Pool:
    """The pods and nodes as a watch shows them, and what stand-ins do about them."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._work: set[asyncio.Task[None]] = set()
        self.pods: dict[str, Json] = {}
        self.on: defaultdict[str, set[str]] = defaultdict(set)
        self.since: dict[str, float] = {}
        """Node -> since when it is overfull."""
        self.overfull: list[float] = []
        """Seconds, of each time that a node was."""
        self.evicted = 0
        self.changed = time.monotonic()
        self.is_open = False
        """Whether what is evicted is made anew."""

    async def follow(self) -> None:
        """Watch until cancelled."""
        async for what, pod in self._caller.follow(PODS_PATH):
            if what not in ("LIST", "LISTED"):
                self.see(what, pod)

    def see(self, what: str, pod: Json) -> None:
        """The watch shows a pod."""
        name, node = pod["metadata"]["name"], pod["spec"].get("nodeName", "")
        before = self.pods.get(name)
        is_going = what == "DELETED" or "deletionTimestamp" in pod["metadata"]
        if what == "DELETED":
            self.pods.pop(name, None)
            self.on[node].discard(name)
        else:
            self.pods[name] = pod
            if node:
                self.on[node].add(name)
        if before is None or is_going or before["spec"].get("nodeName", "") != node:
            self.changed = time.monotonic()
        self._measure(node)
        if is_going and self.is_open and before is not None and "deletionTimestamp" not in before["metadata"]:
            self.evicted += 1
            self._send(self.make([(f"{name}x", pod["spec"]["schedulerName"])]))
        if is_going and what != "DELETED":
            self._send(self.each([("DELETE", f"{PODS_PATH}/{name}", NOW)]))

    def _measure(self, node: str) -> None:
        if node and len(self.on[node]) > 1:
            self.since.setdefault(node, time.monotonic())
        elif (since := self.since.pop(node, None)) is not None:
            self.overfull.append(time.monotonic() - since)

    def _send(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def make(self, named: Iterable[tuple[str, str]]) -> None:
        """Make pods: (name, scheduler name)."""
        await self.each([("POST", PODS_PATH, _pod(name, scheduler)) for name, scheduler in named])

    async def each(self, requests: Iterable[tuple[str, str, Json]]) -> None:
        """Make requests, some at a time; what is refused is passed over."""

        async def one(method: str, path: str, body: Json) -> None:
            async with self._turns:
                with suppress(ApiError, ConnectionFailed):
                    await self._caller.call(method, path, body)

        await asyncio.gather(*(one(*request) for request in requests))

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until it holds, or for as long as patience lasts."""
        deadline = time.monotonic() + PATIENCE
        while not holds() and time.monotonic() < deadline:  # noqa: ASYNC110  (what is awaited is time too)
            await asyncio.sleep(0.05)

    @property
    def bound(self) -> int:
        """Pods with a node."""
        return sum(bool(pod["spec"].get("nodeName")) for pod in self.pods.values())

    async def run(self, number: int, schedulers: tuple[str, str], children: list[Child]) -> Run:
        """One run, with both schedulers let go at once."""
        self.overfull, self.evicted, self.is_open = [], 0, True
        for child in children:
            child.signal(signal.SIGSTOP)
        await self.make([(f"r{number}-{at}-{i}", one) for i in range(PODS) for at, one in enumerate(schedulers)])
        await asyncio.sleep(0.2)
        for child in children:
            child.signal(signal.SIGCONT)
        await self.until(lambda: not self.since and self.bound >= NODES and self._is_quiet())
        still = [time.monotonic() - since for since in self.since.values()]
        found = Run([*self.overfull, *still], self.evicted, self.bound)
        await self.empty()
        return found

    async def begin(self, schedulers: tuple[str, str]) -> None:
        """Make the nodes, and wait until both schedulers bind."""
        await self.each([("POST", NODES_PATH, _node(f"n{i}")) for i in range(NODES)])
        await self.make([(f"first-{at}", one) for at, one in enumerate(schedulers)])
        await self.until(lambda: self.bound == len(schedulers))
        await self.empty()

    async def empty(self) -> None:
        """Delete every pod."""
        self.is_open = False
        while self.pods:
            await self.each([("DELETE", f"{PODS_PATH}/{name}", NOW) for name in list(self.pods)])
            await asyncio.sleep(0.2)
        self.since.clear()

    def _is_quiet(self) -> bool:
        return time.monotonic() - self.changed > QUIET


def _pod(name: str, scheduler: str) -> Json:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "set", "uid": "set", "controller": True}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    tolerations = [{"operator": "Exists"}]
    spec = {"schedulerName": scheduler, "containers": [container], "tolerations": tolerations}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "ownerReferences": [owner]}, "spec": spec}


def _node(name: str) -> Json:
    size = {"cpu": "1", "memory": "8Gi", "pods": "110"}
    ready = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
    status = {"capacity": size, "allocatable": size, "conditions": ready}
    return {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name}, "status": status}


async def measure(other: str, runs: int, verifies: bool) -> list[Run]:
    """The runs, on one API server and with the same two processes."""
    names = ("ours", "default-scheduler" if other == KUBE_SCHEDULER else "theirs")
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="policyengine-")))
        server = await stack.enter_async_context(real_processes(administrators=("bench", *names)))
        transport = connect(server.url, "bench-token")
        stack.push_async_callback(transport.close)
        pool = Pool(Caller(transport, SystemClock(), "bench"))
        following = asyncio.ensure_future(pool.follow())
        stack.callback(following.cancel)
        children = []
        for name in names:
            at = folder / name
            at.mkdir()
            write_kubeconfig(at / "kubeconfig", kubeconfig(server.url, f"{name}-token"))
            command = _command(name, at, verifies)
            children.append(await stack.enter_async_context(program(command, at, environment=with_byte_code())))
        await pool.begin(names)
        found = []
        for number in range(runs):
            found.append(await pool.run(number, names, children))
            for child in children:
                if not child.running:
                    raise ChildFailed(child.last_words())
            print(f"run {number + 1}: {found[-1]}", flush=True)
        return found


def _command(name: str, at: Path, verifies: bool) -> list[str]:
    if name == "default-scheduler":
        words = KUBE_SCHEDULER_FLAGS.replace("{kubeconfig}", str(at / "kubeconfig")).split()
        return [str(Path(os.environ[ASSETS]) / KUBE_SCHEDULER), *words]
    policy = at / f"{name}.policy"
    policy.write_text(f'policy "{name}" {{ scheduler "{name}" }}\n')
    words = ["run", "--kubeconfig", str(at / "kubeconfig"), "--policy", str(policy), "--listen", ""]
    words += ["--no-leader-elect", *(["--verify-bindings"] if verifies else [])]
    return [sys.executable, "-m", "policyengine.commands.main", *words]


@click.command(help=__doc__)
@click.argument("other", type=click.Choice((KUBE_SCHEDULER, "policyengine")))
@click.option("--runs", default=100, show_default=True)
@click.option("--verify/--no-verify", default=True, help="Whether ours verifies its bindings.")
def main(other: str, runs: int, verify: bool) -> None:
    """Measure, and tell."""
    found = asyncio.run(measure(other, runs, verify))
    times = sorted(one for run in found for one in run.overfull)
    middle, last = (times[len(times) // 2], times[-1]) if times else (0.0, 0.0)
    long = sum(any(one > LONG for one in run.overfull) for run in found)
    print(f"{len(found)} runs: {len(times)} overfull nodes, median {middle:.3f} s, at most {last:.3f} s")
    print(f"runs with a node overfull for more than {LONG:g} s: {long}; evicted: {sum(run.evicted for run in found)}")


if __name__ == "__main__":
    main()
