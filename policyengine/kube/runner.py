"""Drives the core against an API server: watches in, bindings, events and conditions out.

The one loop below owns the core. It hands over what the watches brought, asks for a few cycles, sends what they
decided, and gives the event loop a turn. Bindings never wait for each other nor for anything else; events and
conditions go out behind them, and when those fall too far behind, cycles wait.

At the end nothing new is decided; the outcome of every binding is awaited, then what is left to say is said.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from policyengine.clock import Clock
from policyengine.cluster import objects
from policyengine.framework.profile import Profile
from policyengine.kube.binder import Binder, Outcome
from policyengine.kube.client import ApiError, Client
from policyengine.kube.conditions import ConditionWriter
from policyengine.kube.events import EventRecorder
from policyengine.kube.evictor import Evictor
from policyengine.kube.extenders import ExtenderAsker, Observe
from policyengine.kube.following import Following
from policyengine.kube.http_extender import HttpExtender
from policyengine.kube.known_objects import Change, Observed
from policyengine.kube.leader import Alone, Leadership, NotLeading
from policyengine.kube.object_writer import ObjectWriter
from policyengine.kube.reflector import Reflector
from policyengine.kube.resources import NODES, PODS, WRITTEN, Resource
from policyengine.kube.steady_clock import SteadyClock
from policyengine.kube.transport import ConnectionFailed
from policyengine.scheduler.messages import (
    Action,
    AskAboutVictims,
    AskExtenders,
    Bind,
    BindFailed,
    BindFailure,
    CacheSynced,
    CandidateLoaded,
    CandidateRemoved,
    ComparisonRequested,
    ComparisonTimed,
    CyclesRequested,
    DeleteVictim,
    Log,
    Message,
    NodeDeleted,
    NodeObserved,
    ObjectDeleted,
    ObjectObserved,
    PatchObject,
    PatchPodCondition,
    PodDeleted,
    PodObserved,
    ProfileRemoved,
    ProfileReplaced,
    ReadPod,
    ReadPodFailed,
    RecordEvent,
    Tick,
)

logger = logging.getLogger(__name__)

_TURNS_TO_SEND = 8
"""Turns of the event loop in which a binding comes from the core to its socket: the worker's, its task's, the
connection's. No message is handled meanwhile."""


class Core(Protocol):
    """What is driven: `scheduler.state.SchedulerState`, as far as the runner sees it."""

    def handle(self, message: Message, now: float) -> list[Action]:
        """Take one message in; say what to do."""

    def next_wakeup(self) -> float | None:
        """When the core wants a `Tick`, on the clock `handle` is given; None for never."""

    @property
    def ready(self) -> bool:
        """Whether a cycle would find a pod to place."""

    @property
    def has_decided(self) -> bool:
        """Whether the last cycle's decision is to be compared, before anything else is handled."""

    def may_bind(self, uid: str) -> bool:
        """Whether a `Bind` still stands, asked right before it is posted."""


@dataclass(frozen=True)
class Limits:
    """Sizes that bound memory and pace, and the patience of a shutdown in seconds."""

    cycles: int = 16
    """Cycles between two turns of the event loop."""
    bindings: int = 512
    """Bindings posted and not answered, above which no cycle runs."""
    bind_workers: int = 128
    questions: int = 256
    """Pods that extenders are asked about, above which no cycle runs."""
    inbox: int = 2048
    """Messages not handled yet, above which watches wait."""
    messages: int = 256
    """Messages handled between two turns of the event loop."""
    bindings_deadline: float = 10.0
    flush_deadline: float = 10.0


class Runner:
    """One scheduler on one API server."""

    def __init__(
        self,
        core: Core,
        client: Client,
        clock: Clock,
        random: Random,
        *,
        profiles: Iterable[Profile] = (),
        host: str = "",
        limits: Limits = Limits(),
        leadership: Leadership | None = None,
        extenders: Sequence[HttpExtender] = (),
        observe_extender: Observe = lambda extender, verb, result, seconds: None,
    ) -> None:
        """`profiles` are those that `core` serves from the start; others come as messages. Without `leadership` there
        is no other replica."""
        self.synced = asyncio.Event()
        """Set once every list of the start is in: a replica that does not lead stands by from then on."""
        self._core = core
        self._client = client
        self._clock = clock
        self._steady = SteadyClock(clock)
        self._limits = limits
        self._leadership = leadership or Alone()
        self._inbox: deque[Message] = deque()
        self._wake = asyncio.Event()
        self._room = asyncio.Event()
        self._stopping = False
        self._reads: set[asyncio.Task[None]] = set()
        report: Callable[[str], None] = logger.warning
        self._pods = Reflector(client, PODS, clock, random, on_problem=report)
        self._nodes = Reflector(client, NODES, clock, random, on_problem=report)

        def reflector(resource: Resource[Any]) -> Reflector[Any]:
            return Reflector(client, resource, clock, random, on_problem=report)

        self._others = Following(reflector, self._follow_other, self._enqueue, profiles)
        self._writer = ObjectWriter(client, self.put)
        self._evictor = Evictor(client, clock, self.put)
        texts = self._nodes.text, self._pods.text
        self._asker = ExtenderAsker(extenders, client, *texts, self.put, observe_extender)
        if any(extender.wants_nodes for extender in extenders):
            self._nodes.keep_texts()
        if any(extender.wants_pods for extender in extenders):
            self._pods.keep_texts()
        busy = self._is_binding
        self._events = EventRecorder(client, clock, random, host=host, busy=busy, on_problem=report)
        self._conditions = ConditionWriter(client, clock, random, busy=busy, on_problem=report)
        self._binder = Binder(
            client,
            self._enqueue,
            settle=self._conditions.settle,
            may_bind=core.may_bind,
            elsewhere=self._bind_elsewhere,
            workers=limits.bind_workers,
        )
        self.handled = 0
        """Messages handled so far, cycles included."""

    @property
    def reflectors(self) -> list[Reflector[Any]]:
        """What is listed and watched."""
        return [self._nodes, self._pods, *self._others.reflectors]

    @property
    def backlog(self) -> int:
        """Messages that the core has not taken in yet."""
        return len(self._inbox)

    @property
    def bindings_outstanding(self) -> int:
        """Bindings posted, or to be posted, and not answered."""
        return self._binder.outstanding

    def put(self, message: Message) -> None:
        """Hand a message to the core, behind those that wait already; a policy, once all it reads is known."""
        if isinstance(message, ProfileReplaced | ProfileRemoved | CandidateLoaded | CandidateRemoved):
            self._others.admit(message)
        else:
            self._enqueue(message)

    def record(self, event: RecordEvent) -> None:
        """Write an Event soon, behind the bindings."""
        self._events.record(event)

    def _enqueue(self, message: Message) -> None:
        self._inbox.append(message)
        self._wake.set()

    async def run(self, stop: asyncio.Event, ready: Sequence[asyncio.Event] = ()) -> None:
        """Schedule until `stop` is set, then end cleanly.

        Cycles begin once every list is in, every event of `ready` is set (the first reading of policies), and this
        replica leads.
        """
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in self._background(ready)]
            tasks.append(group.create_task(self._when_stopped(stop)))
            await self._loop()
            await self._finish()
            for task in [*tasks, *self._reads]:
                task.cancel()

    def _background(self, ready: Sequence[asyncio.Event]) -> list[Any]:
        return [
            self._follow(self._nodes, _of_node),
            self._follow(self._pods, _of_pod),
            self._others.run(),
            self._asker.run(),
            self._binder.run(),
            self._writer.run(),
            self._evictor.run(),
            self._events.outbox.run(),
            self._conditions.outbox.run(),
            self._announce(ready),
        ]

    async def _follow(self, reflector: Reflector[Any], message_of: Callable[[Change[Any]], Message]) -> None:
        """Put one kind's changes into the inbox, no faster than the core takes them."""
        async for batch in reflector.batches():
            self._inbox.extend(map(message_of, batch))
            self._wake.set()
            while len(self._inbox) > self._limits.inbox:
                self._room.clear()
                await self._room.wait()

    async def _follow_other(self, reflector: Reflector[Any]) -> None:
        await self._follow(reflector, _of_kind(reflector.resource.kind))

    async def _announce(self, ready: Sequence[asyncio.Event]) -> None:
        for event in (self._nodes.synced, self._pods.synced, *ready):
            await event.wait()
        await self._others.synced()
        self.synced.set()
        await self._leadership.elected.wait()
        if not isinstance(self._leadership, Alone):
            await self._catch_up()
        self.put(CacheSynced())

    async def _catch_up(self) -> None:
        """What a predecessor decided last may not have been seen here yet: nothing is decided before it is.

        kube-scheduler does not wait: where an informer of the new leader is behind it decides by what it has, and the
        kubelet refuses what does not fit.
        """
        began = self._clock.monotonic()
        async with asyncio.TaskGroup() as group:
            for reflector in self.reflectors:
                if reflector.resource.kind in WRITTEN:
                    group.create_task(reflector.catch_up())
        logger.info("what was decided before is known, after %.1f s", self._clock.monotonic() - began)

    async def _when_stopped(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._stopping = True
        self._wake.set()

    async def _loop(self) -> None:
        while not self._stopping:
            self._drain()
            self._tick()
            if self._may_cycle():
                await self._cycle()
            elif self._inbox:
                await asyncio.sleep(0)
            else:
                await self._sleep()

    async def _cycle(self) -> None:
        """Run a few cycles and let what they decided be sent; then compare, where a candidate is tried."""
        began = self._clock.monotonic()
        self._handle(CyclesRequested(self._limits.cycles), self._steady.now())
        ended = self._clock.monotonic()
        await asyncio.sleep(0)
        if self._core.has_decided:
            for _ in range(_TURNS_TO_SEND):
                await asyncio.sleep(0)
            compares = self._clock.monotonic()
            self._handle(ComparisonRequested(ended - began), self._steady.now())
            self._handle(ComparisonTimed(self._clock.monotonic() - compares), self._steady.now())

    def _may_cycle(self) -> bool:
        return (
            self._core.ready
            and self._leadership.holds()
            and self._binder.outstanding < self._limits.bindings
            and self._asker.outstanding < self._limits.questions
            and self._events.outbox.has_room
            and self._conditions.outbox.has_room
        )

    def _drain(self) -> None:
        """Hand over what came, all of it at one time: a few milliseconds make no difference to anything it starts."""
        if not self._inbox:
            return
        now = self._steady.now()
        for _ in range(min(len(self._inbox), self._limits.messages)):
            self._handle(self._inbox.popleft(), now)
        if len(self._inbox) <= self._limits.inbox:
            self._room.set()

    def _tick(self) -> None:
        wakeup = self._core.next_wakeup()
        if wakeup is not None and wakeup <= self._steady.now():
            self._handle(Tick(), self._steady.now())

    async def _sleep(self) -> None:
        """Until a message, the core's next wake-up, or the end; a full outbox is looked at again soon."""
        wakeup = self._core.next_wakeup()
        seconds = None if wakeup is None else max(0.0, wakeup - self._steady.now())
        if self._core.ready:
            seconds = 0.05 if seconds is None else min(seconds, 0.05)
        self._wake.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            pass

    def _handle(self, message: Message, now: float) -> None:
        self.handled += 1
        for action in self._core.handle(message, now):
            self._do(action)

    def _do(self, action: Action) -> None:
        match action:
            case Bind():
                self._binder.post(action)
                if logger.isEnabledFor(logging.DEBUG):
                    _log_binding(action)
            case RecordEvent():
                self._events.record(action)
                if logger.isEnabledFor(logging.DEBUG):
                    pod = f"{action.namespace}/{action.name}"
                    logger.debug("%s: %s", action.reason, action.note, extra={"pod": pod})
            case AskExtenders() | AskAboutVictims():
                self._asker.post(action)
            case DeleteVictim():
                self._evictor.post(action)
            case PatchObject():
                self._writer.post(action)
            case PatchPodCondition():
                self._conditions.write(action)
            case Log():
                _log(action)
            case ReadPod():
                task = asyncio.ensure_future(self._read(action))
                self._reads.add(task)
                task.add_done_callback(self._reads.discard)

    async def _read(self, read: ReadPod) -> None:
        """Read a pod whose binding's outcome is open, and tell the core what is true of it."""
        try:
            pod = objects.decode(objects.Pod, await self._client.read_pod(read.namespace, read.name))
        except ApiError as error:
            gone = error.status == 404
            self.put(PodDeleted(read.namespace, read.name, read.uid) if gone else ReadPodFailed(read.uid))
        except (ConnectionFailed, objects.ObjectError):
            self.put(ReadPodFailed(read.uid))
        else:
            self.put(self._truth(read, pod))

    def _truth(self, read: ReadPod, pod: objects.Pod) -> Message:
        """The pod as read, unless the watch told meanwhile that it is gone: an answer may be older than that."""
        meta = pod.metadata
        seen = self._pods.knows(meta.namespace, meta.name, meta.uid)
        version = int(meta.resource_version) if meta.resource_version.isdecimal() else 0
        if meta.uid != read.uid or (not seen and version <= self._pods.version):
            return PodDeleted(read.namespace, read.name, read.uid)
        return PodObserved(pod)

    async def _bind_elsewhere(self, bind: Bind) -> Outcome | None:
        if not self._leadership.holds():
            return BindFailed(bind.uid, BindFailure.OVERLOADED, str(NotLeading()))
        return await self._asker.bind(bind)

    def _is_binding(self) -> bool:
        return self._binder.outstanding > 0

    def _outstanding(self) -> int:
        return self._binder.outstanding + self._writer.outstanding + self._evictor.outstanding

    async def _finish(self) -> None:
        """No new cycles; the outcome of every binding, then every event and condition, each within its time.

        Where another replica leads, or may, there is nothing to wait for.
        """
        if not self._leadership.holds():
            return
        deadline = self._clock.monotonic() + self._limits.bindings_deadline
        while self._outstanding() and self._clock.monotonic() < deadline:
            self._drain()
            await self._clock.sleep(0.01)
        self._drain()
        if self._binder.outstanding:
            logger.warning("%d bindings were not answered before the end", self._binder.outstanding)
        left = await self._events.outbox.flush(self._limits.flush_deadline)
        left += await self._conditions.outbox.flush(1.0)
        if left:
            logger.warning("%d events and conditions were not written before the end", left)


def _log_binding(bind: Bind) -> None:
    about = {"pod": f"{bind.namespace}/{bind.name}", "node": bind.node, "hash": bind.policy_hash[:12]}
    logger.debug("binding", extra=about)


def _log(line: Log) -> None:
    about = {"pod": f"{line.namespace}/{line.name}", "node": line.node, "hash": line.policy_hash[:12]}
    logger.info("%s: %s", line.point, line.message, extra=about)


def _of_node(change: Change[objects.Node]) -> Message:
    return NodeObserved(change.object) if isinstance(change, Observed) else NodeDeleted(change.name)


def _of_pod(change: Change[objects.Pod]) -> Message:
    if isinstance(change, Observed):
        return PodObserved(change.object)
    return PodDeleted(change.namespace, change.name, change.uid)


def _of_kind(kind: str) -> Callable[[Change[Any]], Message]:
    def message_of(change: Change[Any]) -> Message:
        if isinstance(change, Observed):
            return ObjectObserved(kind, change.object)
        return ObjectDeleted(kind, change.namespace, change.name)

    return message_of
