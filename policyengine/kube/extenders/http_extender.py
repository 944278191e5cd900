"""Extenders over HTTP (kube-scheduler's HTTPExtender): each verb of one a method, its answers held against what it was
asked; and `ExtenderAsker`, which asks all that a pod concerns.

Rules about one answer (kube-scheduler's extender.go, v1.36):
1. A score from 0 to 10 counts `weight` times, ten times over, so that it is on the plugins' scale.
2. An answer that names a node it was not asked about is an error.
3. About victims, an answer with a node without victims, or a victim that does not stand there, is an error; from one
   that is `ignorable` a node without victims is left out instead.
4. A POST is bounded in time (`httpTimeout`) and in the size of its answer (`MAX_ANSWER`).

Rules about several (schedule_one.go and extender.go):
5. Filters are asked one after the other, each about what the one before let through; then all that prioritise at once.
6. A filter that fails fails the pod's attempt, unless the extender is `ignorable`: then it let everything through.
   A prioritise that fails is passed over.
7. About victims they are asked one after the other too, each about what the one before left. One that fails is passed
   over if it is `ignorable`.
8. A binding that an `ignorable` extender does not make is the API server's to make.

The pod is sent as the API server has it, read for the question; whole nodes, where an extender keeps none of its own,
as the watch brought them.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from base64 import b64decode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from policyengine.cluster.kinds import PODS
from policyengine.kube.config.configuration import seconds_of
from policyengine.kube.config.credentials import load_certificate
from policyengine.kube.config.kubeconfig import Pem
from policyengine.kube.extenders import protocol
from policyengine.kube.extenders.protocol import ExtenderFailed, as_sent
from policyengine.kube.http.client import JSON, ApiError, Client, ConnectionFailed, TimedOut, Transport
from policyengine.kube.watching.store import Store
from policyengine.scheduler.actions import AskAboutVictims, AskExtenders, Bind, NodeVictims
from policyengine.scheduler.extender import Extender
from policyengine.scheduler.messages import (
    BindFailed,
    BindFailure,
    BindSucceeded,
    BindUnknown,
    ExtendersAnswered,
    VictimsAnswered,
)

logger = logging.getLogger(__name__)

MAX_SCORE = 10
"""MaxExtenderPriority."""
_SCALE = 10
"""MaxNodeScore / MaxExtenderPriority."""
MAX_ANSWER = 64 * 1024 * 1024
"""Bytes: 5,000 whole nodes take about 50 MB."""

Text = Callable[[str, str], bytes | None]
"""(name, namespace) -> the object as the API server has it."""
Observe = Callable[[str, str, str, float], None]
"""(extender, verb, result, seconds) -> nothing."""
_Answer = TypeVar("_Answer")


class ExtenderUnusable(Exception):
    """An extender's TLS files cannot be used; one sentence that says what to do."""


@dataclass(frozen=True)
class Filtered:
    """What is left, and who was against the rest: node -> (extender, reason)."""

    nodes: list[str]
    refused: dict[str, tuple[str, str]]
    unresolvable: dict[str, tuple[str, str]]


class HttpExtender:
    """One extender, as configured (`extenders` of the configuration, completed by defaults)."""

    def __init__(
        self,
        given: Mapping[str, Any],
        transport: Transport | None = None,
        observe: Observe = lambda extender, verb, result, seconds: None,
    ) -> None:
        """Use inside a running event loop. `transport`: another way to it than sockets. Raises `ExtenderUnusable`."""
        from policyengine.kube.http.aiohttp_transport import AiohttpTransport

        self._given = given
        self._prefix: str = given["urlPrefix"].rstrip("/")
        if given["enableHTTPS"] and self._prefix.startswith("http://"):
            self._prefix = "https://" + self._prefix.removeprefix("http://")
        self._timeout = seconds_of(given["httpTimeout"])
        context = _ssl_context(given["tlsConfig"], self._prefix) if self._prefix.startswith("https://") else None
        self._transport = transport or AiohttpTransport(self._prefix, ssl_context=context, max_answer=MAX_ANSWER)
        self._knows_nodes: bool = given["nodeCacheCapable"]
        self.observe = observe
        self.name: str = given["urlPrefix"]
        self.ignorable: bool = given["ignorable"]
        self.filters = bool(given["filterVerb"])
        self.prioritizes = bool(given["prioritizeVerb"])
        self.preempts = bool(given["preemptVerb"])
        self.wants_nodes = not self._knows_nodes and (self.filters or self.prioritizes)
        """Whether it is sent whole nodes."""
        self.wants_pods = not self._knows_nodes and self.preempts
        """Whether it is sent whole pods beside the one in question."""

    def described(self) -> Extender:
        """What the core knows of it."""
        managed = self._given["managedResources"]
        return Extender(
            name=self.name,
            resources=frozenset(one["name"] for one in managed),
            decides=self.filters or self.prioritizes,
            preempts=self.preempts,
            binds=bool(self._given["bindVerb"]),
            unchecked=frozenset(one["name"] for one in managed if one["ignoredByScheduler"]),
        )

    async def filter(self, pod: msgspec.Raw, nodes: Sequence[str], text: Text) -> Filtered:
        """The nodes it lets through. Raises `ExtenderFailed`."""
        answer = protocol.filter_result(await self.post(self._given["filterVerb"], self._args(pod, nodes, text)))
        passed = set(answer.passed(by_name=self._knows_nodes))
        stray = min(passed.difference(nodes), default=None)
        if stray is not None:
            raise ExtenderFailed(f"it claims the node `{stray}`, which it was not asked about")
        gone = [node for node in nodes if node not in passed]
        lasting = answer.failed_and_unresolvable_nodes or {}
        said = answer.failed_nodes or {}
        silent = f"node(s) were refused by extender {self.name}"
        return Filtered(
            nodes=[node for node in nodes if node in passed],
            refused={node: (self.name, said.get(node) or silent) for node in gone if node not in lasting},
            unresolvable={node: (self.name, lasting[node] or silent) for node in gone if node in lasting},
        )

    async def prioritize(self, pod: msgspec.Raw, nodes: Sequence[str], text: Text) -> dict[str, int]:
        """Weighted scores by node. Raises `ExtenderFailed`."""
        answer = protocol.priorities(await self.post(self._given["prioritizeVerb"], self._args(pod, nodes, text)))
        weight = self._given["weight"] * _SCALE
        return {one.host: max(0, min(MAX_SCORE, one.score)) * weight for one in answer}

    async def victims(
        self, pod: msgspec.Raw, victims: Mapping[str, NodeVictims], asked: AskAboutVictims, text: Text
    ) -> dict[str, NodeVictims]:
        """Where room may be made, and by whose leaving. Raises `ExtenderFailed`."""
        if self._knows_nodes:
            body = protocol.preemption_args_of_uids(pod, victims)
        else:
            body = protocol.preemption_args_of_pods(pod, victims, asked.pods, text)
        found = protocol.preemption_result(await self.post(self._given["preemptVerb"], body))
        for node, left in found.items():
            if node not in victims:
                raise ExtenderFailed(f"it claims victims on the node `{node}`, which it was not asked about")
            stray = next((uid for uid in left.pods if uid not in asked.pods[node]), None)
            if stray is not None:
                raise ExtenderFailed(f"it claims to preempt the pod `{stray}` on the node `{node}`, which is not there")
            if not left.pods and not self.ignorable:
                raise ExtenderFailed(f"expected at least one victim pod on node `{node}`")
        return {node: left for node, left in found.items() if left.pods}

    async def bind(self, bind: Bind) -> None:
        """Have it bind the pod. Raises `ExtenderFailed`."""
        protocol.binding_result(await self.post(self._given["bindVerb"], protocol.binding_args(bind)))

    def _args(self, pod: msgspec.Raw, nodes: Sequence[str], text: Text) -> bytes:
        if self._knows_nodes:
            return protocol.args_of_names(pod, nodes)
        return protocol.args_of_nodes(pod, [raw for name in nodes if (raw := text(name, "")) is not None])

    async def post(self, verb: str, body: bytes) -> bytes:
        """What it answers at the path `verb` below its prefix. Raises `ExtenderFailed`."""
        path = f"/{verb.lstrip('/')}"
        url = self._prefix + path
        headers = {"Content-Type": JSON}
        try:
            response = await self._transport.request("POST", path, body=body, headers=headers, timeout=self._timeout)
            try:
                answer = await response.read()
            finally:
                await response.close()
        except TimedOut:
            raise ExtenderFailed(f"`{url}` did not answer within {self._timeout:g} s") from None
        except ConnectionFailed as error:
            what = "failed" if error.sent else "cannot be reached"
            raise ExtenderFailed(f"`{url}` {what}: {error}", sent=error.sent) from None
        if response.status != 200:
            raise ExtenderFailed(f"`{url}` answers with HTTP status {response.status}")
        return answer

    async def close(self) -> None:
        """Close its connections."""
        await self._transport.close()


def _ssl_context(given: Mapping[str, Any], prefix: str) -> ssl.SSLContext:
    try:
        ca = b64decode(given["caData"], validate=True).decode() if given["caData"] else None
        context = ssl.create_default_context(cafile=given["caFile"] or None, cadata=ca)
        if given["insecure"]:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        certificate = _pem(given["certFile"], given["certData"])
        if certificate is not None:
            load_certificate(context, certificate, _pem(given["keyFile"], given["keyData"]))
    except (OSError, ValueError) as error:  # also ssl.SSLError
        text = getattr(error, "strerror", None) or str(error)
        raise ExtenderUnusable(f"extender `{prefix}`: its tlsConfig cannot be used: {text.lower()}") from None
    return context


def _pem(path: str, data: str) -> Pem | None:
    if path or data:
        return Pem(path, b"" if path else b64decode(data, validate=True))
    return None


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
        """Have the extender that a binding names make it; None where that is left to the API server (rule 8)."""
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
