"""The extender over HTTP: `POST /PREFIX/VERB`, `/version`, `/healthz`, `/readyz`, `/metrics` and a CPU profile.

PREFIX names the policy, and may have several parts: the last one counts. A lone policy answers to any prefix. Who asked
an older extender asks on: `/scheduler/predicates/POLICY`, and the verbs by their older names (`ALIASES`). Bodies over
`MAX_BODY` are refused; `listening` bounds connections and headers.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from random import Random

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from policyengine.clock import Clock
from policyengine.cluster.kinds import NAMESPACES
from policyengine.control_characters import escaped
from policyengine.framework.profile import Profile
from policyengine.kube.demand_memory import DemandMemory
from policyengine.kube.http.client import Client
from policyengine.kube.stores import Store
from policyengine.server.callers import Reviewer
from policyengine.server.certificate import ServingCertificate
from policyengine.server.extender import wire
from policyengine.server.extender.known_cluster import ExtenderCluster, WatchedCluster
from policyengine.server.extender.policy_rules import PolicyRules, own_rules, reads_pods
from policyengine.server.extender.verbs import FILTER, PREEMPT, PRIORITIZE, VERBS, Answer, Verbs, refused
from policyengine.server.listening import MAX_CONNECTIONS, Bodies, BodyRefused, listening
from policyengine.server.metrics.process_metrics import MetricsPage
from policyengine.server.profiling import ProfilePage
from policyengine.version import __version__

logger = logging.getLogger(__name__)

TRACE = 5
MAX_BODY = 64 * 1024 * 1024
"""Bytes: 5,000 nodes with long lists of images take about 50 MB."""
MAX_BODIES = 2 * MAX_BODY
"""Bytes of all bodies in hand."""
PIECE = 1024 * 1024
"""Bytes of an answer that are written at once."""
ALIASES = {"predicates": FILTER, "priorities": PRIORITIZE, "preemption": PREEMPT}
"""What kube-scheduler's Policy of 1.13, and the extenders of its time, call the verbs."""
AGENTS = {"pigeon-holing": "pigeon", "rl-priority": "rewards"}
"""Agents of kube-safe-scheduler whose policy has another name here."""
_SHOWN = 2000
_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


class ExtenderApp:
    """The handlers. `application` is what a runner serves."""

    def __init__(
        self, policies: Mapping[str, Verbs], cluster: ExtenderCluster, certificate: ServingCertificate | None
    ) -> None:
        self._policies = policies
        self._cluster = cluster
        registry = CollectorRegistry()
        self._requests = Counter(
            "policyengine_extender_requests",
            "Requests answered, by policy, verb and result (ok, error).",
            ("policy", "verb", "result"),
            registry=registry,
        )
        self._seconds = Histogram(
            "policyengine_extender_request_duration_seconds",
            "Time from a request's whole body to its answer.",
            ("policy", "verb"),
            buckets=_BUCKETS,
            registry=registry,
        )
        told = "1 for each policy served."
        info = Gauge("policyengine_policy_info", told, ("policy", "hash"), registry=registry)
        for name, verbs in policies.items():
            info.labels(name, verbs.rules.profile.policy_hash).set(1)
        self.application = web.Application()
        self._bodies = Bodies(MAX_BODY, MAX_BODIES)
        self.application.router.add_get("/version", self._version)
        self.application.router.add_get("/healthz", self._healthz)
        self.application.router.add_get("/readyz", self._readyz)
        self.application.router.add_get("/metrics", MetricsPage(certificate, registry).page)
        self.application.router.add_get("/debug/pprof/profile", ProfilePage().page)
        self.application.router.add_post("/{path:.+}", self._post)

    async def _version(self, request: web.Request) -> web.Response:
        return web.json_response({"version": __version__, "policies": sorted(self._policies)})

    async def _healthz(self, request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _readyz(self, request: web.Request) -> web.Response:
        ready = self._cluster.is_ready
        status = HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE
        return web.Response(text="ok" if ready else "the cluster has not been read yet", status=status)

    async def _post(self, request: web.Request) -> web.Response:
        prefix, verb = addressed(request.match_info["path"])
        if verb not in VERBS:
            text = f"`{verb}` is no verb of the extender protocol; there are {', '.join(VERBS)}"
            return _response(Answer(wire.error_result(text), HTTPStatus.NOT_FOUND))
        verbs = self._policy(prefix)
        if verbs is None:
            known = ", ".join(sorted(self._policies))
            return _response(
                refused(verb, f"no policy is called `{escaped(prefix.rpartition('/')[2])}`; there are: {known}", 404)
            )
        return _response(await self._answer(verbs, verb, request))

    def _policy(self, prefix: str) -> Verbs | None:
        if len(self._policies) == 1:
            return next(iter(self._policies.values()))
        name = prefix.rpartition("/")[2]
        return self._policies.get(name) or self._policies.get(AGENTS.get(name, name))

    async def _answer(self, verbs: Verbs, verb: str, request: web.Request) -> Answer:
        name = verbs.rules.profile.name
        try:
            async with self._bodies.read(request) as body:
                started = time.perf_counter()
                answer = await verbs.answer(verb, body)
                self._seconds.labels(name, verb).observe(time.perf_counter() - started)
                if logger.isEnabledFor(TRACE):
                    logger.log(TRACE, "%s %s: %r -> %r", name, verb, body[:_SHOWN], answer.body[:_SHOWN])
        except BodyRefused as error:
            answer = refused(verb, str(error), error.status)
        self._requests.labels(name, verb, "error" if answer.error else "ok").inc()
        if answer.error:
            logger.warning("%s of policy %s: %s", verb, name, answer.error)
        else:
            logger.debug("%s of policy %s answered", verb, name)
        return answer


def addressed(path: str) -> tuple[str, str]:
    """The prefix and the verb of a path; `predicates/safe` is `safe/filter`."""
    prefix, _, last = path.strip("/").rpartition("/")
    before, _, verb = prefix.rpartition("/")
    if last not in VERBS and last not in ALIASES and verb in ALIASES:
        return f"{before}/{last}", ALIASES[verb]
    return prefix, ALIASES.get(last, last)


def _response(answer: Answer) -> web.Response:
    headers = {"Content-Length": str(len(answer.body))}
    return web.Response(
        body=_pieces(answer.body), status=answer.status, headers=headers, content_type="application/json"
    )


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    """Others have their turn between two pieces: to encrypt 60 MiB of nodes takes 0.1 s."""
    view = memoryview(body)
    for start in range(0, len(view), PIECE):
        yield bytes(view[start : start + PIECE])
        await asyncio.sleep(0)


SHUTDOWN = 5.0
"""Seconds that requests under way are given at the end."""


class CannotServe(Exception):
    """A policy has rules that this extender cannot answer; one sentence that says what to do."""


def check_rules(profiles: Sequence[Profile], watched: bool) -> None:
    """Raise `CannotServe` for a rule that cannot be answered; say what of a policy has no effect here."""
    for profile in profiles:
        unanswerable = [] if watched else reads_pods(own_rules(profile))
        if unanswerable:
            rules = ", ".join(f"`{name}`" for name in unanswerable)
            raise CannotServe(
                f"policy `{profile.name}`: {rules} read what stands on the nodes (`used`, `free`, `pods`); "
                "start the extender with --kubeconfig, so that it can watch them"
            )
        if not watched and NAMESPACES.kind in profile.kinds:
            raise CannotServe(
                f"policy `{profile.name}` reads labels or annotations of the pods' namespaces; "
                "start the extender with --kubeconfig, so that it can watch them"
            )
        idle = [what for what, there in (("gang", profile.gangs), ("permit", profile.permit)) if there]
        if idle:
            logger.warning("policy %s: %s rules have no effect in an extender", profile.name, " and ".join(idle))


async def serve(
    profiles: Sequence[Profile],
    host: str,
    port: int,
    clock: Clock,
    stop: asyncio.Event,
    *,
    client: Client | None = None,
    tls: ServingCertificate | None = None,
    client_names: Collection[str] = (),
    reviewer: Reviewer | None = None,
    started: asyncio.Future[int] | None = None,
    beside: Callable[[asyncio.Event], Awaitable[None]] | None = None,
    history: Store | None = None,
) -> None:
    """Answer until `stop` is set. `client` is how the cluster is watched; `client_names` and `reviewer` say who may
    ask, as in `listening`; `started` is told the port; `beside` runs meanwhile, and is given the event that the cluster
    has been read; `history` is where what policies learn by `history` is kept.

    Raises `CannotServe` where a rule cannot be answered, `CannotListen` where the port is taken.
    """
    check_rules(profiles, client is not None)
    own = [own_rules(profile) for profile in profiles]
    cluster: ExtenderCluster
    following: asyncio.Task[None] | None = None
    if client is None:
        cluster = ExtenderCluster()
    else:
        watched = WatchedCluster(client, clock, Random(), own, on_problem=logger.warning)
        memory = None if history is None else DemandMemory(history, watched.view.demand, clock)
        cluster, following = watched, asyncio.create_task(_follow(watched, beside, memory))
    for asked in (asked for profile in own for asked in profile.histories):
        cluster.view.demand.begin(*asked)
    policies = {profile.name: Verbs(PolicyRules(profile), cluster, clock, client) for profile in own}
    application = ExtenderApp(policies, cluster, tls).application
    try:
        async with listening(
            application,
            f"{host}:{port}",
            tls,
            MAX_CONNECTIONS,
            SHUTDOWN,
            client_names=client_names,
            reviewer=reviewer,
        ) as bound:
            logger.info("extender for %s on %s:%d", ", ".join(sorted(policies)), host, bound)
            if started is not None:
                started.set_result(bound)
            await _until(stop, following)
    finally:
        if following is not None:
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following


async def _follow(
    cluster: WatchedCluster,
    beside: Callable[[asyncio.Event], Awaitable[None]] | None,
    memory: DemandMemory | None,
) -> None:
    work = [] if beside is None else [beside(cluster.synced)]
    if memory is not None:
        saved = await memory.load()
        if saved is not None:
            cluster.view.demand.restore(saved)
        work.append(memory.run())
    await asyncio.gather(cluster.run(), *work)


async def _until(stop: asyncio.Event, following: asyncio.Task[None] | None) -> None:
    """Until the end, or a bug in following the cluster, which is raised."""
    asked = asyncio.create_task(stop.wait())
    await asyncio.wait({asked} if following is None else {asked, following}, return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    if following is not None and following.done():
        following.result()
