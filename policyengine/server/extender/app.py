"""The extender over HTTP: `POST /PREFIX/VERB`, `/version`, `/healthz`, `/readyz` and `/metrics`.

PREFIX names the policy, and may have several parts, of which the last counts; a lone policy answers to any prefix.
Bodies over `MAX_BODY` are refused, and connections over `serving.MAX_CONNECTIONS`; headers are bounded by aiohttp.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from http import HTTPStatus

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from policyengine.server.extender import wire
from policyengine.server.extender.cluster import ExtenderCluster
from policyengine.server.extender.verbs import VERBS, Answer, Verbs, refused
from policyengine.version import __version__

logger = logging.getLogger(__name__)

TRACE = 5
MAX_BODY = 128 * 1024 * 1024
"""Bytes: 5,000 nodes with long lists of images take about 50 MB."""
_SHOWN = 2000
_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


class Metrics:
    """What the extender counts."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "policyengine_extender_requests",
            "Requests answered, by policy, verb and result (ok, error).",
            ("policy", "verb", "result"),
            registry=self.registry,
        )
        self.seconds = Histogram(
            "policyengine_extender_request_duration_seconds",
            "Time from a request's whole body to its answer.",
            ("policy", "verb"),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.info = Gauge(
            "policyengine_policy_info", "1 for each policy served.", ("policy", "hash"), registry=self.registry
        )


class ExtenderApp:
    """The handlers. `application` is what a runner serves."""

    def __init__(self, policies: Mapping[str, Verbs], cluster: ExtenderCluster) -> None:
        self._policies = policies
        self._cluster = cluster
        self.metrics = Metrics()
        for name, verbs in policies.items():
            self.metrics.info.labels(name, verbs.rules.profile.policy_hash).set(1)
        self.application = web.Application(client_max_size=MAX_BODY)
        self.application.router.add_get("/version", self._version)
        self.application.router.add_get("/healthz", self._healthz)
        self.application.router.add_get("/readyz", self._readyz)
        self.application.router.add_get("/metrics", self._metrics)
        self.application.router.add_post("/{path:.+}", self._post)

    async def _version(self, request: web.Request) -> web.Response:
        return web.json_response({"version": __version__, "policies": sorted(self._policies)})

    async def _healthz(self, request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _readyz(self, request: web.Request) -> web.Response:
        ready = self._cluster.is_ready
        status = HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE
        return web.Response(text="ok" if ready else "the cluster has not been read yet", status=status)

    async def _metrics(self, request: web.Request) -> web.Response:
        return web.Response(body=generate_latest(self.metrics.registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _post(self, request: web.Request) -> web.Response:
        prefix, _, verb = request.match_info["path"].strip("/").rpartition("/")
        if verb not in VERBS:
            text = f"`{verb}` is no verb of the extender protocol; there are {', '.join(VERBS)}"
            return _response(Answer(wire.error_result(text), HTTPStatus.NOT_FOUND))
        verbs = self._policy(prefix)
        if verbs is None:
            known = ", ".join(sorted(self._policies))
            return _response(
                refused(verb, f"no policy is called `{prefix.rpartition('/')[2]}`; there are: {known}", 404)
            )
        return _response(await self._answer(verbs, verb, request))

    def _policy(self, prefix: str) -> Verbs | None:
        if len(self._policies) == 1:
            return next(iter(self._policies.values()))
        return self._policies.get(prefix.rpartition("/")[2])

    async def _answer(self, verbs: Verbs, verb: str, request: web.Request) -> Answer:
        name = verbs.rules.profile.name
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            answer = refused(verb, f"the body is longer than {MAX_BODY} bytes", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        else:
            started = time.perf_counter()
            answer = await verbs.answer(verb, body)
            self.metrics.seconds.labels(name, verb).observe(time.perf_counter() - started)
            if logger.isEnabledFor(TRACE):
                logger.log(TRACE, "%s %s: %r -> %r", name, verb, body[:_SHOWN], answer.body[:_SHOWN])
        self.metrics.requests.labels(name, verb, "error" if answer.error else "ok").inc()
        if answer.error:
            logger.warning("%s of policy %s: %s", verb, name, answer.error)
        else:
            logger.debug("%s of policy %s answered", verb, name)
        return answer


def _response(answer: Answer) -> web.Response:
    return web.Response(body=answer.body, status=answer.status, content_type="application/json")
