"""The scheduler's own pages: `/metrics`, `/healthz`, `/livez`, `/readyz`, `/configz`, `/version`, `/debug` and `/ui/`.

Only GET, and PUT of the log level; headers and connections bounded by `listening`. On loopback unless told
otherwise; what a policy or a pod holds that may be secret (annotations, environments, credentials) is on no page.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiohttp import web

from policyengine.clock import Clock
from policyengine.control_characters import escaped
from policyengine.kube.config import process
from policyengine.kube.config.configuration import Configuration
from policyengine.kube.http.client import ApiError, Client, ConnectionFailed
from policyengine.kube.scheduler_pages import SERVED_BY
from policyengine.kube.scheduling import Scheduler
from policyengine.server import debug
from policyengine.server.callers import Handler, Reviewer
from policyengine.server.certificate import CertificateFiles, CertificateUnusable, ServingCertificate
from policyengine.server.listening import MAX_CONNECTIONS, Bodies, BodyRefused, CannotListen, listening
from policyengine.server.managed_certificate import SelfSigned
from policyengine.server.metrics.process_metrics import MetricsPage
from policyengine.server.metrics.scheduler_metrics import SchedulerMetrics
from policyengine.server.pages.site import Site
from policyengine.server.pages.source import of_scheduler
from policyengine.server.profiling import ProfilePage
from policyengine.version import __version__

if TYPE_CHECKING:
    from policyengine.server.pages.playground.page import Playground  # loaded where it is served

logger = logging.getLogger(__name__)

SHUTDOWN = 1.0
"""Seconds that requests under way are given at the end."""
MAX_BODY = 1024
"""Bytes of a body, and of all in hand."""
PATIENCE = 30.0
"""Seconds for which a watch may fail before what is known counts as stale."""


class Endpoints:
    """The handlers. `application` is what a runner serves; `client` reads the cluster for comparisons.

    Raises `CannotListen` where the certificate cannot be used.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        metrics: SchedulerMetrics,
        configuration: Mapping[str, Any],
        client: Client,
        clock: Clock,
        reviewer: Reviewer | None = None,
        playground: Playground | None = None,
    ) -> None:
        self._scheduler = scheduler
        self.certificate = _certificate(configuration["endpoints"], clock)
        self._client = client
        self.reviewer = reviewer
        self._bodies = Bodies(MAX_BODY, MAX_BODY)
        self._comparing = asyncio.Lock()
        alive, ready = health_checks(scheduler, clock)
        self.application = web.Application()
        pages: dict[str, Handler] = {
            "/metrics": MetricsPage(self.certificate, metrics).page,
            "/healthz": self._verdict(alive),
            "/livez": self._verdict(alive),
            "/readyz": self._verdict(alive | ready),
            "/version": _page(lambda: {"version": __version__}),
            "/configz": _page(lambda: shown(configuration)),
        }
        if configuration["endpoints"]["debug"]:
            pages |= {
                "/debug/cache": _page(lambda: self._told(debug.cache(scheduler.state))),
                "/debug/cache/compare": self._compare,
                "/debug/queue": _page(lambda: self._told(debug.queue(scheduler.state, clock.now()))),
                "/debug/quota": _page(lambda: self._told(debug.quota(scheduler.state))),
                "/debug/rollout": _page(lambda: self._told(debug.rollout(scheduler.state))),
                "/debug/status": _page(lambda: self._told(debug.status(scheduler.state, scheduler.reloader.standings))),
                "/debug/pods/{namespace}/{name}": self._pod,
                "/debug/pprof/profile": ProfilePage().page,
                "/debug/flags/v": self._level,
            }
            self.application.router.add_put("/debug/flags/v", self._set_level)
        for path, handler in pages.items():
            self.application.router.add_get(path, handler)
        if configuration["endpoints"]["debug"] and configuration["endpoints"]["page"]:
            hosts = configuration["endpoints"]["hosts"]
            Site(of_scheduler(scheduler, clock), clock, hosts, playground=playground).add_to(self.application)

    def _told(self, page: dict[str, Any]) -> dict[str, Any]:
        """A page, with who tells it: only what a leader says holds."""
        elector = self._scheduler.elector
        identity = socket.gethostname() if elector is None else elector.identity
        return {SERVED_BY: {"identity": identity, "leads": elector is None or elector.holds()}} | page

    def _verdict(self, asked: Checks) -> Handler:
        async def handler(request: web.Request) -> web.Response:
            good, text = health(asked, "verbose" in request.query)
            return web.Response(status=200 if good else 503, text=text)

        return handler

    async def _compare(self, request: web.Request) -> web.Response:
        if self._comparing.locked():
            return web.Response(status=429, text="a comparison is under way\n")
        async with self._comparing:
            try:
                return _json(self._told(await debug.compare(self._scheduler.state, self._client)))
            except (ApiError, ConnectionFailed) as error:
                return web.Response(status=502, text=f"the API server cannot be listed: {error}\n")

    async def _pod(self, request: web.Request) -> web.Response:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        try:
            return _json(self._told(debug.pod_timeline(self._scheduler.state, namespace, name)))
        except KeyError:
            return web.Response(status=404, text=f"no pod `{escaped(f'{namespace}/{name}')}` waits or runs\n")

    async def _level(self, request: web.Request) -> web.Response:
        return web.Response(text=f"{process.level()}\n")

    async def _set_level(self, request: web.Request) -> web.Response:
        try:
            async with self._bodies.read(request) as body:
                level = process.set_level(body.decode("ascii", "replace"))
        except BodyRefused as error:
            return web.Response(status=error.status, text=f"{error}\n")
        except ValueError as error:
            return web.Response(status=400, text=f"{error}\n")
        logger.warning("the log level is `%s` now: PUT /debug/flags/v", level)
        return web.Response(text=f"the log level is `{level}`\n")


Checks = dict[str, Callable[[], str]]
"""The name of what must hold -> says why it does not, or nothing."""


def health_checks(scheduler: Scheduler, clock: Clock) -> tuple[Checks, Checks]:
    """(what `/livez` asks, what `/readyz` asks besides), in the words of Kubernetes' own `/readyz?verbose`."""

    def leads() -> str:
        elector = scheduler.elector
        lost = elector is not None and elector.elected.is_set() and not elector.holds()
        return "the lease was not renewed in time" if lost else ""

    def caches() -> str:
        if scheduler.runner.synced.is_set():
            return ""
        behind = ", ".join(scheduler.history.behind)
        if behind:
            return f"the API server has gone back to an older copy, and what was known counts no more: {behind}"
        return ": ".join(filter(None, ("the first lists are not in", scheduler.waiting_for)))

    def policies() -> str:
        return "" if scheduler.reloader.settled.is_set() else "the policies were not read yet"

    def watches() -> str:
        now = clock.monotonic()
        stale = [
            reflector.resource.plural
            for reflector in scheduler.runner.informers.reflectors
            if reflector.failing_since is not None and now - reflector.failing_since > PATIENCE
        ]
        return f"no list or watch of {', '.join(stale)} succeeds" if stale else ""

    def bindings() -> str:
        backoffs = [profile.queue.max_backoff for profile in scheduler.state.profiles]
        return scheduler.runner.writer.binding_rights.problem(max(backoffs, default=0.0))

    ready = {"caches": caches, "policies": policies, "watches": watches, "bindings": bindings}
    return {"leaderElection": leads}, ready


def health(asked: Checks, verbose: bool) -> tuple[bool, str]:
    """Whether all hold, and the text that says so."""
    found = [(name, problem()) for name, problem in asked.items()]
    good = not any(problem for _, problem in found)
    if good and not verbose:
        return True, "ok"
    lines = [f"[-]{name} failed: {problem}" if problem else f"[+]{name} ok" for name, problem in found]
    return good, "\n".join([*lines, "check passed" if good else "check failed"]) + "\n"


def shown(configuration: object) -> Any:
    """A configuration without what is secret in it: keys of certificates."""
    if isinstance(configuration, Mapping):
        return {
            key: "(not shown)" if key in ("keyData", "certData") and value else shown(value)
            for key, value in configuration.items()
        }
    return [shown(item) for item in configuration] if isinstance(configuration, list) else configuration


@asynccontextmanager
async def served(endpoints: Endpoints, configuration: Configuration) -> AsyncIterator[str]:
    """The pages, for as long as the block runs; gives their URL. Raises `CannotListen`."""
    address, tls = configuration.data["endpoints"]["address"], endpoints.certificate
    host = address.rpartition(":")[0].strip("[]") or "0.0.0.0"
    names, reviewer = configuration.data["endpoints"]["clientNames"], endpoints.reviewer
    async with listening(
        endpoints.application, address, tls, MAX_CONNECTIONS, SHUTDOWN, client_names=names, reviewer=reviewer
    ) as port:
        yield f"{'https' if tls else 'http'}://{host}:{port}"


def _certificate(given: Mapping[str, Any], clock: Clock) -> ServingCertificate | None:
    if not given["tlsCertFile"]:
        return SelfSigned(socket.gethostname(), clock) if given["authentication"] != "None" else None
    paths = (Path(given[name]) if given[name] else None for name in ("tlsPrivateKeyFile", "clientCAFile"))
    try:
        return CertificateFiles(Path(given["tlsCertFile"]), *paths)
    except CertificateUnusable as error:
        raise CannotListen(str(error)) from None


def _page(read: Callable[[], object]) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        return _json(read())

    return handler


def _json(value: object) -> web.Response:
    return web.Response(text=json.dumps(value, indent=2, default=str) + "\n", content_type="application/json")
