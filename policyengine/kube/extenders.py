"""Asks extenders (kube-scheduler's extender protocol, v1) which nodes may be taken, how they like them, who may have to
leave for a pod, and to bind.

Rules (kube-scheduler's extender.go and schedule_one.go, v1.36):
1. Filters are asked one after the other, each about what the one before let through; then all that prioritise at once.
2. A filter that fails fails the pod's attempt, unless the extender is `ignorable`: then it let everything through.
   A prioritise that fails is passed over.
3. A score from 0 to 10 counts `weight` times, ten times over, so that it is on the plugins' scale.
4. An answer that names a node it was not asked about is an error.
5. About victims they are asked one after the other too, each about what the one before left. An answer with a node
   without victims, or a victim that does not stand there, is an error; one that is `ignorable` is passed over then, or
   only that node.
6. A binding that an `ignorable` extender does not make is the API server's to make.

Bounded: `httpTimeout` a request, `MAX_ANSWER` bytes an answer, `WORKERS` pods asked about at once.

The pod is sent as the API server has it, read for the question; whole nodes, where an extender keeps none of its own,
as the watch brought them.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp
import msgspec

from policyengine.kube.client import ApiError, Client
from policyengine.kube.configuration import seconds_of
from policyengine.kube.transport import ConnectionFailed
from policyengine.kube.workers import Workers
from policyengine.scheduler.extenders import Extender
from policyengine.scheduler.messages import (
    AskAboutVictims,
    AskExtenders,
    Bind,
    BindFailed,
    BindFailure,
    BindSucceeded,
    BindUnknown,
    ExtendersAnswered,
    NodeVictims,
    VictimsAnswered,
)

logger = logging.getLogger(__name__)

MAX_ANSWER = 64 * 1024 * 1024
"""Bytes: 5,000 whole nodes take about 50 MB."""
WORKERS = 32
MAX_SCORE = 10
_SCALE = 10
"""MaxNodeScore / MaxExtenderPriority."""

NodeText = Callable[[str], bytes | None]
"""A node's name -> the node as the API server has it."""
PodText = Callable[[str, str], bytes | None]
"""(name, namespace) -> the pod as the API server has it."""
Observe = Callable[[str, str, str, float], None]
"""(extender, verb, result, seconds) -> nothing."""


class ExtenderUnusable(Exception):
    """An extender's TLS files cannot be used; one sentence that says what to do."""


class ExtenderFailed(Exception):
    """An extender did not answer, or not as the protocol has it. `sent`: it may have acted all the same."""

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent


class _Named(msgspec.Struct):
    name: str = ""


class _Node(msgspec.Struct):
    metadata: _Named


class _Nodes(msgspec.Struct):
    items: list[_Node] | None = None


class _FilterResult(msgspec.Struct, rename="pascal"):
    """ExtenderFilterResult."""

    nodes: _Nodes | None = None
    node_names: list[str] | None = None
    failed_nodes: dict[str, str] | None = None
    failed_and_unresolvable_nodes: dict[str, str] | None = None
    error: str = ""


class _HostPriority(msgspec.Struct, rename="pascal"):
    host: str = ""
    score: int = 0


class _BindingResult(msgspec.Struct, rename="pascal"):
    error: str = ""


class _MetaPod(msgspec.Struct, rename={"uid": "UID"}):
    uid: str = ""


class _MetaVictims(msgspec.Struct, rename={"pods": "Pods", "violations": "NumPDBViolations"}):
    pods: list[_MetaPod] | None = None
    violations: int = 0


class _PreemptionResult(msgspec.Struct, rename={"victims": "NodeNameToMetaVictims"}):
    """ExtenderPreemptionResult: names of victims, whatever was sent."""

    victims: dict[str, _MetaVictims | None] | None = None


_decode_filtered = msgspec.json.Decoder(_FilterResult).decode
_decode_priorities = msgspec.json.Decoder(list[_HostPriority] | None).decode
_decode_victims = msgspec.json.Decoder(_PreemptionResult).decode
_decode_bound = msgspec.json.Decoder(_BindingResult).decode
_encode = msgspec.json.Encoder().encode


@dataclass
class _Verdict:
    """What is left, and who was against the rest."""

    nodes: list[str]
    refused: dict[str, tuple[str, str]]
    unresolvable: dict[str, tuple[str, str]]


class HttpExtender:
    """One extender, as configured (`extenders` of the configuration, completed by defaults)."""

    def __init__(self, given: Mapping[str, Any], session: aiohttp.ClientSession) -> None:
        """Raises `ExtenderUnusable`."""
        self.given = given
        self.prefix = given["urlPrefix"].rstrip("/")
        if given["enableHTTPS"] and self.prefix.startswith("http://"):
            self.prefix = "https://" + self.prefix.removeprefix("http://")
        self.ignorable: bool = given["ignorable"]
        self._session = session
        self._timeout = seconds_of(given["httpTimeout"])
        self._ssl = _ssl_context(given["tlsConfig"], self.prefix) if self.prefix.startswith("https://") else None

    @property
    def wants_nodes(self) -> bool:
        """Whether it is sent whole nodes."""
        return not self.given["nodeCacheCapable"] and self.described().decides

    @property
    def wants_pods(self) -> bool:
        """Whether it is sent whole pods beside the one in question."""
        return not self.given["nodeCacheCapable"] and self.described().preempts

    def described(self) -> Extender:
        """What the core knows of it."""
        return Extender(
            name=self.given["urlPrefix"],
            resources=frozenset(one["name"] for one in self.given["managedResources"]),
            decides=bool(self.given["filterVerb"] or self.given["prioritizeVerb"]),
            preempts=bool(self.given["preemptVerb"]),
            binds=bool(self.given["bindVerb"]),
            unchecked=frozenset(one["name"] for one in self.given["managedResources"] if one["ignoredByScheduler"]),
        )

    async def filter(self, pod: msgspec.Raw, nodes: list[str], text: NodeText) -> _Verdict:
        """The nodes it lets through. Raises `ExtenderFailed`."""
        body = await self._send("filterVerb", self._args(pod, nodes, text))
        answer = _decoded(_decode_filtered, body, "ExtenderFilterResult")
        if answer.error:
            raise ExtenderFailed(answer.error)
        if self.given["nodeCacheCapable"] and answer.node_names is not None:
            left = answer.node_names
        elif answer.nodes is not None:
            left = [node.metadata.name for node in answer.nodes.items or ()]
        else:
            left = answer.node_names or []
        known = set(nodes)
        stray = next((name for name in left if name not in known), None)
        if stray is not None:
            raise ExtenderFailed(f"it claims the node `{stray}`, which it was not asked about")
        kept = set(left)
        return _Verdict([name for name in nodes if name in kept], *self._against(answer, known - kept))

    def _against(
        self, answer: _FilterResult, gone: set[str]
    ) -> tuple[dict[str, tuple[str, str]], dict[str, tuple[str, str]]]:
        """Why each of the nodes that are gone is; one that no reason is given for was refused by the extender."""
        name = self.given["urlPrefix"]
        lasting = answer.failed_and_unresolvable_nodes or {}
        said = answer.failed_nodes or {}
        silent = f"node(s) were refused by extender {name}"
        refused = {node: (name, said.get(node) or silent) for node in gone if node not in lasting}
        return refused, {node: (name, lasting[node] or silent) for node in gone if node in lasting}

    async def prioritize(self, pod: msgspec.Raw, nodes: list[str], text: NodeText) -> dict[str, int]:
        """Weighted scores by node. Raises `ExtenderFailed`."""
        body = await self._send("prioritizeVerb", self._args(pod, nodes, text))
        weight = self.given["weight"] * _SCALE
        answer = _decoded(_decode_priorities, body, "HostPriorityList") or ()
        return {one.host: max(0, min(MAX_SCORE, one.score)) * weight for one in answer}

    async def victims(
        self, pod: msgspec.Raw, victims: Mapping[str, NodeVictims], asked: AskAboutVictims, text: PodText
    ) -> dict[str, NodeVictims]:
        """Where room may be made, and by whose leaving. Raises `ExtenderFailed`."""
        body = await self._send("preemptVerb", self._preemption_args(pod, victims, asked, text))
        answer = _decoded(_decode_victims, body, "ExtenderPreemptionResult").victims or {}
        found: dict[str, NodeVictims] = {}
        for node, said in answer.items():
            if node not in victims:
                raise ExtenderFailed(f"it claims victims on the node `{node}`, which it was not asked about")
            uids = tuple(one.uid for one in (said.pods if said is not None else None) or ())
            stray = next((uid for uid in uids if uid not in asked.pods[node]), None)
            if stray is not None:
                raise ExtenderFailed(f"it claims to preempt the pod `{stray}` on the node `{node}`, which is not there")
            found[node] = NodeVictims(uids, said.violations if said is not None else 0)
        empty = [node for node, left in found.items() if not left.pods]
        if empty and not self.ignorable:
            raise ExtenderFailed(f"expected at least one victim pod on node `{empty[0]}`")
        return {node: left for node, left in found.items() if left.pods}

    async def bind(self, bind: Bind) -> None:
        """Have it bind the pod. Raises `ExtenderFailed`."""
        args = {"PodName": bind.name, "PodNamespace": bind.namespace, "PodUID": bind.uid, "Node": bind.node}
        answer = _decoded(_decode_bound, await self._send("bindVerb", _encode(args)), "ExtenderBindingResult")
        if answer.error:
            raise ExtenderFailed(answer.error, sent=False)

    def _args(self, pod: msgspec.Raw, nodes: Sequence[str], text: NodeText) -> bytes:
        """ExtenderArgs, as kube-scheduler sends it."""
        if self.given["nodeCacheCapable"]:
            return _encode({"Pod": pod, "Nodes": None, "NodeNames": nodes})
        items = [msgspec.Raw(raw) for name in nodes if (raw := text(name)) is not None]
        return _encode({"Pod": pod, "Nodes": {"metadata": {}, "items": items}, "NodeNames": None})

    def _preemption_args(
        self, pod: msgspec.Raw, victims: Mapping[str, NodeVictims], asked: AskAboutVictims, text: PodText
    ) -> bytes:
        """ExtenderPreemptionArgs, as kube-scheduler sends it: UIDs to who keeps a cache, else the pods themselves."""

        def whole(node: str, uids: Sequence[str]) -> list[msgspec.Raw]:
            keys = map(asked.pods[node].__getitem__, uids)
            return [_as_sent(raw) for namespace, name in keys if (raw := text(name, namespace)) is not None]

        def by_uid(node: str, uids: Sequence[str]) -> list[dict[str, str]]:
            return [{"UID": uid} for uid in uids]

        knows = self.given["nodeCacheCapable"]
        shown: Callable[[str, Sequence[str]], list[Any]] = by_uid if knows else whole
        of_nodes = {
            node: {"Pods": shown(node, one.pods), "NumPDBViolations": one.violations}
            for node, one in sorted(victims.items())
        }
        by_name, by_meta = (None, of_nodes) if knows else (of_nodes, None)
        return _encode({"Pod": pod, "NodeNameToVictims": by_name, "NodeNameToMetaVictims": by_meta})

    async def _send(self, verb: str, body: bytes) -> bytes:
        url = f"{self.prefix}/{self.given[verb].lstrip('/')}"
        try:
            async with self._session.post(
                url,
                data=body,
                headers={"Content-Type": "application/json"},
                ssl=self._ssl if self._ssl is not None else True,
                timeout=aiohttp.ClientTimeout(total=self._timeout),
                allow_redirects=False,
            ) as response:
                answer = await _read(response)
                if response.status != 200:
                    raise ExtenderFailed(f"`{url}` answers with HTTP status {response.status}")
                return answer
        except TimeoutError:
            raise ExtenderFailed(f"`{url}` did not answer within {self._timeout:g} s") from None
        except aiohttp.ClientConnectorError as error:
            raise ExtenderFailed(f"`{url}` cannot be reached: {error.os_error.strerror or error}", sent=False) from None
        except (aiohttp.ClientError, OSError) as error:
            raise ExtenderFailed(f"`{url}` failed: {error or type(error).__name__}") from None


Asked = AskExtenders | AskAboutVictims
Answered = ExtendersAnswered | VictimsAnswered


class ExtenderAsker(Workers[Asked, Answered]):
    """Takes the questions of the core; `answer` gets one message for each."""

    def __init__(
        self,
        extenders: Sequence[HttpExtender],
        client: Client,
        text: NodeText,
        pod_text: PodText,
        answer: Callable[[Answered], None],
        observe: Observe = lambda extender, verb, result, seconds: None,
    ) -> None:
        super().__init__(answer, WORKERS)
        self._extenders = extenders
        self._client = client
        self._text = text
        self._pod_text = pod_text
        self._observe = observe

    async def bind(self, bind: Bind) -> BindSucceeded | BindFailed | BindUnknown | None:
        """Have the extender that a binding names make it; None where that is left to the API server (rule 6)."""
        assert bind.extender is not None
        extender = self._extenders[bind.extender]
        try:
            await self._timed(extender, "bind", extender.bind(bind))
        except ExtenderFailed as error:
            told = f"extender {extender.given['urlPrefix']}: {error}"
            if extender.ignorable:
                logger.warning("%s; the binding is made without it", told)
                return None
            return BindUnknown(bind.uid, told) if error.sent else BindFailed(bind.uid, BindFailure.REFUSED, told)
        return BindSucceeded(bind.uid)

    async def _do(self, asked: Asked) -> Answered:
        answer: Callable[[Any, msgspec.Raw], Awaitable[Answered]] = self._nodes
        refuse: Callable[..., Answered] = ExtendersAnswered
        if isinstance(asked, AskAboutVictims):
            answer, refuse = self._victims, VictimsAnswered
        try:
            pod = _as_sent(await self._client.read_pod(asked.namespace, asked.name))
        except (ApiError, ConnectionFailed, msgspec.MsgspecError) as error:
            return refuse(asked, error=f"the pod cannot be read for the extenders: {error}")
        return await answer(asked, pod)

    async def _nodes(self, asked: AskExtenders, pod: msgspec.Raw) -> ExtendersAnswered:
        whom = [self._extenders[number] for number in asked.extenders]
        found = _Verdict(list(asked.nodes), {}, {})
        for extender in whom:
            if not extender.given["filterVerb"] or not found.nodes:
                continue
            try:
                said = await self._timed(extender, "filter", extender.filter(pod, found.nodes, self._text))
            except ExtenderFailed as error:
                if extender.ignorable:
                    logger.warning("extender %s is passed over: %s", extender.given["urlPrefix"], error)
                    continue
                return ExtendersAnswered(asked, error=f"extender {extender.given['urlPrefix']}: {error}")
            found = _Verdict(said.nodes, found.refused | said.refused, found.unresolvable | said.unresolvable)
        scores = await self._scores(whom, pod, found.nodes) if len(found.nodes) > 1 else {}
        return ExtendersAnswered(asked, found.refused, found.unresolvable, scores)

    async def _victims(self, asked: AskAboutVictims, pod: msgspec.Raw) -> VictimsAnswered:
        left = dict(asked.victims)
        for extender in (self._extenders[number] for number in asked.extenders):
            if not left:
                break
            try:
                work = extender.victims(pod, left, asked, self._pod_text)
                left = await self._timed(extender, "preempt", work)
            except ExtenderFailed as error:
                if extender.ignorable:
                    logger.warning("extender %s is passed over: %s", extender.given["urlPrefix"], error)
                    continue
                return VictimsAnswered(asked, error=f"extender {extender.given['urlPrefix']}: {error}")
        return VictimsAnswered(asked, left)

    async def _scores(self, whom: Sequence[HttpExtender], pod: msgspec.Raw, nodes: list[str]) -> dict[str, int]:
        """The sum of all scores; who does not answer gives none."""
        scoring = [extender for extender in whom if extender.given["prioritizeVerb"]]
        work = [self._timed(one, "prioritize", one.prioritize(pod, nodes, self._text)) for one in scoring]
        total: dict[str, int] = {}
        for extender, said in zip(scoring, await asyncio.gather(*work, return_exceptions=True), strict=True):
            if isinstance(said, ExtenderFailed):
                logger.warning("no scores of extender %s: %s", extender.given["urlPrefix"], said)
            elif isinstance(said, BaseException):
                raise said
            else:
                for node, score in said.items():
                    total[node] = total.get(node, 0) + score
        return total

    async def _timed(self, extender: HttpExtender, verb: str, work: Any) -> Any:
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
            self._observe(extender.given["urlPrefix"], verb, result, loop.time() - began)


def _as_sent(pod: bytes) -> msgspec.Raw:
    """A pod as kube-scheduler holds it: without its type, and without the managed fields."""
    fields: dict[str, Any] = msgspec.json.decode(pod)
    fields.pop("kind", None)
    fields.pop("apiVersion", None)
    fields.get("metadata", {}).pop("managedFields", None)
    return msgspec.Raw(_encode(fields))


async def _read(response: aiohttp.ClientResponse) -> bytes:
    parts, size = [], 0
    async for part in response.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > MAX_ANSWER:
            response.close()
            raise ExtenderFailed(f"its answer is longer than {MAX_ANSWER} bytes")
    return b"".join(parts)


def _decoded(decode: Callable[[bytes], Any], body: bytes, what: str) -> Any:
    try:
        return decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ExtenderFailed(f"its answer is no {what}: {error}") from None


def _ssl_context(given: Mapping[str, Any], prefix: str) -> ssl.SSLContext:
    try:
        ca = base64.b64decode(given["caData"], validate=True).decode() if given["caData"] else None
        context = ssl.create_default_context(cafile=given["caFile"] or None, cadata=ca)
        if given["insecure"]:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if given["certFile"]:
            context.load_cert_chain(given["certFile"], given["keyFile"] or None)
        elif given["certData"]:
            _load_data(context, given)
    except (OSError, ssl.SSLError, ValueError) as error:
        text = getattr(error, "strerror", None) or str(error)
        raise ExtenderUnusable(f"extender `{prefix}`: its tlsConfig cannot be used: {text.lower()}") from None
    return context


def _load_data(context: ssl.SSLContext, given: Mapping[str, Any]) -> None:
    """A certificate given in the configuration: `ssl` reads files only, so it is one for a moment."""
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(base64.b64decode(given["certData"], validate=True) + b"\n")
        file.write(base64.b64decode(given["keyData"], validate=True))
        file.flush()
        context.load_cert_chain(file.name)
