"""One extender over HTTP (kube-scheduler's HTTPExtender): each of its verbs a method, its answers held against what it
was asked.

Rules (kube-scheduler's extender.go, v1.36):
1. A score from 0 to 10 counts `weight` times, ten times over, so that it is on the plugins' scale.
2. An answer that names a node it was not asked about is an error.
3. About victims, an answer with a node without victims, or a victim that does not stand there, is an error; from one
   that is `ignorable` a node without victims is left out instead.
4. A POST is bounded in time (`httpTimeout`) and in the size of its answer (`MAX_ANSWER`).

The bodies are those of k8s.io/kube-scheduler/extender/v1 (types.go). Go writes them without JSON names, so their keys
are capitalised; pods and nodes in them are the bytes the API server sent.
"""

from __future__ import annotations

import ssl
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from policyengine import regular_file
from policyengine.cluster.objects import Int64
from policyengine.kube.config.configuration import seconds_of
from policyengine.kube.config.credentials import LARGEST_PEM, load_certificate
from policyengine.kube.config.kubeconfig import Pem
from policyengine.kube.http.client import JSON, ConnectionFailed, TimedOut, Transport
from policyengine.scheduler.actions import AskAboutVictims, Bind, NodeVictims
from policyengine.scheduler.extender import Extender

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
_encode = msgspec.json.Encoder().encode


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


class _NodeList(msgspec.Struct):
    items: list[_Node] | None = None


class ExtenderFilterResult(msgspec.Struct, rename="pascal"):
    """The names of the nodes, whatever was sent."""

    nodes: _NodeList | None = None
    node_names: list[str] | None = None
    failed_nodes: dict[str, str] | None = None
    failed_and_unresolvable_nodes: dict[str, str] | None = None
    error: str = ""

    def passed(self, *, by_name: bool) -> list[str]:
        """The nodes let through; `by_name`: whether the extender was sent names, which then count first."""
        if by_name and self.node_names is not None:
            return self.node_names
        if self.nodes is not None:
            return [node.metadata.name for node in self.nodes.items or ()]
        return self.node_names or []


class HostPriority(msgspec.Struct, rename="pascal"):
    """How an extender likes one node, from 0 to 10."""

    host: str = ""
    score: int = 0


HostPriorityList = list[HostPriority]


class ExtenderBindingResult(msgspec.Struct, rename="pascal"):
    """Why it did not bind, if it did not."""

    error: str = ""


class MetaPod(msgspec.Struct, rename={"uid": "UID"}):
    """A victim by its UID."""

    uid: str = ""


class MetaVictims(msgspec.Struct, rename={"pods": "Pods", "violations": "NumPDBViolations"}):
    """The victims of one node, by UID."""

    pods: list[MetaPod] | None = None
    violations: Int64 = 0

    @property
    def uids(self) -> tuple[str, ...]:
        """Of all of them."""
        return tuple(one.uid for one in self.pods or ())


class ExtenderPreemptionResult(msgspec.Struct, rename={"victims": "NodeNameToMetaVictims"}):
    """UIDs of victims by node, whatever was sent; a node may come without any."""

    victims: dict[str, MetaVictims | None] | None = None


def as_sent(pod: bytes) -> msgspec.Raw:
    """A pod as kube-scheduler holds it: without its type, and without the managed fields."""
    fields: dict[str, Any] = msgspec.json.decode(pod)
    fields.pop("kind", None)
    fields.pop("apiVersion", None)
    fields.get("metadata", {}).pop("managedFields", None)
    return msgspec.Raw(_encode(fields))


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
        answer = await self._ask("filterVerb", self._args(pod, nodes, text), ExtenderFilterResult)
        if answer.error:
            raise ExtenderFailed(answer.error)
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
        answer = await self._ask("prioritizeVerb", self._args(pod, nodes, text), HostPriorityList)
        weight = self._given["weight"] * _SCALE
        return {one.host: max(0, min(MAX_SCORE, one.score)) * weight for one in answer}

    async def victims(
        self, pod: msgspec.Raw, victims: Mapping[str, NodeVictims], asked: AskAboutVictims, text: Text
    ) -> dict[str, NodeVictims]:
        """Where room may be made, and by whose leaving. Raises `ExtenderFailed`."""
        body = self._preemption_args(pod, victims, asked, text)
        answer = await self._ask("preemptVerb", body, ExtenderPreemptionResult)
        found = {node: left or MetaVictims() for node, left in (answer.victims or {}).items()}
        for node, left in found.items():
            if node not in victims:
                raise ExtenderFailed(f"it claims victims on the node `{node}`, which it was not asked about")
            stray = next((uid for uid in left.uids if uid not in asked.pods[node]), None)
            if stray is not None:
                raise ExtenderFailed(f"it claims to preempt the pod `{stray}` on the node `{node}`, which is not there")
            if not left.uids and not self.ignorable:
                raise ExtenderFailed(f"expected at least one victim pod on node `{node}`")
        return {node: NodeVictims(left.uids, left.violations) for node, left in found.items() if left.uids}

    async def bind(self, bind: Bind) -> None:
        """Have it bind the pod. Raises `ExtenderFailed`."""
        args = {"PodName": bind.name, "PodNamespace": bind.namespace, "PodUID": bind.uid, "Node": bind.node}
        answer = await self._ask("bindVerb", _encode(args), ExtenderBindingResult)
        if answer.error:
            raise ExtenderFailed(answer.error, sent=False)

    def _args(self, pod: msgspec.Raw, nodes: Sequence[str], text: Text) -> bytes:
        """ExtenderArgs: names for one that keeps nodes of its own (`nodeCacheCapable`), else whole nodes."""
        if self._knows_nodes:
            return _encode({"Pod": pod, "Nodes": None, "NodeNames": nodes})
        items = [msgspec.Raw(raw) for name in nodes if (raw := text(name, "")) is not None]
        return _encode({"Pod": pod, "Nodes": {"metadata": {}, "items": items}, "NodeNames": None})

    def _preemption_args(
        self, pod: msgspec.Raw, victims: Mapping[str, NodeVictims], asked: AskAboutVictims, text: Text
    ) -> bytes:
        """ExtenderPreemptionArgs: UIDs for one that keeps a cache, else the pods that are still there."""

        def shown(node: str, uid: str) -> object:
            if self._knows_nodes:
                return {"UID": uid}
            namespace, name = asked.pods[node][uid]
            raw = text(name, namespace)
            return None if raw is None else as_sent(raw)

        by_node = {}
        for node, one in sorted(victims.items()):
            pods = [found for uid in one.pods if (found := shown(node, uid)) is not None]
            by_node[node] = {"Pods": pods, "NumPDBViolations": one.violations}
        whole, short = (None, by_node) if self._knows_nodes else (by_node, None)
        return _encode({"Pod": pod, "NodeNameToVictims": whole, "NodeNameToMetaVictims": short})

    async def _ask(self, verb: str, body: bytes, answer: type[_Answer]) -> _Answer:
        """Raises `ExtenderFailed`."""
        found = await self.post(self._given[verb], body)
        if answer is HostPriorityList and found.strip() == b"null":  # Go's empty list
            found = b"[]"
        try:
            return msgspec.json.decode(found, type=answer)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            name = "HostPriorityList" if answer is HostPriorityList else answer.__name__
            raise ExtenderFailed(f"its answer is no {name}: {error}") from None

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
        if given["caFile"]:
            regular_file.read(given["caFile"], LARGEST_PEM)
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
