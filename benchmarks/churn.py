"""Attempts per placement, and memory, while pods, nodes, taints and requests change all the time, on a real API server.

The same seeded agenda is played to each scheduler on a server of its own. It asks for a little more than the nodes
have, so that some pods always wait, and whatever changes may wake them: what a pod is woken for in vain is an attempt
without a placement. A pod goes at its time whether it was placed or not, so nothing the scheduler does changes what is
asked of it.
"""

from __future__ import annotations

import asyncio
import heapq
import shlex
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from aiohttp.test_utils import unused_port
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.figures import Figure
from benchmarks.processes import Child, ChildFailed, program, with_byte_code
from benchmarks.workloads import HOSTNAME, NAMESPACE, ZONE, Json, affinity_term, peer_node, pod
from policyengine.clock import SystemClock
from policyengine.kube.http.client import ApiError, ConnectionFailed, Transport
from policyengine.simulator.controllers.controller_client import MERGE, STRATEGIC, Caller
from policyengine.simulator.controllers.kubelet import Kubelet
from policyengine.simulator.sandbox import World, world, write_kubeconfig

NODES, PODS = 70, 3_600
"""What the pods of a rate and life as below a little more than fill, and five minutes' worth of them."""
RATE = 12.0
"""Pods a second."""
LIFE = (20.0, 70.0)
"""Seconds between a pod's creation and its deletion."""
CPU = ("250m", "500m", "500m", "1")
NODE_EVERY, NODE_GONE = 20.0, 10.0
"""A node goes every so many seconds, and a new one comes so long after."""
TAINT_EVERY, TAINTED = 15.0, 30.0
SEED = 0
"""Of the agenda, the same for each scheduler."""
HEARTBEAT = 10.0
"""Seconds between two status updates of a node, which change its conditions' time alone."""
PODS_PATH = f"/api/v1/namespaces/{NAMESPACE}/pods"
NOW = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
POLICY = 'policy "churn" {\n  scheduler "default-scheduler"\n}\n'
SAMPLE_EVERY = 60.0
AT_ONCE = 64
"""Requests under way: a server that is slower than the agenda is played to more slowly, and not buried."""

Step = Callable[[Caller], Coroutine[Any, Any, None]]


@dataclass
class Agenda:
    """What happens when, of a seed."""

    random: Random
    nodes: int
    pods: int
    steps: list[tuple[float, int, Step]] = field(default_factory=list)

    def plan(self) -> list[tuple[float, int, Step]]:
        """All steps, the earliest first."""
        for i in range(self.pods):
            self._plan_pod(i, i / RATE)
        seconds = self.pods / RATE
        for turn in range(1, int(seconds / NODE_EVERY)):
            self._plan_node(turn, turn * NODE_EVERY)
        for turn in range(1, int(seconds / TAINT_EVERY)):
            name = self._any_node()
            self._add(turn * TAINT_EVERY, partial(_taint, name=name, is_set=True))
            self._add(turn * TAINT_EVERY + TAINTED, partial(_taint, name=name, is_set=False))
        for turn in range(int(seconds / HEARTBEAT * self.nodes)):
            name = f"node-{turn % self.nodes:06d}"
            self._add(turn * HEARTBEAT / self.nodes, partial(_beat, name=name))
        heapq.heapify(self.steps)
        return self.steps

    def _add(self, at: float, step: Step) -> None:
        self.steps.append((at, len(self.steps), step))

    def _any_node(self) -> str:
        return f"node-{self.random.randrange(self.nodes):06d}"

    def _plan_pod(self, i: int, at: float) -> None:
        item, life = churned_pod(i, self.random), self.random.uniform(*LIFE)
        path = f"{PODS_PATH}/{item['metadata']['name']}"
        self._add(at, lambda caller: _call(caller, "POST", PODS_PATH, item))
        self._add(at + life, lambda caller: _call(caller, "DELETE", path, {**NOW, "gracePeriodSeconds": 1}))
        if self.random.random() < 0.1:
            size = {"cpu": self.random.choice(CPU)}
            resized = {"spec": {"containers": [{"name": "pause", "resources": {"requests": size, "limits": size}}]}}
            when = at + self.random.uniform(5.0, life)
            self._add(when, lambda caller: _call(caller, "PATCH", f"{path}/resize", resized, STRATEGIC))

    def _plan_node(self, turn: int, at: float) -> None:
        i = self.random.randrange(self.nodes)
        self._add(at, lambda caller: _remove_node(caller, f"node-{i:06d}"))
        self._add(at + NODE_GONE, lambda caller: _call(caller, "POST", "/api/v1/nodes", peer_node(i)))


def churned_pod(i: int, random: Random) -> Json:
    """A pod of one of five kinds: plain, of one zone, spread over zones, away from its own, tolerant of the taint."""
    kind, color = i % 5, {"color": f"color-{random.randrange(20)}"}
    spec: Json = {}
    if kind == 1:
        spec["nodeSelector"] = {ZONE: f"zone{random.randrange(10)}"}
    elif kind == 2:
        constraint = {"maxSkew": 2, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
        spec["topologySpreadConstraints"] = [constraint | {"labelSelector": {"matchLabels": color}}]
    elif kind == 3:
        terms = {"requiredDuringSchedulingIgnoredDuringExecution": [affinity_term(color, HOSTNAME)]}
        spec["affinity"] = {"podAntiAffinity": terms}
    elif kind == 4:
        spec["tolerations"] = [{"key": "maintenance", "operator": "Exists"}]
    return pod(i, cpu=random.choice(CPU), labels=color, **spec)


async def _call(caller: Caller, method: str, path: str, body: object, content: str = "application/json") -> None:
    """What is gone already, or not there yet, is nothing that the agenda waits for."""
    with suppress(ApiError, ConnectionFailed):
        await caller.call(method, path, body, content)


async def _taint(caller: Caller, name: str, is_set: bool) -> None:
    taints = [{"key": "maintenance", "effect": "NoSchedule"}] if is_set else None
    await _call(caller, "PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": taints}}, MERGE)


async def _beat(caller: Caller, name: str) -> None:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": now}
    await _call(caller, "PATCH", f"/api/v1/nodes/{name}/status", {"status": {"conditions": [ready]}}, STRATEGIC)


async def _remove_node(caller: Caller, name: str) -> None:
    """The node, and its pods as the garbage collector would."""
    await _call(caller, "DELETE", f"/api/v1/nodes/{name}", NOW)
    listed: Json = {}
    with suppress(ApiError, ConnectionFailed):
        listed = await caller.call("GET", PODS_PATH, query={"fieldSelector": f"spec.nodeName={name}"})
    for item in listed.get("items") or ():
        await _call(caller, "DELETE", f"{PODS_PATH}/{item['metadata']['name']}", NOW)


@dataclass(frozen=True)
class Churned:
    """What one scheduler did."""

    scheduler: str
    attempts: dict[str, float]
    """By result, as `scheduler_schedule_attempts_total` counts them."""
    incoming: dict[str, float]
    """How often pods came into the queue, by event (`scheduler_queue_incoming_pods_total`)."""
    resident_mb: list[float]
    """One a minute."""
    cpu_seconds: float

    @property
    def per_placement(self) -> float:
        """Attempts for each pod that was bound."""
        return sum(self.attempts.values()) / max(self.attempts.get("scheduled", 0.0), 1.0)


def ours(folder: Path, port: int) -> list[str]:
    """`policyengine run`, as a leader that is not deposed where the machine has much else to do."""
    policy = folder / "churn.policy"
    policy.write_text(POLICY, encoding="utf-8")
    program = [str(Path(sys.executable).with_name("policyengine")), "run", "--policy", str(policy)]
    patience = ["--leader-elect-lease-duration", "180s", "--leader-elect-renew-deadline", "170s"]
    return [*program, "--kubeconfig", "{kubeconfig}", "--listen", f"127.0.0.1:{port}", *patience]


def theirs(command: str, port: int) -> list[str]:
    """kube-scheduler, or what is started as it is, with its metrics open to all."""
    flags = f"--secure-port={port} --authentication-skip-lookup --authorization-always-allow-paths=/metrics"
    return [*shlex.split(command.replace("--secure-port=0", "")), *flags.split()]


async def churn(nodes: int, pods: int, beside: str | None, tell: Callable[[str], None]) -> list[Churned]:
    """Play it to ours and, where there is one, to the program beside it. Raises `ChildFailed`, `ServerError`."""
    names = ["policyengine", *(["kube-scheduler"] if beside else [])]
    return [await _played(name, nodes, pods, beside, tell) for name in names]


async def _played(name: str, nodes: int, pods: int, beside: str | None, tell: Callable[[str], None]) -> Churned:
    with tempfile.TemporaryDirectory(prefix="policyengine-") as place:
        folder = Path(place)
        async with world("envtest") as running:
            port = unused_port()
            write_kubeconfig(folder / "kubeconfig", running.kubeconfig)
            command = theirs(beside, port) if beside and name != "policyengine" else ours(folder, port)
            command = [word.replace("{kubeconfig}", str(folder / "kubeconfig")) for word in command]
            environment, scheme = with_byte_code(), "http" if name == "policyengine" else "https"
            async with (
                _filled(running, nodes) as transport,
                program(command, folder, environment=environment) as child,
            ):
                return await _play(name, child, transport, f"{scheme}://127.0.0.1:{port}", nodes, pods, tell)


@asynccontextmanager
async def _filled(running: World, nodes: int) -> AsyncIterator[Transport]:
    """A way to the server, with nodes in it and a kubelet for them."""
    transport = running.connect()
    caller = Caller(transport, SystemClock(), "churn")
    await _call(caller, "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    for i in range(nodes):
        await _call(caller, "POST", "/api/v1/nodes", peer_node(i))
    kubelet = asyncio.create_task(Kubelet(transport, SystemClock(), stop_after=1.0, start_after=0.5).run())
    try:
        yield transport
    finally:
        kubelet.cancel()
        with suppress(asyncio.CancelledError):
            await kubelet
        await transport.close()


async def _play(
    name: str,
    child: Child,
    transport: Transport,
    pages: str,
    nodes: int,
    pods: int,
    tell: Callable[[str], None],
) -> Churned:
    caller = Caller(transport, SystemClock(), "churn")
    steps = Agenda(Random(SEED), nodes, pods).plan()
    began, sampled, resident = time.monotonic(), 0.0, list[float]()
    doing = set[asyncio.Task[None]]()
    while steps:
        at, _, step = heapq.heappop(steps)
        await asyncio.sleep(max(0.0, began + at - time.monotonic()))
        if len(doing) >= AT_ONCE:
            await asyncio.wait(doing, return_when=asyncio.FIRST_COMPLETED)
        if at - sampled >= SAMPLE_EVERY:
            sampled = at
            if not child.running:
                raise ChildFailed(f"{name} ended: {child.last_words()}")
            resident.append(child.resident_mb())
            tell(f"{name}: {resident[-1]:.1f} MB after {at / 60:.0f} minutes")
        task = asyncio.create_task(step(caller))
        doing.add(task)
        task.add_done_callback(doing.discard)
    metrics = await _metrics(pages)
    return Churned(
        name,
        _counted(metrics, "scheduler_schedule_attempts", "result"),
        _counted(metrics, "scheduler_queue_incoming_pods", "event"),
        resident,
        child.usage().cpu_seconds,
    )


async def _metrics(pages: str) -> str:
    from policyengine.simulator.real_server import connect

    transport = connect(pages, "")
    response = await transport.request("GET", "/metrics", timeout=60.0)
    text = (await response.read()).decode()
    await transport.close()
    return text


def _counted(text: str, name: str, label: str) -> dict[str, float]:
    """{label's value: count} of a counter."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        if family.name == name:
            for sample in family.samples:
                if sample.name == f"{name}_total":
                    value = sample.labels[label]
                    found[value] = found.get(value, 0.0) + sample.value
    return found


def figures(found: Sequence[Churned]) -> list[Figure]:
    """The rows told. Of ours no more attempts per placement are wanted than of the scheduler beside it."""
    rows, peer = [], found[1].per_placement if len(found) > 1 else None
    for one in found:
        tried, placed = sum(one.attempts.values()), one.attempts.get("scheduled", 0.0)
        told = f", {tried:,.0f} for {placed:,.0f}"
        at_most = peer if one is found[0] else None
        what = f"{one.scheduler}: attempts per placement"
        rows.append(Figure(what, one.per_placement, "", at_most=at_most, digits=2, more=told))
        for event, count in sorted(one.incoming.items(), key=lambda item: -item[1]):
            rows.append(Figure(f"{one.scheduler}: queued by {event}", count, "times"))
        rows.append(Figure(f"{one.scheduler}: CPU", one.cpu_seconds, "s"))
        if len(one.resident_mb) > 1:
            half = one.resident_mb[len(one.resident_mb) // 2]
            rows.append(Figure(f"{one.scheduler}: resident half way", half, "MB"))
            rows.append(Figure(f"{one.scheduler}: resident at the end", one.resident_mb[-1], "MB"))
    return rows
