"""Sends what the core decided: each action becomes a request, and its outcome a message back.

Bindings go first; events and conditions wait behind them (`request_queue`). If too many bindings, questions to
extenders or background writes are under way there is no room (`has_room`), and no cycle runs.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from random import Random
from typing import Any

from policyengine.clock import Clock
from policyengine.kube.config.limits import Limits
from policyengine.kube.extenders.http_extender import HttpExtender
from policyengine.kube.extenders.requests import ExtenderAsker, Observe
from policyengine.kube.http.client import Client
from policyengine.kube.leader import Leadership, NotLeading
from policyengine.kube.watching.informers import Informers
from policyengine.kube.writing import requests
from policyengine.kube.writing.conditions import ConditionWriter
from policyengine.kube.writing.events import EventRecorder
from policyengine.kube.writing.request_queue import RequestQueue
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
from policyengine.scheduler.messages import BindFailed, BindFailure, Message

QUESTIONS_AT_ONCE = 32
"""Pods that extenders are asked about at once."""

logger = logging.getLogger("policyengine.kube.runner")
"""By this name users know the lines of their policies."""


class Writer:
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
        leadership: Leadership,
        limits: Limits,
        host: str,
        extenders: Sequence[HttpExtender],
        observe_extender: Observe,
    ) -> None:
        """`answer` takes the outcomes; `may_bind` says whether a `Bind` still stands, by the pod's UID."""
        self._client = client
        self._clock = clock
        self._answer = answer
        self._may_bind = may_bind
        self._leadership = leadership
        self._limits = limits
        self._pods = informers.pods
        if any(extender.wants_nodes for extender in extenders):
            informers.nodes.keep_texts()
        if any(extender.wants_pods for extender in extenders):
            informers.pods.keep_texts()
        self._extenders = ExtenderAsker(
            extenders, client, informers.nodes.text, informers.pods.text, observe=observe_extender
        )
        self.queue = RequestQueue(
            clock, random, workers=limits.writes, limiter=client.limiter, on_problem=logger.warning
        )
        self._questions = RequestQueue(clock, random, workers=QUESTIONS_AT_ONCE)
        self._events = EventRecorder(client, clock, self.queue, host=host, on_problem=logger.warning)
        self._conditions = ConditionWriter(client, clock, self.queue)
        self._under_way: Counter[str] = Counter()
        """Requests that are not answered yet, by what they do."""

    def work(self) -> list[Coroutine[Any, Any, None]]:
        """What is to run until cancelled."""
        return [self.queue.run(), self._questions.run()]

    def dispatch(self, action: Action) -> None:
        """Have it done soon."""
        match action:
            case Bind():
                self._send("bind", partial(self._bind, action))
                if logger.isEnabledFor(logging.DEBUG):
                    logger.debug("binding", extra=_about(action))
            case RecordEvent():
                self._events.record(action)
                if logger.isEnabledFor(logging.DEBUG):
                    pod = f"{action.namespace}/{action.name}"
                    logger.debug("%s: %s", action.reason, action.note, extra={"pod": pod})
            case PatchPodCondition():
                self._conditions.write(action)
            case DeleteVictim():
                self._send("delete", partial(requests.delete_victim, self._client, self._clock, action))
            case PatchObject():
                self._send("patch", partial(requests.patch_object, self._client, action))
            case ReadPod():
                self._send("read", partial(requests.read_pod, self._client, self._pods, action))
            case AskExtenders() | AskAboutVictims():
                self._send("ask", partial(self._extenders.ask, action), self._questions)
            case Log():
                logger.info("%s: %s", action.point, action.message, extra=_about(action))

    def _send(self, what: str, request: Callable[[], Awaitable[Message]], queue: RequestQueue | None = None) -> None:
        """Have the request made in its turn, and its outcome answered."""
        self._under_way[what] += 1

        async def send() -> None:
            outcome = await request()
            self._under_way[what] -= 1
            self._answer(outcome)

        (queue or self.queue).send(send)

    def record(self, event: RecordEvent) -> None:
        """Write an Event soon, behind the bindings."""
        self._events.record(event)

    @property
    def bindings(self) -> int:
        """Bindings sent, or to be sent, and not answered."""
        return self._under_way["bind"]

    @property
    def outstanding(self) -> int:
        """Requests whose outcome is awaited at the end."""
        return self._under_way["bind"] + self._under_way["delete"] + self._under_way["patch"]

    @property
    def has_room(self) -> bool:
        """Whether what a few more cycles decide can be taken."""
        return (
            self.bindings < self._limits.bindings
            and self._under_way["ask"] < self._limits.questions
            and self.queue.has_room
        )

    async def flush(self) -> None:
        """Write the events and conditions that wait, if there is time."""
        left = await self.queue.flush(self._limits.flush_deadline)
        if left:
            logger.warning("%d events and conditions were not written before the end", left)

    async def _bind(self, action: Bind) -> requests.BindOutcome:
        """Bind a pod, once the condition of it that is under way has been written, and none is to follow."""
        under_way = self._conditions.settle(action.uid)
        if under_way is not None:
            await under_way
        # Asked at the last moment: the node may have gone, or been tainted, since the decision.
        if not self._may_bind(action.uid):
            return BindFailed(action.uid, BindFailure.WITHDRAWN, "the decision no longer stands")
        if action.extender is not None:
            if not self._leadership.holds():
                return BindFailed(action.uid, BindFailure.OVERLOADED, str(NotLeading()))
            outcome = await self._extenders.bind(action)
            if outcome is not None:
                return outcome
        return await requests.bind(self._client, action)


def _about(action: Bind | Log) -> dict[str, str]:
    """The fields of a log line."""
    pod = f"{action.namespace}/{action.name}"
    return {"pod": pod, "node": action.node, "hash": action.policy_hash[:12]}
