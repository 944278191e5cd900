"""Asks extenders (kube-scheduler's extender protocol, v1) which nodes may be taken, how they like them, who may have to
leave for a pod, and to bind.

Rules (kube-scheduler's schedule_one.go and extender.go, v1.36; those about a single answer: `http_extender`):
1. Filters are asked one after the other, each about what the one before let through; then all that prioritise at once.
2. A filter that fails fails the pod's attempt, unless the extender is `ignorable`: then it let everything through.
   A prioritise that fails is passed over.
3. About victims they are asked one after the other too, each about what the one before left. One that fails is passed
   over if it is `ignorable`.
4. A binding that an `ignorable` extender does not make is the API server's to make.

Bounded: how many pods are asked about at once by `writer`, a request by `connection`.

The pod is sent as the API server has it, read for the question; whole nodes, where an extender keeps none of its own,
as the watch brought them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import msgspec

from policyengine.kube.extenders.http_extender import Filtered, HttpExtender, NodeText, PodText
from policyengine.kube.extenders.protocol import ExtenderFailed, as_sent
from policyengine.kube.http.client import ApiError, Client
from policyengine.kube.http.transport import ConnectionFailed
from policyengine.scheduler.actions import AskAboutVictims, AskExtenders, Bind
from policyengine.scheduler.messages import (
    BindFailed,
    BindFailure,
    BindSucceeded,
    BindUnknown,
    ExtendersAnswered,
    VictimsAnswered,
)

logger = logging.getLogger(__name__)

Asked = AskExtenders | AskAboutVictims
Answered = ExtendersAnswered | VictimsAnswered
Observe = Callable[[str, str, str, float], None]
"""(extender, verb, result, seconds) -> nothing."""
_Answer = TypeVar("_Answer")


class ExtenderAsker:
    """Asks the extenders what the core wants to know."""

    def __init__(
        self,
        extenders: Sequence[HttpExtender],
        client: Client,
        text: NodeText,
        pod_text: PodText,
        observe: Observe = lambda extender, verb, result, seconds: None,
    ) -> None:
        self._extenders = extenders
        self._client = client
        self._text = text
        self._pod_text = pod_text
        self._observe = observe

    async def bind(self, bind: Bind) -> BindSucceeded | BindFailed | BindUnknown | None:
        """Have the extender that a binding names make it; None where that is left to the API server (rule 4)."""
        assert bind.extender is not None
        extender = self._extenders[bind.extender]
        try:
            await self._timed(extender, "bind", extender.bind(bind))
        except ExtenderFailed as error:
            told = f"extender {extender.name}: {error}"
            if extender.ignorable:
                logger.warning("%s; the binding is made without it", told)
                return None
            return BindUnknown(bind.uid, told) if error.sent else BindFailed(bind.uid, BindFailure.REFUSED, told)
        return BindSucceeded(bind.uid)

    async def ask(self, asked: Asked) -> Answered:
        """What they answer."""
        try:
            pod = await self._pod(asked)
            if isinstance(asked, AskAboutVictims):
                return await self._victims(asked, pod)
            return await self._nodes(asked, pod)
        except ExtenderFailed as error:
            return _failed(asked, str(error))

    async def _pod(self, asked: Asked) -> msgspec.Raw:
        """The pod as it is now. Raises `ExtenderFailed`."""
        await self._client.throttle()
        try:
            return as_sent(await self._client.read_pod(asked.namespace, asked.name))
        except (ApiError, ConnectionFailed, msgspec.MsgspecError) as error:
            raise ExtenderFailed(f"the pod cannot be read for the extenders: {error}") from None

    async def _nodes(self, asked: AskExtenders, pod: msgspec.Raw) -> ExtendersAnswered:
        whom = [self._extenders[number] for number in asked.extenders]
        found = Filtered(list(asked.nodes), {}, {})
        for extender in whom:
            if not extender.filters or not found.nodes:
                continue
            said = await self._heard(extender, "filter", extender.filter(pod, found.nodes, self._text))
            if said is not None:
                found = Filtered(said.nodes, found.refused | said.refused, found.unresolvable | said.unresolvable)
        scores = await self._scores(whom, pod, found.nodes) if len(found.nodes) > 1 else {}
        return ExtendersAnswered(asked, found.refused, found.unresolvable, scores)

    async def _victims(self, asked: AskAboutVictims, pod: msgspec.Raw) -> VictimsAnswered:
        left = dict(asked.victims)
        for extender in (self._extenders[number] for number in asked.extenders):
            if not left:
                break
            said = await self._heard(extender, "preempt", extender.victims(pod, left, asked, self._pod_text))
            if said is not None:
                left = said
        return VictimsAnswered(asked, left)

    async def _scores(self, whom: Sequence[HttpExtender], pod: msgspec.Raw, nodes: list[str]) -> dict[str, int]:
        """The sum of all scores; who does not answer gives none."""
        scoring = [extender for extender in whom if extender.prioritizes]
        work = [self._timed(one, "prioritize", one.prioritize(pod, nodes, self._text)) for one in scoring]
        total: dict[str, int] = {}
        for extender, said in zip(scoring, await asyncio.gather(*work, return_exceptions=True), strict=True):
            if isinstance(said, ExtenderFailed):
                logger.warning("no scores of extender %s: %s", extender.name, said)
            elif isinstance(said, BaseException):
                raise said
            else:
                for node, score in said.items():
                    total[node] = total.get(node, 0) + score
        return total

    async def _heard(self, extender: HttpExtender, verb: str, work: Awaitable[_Answer]) -> _Answer | None:
        """What it answers; None if it failed and is `ignorable`. Raises `ExtenderFailed`, with its name."""
        try:
            return await self._timed(extender, verb, work)
        except ExtenderFailed as error:
            if not extender.ignorable:
                raise ExtenderFailed(f"extender {extender.name}: {error}") from None
            logger.warning("extender %s is passed over: %s", extender.name, error)
            return None

    async def _timed(self, extender: HttpExtender, verb: str, work: Awaitable[_Answer]) -> _Answer:
        loop = asyncio.get_running_loop()
        began, result = loop.time(), "error"
        try:
            answer = await work
            result = "ok"
            return answer
        except ExtenderFailed:
            result = "ignored" if extender.ignorable and verb != "prioritize" else "error"
            raise
        finally:
            self._observe(extender.name, verb, result, loop.time() - began)


def _failed(asked: Asked, error: str) -> Answered:
    if isinstance(asked, AskAboutVictims):
        return VictimsAnswered(asked, error=error)
    return ExtendersAnswered(asked, error=error)
