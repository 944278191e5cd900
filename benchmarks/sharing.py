"""Several schedulers on one cluster, each with a policy, a lease and a share of the pods, measured together.

Each is a process that leads by its own lease and serves one scheduler name. None knows of the others but by what the
API server tells, so what they did is audited from outside: no pod on two nodes, no node with more than it has. Two that
place on one node at the same moment can give it too much, as any two schedulers can, until the kubelet refuses a pod;
so they are also measured *apart*, each kept to zones of its own by a filter of its policy, where nothing can exceed.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from benchmarks.cluster import Cluster, Watcher, call
from benchmarks.end_to_end import EVENTS_PATIENCE, PATIENCE, embedded_server
from benchmarks.figures import rate
from benchmarks.overcommit import overcommitted
from benchmarks.processes import Child, ChildFailed, Usage, module
from benchmarks.workloads import ZONE, Workload
from policyengine.kube.config import credentials
from policyengine.kube.http.client import ApiError, Client
from policyengine.kube.http.transport import Transport

NAME: Final = "share"
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
CHECKS: Final = 8
"""Decisions a scheduler makes again by a fresh evaluator."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one scheduler did."""

    scheduler: str
    holder: str
    """Who held its lease; one identity a process."""
    pods: int
    bound: int
    binds_per_second: float
    cpu_seconds: float
    peak_mb: float
    checks: int


@dataclass(frozen=True, slots=True)
class SharedRun:
    """All of them in one run."""

    schedulers: int
    apart: bool
    """Whether each keeps to zones of its own."""
    bound: int
    binds_per_second: float
    """First bind to last, whoever made them."""
    seconds: float
    shares: tuple[Share, ...]
    moved: int
    """Pods seen on a second node."""
    overcommitted: tuple[str, ...]
    """Nodes with more than they have, and of what."""
    events: int


@dataclass(frozen=True, slots=True)
class SharingFigures:
    """Runs of one scheduler and of several, in turn."""

    workload: str
    nodes: int
    pods: int
    server: str
    schedulers: int
    alone: tuple[SharedRun, ...]
    together: tuple[SharedRun, ...]
    apart: tuple[SharedRun, ...]
    """Empty where the workload has fewer zones than there are schedulers."""

    @property
    def ratios(self) -> dict[str, float]:
        """What to compare between runs; more is worse."""
        alone = _median(self.alone)
        found = {"time / one scheduler": self.together, "time apart / one scheduler": self.apart}
        return {name: alone / _median(runs) for name, runs in found.items() if runs and _median(runs)}


def _median(runs: Sequence[SharedRun]) -> float:
    return statistics.median(run.binds_per_second for run in runs)


Report = Callable[[str], None]


async def sharing(workload: Workload, schedulers: int, path: Path | None, times: int, report: Report) -> SharingFigures:
    """`times` runs with one scheduler, several, and several apart, in turn; embedded servers where there is no `path`.

    Raises `cluster.NotOurs`, `ChildFailed`.
    """
    zones = list(dict.fromkeys(node["metadata"]["labels"][ZONE] for node in workload.node_objects()))
    found: dict[tuple[int, bool], list[SharedRun]] = {(1, False): [], (schedulers, False): []}
    if len(zones) >= schedulers:
        found[schedulers, True] = []
    server = ""
    for _ in range(times):
        for (count, apart), runs in found.items():
            async with _place(path) as kubeconfig:
                run, server = await _run(replace(workload, schedulers=count), zones if apart else (), kubeconfig)
            runs.append(run)
            many = f"{count} scheduler{'s' * (count > 1)}{' apart' * apart}"
            report(f"{many}: {run.bound:,} of {workload.pods:,} bound, {run.binds_per_second:,.0f} a second")
    sizes = workload.name, workload.nodes, workload.pods, server if path is not None else "embedded", schedulers
    alone, together = (tuple(found[count, False]) for count in (1, schedulers))
    return SharingFigures(*sizes, alone, together, tuple(found.get((schedulers, True), ())))


@asynccontextmanager
async def _place(path: Path | None) -> AsyncIterator[Path]:
    if path is not None:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="policyengine-") as folder:
        async with embedded_server(Path(folder)) as kubeconfig:
            yield kubeconfig


async def _run(workload: Workload, zones: Sequence[str], path: Path) -> tuple[SharedRun, str]:
    """One run, and the server; with `zones`, each scheduler keeps to some of them."""
    transport = credentials.load(path).connect()
    cluster, watcher = Cluster(transport), Watcher(Client(transport))
    names = list(dict.fromkeys(workload.scheduler_of(i, NAME) for i in range(workload.schedulers)))
    watching = None
    try:
        server = f"kube-apiserver {await cluster.version()}"
        await cluster.empty()
        await cluster.fill(workload, NAME)
        watching = asyncio.create_task(watcher.run())
        await watcher.synced.wait()
        policies = {name: _policy(name, zones[i :: len(names)]) for i, name in enumerate(names)}
        async with _schedulers(policies, workload, path) as children:
            await _all_bound(watcher, workload.pods, children)
            events = await _events(cluster, len(watcher.times), children)
            holders = await _holders(transport, names)
            usages = {name: child.usage() for name, child in children.items()}
            reports = {name: await child.finish() for name, child in children.items()}
        placed = await cluster.placed()
        shares = tuple(_share(name, holders[name], workload, watcher, usages[name], reports[name]) for name in names)
        seconds = watcher.times[-1] - watcher.times[0] if watcher.times else 0.0
        over = tuple(overcommitted(workload, placed))
        run = SharedRun(
            workload.schedulers,
            bool(zones),
            len(placed),
            rate(watcher.times),
            seconds,
            shares,
            len(watcher.moved),
            over,
            events,
        )
        await _forget(transport, names)
        await cluster.empty()
        return run, server
    finally:
        if watching is not None:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
        await transport.close()


def _policy(name: str, zones: Sequence[str]) -> str:
    """A policy of that name for pods of that scheduler name, on nodes of the zones; of none given, on all nodes."""
    rule = ""
    if zones:
        rule = f'  filter "own zones" {{ require node.zone in {json.dumps(list(zones))} else "another\'s zone" }}\n'
    return f'policy "{name}" {{\n  scheduler "{name}"\n{rule}}}\n'


@asynccontextmanager
async def _schedulers(policies: Mapping[str, str], workload: Workload, path: Path) -> AsyncIterator[dict[str, Child]]:
    """A process for each name, all started before any is waited for."""
    async with AsyncExitStack() as stack:
        children = {}
        every = max(1, workload.pods // len(policies) // CHECKS)
        for name, policy in policies.items():
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="policyengine-")))
            argument = {"kubeconfig": str(path), "policy": policy, "check_every": every, "lease": name}
            children[name] = await stack.enter_async_context(module("scheduler_process", argument, folder))
        for child in children.values():
            await child.line(PATIENCE)
        yield children


async def _all_bound(watcher: Watcher, pods: int, children: Mapping[str, Child]) -> None:
    """Until every pod is bound, or patience ends."""
    last = time.monotonic()
    while len(watcher.times) < pods and time.monotonic() - last < PATIENCE:
        await _glance(children, 0.05)
        last = watcher.times[-1] if watcher.times else last


async def _events(cluster: Cluster, bound: int, children: Mapping[str, Child]) -> int:
    """How many pods have their Scheduled event, once all have or none has come for long."""
    count, since = await cluster.scheduled_events(), time.monotonic()
    while count < bound and time.monotonic() - since < EVENTS_PATIENCE:
        await _glance(children, 0.25)
        seen = await cluster.scheduled_events()
        if seen != count:
            count, since = seen, time.monotonic()
    return count


async def _glance(children: Mapping[str, Child], seconds: float) -> None:
    for name, child in children.items():
        if not child.running:
            raise ChildFailed(f"`{name}` ended: {child.last_words()}")
    await asyncio.sleep(seconds)


async def _holders(transport: Transport, names: Sequence[str]) -> dict[str, str]:
    found = json.loads(await call(transport, "GET", LEASES))["items"]
    held = {item["metadata"]["name"]: item["spec"].get("holderIdentity", "") for item in found}
    return {name: held.get(name, "") for name in names}


async def _forget(transport: Transport, names: Sequence[str]) -> None:
    for name in names:
        with suppress(ApiError):
            await call(transport, "DELETE", f"{LEASES}/{name}")


def _share(
    name: str, holder: str, workload: Workload, watcher: Watcher, usage: Usage, report: Mapping[str, float]
) -> Share:
    own = {item["metadata"]["name"] for item in workload.pod_objects(NAME) if item["spec"]["schedulerName"] == name}
    times = [moment for pod, moment in zip(watcher.nodes, watcher.times, strict=True) if pod in own]
    cpu = usage.cpu_seconds - float(report["check_cpu_seconds"])
    return Share(name, holder, len(own), len(times), rate(times), cpu, usage.peak_mb, int(report["checks"]))
