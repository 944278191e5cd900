"""Sends what the core decided: each action to the one who does it, its outcome back as a message.

Bindings never wait for each other nor for anything else; events and conditions go out behind them. Where too many
bindings, questions, events or conditions are under way there is no room (`has_room`), and no cycle runs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from random import Random
from typing import Any

from policyengine.clock import Clock
from policyengine.kube.config.limits import Limits
from policyengine.kube.extenders.http_extender import HttpExtender
from policyengine.kube.extenders.requests import ExtenderAsker, Observe
from policyengine.kube.http.client import Client
from policyengine.kube.http.keep_alive import SWIFT
from policyengine.kube.leadership import Leadership, NotLeading
from policyengine.kube.watching.informers import Informers
from policyengine.kube.writing.bindings import Binder, Outcome
from policyengine.kube.writing.conditions import ConditionWriter
from policyengine.kube.writing.events import EventRecorder
from policyengine.kube.writing.object_patches import ObjectWriter
from policyengine.kube.writing.pod_reader import PodReader
from policyengine.kube.writing.victims import Evictor
from policyengine.kube.writing.write_pace import WritePace
from policyengine.scheduler.actions import (
    Action,
    AskAboutVictims,
    AskExtenders,
    Bind,
    DeleteVictim,
    Log,
    PatchObject,
    PatchPodCondition,
    ReadPod,
    RecordEvent,
)
from policyengine.scheduler.messages import BindFailed, BindFailure, BindUnknown, Message

MANY = 32
"""Bindings under way at once that keep a server busy for a while."""
GATHERED = 1 / 8
"""Of those, the part whose answers are looked at together."""
LONGEST_LULL = 0.01
"""Seconds."""

_NOT_ASKED = frozenset({BindFailure.OVERLOADED, BindFailure.WITHDRAWN})
"""Failures of bindings that the server did not see to."""

logger = logging.getLogger("policyengine.kube.runner")
"""By this name users know the lines of their policies."""


class Dispatcher:
    """Takes actions in the order the core decided them."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        random: Random,
        answer: Callable[[Message], None],
        *,
        informers: Informers,
        may_bind: Callable[[str], bool],
        to_decide: Callable[[], int],
        leadership: Leadership,
        limits: Limits,
        host: str,
        extenders: Sequence[HttpExtender],
        observe_extender: Observe,
    ) -> None:
        """`answer` takes the outcomes; `may_bind` says whether a `Bind` still stands, by the pod's UID; `to_decide`
        how many pods cycles are still to try."""
        self._answer = answer
        self._to_decide = to_decide
        self._limits = limits
        self._leadership = leadership
        nodes, pods = informers.nodes, informers.pods
        if any(extender.wants_nodes for extender in extenders):
            nodes.keep_texts()
        if any(extender.wants_pods for extender in extenders):
            pods.keep_texts()
        self._asker = ExtenderAsker(extenders, client, nodes.text, pods.text, answer, observe_extender)
        self._writer = ObjectWriter(client, answer)
        self._evictor = Evictor(client, clock, answer)
        self._reader = PodReader(client, pods, answer)
        self._pace = pace = WritePace(clock)
        ahead, report = self._seconds_of_bindings, logger.warning
        self._events = EventRecorder(client, clock, random, host=host, pace=pace, ahead=ahead, on_problem=report)
        self._conditions = ConditionWriter(client, clock, random, pace=pace, ahead=ahead, on_problem=report)
        self._binder = Binder(
            client,
            self._bound,
            settle=self._conditions.settle,
            may_bind=may_bind,
            elsewhere=self._bind_elsewhere,
            workers=limits.bind_workers,
        )

    def work(self) -> list[Coroutine[Any, Any, None]]:
        """What is to run until cancelled."""
        workers = self._asker, self._binder, self._writer, self._evictor, self._reader
        outboxes = self._events.outbox, self._conditions.outbox
        return [one.run() for one in (*workers, *outboxes)]

    def dispatch(self, action: Action) -> None:
        """Have it done soon."""
        match action:
            case Bind():
                self._pace.began()
                self._binder.post(action)
                if logger.isEnabledFor(logging.DEBUG):
                    logger.debug("binding", extra=_about(action))
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
                logger.info("%s: %s", action.point, action.message, extra=_about(action))
            case ReadPod():
                self._reader.post(action)

    @property
    def lull(self) -> float:
        """Seconds for which answers may gather, while the server has enough to do; 0 where each is to be seen at once.

        A server that is slow enough to be waited for is best left alone: every answer that is looked at for itself
        takes a processor from it, and costs more than if it were looked at with others.
        """
        under_way = min(self._binder.outstanding, self._limits.bind_workers)
        if under_way < MANY or self._pace.seconds < SWIFT:
            return 0.0
        return min(under_way * GATHERED * self._pace.seconds, LONGEST_LULL)

    def record(self, event: RecordEvent) -> None:
        """Write an Event soon, behind the bindings."""
        self._events.record(event)

    @property
    def bindings(self) -> int:
        """Bindings posted, or to be posted, and not answered."""
        return self._binder.outstanding

    @property
    def outstanding(self) -> int:
        """Actions under way whose outcome is awaited at the end."""
        return self._binder.outstanding + self._writer.outstanding + self._evictor.outstanding

    @property
    def has_room(self) -> bool:
        """Whether what a few more cycles decide can be taken."""
        return (
            self._binder.outstanding < self._limits.bindings
            and self._asker.outstanding < self._limits.questions
            and self._events.outbox.has_room
            and self._conditions.outbox.has_room
        )

    async def flush(self) -> None:
        """Write the events and conditions that wait, as far as there is time."""
        left = await self._events.outbox.flush(self._limits.flush_deadline)
        left += await self._conditions.outbox.flush(1.0)
        if left:
            logger.warning("%d events and conditions were not written before the end", left)

    def _bound(self, outcome: Outcome) -> None:
        unanswered = isinstance(outcome, BindUnknown) or (
            isinstance(outcome, BindFailed) and outcome.failure in _NOT_ASKED
        )
        self._pace.ended(answered=not unanswered)
        self._answer(outcome)

    def _seconds_of_bindings(self) -> float:
        """How long the bindings under way will take, and those of the pods that cycles are still to try."""
        outstanding = self._binder.outstanding
        return (outstanding + self._to_decide()) * self._pace.seconds if outstanding else 0.0

    async def _bind_elsewhere(self, bind: Bind) -> Outcome | None:
        if not self._leadership.holds():
            return BindFailed(bind.uid, BindFailure.OVERLOADED, str(NotLeading()))
        return await self._asker.bind(bind)


def _about(action: Bind | Log) -> dict[str, str]:
    """The fields of a log line."""
    pod = f"{action.namespace}/{action.name}"
    return {"pod": pod, "node": action.node, "hash": action.policy_hash[:12]}
