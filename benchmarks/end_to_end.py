"""A workload, end to end: an API server, pods that wait, then a scheduler, each in a process of its own.

Definitions, the same for every scheduler and for the client that decides nothing:
1. Pods are created before the scheduler starts, or from then on where the workload is so (`during`). The rate is from
   the first bind to the last, as a watch sees them.
2. CPU is the scheduler process's, from its start until its last event is written; checks of decisions are taken out.
3. Memory is its peak resident size.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.cluster import Cluster, Watcher
from benchmarks.figures import Samples, rate
from benchmarks.placement import Placement
from benchmarks.processes import Child, ChildFailed, Usage, module, program
from benchmarks.workloads import Churn, Workload
from policyengine.kube.config import credentials
from policyengine.kube.http.client import Client
from policyengine.simulator.kubeconfig import kubeconfig, write_kubeconfig

PATIENCE = 60.0
"""Seconds without a bind after which a run is over, whatever still waits."""
EVENTS_PATIENCE = 15.0
"""Seconds without a new event after which no more are expected."""
CHECKS = 16
"""Decisions of a run that are made again by a fresh evaluator."""
WORKERS = 96
"""Bindings the client that decides nothing has under way, as many as the scheduler."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """What schedules: ours (`policy` empty: the in-tree plugins), a client that decides nothing, or any program."""

    name: str
    scheduler_name: str = "default-scheduler"
    policy: str = ""
    params: Mapping[str, str] = field(default_factory=dict)
    limit: bool = False
    watch: bool = False
    events: bool = True
    command: str = ""
    """A program, with `{kubeconfig}` where its kubeconfig goes."""


@dataclass(frozen=True, slots=True)
class EndToEndFigures:
    """One run of one contestant."""

    workload: str
    nodes: int
    pods: int
    contestant: str
    server: str
    bound: int
    binds_per_second: float
    seconds: float
    """First bind to last."""
    first_bind_seconds: float
    """Start of the process to the first bind."""
    samples: Samples
    cpu_seconds: float
    first_bind_cpu_seconds: float
    """Of those, spent when the first bind was seen: start-up and the lists."""
    cpu_ms_per_pod: float
    peak_mb: float
    created: str
    """`before` the scheduler started, or `during` its run."""
    pods_per_node: tuple[int, int, float]
    """Least, most, mean over all nodes."""
    pods_per_node_deviation: float
    """Their standard deviation over all nodes: 0 is as even as can be."""
    pods_per_zone: tuple[int, int]
    """Least and most over the zones."""
    events: int
    """Scheduled events of measured pods, counted on the server."""
    events_behind_seconds: float
    """How long the last event came behind the last bind, to a quarter of a second."""
    checks: int
    """Decisions a fresh evaluator made again, all with the same outcome."""
    check_cpu_seconds: float
    last_words: str
    """The last thing the process wrote to standard error, where it left pods unbound."""


@asynccontextmanager
async def embedded_server(folder: Path) -> AsyncIterator[Path]:
    """The embedded API server in a process of its own; gives its kubeconfig."""
    async with module("server_process", {}, folder) as child:
        said = await child.line(60.0)
        path = folder / "kubeconfig"
        write_kubeconfig(path, kubeconfig(said["url"]))
        yield path


async def run_embedded(workload: Workload, contestant: Contestant) -> EndToEndFigures:
    """One run on an embedded server of its own."""
    with tempfile.TemporaryDirectory(prefix="policyengine-") as name:
        folder = Path(name)
        async with embedded_server(folder) as path:
            return await _run(workload, contestant, path, folder, "embedded")


async def run_on(workload: Workload, contestant: Contestant, path: Path) -> EndToEndFigures:
    """One run on the API server of a kubeconfig; the nodes stay there for the next one, until `leave`.

    Raises `cluster.NotOurs`.
    """
    with tempfile.TemporaryDirectory(prefix="policyengine-") as name:
        return await _run(workload, contestant, path, Path(name), "")


async def leave(path: Path) -> None:
    """Empty the API server of a kubeconfig. Raises `cluster.NotOurs`."""
    transport = credentials.load(path).connect()
    try:
        await Cluster(transport).empty()
    finally:
        await transport.close()


async def _run(workload: Workload, contestant: Contestant, path: Path, folder: Path, server: str) -> EndToEndFigures:
    transport = credentials.load(path).connect()
    cluster = Cluster(transport)
    try:
        if not server:
            server = f"kube-apiserver {await cluster.version()}"
            await cluster.clear(workload)
        await cluster.fill(workload, contestant.scheduler_name)
        measuring = _Measuring(workload, contestant, cluster, Client(transport), server)
        figures = await measuring.run(path, folder)
        if server != "embedded":
            await cluster.empty_pods()
        return figures
    finally:
        await transport.close()


class _Measuring:
    """The watch, the process and the waiting of one run."""

    def __init__(
        self, workload: Workload, contestant: Contestant, cluster: Cluster, client: Client, server: str
    ) -> None:
        self._workload = workload
        self._contestant = contestant
        self._cluster = cluster
        self._server = server
        self._watcher = Watcher(client, alone=not workload.during and workload.churn is None)

    async def run(self, path: Path, folder: Path) -> EndToEndFigures:
        watching = asyncio.create_task(self._watcher.run())
        beside: list[asyncio.Task[None]] = []
        try:
            await self._watcher.synced.wait()
            started = time.monotonic()
            async with self._process(path, folder) as child:
                if self._workload.during:
                    waiting = self._cluster.fill_waiting(self._workload, self._contestant.scheduler_name)
                    beside.append(asyncio.create_task(waiting))
                if self._workload.churn is not None:
                    beside.append(asyncio.create_task(churn(self._cluster, self._workload.churn)))
                first = await self._first_bind(child)
                await self._last_bind(child)
                behind = await self._last_event(child)
                last = child.usage()
                words = child.last_words() if len(self._watcher.times) < self._workload.pods else ""
                report = {} if self._contestant.command else await child.finish()
            return await self._figures(started, first, last, behind, report, words)
        finally:
            for task in (watching, *beside):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    @asynccontextmanager
    async def _process(self, path: Path, folder: Path) -> AsyncIterator[Child]:
        one = self._contestant
        if one.command:
            words = [word.replace("{kubeconfig}", str(path)) for word in shlex.split(one.command)]
            async with program(words, folder) as child:
                yield child
        elif one.limit:
            argument = {"kubeconfig": str(path), "watch": one.watch, "events": one.events, "workers": WORKERS}
            async with module("limit_process", argument, folder) as child:
                await child.line(PATIENCE)
                yield child
        else:
            every = max(1, self._workload.pods // CHECKS)
            ours = {"kubeconfig": str(path), "policy": one.policy, "params": dict(one.params), "check_every": every}
            async with module("scheduler_process", ours, folder) as child:
                await child.line(PATIENCE)
                yield child

    async def _first_bind(self, child: Child) -> Usage:
        """The child's usage when the first bind is seen, or when patience ends."""
        deadline = time.monotonic() + PATIENCE
        while not self._watcher.times and time.monotonic() < deadline:
            await self._glance(child, 0.005)
        return child.usage()

    async def _last_bind(self, child: Child) -> None:
        times = self._watcher.times
        while times and len(times) < self._workload.pods and time.monotonic() - times[-1] < PATIENCE:
            await self._glance(child, 0.05)

    async def _last_event(self, child: Child) -> float:
        """Seconds from the last bind until the server has an event for each; or until none has come for long."""
        if not self._contestant.events or not self._watcher.times:
            return 0.0
        seen, since = -1, time.monotonic()
        while time.monotonic() - since < EVENTS_PATIENCE:
            count = await self._cluster.event_count()
            if count != seen:
                seen, since = count, time.monotonic()
            if count >= len(self._watcher.times) and await self._cluster.scheduled_events() >= len(self._watcher.times):
                break
            await self._glance(child, 0.25)
        return max(0.0, since - self._watcher.times[-1])

    async def _glance(self, child: Child, seconds: float) -> None:
        if not child.running:
            raise ChildFailed(f"`{self._contestant.name}` ended: {child.last_words()}")
        await asyncio.sleep(seconds)

    async def _figures(
        self, started: float, first: Usage, last: Usage, behind: float, report: dict[str, float], words: str
    ) -> EndToEndFigures:
        times, placed = self._watcher.times, self._watcher.nodes
        checking = float(report.get("check_cpu_seconds", 0.0))
        cpu = last.cpu_seconds - checking
        found = Placement.of(self._workload, placed)
        return EndToEndFigures(
            workload=self._workload.name,
            nodes=self._workload.nodes,
            pods=self._workload.pods,
            contestant=self._contestant.name,
            server=self._server,
            bound=len(times),
            binds_per_second=rate(times),
            seconds=times[-1] - times[0] if times else 0.0,
            first_bind_seconds=times[0] - started if times else 0.0,
            samples=Samples.of(times),
            cpu_seconds=cpu,
            first_bind_cpu_seconds=first.cpu_seconds,
            cpu_ms_per_pod=cpu * 1e3 / len(times) if times else 0.0,
            peak_mb=last.peak_mb,
            created="during" if self._workload.during else "before",
            pods_per_node=(found.least, found.most, found.mean),
            pods_per_node_deviation=found.deviation,
            pods_per_zone=found.zones,
            events=await self._cluster.scheduled_events(),
            events_behind_seconds=behind,
            checks=int(report.get("checks", 0)),
            check_cpu_seconds=checking,
            last_words=words,
        )


async def churn(cluster: Cluster, plan: Churn) -> None:
    """Make, and unmake, what the plan says, until cancelled."""
    turn, before = 0, list[dict[str, object]]()
    while True:
        await asyncio.sleep(plan.every)
        items = [make(turn) for make in plan.objects]
        if plan.recreate:
            await cluster.remove(before)
        await cluster.recreate(json.loads(json.dumps(items)))
        before, turn = items, turn + 1


def median_run(runs: list[EndToEndFigures]) -> EndToEndFigures:
    """The run with the median rate (of an even number, the lower of the two)."""
    middle = statistics.median_low([run.binds_per_second for run in runs])
    return next(run for run in runs if run.binds_per_second == middle)
