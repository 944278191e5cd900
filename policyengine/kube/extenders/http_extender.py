"""One extender over HTTP (kube-scheduler's HTTPExtender): each of its verbs a method, its answers held against what it
was asked.

Rules (kube-scheduler's extender.go, v1.36):
1. A score from 0 to 10 counts `weight` times, ten times over, so that it is on the plugins' scale.
2. An answer that names a node it was not asked about is an error.
3. About victims, an answer with a node without victims, or a victim that does not stand there, is an error; from one
   that is `ignorable` a node without victims is left out instead.
4. A POST is bounded in time (`httpTimeout`) and in the size of its answer (`MAX_ANSWER`).
"""

from __future__ import annotations

import base64
import ssl
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from policyengine.kube.config.configuration import seconds_of
from policyengine.kube.extenders import protocol
from policyengine.kube.extenders.protocol import ExtenderFailed
from policyengine.kube.http.transport import ConnectionFailed, TimedOut, Transport
from policyengine.scheduler.actions import AskAboutVictims, Bind, NodeVictims
from policyengine.scheduler.extenders.extender import Extender

MAX_SCORE = 10
"""MaxExtenderPriority."""
_SCALE = 10
"""MaxNodeScore / MaxExtenderPriority."""

NodeText = Callable[[str], bytes | None]
"""A node's name -> the node as the API server has it."""
PodText = Callable[[str, str], bytes | None]
"""(name, namespace) -> the pod as the API server has it."""


@dataclass(frozen=True)
class Filtered:
    """What is left, and who was against the rest: node -> (extender, reason)."""

    nodes: list[str]
    refused: dict[str, tuple[str, str]]
    unresolvable: dict[str, tuple[str, str]]


class HttpExtender:
    """One extender, as configured (`extenders` of the configuration, completed by defaults)."""

    def __init__(self, given: Mapping[str, Any], transport: Transport | None = None) -> None:
        """Raises `ExtenderUnusable`; `transport` as in `ExtenderConnection`."""
        self._given = given
        self._connection = ExtenderConnection(given, transport)
        self._knows_nodes: bool = given["nodeCacheCapable"]
        self.name: str = given["urlPrefix"]
        self.ignorable: bool = given["ignorable"]
        self.filters = bool(given["filterVerb"])
        self.prioritizes = bool(given["prioritizeVerb"])

    @property
    def wants_nodes(self) -> bool:
        """Whether it is sent whole nodes."""
        return not self._knows_nodes and self.described().decides

    @property
    def wants_pods(self) -> bool:
        """Whether it is sent whole pods beside the one in question."""
        return not self._knows_nodes and self.described().preempts

    def described(self) -> Extender:
        """What the core knows of it."""
        managed = self._given["managedResources"]
        return Extender(
            name=self.name,
            resources=frozenset(one["name"] for one in managed),
            decides=self.filters or self.prioritizes,
            preempts=bool(self._given["preemptVerb"]),
            binds=bool(self._given["bindVerb"]),
            unchecked=frozenset(one["name"] for one in managed if one["ignoredByScheduler"]),
        )

    async def filter(self, pod: msgspec.Raw, nodes: Sequence[str], text: NodeText) -> Filtered:
        """The nodes it lets through. Raises `ExtenderFailed`."""
        answer = protocol.filter_result(await self._send("filterVerb", self._args(pod, nodes, text)))
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

    async def prioritize(self, pod: msgspec.Raw, nodes: Sequence[str], text: NodeText) -> dict[str, int]:
        """Weighted scores by node. Raises `ExtenderFailed`."""
        answer = protocol.priorities(await self._send("prioritizeVerb", self._args(pod, nodes, text)))
        weight = self._given["weight"] * _SCALE
        return {one.host: max(0, min(MAX_SCORE, one.score)) * weight for one in answer}

    async def victims(
        self, pod: msgspec.Raw, victims: Mapping[str, NodeVictims], asked: AskAboutVictims, text: PodText
    ) -> dict[str, NodeVictims]:
        """Where room may be made, and by whose leaving. Raises `ExtenderFailed`."""
        found = protocol.preemption_result(
            await self._send("preemptVerb", self._preemption_args(pod, victims, asked, text))
        )
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
        protocol.binding_result(await self._send("bindVerb", protocol.binding_args(bind)))

    async def close(self) -> None:
        """Close its connections."""
        await self._connection.close()

    def _args(self, pod: msgspec.Raw, nodes: Sequence[str], text: NodeText) -> bytes:
        if self._knows_nodes:
            return protocol.args_of_names(pod, nodes)
        return protocol.args_of_nodes(pod, [raw for name in nodes if (raw := text(name)) is not None])

    def _preemption_args(
        self, pod: msgspec.Raw, victims: Mapping[str, NodeVictims], asked: AskAboutVictims, text: PodText
    ) -> bytes:
        if self._knows_nodes:
            return protocol.preemption_args_of_uids(pod, victims)

        def whole(node: str, uid: str) -> bytes | None:
            namespace, name = asked.pods[node][uid]
            return text(name, namespace)

        return protocol.preemption_args_of_pods(pod, victims, whole)

    async def _send(self, verb: str, body: bytes) -> bytes:
        return await self._connection.post(self._given[verb], body)


_JSON = {"Content-Type": "application/json"}

MAX_ANSWER = 64 * 1024 * 1024
"""Bytes: 5,000 whole nodes take about 50 MB."""


class ExtenderUnusable(Exception):
    """An extender's TLS files cannot be used; one sentence that says what to do."""


class ExtenderConnection:
    """Posts bodies to one extender (an entry of the configuration's `extenders`, completed by defaults)."""

    def __init__(self, given: Mapping[str, Any], transport: Transport | None = None) -> None:
        """Raises `ExtenderUnusable`. Use inside a running event loop; `transport`: another way to it than sockets."""
        from policyengine.kube.http.aiohttp_transport import AiohttpTransport

        self._prefix = given["urlPrefix"].rstrip("/")
        if given["enableHTTPS"] and self._prefix.startswith("http://"):
            self._prefix = "https://" + self._prefix.removeprefix("http://")
        self._timeout = seconds_of(given["httpTimeout"])
        context = _ssl_context(given["tlsConfig"], self._prefix) if self._prefix.startswith("https://") else None
        self._transport = transport or AiohttpTransport(self._prefix, ssl_context=context, max_answer=MAX_ANSWER)

    async def post(self, verb: str, body: bytes) -> bytes:
        """The body of what it answers at the path `verb` below its prefix. Raises `ExtenderFailed`."""
        path = f"/{verb.lstrip('/')}"
        url = self._prefix + path
        try:
            response = await self._transport.request("POST", path, body=body, headers=_JSON, timeout=self._timeout)
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
