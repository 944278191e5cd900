"""What an attack costs: bindings of a steady stream of pods, the worst answer of each probe, memory, restarts.

The stream offers `RATE` pods a second with the attack as without it, and does not wait for their bindings: a scheduler
that falls behind binds fewer. The attack runs in a process of its own at a bounded rate; its share of a CPU is told.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from policyengine.kube.http.client import ApiError, ConnectionFailed
from tests.attacks.site import Service, Site
from tests.faults.objects import PODS, pod
from tests.faults.process_cluster import ROOT, SERVES

RATE = 20
"""Pods a second."""
QUIET = 30.0
"""Seconds of the stream before the attack."""
SETTLE = 60.0
"""Seconds after the attack until every pod is bound."""
KILLS = "webhook and extender killed"
"""An attack without a process of its own: both are killed every five seconds."""
HEALTH = 1.0
"""Seconds in which a probe has to be answered."""
LEAST = 0.9
"""Bindings with the attack, for each without it."""


@dataclass
class Stream:
    """Pods that come at an even pace and go once they are bound."""

    site: Site
    made: dict[str, float] = field(default_factory=dict)
    """Pod -> when it was created."""
    bound: dict[str, float] = field(default_factory=dict)
    """Pod -> when it was seen to be bound."""
    is_ending: bool = False
    """Whether no more pods are created."""

    async def flow(self) -> None:
        """Create pods, see which are bound, and delete those, for ever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._see(group))
            began = time.monotonic()
            for number in count():
                await asyncio.sleep(max(0.0, began + number / RATE - time.monotonic()))
                if not self.is_ending:
                    group.create_task(self._create(f"p{time.monotonic_ns()}"))

    async def _create(self, name: str) -> None:
        with suppress(ApiError, ConnectionFailed):
            await self.site.caller.call("POST", PODS, pod(name, "10m", scheduler=SERVES))
            self.made[name] = time.monotonic()

    async def _see(self, group: asyncio.TaskGroup) -> None:
        async for _, item in self.site.caller.follow(PODS):
            name = item["metadata"]["name"] if item else ""
            if name.startswith("p") and item["spec"].get("nodeName") and name not in self.bound:
                self.bound[name] = time.monotonic()
                group.create_task(self._delete(name))

    async def _delete(self, name: str) -> None:
        with suppress(ApiError, ConnectionFailed):
            await self.site.caller.call("DELETE", f"{PODS}/{name}", query={"gracePeriodSeconds": "0"})

    def share(self, start: float, end: float) -> float:
        """Bindings for each pod created, both between two moments."""
        made = sum(start <= at < end for at in self.made.values())
        return sum(start <= at < end for at in self.bound.values()) / max(1, made)

    def slowest(self, start: float) -> float:
        """Seconds from creation to binding of the slowest pod that was created from a moment on."""
        now = time.monotonic()
        return max((self.bound.get(name, now) - at for name, at in self.made.items() if at >= start), default=0.0)

    @property
    def unbound(self) -> int:
        """How many pods are not bound."""
        return len(self.made.keys() - self.bound.keys())

    async def settle(self) -> None:
        """Give every pod the time to be bound."""
        for _ in range(int(SETTLE)):
            if not self.unbound:
                return
            await asyncio.sleep(1)


@dataclass
class Watched:
    """How long a service's probes took, and its largest memory."""

    service: Service
    took: list[float] = field(default_factory=list)
    memory: int = 0

    async def ask(self) -> None:
        """Probe it five times a second, for ever."""
        while True:
            began = time.monotonic()
            good = await self.service.healthy(30)
            if self.service.is_up:
                self.took.append(time.monotonic() - began if good else float("inf"))
            await asyncio.sleep(0.2)

    def late(self) -> tuple[float, int]:
        """The slowest answer, and how many were late."""
        return max(self.took, default=0.0), sum(took > HEALTH for took in self.took)

    async def weigh(self) -> None:
        """Look at its memory, for ever."""
        while True:
            self.memory = max(self.memory, self.service.memory())
            await asyncio.sleep(0.5)


class Result(NamedTuple):
    """What an attack did."""

    attack: str
    seconds: float
    sent: int
    attacker: float
    """Its share of a CPU."""
    quiet: float
    bindings: float
    """Bindings for each pod created, before and during the attack."""
    slowest: float
    """Seconds from creation to binding."""
    unbound: int
    health: dict[str, tuple[float, float, int]]
    """The slowest answer before and during the attack, and how many came later than `HEALTH`."""
    memory: dict[str, tuple[int, int]]
    """MiB, and the limit."""
    restarts: dict[str, int]

    @property
    def misses(self) -> list[str]:
        """What is not as it should be, but for what depends on the machine."""
        found = [f"{self.unbound} pods are not bound"] if self.unbound else []
        found += [f"{name} takes {most} of {limit} MiB" for name, (most, limit) in self.memory.items() if most > limit]
        return found + [f"{name} ended {times} times" for name, times in self.restarts.items() if times]

    @property
    def slow(self) -> list[str]:
        """What is too slow."""
        found = [f"{self.bindings / self.quiet:.0%} of the bindings"] if self.bindings < LEAST * self.quiet else []
        late = {name: (took, count) for name, (_, took, count) in self.health.items() if count}
        return found + [f"{name} answered {count} times late, in {took:.1f} s" for name, (took, count) in late.items()]

    def row(self) -> str:
        """As a line of a table."""
        health = " / ".join(f"{took:.2f} ({before:.2f})" for before, took, _ in self.health.values())
        memory = " / ".join(f"{most}" for most, _ in self.memory.values())
        return (
            f"| {self.attack} | {self.sent:,} | {self.bindings / self.quiet:.0%} | {self.slowest:.2f} s | {health} s "
            f"| {memory} MiB | {sum(self.restarts.values())} | {self.attacker:.0%} |"
        )


COLUMNS = ("attack", "sent", "bindings", "slowest binding", "health", "memory", "restarts", "attacker's CPU")
HEAD = f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}"


async def measured(site: Site, attack: str, seconds: float) -> Result:
    """Run an attack beside the stream for so many seconds."""
    watched = [Watched(service) for service in site.services.values()]
    restarts = {service.name: service.restarts for service in site.services.values()}
    async with _attacker(site, attack, seconds) as attacking, _stream(site) as stream:
        beside = [asyncio.create_task(work) for one in watched for work in (one.ask(), one.weigh())]
        began = time.monotonic()
        await asyncio.sleep(min(QUIET, seconds))
        start, before = time.monotonic(), [max(one.took, default=0.0) for one in watched]
        for one in watched:
            one.took.clear()
        sent, cpu = await attacking()
        end = time.monotonic()
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
    return Result(
        attack,
        end - start,
        sent,
        cpu / (end - start),
        stream.share(began, start),
        stream.share(start, end),
        stream.slowest(start),
        stream.unbound,
        {one.service.name: (quiet, *one.late()) for one, quiet in zip(watched, before, strict=True)},
        {one.service.name: (one.memory, one.service.limit) for one in watched},
        {one.name: one.restarts - one.kills - restarts[one.name] for one in site.services.values()},
    )


@asynccontextmanager
async def _stream(site: Site) -> AsyncIterator[Stream]:
    """A stream that has begun to flow; at the end every pod has had time to be bound."""
    stream = Stream(site)
    flowing = asyncio.create_task(stream.flow())
    try:
        await asyncio.sleep(2)
        yield stream
        stream.is_ending = True
        await stream.settle()
    finally:
        flowing.cancel()
        await asyncio.gather(flowing, return_exceptions=True)


Attack = Callable[[], Awaitable[tuple[int, float]]]
"""Gives how much was sent, and the seconds of CPU time it took."""


@asynccontextmanager
async def _attacker(site: Site, attack: str, seconds: float) -> AsyncIterator[Attack]:
    """An attack that is ready to begin."""
    if attack == KILLS:
        yield lambda: _kills(site, seconds)
        return
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.attacks.attacks", attack, str(seconds), site.map),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )

    async def attacking() -> tuple[int, float]:
        async with asyncio.timeout(seconds + SETTLE):
            said, _ = await process.communicate(b"begin\n")
        assert process.returncode == 0, f"the attack itself failed: {attack}"
        found = json.loads(said)
        return found["sent"], found["cpu"]

    try:
        assert process.stdout is not None
        await process.stdout.readline()
        yield attacking
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _kills(site: Site, seconds: float) -> tuple[int, float]:
    until, killed = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        for name in ("webhook", "extender"):
            site.services[name].kill()
            killed += 1
        await asyncio.sleep(5)
    return killed, 0.0
