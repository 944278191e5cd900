"""The pages over HTTP.

Rules:
1. Only GET, but for what the playground asks; nothing here changes the cluster, no credential is ever on a page.
2. A browser loads nothing from elsewhere, runs no script but ours, and shows no page in somebody else's frame.
3. The Host must be an address, `localhost` or a name that was given: a web page whose own name is made to resolve to
   us (DNS rebinding) reads nothing.
4. A page refers to others relative to itself, so that it works behind any proxy's prefix.
"""

from __future__ import annotations

import ipaddress
import logging
import re
from collections.abc import Callable, Collection
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from aiohttp import web

from policyengine.clock import Clock
from policyengine.control_characters import escaped
from policyengine.server.callers import Handler
from policyengine.server.pages import nodes, overview, pod, policy, rendering
from policyengine.server.pages.covering import Covered, Covering
from policyengine.server.pages.source import Asked, Moment, NotShown, Source
from policyengine.server.pages.viewers import STREAM, Parts, Viewers

if TYPE_CHECKING:
    from policyengine.server.pages.playground.page import Playground  # loaded where it is served

logger = logging.getLogger(__name__)

ROOT: Final = "/ui/"
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_STATIC: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml", "txt": "text/plain"}
_PORT: Final = re.compile(r":\d*$")

Content = Callable[[Moment, Asked], dict[str, Any]]
"""What a page's template shows. Raises `NotShown`."""
PAGES: Final[dict[str, tuple[str, Content]]] = {
    "": ("overview.html", overview.content),
    "pods": ("pods.html", pod.all_content),
    "pods/{namespace}/{name}": ("pod.html", pod.content),
    "nodes": ("nodes.html", nodes.all_content),
    "nodes/{name}": ("node.html", nodes.content),
    "policies": ("policies.html", policy.all_content),
    "policies/{scheduler}": ("policy.html", policy.content),
}
"""Path below `ROOT` -> template, and what makes its content."""
TABS: Final = (("", "Overview"), ("pods", "Pods"), ("nodes", "Nodes"), ("policies", "Policies"))
"""What every page leads to."""
OTHER: Final = "other"
COMPARE: Final = "compare"
PLAYGROUND: Final = "playground"


class Site:
    """The pages of one source."""

    def __init__(
        self,
        source: Source,
        clock: Clock,
        hosts: Collection[str] = (),
        other: Source | None = None,
        playground: Playground | None = None,
    ) -> None:
        """`hosts`: names, beside `localhost` and addresses, by which they may be asked for. `other`: what `source` is
        compared with; its pages are those with `side=other`."""
        self._sources = {"": source} if other is None else {"": source, OTHER: other}
        self._tabs = [*TABS]
        if other is not None:
            self._tabs.append((COMPARE, "Two policies"))
        if playground is not None:
            self._tabs.append((PLAYGROUND, "Playground"))
        self._clock = clock
        self._covering = Covering()
        self._playground = playground
        self._hosts = frozenset(host.lower() for host in hosts)
        self.viewers = Viewers(clock)

    def add_to(self, application: web.Application) -> None:
        """Serve the pages with this application; `/` leads to them."""
        add = application.router.add_get
        add("/", self.guarded(_to_pages))
        add(f"{ROOT}static/{{name:(built/)?[^/]+}}", self.guarded(_static))
        for path, (template, content) in PAGES.items():
            add(ROOT + path, self.guarded(self._page(template, content)))
        if (playground := self._playground) is not None:
            add(ROOT + PLAYGROUND, self.guarded(self._play))
            application.router.add_post(f"{ROOT}{PLAYGROUND}/ask", self.guarded(playground.ask))
        if OTHER in self._sources:
            add(ROOT + COMPARE, self.guarded(self._compare))
        add(f"{ROOT}{{rest:.*}}", self.guarded(_nowhere))
        application.on_shutdown.append(self._close)

    async def _close(self, application: web.Application) -> None:
        self.viewers.close()
        self._covering.close()
        if self._playground is not None:
            self._playground.close()

    async def _play(self, request: web.Request) -> web.Response:
        assert self._playground is not None
        return self._playground.page(self._frame(request, None))

    def guarded(self, handler: Handler) -> Handler:
        """The handler behind rules 2 and 3."""

        async def guard(request: web.Request) -> web.StreamResponse:
            host = _PORT.sub("", request.headers.get("Host", "")).lower()
            if not self._is_ours(host):
                text = f"ask by `localhost` or an address, not by `{escaped(host)}`; or add that to endpoints.hosts\n"
                return web.Response(status=403, text=text, headers=HEADERS)
            try:
                answer = await handler(request)
            except NotShown as error:
                answer = self._refusal(request, error.status, str(error))
            except Exception:
                logger.exception("the page %s could not be rendered", escaped(request.path))
                answer = self._refusal(request, 500, "this page cannot be rendered, which is a bug; the log says more")
            if not answer.prepared:
                answer.headers.update(HEADERS)
            return answer

        return guard

    def _is_ours(self, host: str) -> bool:
        if host == "localhost" or host in self._hosts:
            return True
        try:
            ipaddress.ip_address(host.strip("[]"))
        except ValueError:
            return False
        return True

    def _page(self, template: str, content: Content) -> Handler:
        async def handler(request: web.Request) -> web.StreamResponse:
            async def parts() -> Parts:
                return rendering.live_parts(template, await self._context(request, content))

            if STREAM in request.headers.get("Accept", ""):
                return await self.viewers.stream(request, parts, HEADERS)
            html = rendering.page(template, await self._context(request, content))
            return web.Response(text=html, content_type="text/html")

        return handler

    async def _compare(self, request: web.Request) -> web.StreamResponse:
        at = moment_of(request.query.get("at"))
        first, second = self._sources.values()
        async with first.moment(at) as was, second.moment(at) as would:
            told = overview.compared((was, would))
            frame = self._frame(request, at) | {"now": was.now, "titles": (first.title, second.title)}
            return web.Response(text=rendering.page("compare.html", frame | told), content_type="text/html")

    def _source(self, request: web.Request) -> Source:
        return self._sources.get(request.query.get("side", ""), self._sources[""])

    async def _context(self, request: web.Request, content: Content) -> dict[str, Any]:
        at = moment_of(request.query.get("at"))
        covered = await self._covered(request, at) if "coverage" in request.query else None
        asked = Asked(request.match_info, request.query, self._clock.monotonic, covered)
        async with self._source(request).moment(at) as moment:
            told = {"now": moment.now, "who": moment.who, "leads": moment.leads, "notes": moment.notes}
            return {**self._frame(request, at), **told, **content(moment, asked)}

    async def _covered(self, request: web.Request, at: float | None) -> Covered | None:
        """What the tests see of the policy that this page is about; None where it is about none."""
        async with self._source(request).moment(at) as moment:
            wanted = request.match_info.get("scheduler")
            profile = next((one for one in moment.state.profiles if one.scheduler_name == wanted), None)
        return None if profile is None else await self._covering.of(profile)

    def _frame(self, request: web.Request, at: float | None) -> dict[str, Any]:
        """What every page has around its own."""
        root = "../" * (request.rel_url.raw_path.count("/") - ROOT.count("/"))
        source, kept = self._source(request), {}
        for name in ("at", "side"):
            if request.query.get(name) and _is_kept(name, request.query[name]):
                kept[name] = request.query[name]

        def link(path: str, **query: object) -> str:
            """The address of another page, at the same moment."""
            given = kept | {key: str(value) for key, value in query.items() if value not in (None, "")}
            return root + (path or "./") + (f"?{urlencode(given, errors='replace')}" if given else "")

        def here(**query: object) -> str:
            """This page, asked for something else besides."""
            given = {**request.query, **{key: "" if value is None else str(value) for key, value in query.items()}}
            return "?" + urlencode({key: value for key, value in given.items() if value}, errors="replace")

        path = request.path.removeprefix(ROOT)
        return {
            "root": root,
            "tabs": self._tabs,
            "kept": kept,
            "tab": path.partition("/")[0],
            "title": source.title,
            "is_built": rendering.is_built(),
            "is_live": source.is_live,
            "span": source.span,
            "steps": _steps(source.span, at),
            "at": at,
            "query": request.query,
            "link": link,
            "here": here,
        }

    def _refusal(self, request: web.Request, status: int, message: str) -> web.Response:
        html = rendering.page("refusal.html", self._frame(request, None) | {"message": message, "status": status})
        return web.Response(status=status, text=html, content_type="text/html")


def _steps(span: tuple[float, float] | None, at: float | None) -> list[tuple[str, float | None]]:
    """(what a link says, its moment): how to go through a recording without JavaScript."""
    if span is None:
        return []
    first, last = span
    here, step = last if at is None else min(max(at, first), last), (last - first) / 50
    return [("first", first), ("back", max(first, here - step)), ("on", min(last, here + step)), ("last", None)]


def moment_of(text: str | None) -> float | None:
    """A moment in a query: seconds since the epoch. Raises `NotShown`."""
    if not text:
        return None
    try:
        at = float(text)
    except ValueError:
        at = -1.0
    if not 0 <= at < 1e11:
        raise NotShown(400, f"`at={text[:40]}` is no moment; write seconds since 1970")
    return at


def _is_kept(name: str, value: str) -> bool:
    """Whether other pages are asked for it too: what was refused here would be refused there."""
    try:
        return name != "at" or moment_of(value) is not None
    except NotShown:
        return False


async def _to_pages(request: web.Request) -> web.Response:
    return web.Response(status=302, headers={"Location": ROOT.lstrip("/")})


async def _nowhere(request: web.Request) -> web.Response:
    raise NotShown(404, f"there is no page `{request.path[:200]}`")


async def _static(request: web.Request) -> web.Response:
    name = request.match_info["name"]
    kind = _STATIC.get(name.rpartition(".")[2])
    found = files("policyengine.server.pages").joinpath("static", *name.split("/"))
    if kind is None or not found.is_file():
        raise NotShown(404, f"there is no file `{name}`")
    return web.Response(body=found.read_bytes(), content_type=kind, charset="utf-8")
