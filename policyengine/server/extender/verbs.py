"""The four verbs of the extender protocol, from a request's body to its answer.

Rules:
1. A request that cannot be answered is told so in the protocol's own way: `Error` for filter and bind, which
   kube-scheduler shows in the pod's events; an HTTP status for prioritize and preempt, which have no such field.
2. Nothing raises: a bug in a rule is an `Error`, logged with its traceback.
3. preempt drops the nodes that the rules would refuse even without their victims; victims are never changed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from itertools import compress

import numpy as np

from policyengine.clock import Clock
from policyengine.cluster.pod_info import PodInfo
from policyengine.control_characters import escaped
from policyengine.kube.extenders.http_extender import MetaVictims
from policyengine.kube.http.client import ApiError, Client, ConnectionFailed
from policyengine.server.extender import wire
from policyengine.server.extender.known_cluster import ExtenderCluster
from policyengine.server.extender.policy_rules import AskedNodes, Filtered, PolicyRules, Ranked
from policyengine.server.extender.wire import BadRequest

logger = logging.getLogger(__name__)

FILTER, PRIORITIZE, PREEMPT, BIND = "filter", "prioritize", "preempt", "bind"
VERBS = (FILTER, PRIORITIZE, PREEMPT, BIND)
_WITH_ERROR = frozenset({FILTER, BIND})

SHOWN = 100
"""Nodes of a line of the log."""
LARGE_POD = 64 * 1024
"""Bytes over which a pod is decoded beside the event loop."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP status and a JSON body; `error` is what went wrong, for the log and the metrics."""

    body: bytes
    status: int = HTTPStatus.OK
    error: str = ""


def refused(verb: str, message: str, status: int) -> Answer:
    """The answer to a request that cannot be answered."""
    return Answer(wire.error_result(message), HTTPStatus.OK if verb in _WITH_ERROR else status, message)


def told_of_filter(asked: AskedNodes, found: Filtered) -> str:
    """Which nodes passed, and why the others did not."""
    refused = [f"{escaped(name)} ({why})" for name, why in (found.failed | found.unresolvable).items()]
    passed = [escaped(name) for name in compress(asked.names, found.passing.tolist())]
    lists = (("pass", passed), ("refused", refused))
    return f"{len(passed)} of {len(asked.names)} nodes; " + "; ".join(f"{what}: {_listed(one)}" for what, one in lists)


def told_of_scores(asked: AskedNodes, ranked: Ranked) -> str:
    """The score of each node, and what each rule gives it; the best ones first."""
    order = np.argsort(-ranked.scores, kind="stable").tolist()
    shown = []
    for place in order[:SHOWN]:
        rules = ", ".join(f"{rule} {values[place]}" for rule, values in ranked.rules.items())
        shown.append(f"{escaped(asked.names[place])} {ranked.scores[place]} ({rules or 'no rule'})")
    return _listed(shown, len(order))


def _listed(parts: Sequence[str], count: int = 0) -> str:
    more = max(count, len(parts)) - SHOWN
    return (", ".join(parts[:SHOWN]) or "none") + (f", and {more} more" if more > 0 else "")


class Verbs:
    """What one policy answers."""

    def __init__(self, rules: PolicyRules, cluster: ExtenderCluster, clock: Clock, client: Client | None) -> None:
        self.rules = rules
        self._cluster = cluster
        self._clock = clock
        self._client = client
        self._answers: Mapping[str, Callable[[wire.Body], Awaitable[Answer]]] = {
            FILTER: self._filter,
            PRIORITIZE: self._prioritize,
            PREEMPT: self._preempt,
        }

    async def answer(self, verb: str, body: wire.Body) -> Answer:
        """Answer one request; `verb` is one of `VERBS`."""
        if verb != BIND and not self._cluster.is_ready:
            message = "the extender has not read the cluster yet; ask again"
            return refused(verb, message, HTTPStatus.SERVICE_UNAVAILABLE)
        try:
            if verb == BIND:
                return await self._bind(body)
            wire.bound_members(body)
            await asyncio.sleep(0)  # probes are answered between two looks at a body of 60 MiB: 30 ms each
            async with self._cluster.turn:
                return await self._answers[verb](body)
        except BadRequest as error:
            return refused(verb, str(error), HTTPStatus.BAD_REQUEST)
        except Exception as error:
            logger.exception("%s of policy %s failed", verb, self.rules.profile.name)
            return refused(verb, f"policy `{self.rules.profile.name}`: {error}", HTTPStatus.INTERNAL_SERVER_ERROR)

    async def _filter(self, body: wire.Body) -> Answer:
        args = wire.decode_args(body)
        pod, asked = await self._pod(args), await self._nodes(args)
        found = self.rules.filter(pod, self._cluster.view.snapshot(), asked)
        self._log(FILTER, pod, lambda: told_of_filter(asked, found))
        return Answer(wire.filter_result(asked.kept(found.passing), found.failed, found.unresolvable))

    async def _prioritize(self, body: wire.Body) -> Answer:
        args = wire.decode_args(body)
        pod, asked = await self._pod(args), await self._nodes(args)
        ranked = self.rules.prioritize(pod, self._cluster.view.snapshot(), asked.rows)
        self._log(PRIORITIZE, pod, lambda: told_of_scores(asked, ranked))
        return Answer(wire.priorities(asked.names, ranked.scores.tolist()))

    def _log(self, verb: str, pod: PodInfo, told: Callable[[], str]) -> None:
        """One line a decision, where anybody reads it."""
        if logger.isEnabledFor(logging.INFO):
            logger.info("%s: %s of pod %s: %s", self.rules.profile.name, verb, escaped(pod.key), told())

    async def _preempt(self, body: wire.Body) -> Answer:
        args = wire.decode_preemption(body)
        pod, view = await self._pod(args), self._cluster.view
        kept: dict[str, MetaVictims] = {}
        for name, victims in args.victims().items():
            with view.hypothetically(remove=[victim.uid for victim in victims.pods or ()]) as snapshot:
                if self.rules.accepts(pod, snapshot, name):
                    kept[name] = victims
            await asyncio.sleep(0)
        return Answer(wire.preemption_result(kept))

    async def _bind(self, body: wire.Body) -> Answer:
        binding = wire.decode_binding(body)
        if self._client is None:
            raise BadRequest("the extender cannot bind without --kubeconfig; leave `bindVerb` out")
        try:
            await self._client.bind(binding.namespace, binding.name, binding.uid, binding.node, {})
        except ApiError as error:
            return Answer(wire.error_result(error.message), error=error.message)
        except ConnectionFailed as error:
            message = f"the API server did not answer: {error}"
            return Answer(wire.error_result(message), error=message)
        return Answer(wire.error_result())

    async def _nodes(self, args: wire.ExtenderArgs) -> AskedNodes:
        cluster = self._cluster
        if args.nodes is not None and args.nodes.items is not None:
            return AskedNodes(await cluster.take(args.nodes.items), cluster.view.nodes)
        if not cluster.is_watched:
            raise BadRequest(
                "the request holds names only; set `nodeCacheCapable: false`, or start the extender with --kubeconfig"
            )
        return AskedNodes(wire.decode_names(args.node_names), cluster.view.nodes)

    async def _pod(self, args: wire.ExtenderArgs | wire.ExtenderPreemptionArgs) -> PodInfo:
        view = self._cluster.view
        view.now = self._clock.now()
        if memoryview(args.pod).nbytes > LARGE_POD:
            pod = await asyncio.to_thread(lambda: PodInfo(wire.decode_pod(args.pod)))
        else:
            pod = PodInfo(wire.decode_pod(args.pod))
        view.related.tell(pod)
        return pod
