"""The API server: one request in, one response out, free of sockets; all time from a clock, all chance from a seed.

The steps of a request, in the real server's order: who asks, may they, what is meant, do it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from policyengine.clock import Clock
from policyengine.simulator.api_server import http_requests, statuses
from policyengine.simulator.api_server.access.authentication import (
    IMPERSONATE_GROUP,
    IMPERSONATE_USER,
    Authenticator,
    impersonated,
)
from policyengine.simulator.api_server.access.rbac import GROUP as RBAC_GROUP
from policyengine.simulator.api_server.access.rbac import Authorizer
from policyengine.simulator.api_server.decoding.bodies import read_object
from policyengine.simulator.api_server.http_requests import ADMIN, Request, RequestInfo, Response, User, json_response
from policyengine.simulator.api_server.kinds.api_types import FOLDER
from policyengine.simulator.api_server.kinds.discovery import Root, not_found_page
from policyengine.simulator.api_server.kinds.served import Kind, Kinds
from policyengine.simulator.api_server.reading.list_options import check_version, parse_options
from policyengine.simulator.api_server.reading.lists import Lister, Query
from policyengine.simulator.api_server.reading.representation import TableView, View, YamlView, converter_for, wanted
from policyengine.simulator.api_server.reading.selectors import check_fields
from policyengine.simulator.api_server.statuses import ApiError
from policyengine.simulator.api_server.storage import Store, decode, encode, key_of, metadata
from policyengine.simulator.api_server.writing.admission import admit_priority, check_claim_status, check_escalation
from policyengine.simulator.api_server.writing.call import Call, Caller, Names
from policyengine.simulator.api_server.writing.custom_kinds import follow_definition
from policyengine.simulator.api_server.writing.deletion import delete, read_delete_options
from policyengine.simulator.api_server.writing.patcher import patch
from policyengine.simulator.api_server.writing.rest_storage import Registry, Write
from policyengine.simulator.api_server.writing.subresources import Subresources

NAMED_VERBS = frozenset({"get", "update", "patch", "delete"})
BOOTSTRAP = FOLDER / "bootstrap.jsonl"
DEFAULT_WINDOW = 10_000
DISABLED_ADMISSION = ("ServiceAccount", "StorageObjectInUseProtection", "TaintNodesByCondition")
"""The admission plugins that make no sense without a controller manager; the real server of a sandbox runs so, too."""


class ApiServer:
    """An API server in memory.

    `tokens` None lets everyone in as administrator; given, RBAC is enforced. `window` is how many changes each
    resource remembers for watches. `disabled_admission` names plugins as
    kube-apiserver's flag does; `Priority` is the only one that can be turned off.
    """

    is_slow = False
    """Whether answers take time on the clock: else a client's time-out bounds nothing."""

    def __init__(
        self,
        clock: Clock,
        seed: int = 0,
        *,
        tokens: Mapping[str, User] | None = None,
        window: int = DEFAULT_WINDOW,
        disabled_admission: Collection[str] = DISABLED_ADMISSION,
    ) -> None:
        self.clock = clock
        self.address = "127.0.0.1:6443"
        """What discovery says; `serve` sets it."""
        self.store = Store(window)
        self.kinds = Kinds()
        self.names = Names(seed)
        self.registry = Registry(self.store, self.kinds, clock, self.names, self.after_write)
        self.authenticator = Authenticator(tokens)
        self.authorizer = Authorizer(self.store)
        self.registry.guards += [
            partial(check_escalation, self.authorizer),
            partial(check_claim_status, self.authorizer),
        ]
        if "Priority" not in disabled_admission:
            self.registry.guards.append(partial(admit_priority, self.store))
        self._root = Root(self.kinds, lambda: self.address)
        self._lister = Lister(self.store, clock)
        self._subresources = Subresources(self.registry, self.authorizer, self.authenticator)
        self._seed()

    def _seed(self) -> None:
        """What a fresh server holds: its namespaces, the system's priority classes, the roles all clusters have."""
        caller = Caller(ADMIN, "kube-apiserver/v1.36.2")
        for line in BOOTSTRAP.read_bytes().splitlines():
            row: Any = decode(line)
            info = http_requests.parse_path("POST", row["path"], {})
            kind = self.kinds.built_in(info.group, info.version, info.resource)
            self.registry.create(Call(Request("POST", row["path"]), info, kind, caller), row["object"])

    def after_write(self, write: Write) -> None:
        """A write took effect."""
        kind, before, obj = write.kind, write.before, write.obj
        if kind.group == RBAC_GROUP:
            self.authorizer.refresh()
        if kind.kind == "CustomResourceDefinition":
            follow_definition(self.registry, before.object() if before else None, obj)

    def end_watches(self) -> None:
        """End every open watch after what it has been told."""
        for collection in tuple(self.store.collections.values()):
            for watcher in tuple(collection.watchers):
                watcher.close()

    # One request

    async def handle(self, request: Request) -> Response:
        """Answer one request; never raises for what a client did."""
        try:
            return await self._handle(request)
        except ApiError as error:
            return error_response(error)
        except RecursionError:
            return error_response(statuses.internal("the object is nested too deeply"))

    async def _handle(self, request: Request) -> Response:
        user = self.authenticator.user(request)
        info = http_requests.parse_path(request.method, request.path, request.query)
        seconds = http_requests.allowed_seconds(request, info)
        if not self.authenticator.open:
            if IMPERSONATE_USER in request.headers or IMPERSONATE_GROUP in request.headers:
                user = impersonated(request, info, user, self.authorizer)
            self.authorizer.check(user, info)
        if len(request.body) > statuses.MAX_BODY:
            raise statuses.too_large()
        return await self.answer(request, info, Caller(user, request.user_agent), seconds)

    async def answer(self, request: Request, info: RequestInfo, caller: Caller, seconds: float | None) -> Response:
        """The answer to a request that is allowed, within the `seconds` it may take. Raises `ApiError`."""
        act = self.route(request, info, caller)
        if not request.query.get("resourceVersion"):
            return await act  # nothing here waits, so there is no time to bound
        return await self.in_time(act, seconds)

    async def in_time(self, act: Coroutine[Any, Any, Response], seconds: float | None) -> Response:
        """What `act` answers, or that it is late."""
        answer = await (act if seconds is None else http_requests.within(self.clock, seconds, act, goes_on=True))
        return answer or Response(504, {"Content-Type": "text/plain; charset=utf-8"}, encode(http_requests.LATE))

    async def route(self, request: Request, info: RequestInfo, caller: Caller) -> Response:
        """Carry a request out. Raises `ApiError`."""
        if not info.resource:
            return self._root.answer(request)
        kind = self.kinds.find(info.group, info.version, info.resource)
        if kind is None and not self._root.knows(info.group, info.version):
            return not_found_page()
        if kind is None or (info.namespace and not kind.namespaced and kind.plural != "namespaces"):
            raise statuses.no_such_resource()
        call = Call(request, info, kind, caller)
        if info.subresource:
            return await self._subresource(call)
        if info.name and not info.namespace and kind.namespaced:
            raise statuses.no_such_resource()
        named = info.verb in NAMED_VERBS or (info.verb == "watch" and bool(info.name))
        if info.verb not in kind.verbs or bool(info.name) is not named:
            raise statuses.method_not_allowed()
        acts: dict[str, Callable[[Call], Awaitable[Response]]] = {
            "get": self._get,
            "list": self._list,
            "watch": self.watch,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }
        return await acts[info.verb](call)

    # Reading

    def view(self, kind: Kind, accept: str, include: str = "", streams: bool = True) -> View:
        """How `kind` is to be shown; raises a 406."""
        shape = wanted(accept, streams)
        if shape == "table":
            return TableView(kind, self.clock, include or "Metadata")
        return (YamlView if shape == "yaml" else View)(kind, converter_for(kind))

    def _view_of(self, call: Call, streams: bool = True) -> View:
        query, accept = call.request.query, call.request.headers.get("accept", "")
        return self.view(call.kind, accept, query.get("includeObject", ""), streams)

    async def _get(self, call: Call) -> Response:
        view, info, kind = self._view_of(call, streams=False), call.info, call.kind
        version = call.request.query.get("resourceVersion", "")
        check_version(version)
        await self._lister.fresh(int(version or 0))
        key = key_of(info.namespace if kind.namespaced else "", info.name)
        raw = self.registry.collection(kind).as_of(call.request.as_of, key)
        if raw is None:
            raise statuses.not_found(kind.plural, kind.group, info.name)
        return Response(200, {"Content-Type": view.content_type}, view.object(raw))

    def _query(self, call: Call) -> Query:
        watching = call.info.verb == "watch"
        options = parse_options(call.request.query, watching, call.info.name if watching else "")
        check_fields(call.kind, options.fields)
        return Query(self.registry.collection(call.kind), call.scope, options)

    async def _list(self, call: Call) -> Response:
        view = self._view_of(call)
        body = await self._lister.answer(self._query(call), view, call.request.as_of)
        return Response(200, {"Content-Type": view.content_type}, body)

    async def watch(self, call: Call) -> Response:
        """A watch, its body the lines."""
        view = self._view_of(call)
        stream: AsyncIterator[bytes] = await self._lister.watch(self._query(call), view, self.registry.empty(call.kind))
        return Response(200, {"Content-Type": view.content_type}, stream)

    # Writing

    def _written(self, call: Call, write: Callable[[], tuple[int, bytes]]) -> Response:
        """The answer of a write; a refusal, too, carries the warnings that came before it."""
        try:
            status, raw = write()
        except ApiError as error:
            error.warnings = call.options.warnings
            raise
        view = self._view_of(call)
        headers = {"Content-Type": view.content_type}
        if call.options.warnings:
            headers["Warning"] = warning_header(call.options.warnings)
        return Response(status, headers, view.object(raw))

    async def _create(self, call: Call) -> Response:
        wanted(call.request.headers.get("accept", ""))
        call = call.with_options("CreateOptions")
        answer = self._subresources.create(call)
        if answer is not None:
            return answer
        if call.kind.namespaced and not call.info.namespace:
            raise statuses.method_not_allowed()
        obj = read_object(call.request, call.kind, call.options)
        return self._written(call, lambda: (201, self.registry.create(call, obj)))

    async def _update(self, call: Call) -> Response:
        call = call.with_options("UpdateOptions")
        obj = read_object(call.request, call.kind, call.options)
        if not metadata(obj).get("name"):
            metadata(obj)["name"] = call.info.name

        def write() -> tuple[int, bytes]:
            try:
                return 200, self.registry.update(call, lambda _: obj)
            except ApiError as error:
                if error.code != 404 or call.info.subresource or "upsert" not in call.kind.traits:
                    raise
                return 201, self.registry.create(call, obj)

        return self._written(call, write)

    async def _patch(self, call: Call) -> Response:
        call = call.with_options("PatchOptions")
        return self._written(call, lambda: patch(self.registry, call))

    async def _delete(self, call: Call) -> Response:
        options = read_delete_options(call.request)
        raw, details = delete(self.registry, call.kind, call.info.namespace, call.info.name, options, call.caller)
        return json_response(200, statuses.success(details) if raw is None else self.view(call.kind, "").object(raw))

    async def _delete_collection(self, call: Call) -> Response:
        """What a list with the same options would show, deleted: with a limit, a part of the whole."""
        asked, query = read_delete_options(call.request), self._query(call)
        shown, meta = self._lister.page(query)
        each = replace(asked, uid="", resource_version="")
        for raw in shown:
            named = metadata(decode(raw))
            namespace, name = str(named.get("namespace", "")), str(named["name"])
            if query.collection.entries.get(key_of(namespace, name)):  # what an older list shows may be gone
                delete(self.registry, call.kind, namespace, name, each, call.caller)
        meta["resourceVersion"] = str(self.store.revision)
        return json_response(200, self.view(call.kind, "").whole_list(shown, meta))

    async def _subresource(self, call: Call) -> Response:
        sub = call.kind.subresources.get(call.info.subresource)
        if sub is None or (call.kind.namespaced and not call.info.namespace):
            raise statuses.no_such_resource()
        if call.info.verb not in sub.verbs:
            raise statuses.method_not_allowed()
        if sub.name not in ("status", "ephemeralcontainers", "resize", "approval"):
            return self._subresources.respond(call.with_options("CreateOptions"))
        if call.info.verb == "get":
            return await self._get(call)
        return await (self._update(call) if call.info.verb == "update" else self._patch(call))


def warning_header(warnings: Sequence[str]) -> str:
    """The Warning header (RFC 7234) of some warnings."""
    said = (text.replace("\\", "\\\\").replace('"', '\\"') for text in warnings)
    return ", ".join(f'299 - "{text}"' for text in said)


def error_response(error: ApiError) -> Response:
    """An error as it is sent."""
    response = json_response(error.code, error.status())
    if error.retry_after:
        response.headers["Retry-After"] = str(error.retry_after)
    if error.warnings:
        response.headers["Warning"] = warning_header(error.warnings)
    return response
