"""A cluster in which things go wrong: the embedded API server, and whole schedulers (core, runner, reflectors, leader
election) on one seeded event loop with virtual time.

Everything that happens goes onto a tape, which the auditor reads. The core's invariants are checked after every
message it handles.
"""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import cache, partial
from random import Random
from typing import Any

from policyengine.framework.profile import Profile
from policyengine.kube.extenders.http_extender import HttpExtender
from policyengine.kube.http.client import Client
from policyengine.kube.leader import LeaderElector, LeadershipLost
from policyengine.kube.leaders_transport import LeadersTransport
from policyengine.kube.policies.compiling import compiled
from policyengine.kube.policies.precedence import Compiled
from policyengine.kube.scheduling import Scheduler
from policyengine.recording.encoding import Began
from policyengine.recording.recorder import Recorder, RecordingCore
from policyengine.scheduler.actions import Bind
from policyengine.scheduler.state import SchedulerState
from policyengine.simulator.api_server.http_requests import Request
from policyengine.simulator.api_server.memory import MemoryTransport
from tests.faults.auditor import Auditor
from tests.faults.knowledge import Policy
from tests.faults.objects import MAPS, MERGE, NODES, PODS, Json, binding, node, pod
from tests.faults.recorded import cache_of, kept
from tests.faults.wire import Wire
from tests.faults.write_log import tell_writes
from tests.faulty_server.server import FaultyServer
from tests.kube.virtual_time import VirtualClock, VirtualLoop
from tests.scheduler import invariants

GANGS = """policy "main" {
  scheduler "ours"
  let group = pod.labels[?"podGroup"].orValue("")
  gang "crew" when group != "" {
    key: group
    min: toInt(pod.labels[?"minAvailable"]).orValue(1)
    timeout: 30s
  }
}
"""
MOST_STEPS = 60_000
"""Messages of one world, above which it goes round in circles."""


@cache
def compile_once(texts: tuple[tuple[str, str], ...]) -> Compiled:
    return compiled(dict(texts))


async def compile_now(key: str, data: Mapping[str, str], is_tested: bool) -> Compiled:
    return compile_once(tuple(sorted(data.items())))


def profiles_of(text: str) -> list[Profile]:
    found = compile_once((("main.policy", text),))
    assert found.problem is None, found.problem
    return list(found.profiles)


class Replica:
    """One scheduler process."""

    def __init__(self, world: World, name: str, elects: bool, policy: str) -> None:
        self.name = name
        self.clock = VirtualClock()
        self.log: list[tuple[float, Any]] = []
        """What the core was told, and when: it reproduces every decision."""
        self._world = world
        self.wire = Wire(
            MemoryTransport(world.api, user_agent=name), name, world.put, Random(f"{world.seed} {name}"), world.jump
        )
        seeded = Random(f"{name} {world.seed}")
        self.wire.page = world.page
        self.wire.still_sends = lambda: self.leads  # what a former leader sent is seen too late: docs/reliability.md
        self.elector = LeaderElector(Client(self.wire), self.clock, seeded, name) if elects else None
        transport = LeadersTransport(self.wire, self.elector) if self.elector is not None else self.wire
        self.policy = policy
        profiles = profiles_of(policy)
        self.scheduler = Scheduler(
            Client(transport),
            self.clock,
            seeded,
            profiles,
            compile_files=compile_now,
            host=name,
            elector=self.elector,
            extenders=world.extenders,
            verifies_bindings=world.verifies,
            observed=self._observed,
        )
        self.stop = asyncio.Event()
        self.task = asyncio.ensure_future(self.scheduler.run(self.stop))

    def _observed(self, state: SchedulerState) -> RecordingCore:
        self.state = state
        self._handle = state.handle
        state.handle = self._checked  # type: ignore[method-assign]
        state.listen(self._heard)
        began = Began("", self.name, extenders=state.extenders, verifies_bindings=state.verifies_bindings)
        self.recorder = Recorder(began, state.profiles)
        self._world.recorders.append((self.name, self.recorder))
        return RecordingCore(state, self.recorder)

    def _checked(self, message: Any, now: float) -> list[Any]:
        self.log.append((now, message))
        assert len(self.log) < MOST_STEPS, "goes round in circles"
        actions = self._handle(message, now)
        if self._world.validates:
            invariants.validate(self.state)
        for action in actions:
            if isinstance(action, Bind):
                self._world.put("decision", (action.uid, action.node, action.policy_hash))
        return actions

    def _heard(self, uid: str, line: Any) -> None:
        if line.what == "attempted":
            self._world.put("attempt", (uid, line.details["policy hash"]))

    async def kill(self) -> None:
        """End it as a power cut does: nothing more is said."""
        self.task.cancel()
        with suppress(asyncio.CancelledError, LeadershipLost, Exception):
            await self.task

    def why_ended(self) -> str:
        """Why it ended of itself, but for a lost leadership; empty where it did not."""
        if not self.task.done() or self.task.cancelled():
            return ""
        error = self.task.exception()
        return "" if error is None or isinstance(error, LeadershipLost) else _innermost(error)

    @property
    def leads(self) -> bool:
        return not self.task.done() and (self.elector is None or self.elector.holds())


def _innermost(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})"


class World:
    """`tape` is everything that happened: (seconds, what, details)."""

    def __init__(
        self,
        seed: int = 0,
        policy: str = GANGS,
        elects: bool = False,
        validates: bool = True,
        verifies: bool = False,
        sisters: tuple[str, ...] = (),
    ) -> None:
        """`verifies`: whether schedulers verify their bindings. `sisters`: the policies of installations beside the
        first, none of which elects."""
        self.seed = seed
        self.policy = policy
        self.elects = elects
        self.validates = validates
        self.verifies = verifies
        self.sisters = sisters
        self.page = 0
        """Objects of a page of a list, for replicas started from then on; 0 for what they ask for."""
        self.clock = VirtualClock()
        self.tape: list[tuple[float, str, Any]] = []
        self.api = FaultyServer(self.clock, seed)
        self.faults = self.api.faults
        tell_writes(self.api, partial(self.put, "write"))
        self.replicas: list[Replica] = []
        self.recorders: list[tuple[str, Recorder]] = []
        """With the names of their replicas, those that are gone too."""
        self.extenders: list[HttpExtender] = []
        self.policies: dict[str, Policy] = {}
        """By policy hash."""
        self.serves: dict[str, Policy] = {}
        self._tasks: list[asyncio.Task[None]] = []
        for profile in (one for text in (policy, *sisters) for one in profiles_of(text)):
            self.serves[profile.scheduler_name] = self.policies[profile.policy_hash] = Policy(profile.scheduler_name)

    def put(self, what: str, details: Any) -> None:
        self.tape.append((self.clock.monotonic(), what, details))

    def jump(self, seconds: float) -> None:
        """All of the time passes at once."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self.put("stopped", seconds)
        loop.jump(seconds)

    def start(self, name: str = "scheduler-a", policy: str = "") -> Replica:
        replica = Replica(self, name, self.elects, policy or self.policy)
        self.replicas.append(replica)
        return replica

    async def starts_with(self, seconds: float = 1.0, **cpu: str) -> None:
        """The opening of most scenes: nodes of so much cpu, a scheduler, and time for it to take them in."""
        for name, amount in cpu.items():
            await self.node(name, amount)
        self.start()
        await asyncio.sleep(seconds)

    def beside(self, work: Any) -> None:
        """Let something go on beside, to the end of the world."""
        self._tasks.append(asyncio.ensure_future(work))

    # ---- what users and controllers do

    async def call(self, method: str, path: str, body: Any = None, content: str = "application/json") -> Json:
        """A request without injected faults."""
        raw = b"" if body is None else json.dumps(body).encode()
        headers = {"content-type": content, "user-agent": "outside"}
        response = await self.api.perform(Request(method, path, {}, headers, raw))
        assert isinstance(response.body, bytes)
        found: Json = json.loads(response.body)
        assert response.status < 500, found
        return found

    async def node(self, name: str, cpu: str = "1", **more: Any) -> None:
        await self.call("POST", NODES, node(name, cpu, **more))

    async def patch_node(self, name: str, body: Json, status: bool = False) -> None:
        await self.call("PATCH", f"{NODES}/{name}{'/status' if status else ''}", body, MERGE)

    async def shrink(self, name: str, cpu: str) -> None:
        await self.patch_node(name, {"status": {"allocatable": {"cpu": cpu}}}, status=True)

    async def pod(self, name: str, cpu: str = "1", **more: Any) -> None:
        await self.call("POST", PODS, pod(name, cpu, **more))

    async def delete(self, name: str, grace: int | None = 0) -> None:
        options = {"kind": "DeleteOptions", "apiVersion": "v1"}
        await self.call(
            "DELETE", f"{PODS}/{name}", options if grace is None else options | {"gracePeriodSeconds": grace}
        )

    async def bind(self, name: str, target: str) -> None:
        await self.call("POST", f"{PODS}/{name}/binding", binding(name, target))

    async def config_map(self, name: str, text: str) -> None:
        labels = {"policyengine.io/policy": "true"}
        item = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "labels": labels}}
        await self.call("POST", MAPS, item | {"data": {"a.policy": text}})

    async def where(self) -> dict[str, str]:
        items = (await self.call("GET", PODS))["items"]
        return {item["metadata"]["name"]: item["spec"].get("nodeName", "") for item in items}

    def knows_policy(self, text: str, nodes: set[str]) -> None:
        """Tell the auditor what a policy's text means."""
        for profile in profiles_of(text):
            self.policies[profile.policy_hash] = Policy(profile.scheduler_name, frozenset(nodes))

    @staticmethod
    def hash_of(text: str) -> str:
        return profiles_of(text)[0].policy_hash

    # ---- the end

    async def settle(self, seconds: float = 400.0) -> None:
        """Nothing goes wrong any more, and time passes."""
        self.faults.clear()
        await asyncio.sleep(seconds)

    def objections(self) -> list[str]:
        """What the auditor has to say."""
        auditor = Auditor(self.policies, self.verifies, shares=bool(self.sisters))
        for replica in self.replicas:
            why = replica.why_ended()
            if why:
                self.put("ended", (replica.name, why))
        auditor.read(self.tape)
        leaders = [replica for replica in self.replicas if replica.leads]
        if not leaders:
            auditor.object_to("I3", "nobody schedules")
        if len(leaders) > 1 + len(self.sisters):
            auditor.object_to("I5", "two lead")
        auditor.finish(self.clock.monotonic(), cache_of(leaders[0].state) if leaders else None, self.serves)
        return auditor.objections

    async def end(self) -> None:
        for replica in self.replicas:
            await replica.kill()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def timeline(self, last: int = 60) -> str:
        """What a failure prints: the end of the tape, and of what each core was told, which is kept as a recording."""
        lines = [
            f"{at:9.3f} {what:9} {_worded(details)}"
            for at, what, details in self.tape
            if what not in ("shown", "listed")
        ]
        for replica in self.replicas:
            lines.append(f"--- what the core of {replica.name} was told last")
            lines += [f"{now:.3f} {str(message)[:160]}" for now, message in replica.log[-last:]]
        lines = lines[-4 * last :]
        lines += [kept(recorder, f"world-{self.seed}-{name}") for name, recorder in self.recorders]
        return "\n".join(lines)


def _worded(details: Any) -> str:
    if hasattr(details, "is_binding"):
        return f"{details.who} {details.method} {details.path} {details.status or ''}"
    if hasattr(details, "resource_version"):
        return f"{details.verb} {details.kind} {details.key} {details.subresource} by {details.user_agent}"
    return str(details)[:160]


Play = Callable[[World], Awaitable[None]]


def play(scene: Play, **how: Any) -> tuple[list[str], World]:
    """Play a scene to its end: what the auditor objects to, and the world for its timeline."""

    async def whole() -> tuple[list[str], World]:
        world = World(**how)
        try:
            await scene(world)
            return world.objections(), world
        finally:
            await world.end()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(whole())
