"""A workload, end to end: an API server, pods that wait, then a scheduler, each in a process of its own.

Definitions, the same for every scheduler and for the client that decides nothing:
1. Pods are created before the scheduler starts, or from then on where the workload is so (`during`). The rate is from
   the first bind to the last, as a watch sees them; to the last event, until the server has one for each.
2. CPU is the scheduler process's, from its start until its last event is written; checks of decisions are taken out.
3. Memory is its peak resident size. Of several schedulers that share the pods both are sums.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.cluster import Cluster, Watcher
from benchmarks.figures import Samples, per_second, rate
from benchmarks.placement import Placement, overcommitted
from benchmarks.processes import Child, ChildFailed, Usage, compile_children, module, program
from benchmarks.workloads import Churn, Workload
from policyengine.kube.config import credentials
from policyengine.kube.http.client import Client
from policyengine.simulator.sandbox import kubeconfig, write_kubeconfig

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
    records: bool = False
    """Whether it writes a recording of what happens."""
    schedulers: int = 1
    """Among how many of ours the pods are split; each has a policy, a scheduler name and a lease of its own."""


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
    """First bind to last."""
    events_per_second: float
    """Pods bound, by the time from the first bind to the last event; 0 where events are not waited for."""
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
    moved: int
    """Pods seen on a second node: there must be none."""
    overcommitted: tuple[str, ...]
    """Nodes with more than they have, and of what."""
    checks: int
    """Decisions a fresh evaluator made again, all with the same outcome."""
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


async def runs(
    workload: Workload,
    contestants: Sequence[Contestant],
    path: Path | None,
    times: int,
    report: Callable[[EndToEndFigures], None],
) -> dict[str, list[EndToEndFigures]]:
    """Every contestant `times` times, in turn, so that a busy minute meets them all. {name: runs}.

    On the API server of a kubeconfig, which is left empty, or each on an embedded one of its own.
    Raises `cluster.NotOurs`, `ChildFailed`.
    """
    compile_children()
    found: dict[str, list[EndToEndFigures]] = {one.name: [] for one in contestants}
    for _ in range(times):
        for one in contestants:
            figures = await (run_on(workload, one, path) if path else run_embedded(workload, one))
            found[one.name].append(figures)
            report(figures)
    if path:
        transport = credentials.load(path).connect()
        await Cluster(transport).empty()
        await transport.close()
    return found


async def run_embedded(workload: Workload, contestant: Contestant) -> EndToEndFigures:
    """One run on an embedded server of its own."""
    with tempfile.TemporaryDirectory(prefix="policyengine-") as name:
        folder = Path(name)
        async with embedded_server(folder) as path:
            return await _run(workload, contestant, path, folder, "embedded")


async def run_on(workload: Workload, contestant: Contestant, path: Path) -> EndToEndFigures:
    """One run on the API server of a kubeconfig; the nodes stay there for the next one. Raises `cluster.NotOurs`."""
    with tempfile.TemporaryDirectory(prefix="policyengine-") as name:
        return await _run(workload, contestant, path, Path(name), "")


async def _run(workload: Workload, contestant: Contestant, path: Path, folder: Path, server: str) -> EndToEndFigures:
    workload = replace(workload, schedulers=contestant.schedulers)
    transport = credentials.load(path).connect()
    cluster = Cluster(transport)
    try:
        if not server:
            server = f"kube-apiserver {await cluster.version()}"
            await cluster.clear(workload)
        await cluster.fill(workload, contestant.scheduler_name)
        figures = await _Measuring(workload, contestant, cluster, Client(transport), server).run(path, folder)
        if server != "embedded":
            await cluster.empty_pods()
        return figures
    finally:
        await transport.close()


class _Measuring:
    """The watch, the processes and the waiting of one run."""

    def __init__(
        self, workload: Workload, contestant: Contestant, cluster: Cluster, client: Client, server: str
    ) -> None:
        self._workload = workload
        self._contestant = contestant
        self._cluster = cluster
        self._server = server
        self._watcher = Watcher(client, alone=not workload.during and workload.churn is None)
        self._children: list[Child] = []

    async def run(self, path: Path, folder: Path) -> EndToEndFigures:
        watching = asyncio.create_task(self._watcher.run())
        beside: list[asyncio.Task[None]] = []
        reports: list[dict[str, Any]] = []
        try:
            await self._watcher.synced.wait()
            started = time.monotonic()
            async with self._processes(path, folder):
                if self._workload.during:
                    waiting = self._cluster.fill_waiting(self._workload, self._contestant.scheduler_name)
                    beside.append(asyncio.create_task(waiting))
                if self._workload.churn is not None:
                    beside.append(asyncio.create_task(churn(self._cluster, self._workload.churn)))
                first = await self._first_bind(started)
                await self._last_bind()
                last_event = await self._last_event()
                last = self._usage()
                words = "" if self._all_bound() else self._children[0].last_words()
                if not self._contestant.command:
                    reports = [await child.finish() for child in self._children]
            return await self._figures(started, first, last, last_event, reports, words)
        finally:
            for task in (watching, *beside):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    @asynccontextmanager
    async def _processes(self, path: Path, folder: Path) -> AsyncIterator[None]:
        """All started before any is waited for."""
        one = self._contestant
        async with AsyncExitStack() as stack:
            if one.command:
                words = [word.replace("{kubeconfig}", str(path)) for word in shlex.split(one.command)]
                self._children.append(await stack.enter_async_context(program(words, folder)))
            elif one.limit:
                argument = {"kubeconfig": str(path), "watch": one.watch, "events": one.events, "workers": WORKERS}
                self._children.append(await stack.enter_async_context(module("limit_process", argument, folder)))
            else:
                for argument in self._schedulers(path, folder):
                    child = await stack.enter_async_context(module("scheduler_process", argument, folder))
                    self._children.append(child)
            for child in self._children if not one.command else ():
                await child.line(PATIENCE)
            yield

    def _schedulers(self, path: Path, folder: Path) -> list[dict[str, Any]]:
        """The argument of each of our processes."""
        one = self._contestant
        every = max(1, self._workload.pods // one.schedulers // CHECKS)
        ours = {"kubeconfig": str(path), "policy": one.policy, "params": dict(one.params), "check_every": every}
        ours["record"] = str(folder / "recording") if one.records else ""
        if one.schedulers == 1:
            return [ours]
        names = [self._workload.scheduler_of(i, one.scheduler_name) for i in range(one.schedulers)]
        return [ours | {"policy": f'policy "{name}" {{\n  scheduler "{name}"\n}}\n', "lease": name} for name in names]

    def _all_bound(self) -> bool:
        return len(self._watcher.times) >= self._workload.pods

    async def _first_bind(self, started: float) -> Usage:
        """What was used when the first bind was seen, or when patience ended."""
        while not self._watcher.times and time.monotonic() - started < PATIENCE:
            await self._glance(0.005)
        return self._usage()

    async def _last_bind(self) -> None:
        times = self._watcher.times
        while times and not self._all_bound() and time.monotonic() - times[-1] < PATIENCE:
            await self._glance(0.05)

    async def _last_event(self) -> float:
        """The moment the server had an event for each bind, or the last one, if none has come for long; 0: none."""
        if not self._contestant.events or not self._watcher.times:
            return 0.0
        seen, since = -1, time.monotonic()
        while time.monotonic() - since < EVENTS_PATIENCE:
            count = await self._cluster.event_count()
            if count != seen:
                seen, since = count, time.monotonic()
            if count >= len(self._watcher.times) and await self._cluster.scheduled_events() >= len(self._watcher.times):
                break
            await self._glance(0.1)
        return max(since, self._watcher.times[-1])

    async def _glance(self, seconds: float) -> None:
        for child in self._children:
            if not child.running:
                raise ChildFailed(f"`{self._contestant.name}` ended: {child.last_words()}")
        await asyncio.sleep(seconds)

    def _usage(self) -> Usage:
        each = [child.usage() for child in self._children]
        return Usage(sum(one.cpu_seconds for one in each), sum(one.peak_mb for one in each))

    async def _figures(
        self, started: float, first: Usage, last: Usage, last_event: float, reports: list[dict[str, Any]], words: str
    ) -> EndToEndFigures:
        times, placed = self._watcher.times, self._watcher.nodes
        cpu = last.cpu_seconds - sum(float(one.get("check_cpu_seconds", 0.0)) for one in reports)
        found = Placement.of(self._workload, placed)
        return EndToEndFigures(
            workload=self._workload.name,
            nodes=self._workload.nodes,
            pods=self._workload.pods,
            contestant=self._contestant.name,
            server=self._server,
            bound=len(times),
            binds_per_second=rate(times),
            events_per_second=per_second(len(times), last_event - times[0]) if times else 0.0,
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
            moved=len(self._watcher.moved),
            overcommitted=tuple(overcommitted(self._workload, placed)),
            checks=sum(int(one.get("checks", 0)) for one in reports),
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
