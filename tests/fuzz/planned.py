"""What `plan` says of a recording is what a cluster then does: random days, each lived through twice.

`python -m tests.fuzz.seeds planned N SEED` lives through N days.

The same nodes and pods come and go in two worlds: the embedded API server, a kubelet, and a whole scheduler (core,
runner, watches) on virtual time; one policy serves in the first, another in the second. What the first scheduler was
told is a recording. The plan of it with the other policy has to place every pod where the second world placed it, and
when, and evict whom it evicted. The two worlds share no code with `plan`, but for the scheduler that both run.

What a plan cannot say is left out: what happens within `BLUR` seconds of something else may come before or after it,
because in a cluster requests and retries take their time. So do several victims that go at once, from several nodes or
from a quota: the first that is gone may make room enough. From such a moment on a day is not compared.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf
from pathlib import Path
from random import Random
from shutil import rmtree
from typing import Any

from policyengine.plan.history import read
from policyengine.plan.rerun import Rerun, rerun
from policyengine.recording.directory import Limits, RecordingDirectory
from policyengine.recording.encoding import Began
from policyengine.recording.recorder import Recorder
from policyengine.scheduler.messages import PodDeleted, PodObserved
from policyengine.simulator.api_server.memory import MemoryTransport
from policyengine.simulator.controllers.kubelet import RUN_FOR, Kubelet
from tests.faults.objects import PODS
from tests.faults.recorded import FOLDER
from tests.faults.world import World, play, profiles_of
from tests.fuzz.explained import CLASSES, FILTERS, GANG, PREEMPT, QUOTAS
from tests.kube.virtual_time import VirtualClock

Json = dict[str, Any]
BLUR = 1.0
"""Seconds within which nobody knows what comes first."""
LATE = 2.0
"""Seconds that a binding may come later in a cluster than in a plan."""
PRIORITIES = (3, 10)
SCORES = ("ratio(node.used.cpu, node.allocatable.cpu)", "ratio(node.free.cpu, node.allocatable.cpu)", "0.0")


def policy(random: Random) -> str:
    """A policy: of pods that are equal the name decides, of nodes their rank, or the hash of the pod's UID."""
    parts = [part for part in (QUOTAS, GANG, PREEMPT) if random.random() < 0.4]
    parts += [random.choice(FILTERS), "\n  queue { order by pod.priority desc, pod.name }"]
    main = f'\n  score "main" weight 100 = 100.0 * {random.choice(SCORES)}'
    rank = '\n  score "rank" weight 1 = clamp(toDouble(node.labels[?"rank"]).orValue(0.0), 0.0, 100.0)'
    scores = main + rank if random.random() < 0.5 else main
    return f'policy "ours" {{\n  scheduler "ours"\n  base filters{"".join(parts)}{scores}\n}}\n'


@dataclass
class Day:
    """What people and controllers do, whoever schedules: (seconds, what, arguments)."""

    seed: int
    nodes: dict[str, str] = field(default_factory=dict)
    """Name -> cpu."""
    events: list[tuple[float, str, tuple[Any, ...]]] = field(default_factory=list)
    length: float = 0.0

    def __post_init__(self) -> None:
        random = Random(f"day {self.seed}")
        self.nodes = {f"n{number}": random.choice(("1", "2", "4", "6")) for number in range(random.randint(2, 4))}
        at, made = 5.0, 0
        for _ in range(random.randint(5, 14)):
            at += random.uniform(8.0, 40.0)
            what = random.choices(("pods", "delete", "cordon", "node"), (8, 2, 1, 1))[0]
            if what == "pods":
                made = self._pods(random, at, made)
            elif what == "delete" and made:
                self.events.append((at, "delete", (f"p{random.randrange(made):02}",)))
            elif what == "cordon":
                self.events += [(at, "cordon", (True,)), (at + 50.0, "cordon", (False,))]
            elif what == "node":
                self.events.append((at, "node", (f"late{made}", random.choice(("1", "3")))))
        self.events.sort(key=lambda event: event[0])
        self.length = max((when for when, *_ in self.events), default=at) + 400.0

    def _pods(self, random: Random, at: float, made: int) -> int:
        size = random.choice((1, 1, 2, 3))
        labels = {"team": random.choice(("red", "blue", "none"))}
        if size > 1 and random.random() < 0.5:
            labels |= {"podGroup": f"g{made}", "minAvailable": str(size)}
        cpu, priority = random.choice(("250m", "500m", "1", "2")), random.choice((0, 0, 3, 10))
        for member in range(size):
            runs = f"{random.uniform(20.0, 110.0):.1f}s" if random.random() < 0.9 else ""
            self.events.append((at + 0.1 * member, "pod", (f"p{made:02}", cpu, labels, priority, runs)))
            made += 1
        return made

    async def live(self, world: World) -> None:
        for value in PRIORITIES:
            kind = {"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": f"p{value}"}}
            await world.call("POST", CLASSES, kind | {"value": value})
        for rank, (name, cpu) in enumerate(self.nodes.items()):
            await self._node(world, name, cpu, rank)
        world.beside(Kubelet(MemoryTransport(world.api, user_agent="kubelet"), VirtualClock(), stop_after=0.0).run())
        world.start()
        now = 0.0
        for at, what, arguments in self.events:
            await asyncio.sleep(at - now)
            now = at
            await self._event(world, what, *arguments)
        await asyncio.sleep(self.length - now)

    async def _event(self, world: World, what: str, *arguments: Any) -> None:
        match what, arguments:
            case "pod", (name, cpu, labels, priority, runs):
                item = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "labels": labels}}
                if runs:
                    item["metadata"] |= {"annotations": {RUN_FOR: runs}}
                container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
                spec: Json = {"schedulerName": "ours", "containers": [container], "terminationGracePeriodSeconds": 0}
                spec |= {"priority": priority, "priorityClassName": f"p{priority}"} if priority else {}
                world.api.names._random.seed(name)  # its UID is the same in both worlds: it breaks ties
                await world.call("POST", PODS, item | {"spec": spec})
            case "delete", (name,):
                await world.delete(name, grace=1)
            case "cordon", (cordoned,):
                await world.patch_node("n0", {"spec": {"unschedulable": cordoned}})
            case "node", (name, cpu):
                await self._node(world, name, cpu, 50 + len(name) + int(name[4:]))

    async def _node(self, world: World, name: str, cpu: str, rank: int) -> None:
        await world.node(name, cpu)
        await world.patch_node(name, {"metadata": {"labels": {"rank": str(rank)}}})


@dataclass(frozen=True)
class Fate:
    """What became of a pod: its node, seconds of its binding since the epoch."""

    node: str = ""
    bound: float = inf
    evicted: bool = False
    gone: float = inf
    """When somebody deleted it, or something evicted it."""


def lived(day: Day, text: str) -> tuple[dict[str, Fate], list[tuple[float, Any]]]:
    """What became of the pods under a policy, and what its scheduler was told."""
    worlds: list[World] = []

    async def scene(world: World) -> None:
        worlds.append(world)
        await day.live(world)

    play(scene, seed=day.seed, policy=text, validates=False)
    (replica,) = worlds[0].replicas
    fates: dict[str, Fate] = {}
    for now, message in replica.log:
        if isinstance(message, PodObserved):
            pod, name = message.pod, message.pod.metadata.name
            known = fates.setdefault(name, Fate())
            if pod.spec.node_name and not known.node:
                fates[name] = known = replace(known, node=pod.spec.node_name, bound=now)
            if any(one.type == "DisruptionTarget" and one.status == "True" for one in pod.status.conditions):
                fates[name] = known = replace(known, evicted=True)
            if pod.metadata.deletion_timestamp is not None:
                fates[name] = replace(known, gone=min(known.gone, now))
        elif isinstance(message, PodDeleted):
            fates[message.name] = replace(fates[message.name], gone=min(fates[message.name].gone, now))
    return fates, replica.log


def recorded(log: list[tuple[float, Any]], path: Path) -> None:
    directory = RecordingDirectory(path, Limits(file_age=inf))
    recorder = Recorder(Began("0", "day", watched_only=True))
    for now, message in log:
        recorder.told(now, message)
    while entries := recorder.take():
        directory.write(entries, 0.0)
    directory.close()


def planned(log: list[tuple[float, Any]], text: str) -> tuple[Rerun, float]:
    """The plan of what a scheduler was told, with another policy, and when it starts."""
    with tempfile.TemporaryDirectory() as folder:
        recorded(log, Path(folder) / "day")
        history = read(Path(folder) / "day")
    assert not history.notes, history.notes
    return rerun(history, profiles_of(text)), history.start


def unknown_from(day: Day, before: Mapping[str, Fate], run: Rerun, start: float, first: float) -> float:
    """Seconds since the epoch from which the first day does not say what people did in the second, or how long a pod
    would have run: it had not ended, or somebody deleted what was gone."""
    pods = {pod.name.partition("/")[2]: pod for pod in run.ledger.pods.values()}
    unknown = []
    for at, what, arguments in day.events:
        old = before.get(arguments[0], Fate()) if what in ("pod", "delete") else Fate()
        if what == "pod" and arguments[4]:
            runs, planned = float(arguments[4][:-1]), pods[arguments[0]]
            if not abs(old.gone - old.bound - runs) < BLUR and planned.bound is not None:
                unknown.append(start + planned.bound + runs - BLUR)
        elif what == "delete" and old.gone < first + at:
            ended = pods[arguments[0]].ended
            unknown += [first + at] if ended is None or start + ended > first + at else []
    return min(unknown, default=inf)


def certain_until(day: Day, run: Rerun, start: float, first: float, has_quotas: bool) -> float:
    """Seconds since the epoch up to which one thing comes clearly after another. `first`: when the day began."""
    script = sorted({round(at, 0): first + at for at, *_ in day.events}.values())
    ends = sorted(start + pod.ended for pod in run.ledger.pods.values() if pod.how == "finished" and pod.ended)
    moments = sorted([(at, "script") for at in script] + [(at, "end") for at in ends])
    near = [one[0] for one, other in pairwise(moments) if other[0] - one[0] < BLUR and "end" in (one[1], other[1])]
    pods = run.ledger.pods.values()
    evicted = sorted((start + pod.ended, pod.node) for pod in pods if pod.how == "preempted" and pod.ended)
    near += [
        one[0] for one, other in pairwise(evicted) if other[0] - one[0] < BLUR and (has_quotas or one[1] != other[1])
    ]
    return min(near, default=inf)


def tried(seed: int) -> tuple[list[str], dict[str, int]]:
    """How the second world differs from the plan, the pods compared, and whether that was not all of them."""
    random, day = Random(f"policies of day {seed}"), Day(seed)
    old, new = policy(random), policy(random)
    before, log = lived(day, old)
    actual = lived(day, new)[0]
    run, start = planned(log, new)
    first = log[0][0]
    until = min(certain_until(day, run, start, first, QUOTAS in new), unknown_from(day, before, run, start, first))
    if any(log[-1][0] < fate.bound < inf for fate in actual.values()):
        until = min(until, log[-1][0])  # a plan ends where its recording does
    differences, compared = [], 0
    for pod in run.ledger.pods.values():
        name = pod.name.partition("/")[2]
        bound = inf if pod.bound is None else start + pod.bound
        told, found = Fate(pod.node, bound, pod.how == "preempted"), actual.get(name, Fate())
        if until < inf and min(told.bound, found.bound) >= until:
            continue
        compared += 1
        is_late = told.bound != found.bound and abs(told.bound - found.bound) > LATE
        if told.node != found.node or is_late or (until == inf and told.evicted != found.evicted):
            differences.append(f"{name}: planned {told}, and it was {found}")
    if differences:
        path = FOLDER / f"day-{seed}"
        rmtree(path, ignore_errors=True)
        recorded(log, path)
        differences.append(f"the first world is recorded in {path}, and the policy of the second one was\n{new}")
    counts = {"days": 1, "pods compared": compared, "days in part": int(until < inf)}
    return [f"day {seed}: {line}" for line in differences], counts
