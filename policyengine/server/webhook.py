"""A validating admission webhook: a broken policy is refused at `kubectl apply`, with line and column.

It answers AdmissionReview (admission.k8s.io/v1) for SchedulingPolicies, and for ConfigMaps that carry policies, with
the same proof that a reload asks for. One that is not proved within the API server's time-out is refused, and told so.
What it cannot evaluate it lets pass: whether an older policy serves the name already is seen only by the scheduler, and
the status says so.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

import msgspec
from aiohttp import web

from policyengine.cluster.kinds import CONFIG_MAPS, SCHEDULING_POLICIES
from policyengine.cluster.objects import ObjectError, decode
from policyengine.kube.policies.config_map import LABEL, ConfigMapSource
from policyengine.kube.policies.precedence import Problem
from policyengine.kube.policies.proving import Unproved
from policyengine.kube.policies.rollout_settings import BadSetting
from policyengine.kube.policies.scheduling_policy import SchedulingPolicySource
from policyengine.kube.policies.sources import PolicySource
from policyengine.server.certificate import ServingCertificate
from policyengine.server.listening import MAX_CONNECTIONS, Bodies, BodyRefused, listening
from policyengine.server.metrics.process_metrics import MetricsPage

logger = logging.getLogger(__name__)

API_VERSION = "admission.k8s.io/v1"
MAX_BODY = 8 * 1024 * 1024
"""Bytes: a review holds the object before and after, each at most 1.5 MiB (etcd's limit), as JSON."""
LONGEST_UID = 128
"""The API server's have 36 characters; each stands in a log line and in the answer."""
MAX_BODIES = 8 * MAX_BODY
"""Bytes of all bodies in hand."""
SHUTDOWN = 5.0
"""Seconds that reviews under way are given at the end."""
INVALID, TIMED_OUT = (422, "Invalid"), (504, "Timeout")
TIME_OUT, MARGIN = 10.0, 1.0
"""Seconds until the API server waits no more, unless it says otherwise; those kept for the answer's way."""

Prove = Callable[[str, str, Mapping[str, str]], Awaitable[Problem | None]]
"""Who asks, the ConfigMap's name, and the texts -> what is wrong with them. Raises `Unproved`."""


class NoReview(ValueError):
    """A body that is no AdmissionReview; one sentence."""


async def reviewed(body: bytes | bytearray, prove: Prove, seconds: float = TIME_OUT) -> dict[str, Any]:
    """The answering AdmissionReview, after at most so many seconds. Raises `NoReview`."""
    try:
        review = msgspec.json.decode(body)  # half a character (`\ud800`, alone) is refused; `json` lets it pass
        request = review["request"]
        uid, item = request["uid"], request.get("object")
    except (msgspec.DecodeError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise NoReview(f"the body is no AdmissionReview of {API_VERSION}") from None
    if review.get("apiVersion") != API_VERSION or not isinstance(uid, str):
        raise NoReview(f"the review is not of {API_VERSION}")
    if len(uid) > LONGEST_UID:
        raise NoReview(f"the review's uid has more than {LONGEST_UID} characters")
    message, (code, reason) = "", INVALID
    try:
        async with asyncio.timeout(seconds):
            if request.get("operation") != "DELETE":
                author = str(_mapping(request.get("userInfo")).get("username"))
                message = await _problem(item, author, prove)
    except (TimeoutError, Unproved) as error:
        why = str(error) or f"it was not proved within {seconds:g} s: others are proved before it"
        message, (code, reason) = f"{why}; apply it again", TIMED_OUT
    response: dict[str, Any] = {"uid": uid, "allowed": not message}
    if message:
        response["status"] = {"code": code, "reason": reason, "message": message}
    return {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}


async def _problem(item: object, author: str, prove: Prove) -> str:
    """What is wrong with an object; empty where nothing is, or where it carries no policy."""
    try:
        source = _source(item)
        if source is None:
            return ""
        if source.unusable:
            return source.unusable + (f" (it is labelled {LABEL}=true)" if isinstance(source, ConfigMapSource) else "")
        _ = source.settings
    except (BadSetting, ObjectError) as error:
        return str(error)
    problem = await prove(author, source.metadata.name, source.texts)
    if problem is None:
        return ""
    place = f"line {problem.line}, column {problem.column}: " if problem.line else ""
    return f"{place}{problem.message}"


def _source(item: object) -> PolicySource | None:
    """What an object carries; None where it is no carrier of policies. Raises `ObjectError`."""
    kind = item.get("kind") if isinstance(item, Mapping) else None
    if not isinstance(item, Mapping) or kind not in (CONFIG_MAPS.kind, SCHEDULING_POLICIES.kind):
        return None
    if kind == SCHEDULING_POLICIES.kind:
        return SchedulingPolicySource(decode(SCHEDULING_POLICIES.type, item))
    if _mapping(_mapping(item.get("metadata")).get("labels")).get(LABEL) != "true":
        return None
    return ConfigMapSource(decode(CONFIG_MAPS.type, item))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _time_out(query: Mapping[str, str]) -> float:
    """Seconds for a review: the API server says `?timeout=10s`, in whole seconds."""
    given = re.fullmatch("([0-9]{1,2})s", query.get("timeout", ""), re.ASCII)
    return max(MARGIN, (float(given[1]) if given else TIME_OUT) - MARGIN)


def application(prove: Prove, certificate: ServingCertificate | None = None) -> web.Application:
    """`POST /validate`, `/healthz` and `/metrics`."""
    bodies = Bodies(MAX_BODY, MAX_BODIES)

    async def validate(request: web.Request) -> web.Response:
        try:
            async with bodies.read(request) as body:
                answer = await reviewed(body, prove, _time_out(request.query))
        except BodyRefused as error:
            return web.json_response({"message": str(error)}, status=error.status)
        except NoReview as error:
            return web.json_response({"message": str(error)}, status=400)
        response = answer["response"]
        logger.info("review %s: %s", response["uid"], response.get("status", {}).get("message", "allowed"))
        return web.json_response(answer)

    async def healthz(request: web.Request) -> web.Response:
        return web.Response(text="ok")

    app = web.Application()
    app.router.add_post("/validate", validate)
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/metrics", MetricsPage(certificate).page)
    return app


async def serve(
    prove: Prove,
    host: str,
    port: int,
    tls: ServingCertificate,
    stop: asyncio.Event,
    client_names: Collection[str] = (),
    started: asyncio.Future[int] | None = None,
) -> None:
    """Answer until `stop` is set; `client_names` as in `listening`; `started` is told the port.

    Raises `CannotListen`.
    """
    app, address = application(prove, tls), f"{host}:{port}"
    async with listening(app, address, tls, MAX_CONNECTIONS, SHUTDOWN, client_names=client_names) as bound:
        logger.info("reviewing policies on %s:%d", host, bound)
        if started is not None:
            started.set_result(bound)
        await stop.wait()
