"""Asks extenders which nodes may be taken, how they like them, who may have to leave for a pod, and to bind.

Rules (kube-scheduler's schedule_one.go and extender.go, v1.36; those about a single answer: `http_extender`):
1. Filters are asked one after the other, each about what the one before let through; then all that prioritise at once.
2. A filter that fails fails the pod's attempt, unless the extender is `ignorable`: then it let everything through.
   A prioritise that fails is passed over.
3. About victims they are asked one after the other too, each about what the one before left. One that fails is passed
   over if it is `ignorable`.
4. A binding that an `ignorable` extender does not make is the API server's to make.

The pod is sent as the API server has it, read for the question; whole nodes, where an extender keeps none of its own,
as the watch brought them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar

import msgspec

from policyengine.cluster.kinds import PODS
from policyengine.kube.extenders.http_extender import ExtenderFailed, Filtered, HttpExtender, as_sent
from policyengine.kube.http.client import ApiError, Client, ConnectionFailed
from policyengine.kube.watching.store import Store
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

_Answer = TypeVar("_Answer")


class ExtenderAsker:
    """Asks the extenders what the core wants to know."""

    def __init__(self, extenders: Sequence[HttpExtender], client: Client, nodes: Store[Any], pods: Store[Any]) -> None:
        """Before the first list: an extender may want `nodes` and `pods` whole."""
        self._extenders = extenders
        self._client = client
        self._node_text, self._pod_text = nodes.text, pods.text
        if any(extender.wants_nodes for extender in extenders):
            nodes.texts = {}
        if any(extender.wants_pods for extender in extenders):
            pods.texts = {}

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

    async def ask(self, asked: AskExtenders | AskAboutVictims) -> ExtendersAnswered | VictimsAnswered:
        """What they answer."""
        whom = [self._extenders[number] for number in asked.extenders]
        try:
            pod = await self._pod(asked)
            if isinstance(asked, AskAboutVictims):
                return await self._victims(whom, asked, pod)
            return await self._nodes(whom, asked, pod)
        except ExtenderFailed as error:
            if isinstance(asked, AskAboutVictims):
                return VictimsAnswered(asked, error=str(error))
            return ExtendersAnswered(asked, error=str(error))

    async def _pod(self, asked: AskExtenders | AskAboutVictims) -> msgspec.Raw:
        """The pod as it is now. Raises `ExtenderFailed`."""
        await self._client.throttle()
        try:
            return as_sent(await self._client.call("GET", PODS.path(asked.namespace, asked.name)))
        except (ApiError, ConnectionFailed, msgspec.MsgspecError) as error:
            raise ExtenderFailed(f"the pod cannot be read for the extenders: {error}") from None

    async def _nodes(self, whom: Sequence[HttpExtender], asked: AskExtenders, pod: msgspec.Raw) -> ExtendersAnswered:
        found = Filtered(list(asked.nodes), {}, {})
        for extender in whom:
            if not extender.filters or not found.nodes:
                continue
            said = await self._heard(extender, "filter", extender.filter(pod, found.nodes, self._node_text))
            if said is not None:
                found = Filtered(said.nodes, found.refused | said.refused, found.unresolvable | said.unresolvable)
        scores = await self._scores(whom, pod, found.nodes) if len(found.nodes) > 1 else {}
        return ExtendersAnswered(asked, found.refused, found.unresolvable, scores)

    async def _victims(self, whom: Sequence[HttpExtender], asked: AskAboutVictims, pod: msgspec.Raw) -> VictimsAnswered:
        left = dict(asked.victims)
        for extender in whom:
            if not left:
                break
            said = await self._heard(extender, "preempt", extender.victims(pod, left, asked, self._pod_text))
            if said is not None:
                left = said
        return VictimsAnswered(asked, left)

    async def _scores(self, whom: Sequence[HttpExtender], pod: msgspec.Raw, nodes: list[str]) -> dict[str, int]:
        """The sum of all scores; who does not answer gives none."""

        async def scores(extender: HttpExtender) -> dict[str, int]:
            try:
                return await self._timed(extender, "prioritize", extender.prioritize(pod, nodes, self._node_text))
            except ExtenderFailed as error:
                logger.warning("no scores of extender %s: %s", extender.name, error)
                return {}

        total: dict[str, int] = {}
        for said in await asyncio.gather(*(scores(extender) for extender in whom if extender.prioritizes)):
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
            extender.observe(extender.name, verb, result, loop.time() - began)
