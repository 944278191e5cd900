"""The API server: one request in, one response out, free of sockets; all time from a clock, all chance from a seed.

The steps of a request, in the real server's order: who asks, may they, what fault is injected, what is meant, do it.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace

from policyengine.clock import Clock
from policyengine.simulator.api_server import bootstrap, discovery, fields, openapi
from policyengine.simulator.api_server.audit import WriteLog
from policyengine.simulator.api_server.authentication import Authenticator
from policyengine.simulator.api_server.bodies import (
    WriteOptions,
    check_size,
    read_body,
    read_object,
    write_options,
)
from policyengine.simulator.api_server.conversion import converter_for
from policyengine.simulator.api_server.custom_kinds import CustomKinds
from policyengine.simulator.api_server.deletion import DeleteOptions, Deleter, parse_delete_options
from policyengine.simulator.api_server.faults import Faults
from policyengine.simulator.api_server.kinds import Kind, Kinds
from policyengine.simulator.api_server.lists import Lister, ListOptions, parse_options
from policyengine.simulator.api_server.names import Names
from policyengine.simulator.api_server.patching import Patcher
from policyengine.simulator.api_server.rbac import GROUP as RBAC_GROUP
from policyengine.simulator.api_server.rbac import Authorizer
from policyengine.simulator.api_server.registry import Caller, Registry
from policyengine.simulator.api_server.representation import PartialView, View, wanted
from policyengine.simulator.api_server.requests import (
    ADMIN,
    Request,
    RequestInfo,
    Response,
    User,
    parse_path,
)
from policyengine.simulator.api_server.statuses import (
    ApiError,
    internal,
    method_not_allowed,
    no_such_resource,
    success,
)
from policyengine.simulator.api_server.storage import Entry, Object, Store, decode, encode, metadata
from policyengine.simulator.api_server.subresources import Subresources
from policyengine.simulator.api_server.tables import TableView

JSON_HEADERS = {"Content-Type": "application/json"}
HEALTH = frozenset({"/healthz", "/livez", "/readyz"})
DEFAULT_WINDOW = 10_000
DEFAULT_LOG = 200_000


class ApiServer:
    """An API server in memory.

    `tokens` None lets everyone in as administrator; given, RBAC is enforced. `window` is how many changes each
    resource remembers for watches, `log_limit` how many writes the log keeps. `address` is what discovery says.
    """

    def __init__(
        self,
        clock: Clock,
        seed: int = 0,
        *,
        tokens: Mapping[str, User] | None = None,
        window: int = DEFAULT_WINDOW,
        log_limit: int | None = DEFAULT_LOG,
        address: str = "127.0.0.1:6443",
    ) -> None:
        self.clock = clock
        self.address = address
        self.store = Store(window)
        self.kinds = Kinds()
        self.log = WriteLog(log_limit)
        self.names = Names(seed)
        self.registry = Registry(self.store, self.kinds, clock, self.names, self.log)
        self.deleter = Deleter(self.registry)
        self.authenticator = Authenticator(tokens)
        self.authorizer = Authorizer(self.store)
        self.faults = Faults(clock, seed)
        self._lister = Lister(self.store, clock)
        self._patcher = Patcher(self.registry)
        self._subresources = Subresources(self.registry, self.deleter, self.authorizer, self.authenticator)
        self._custom = CustomKinds(self.registry)
        self._views: dict[tuple[str, str, str, str], View] = {}
        self.registry.after_write.append(self._after_write)
        bootstrap.seed(self._seed)

    def _seed(self, group: str, version: str, plural: str, namespace: str, obj: Object) -> None:
        kind = self.kinds.find(group, version, plural)
        assert kind is not None
        caller = Caller(ADMIN, "kube-apiserver/v1.36.2")
        self.registry.create(kind, namespace, obj, WriteOptions(), caller)

    def _after_write(self, kind: Kind, before: Entry | None, obj: Object | None) -> None:
        if kind.group == RBAC_GROUP:
            self.authorizer.refresh()
        if kind.kind == "CustomResourceDefinition":
            self._custom.follow(before.object() if before else None, obj)
            self._views.clear()

    # One request

    async def handle(self, request: Request) -> Response:
        """Answer one request; never raises for what a client did."""
        try:
            return await self._handle(request)
        except ApiError as error:
            return error_response(error)
        except RecursionError:
            return error_response(internal("the object is nested too deeply"))

    async def _handle(self, request: Request) -> Response:
        user = self.authenticator.user(request)
        info = parse_path(request.method, request.path, request.query)
        if not self.authenticator.open:
            self.authorizer.check(user, info)
        fault = self.faults.find(info, request.user_agent) if self.faults.active else None
        if fault is None:
            return await self._route(request, info, Caller(user, request.user_agent))
        return await fault.around(lambda: self._route(request, info, Caller(user, request.user_agent)))

    async def _route(self, request: Request, info: RequestInfo, caller: Caller) -> Response:
        if not info.is_resource:
            return self._non_resource(request, info)
        kind = self.kinds.find(info.group, info.version, info.resource)
        if kind is None or (info.namespace and not kind.namespaced and kind.plural != "namespaces"):
            raise no_such_resource()
        if info.subresource:
            return self._subresource(request, info, kind, caller)
        if info.verb not in kind.verbs or (kind.namespaced and info.name and not info.namespace):
            raise no_such_resource() if info.name and not info.namespace and kind.namespaced else method_not_allowed()
        match info.verb:
            case "get":
                return self._get(request, info, kind)
            case "list":
                return await self._list(request, info, kind)
            case "watch":
                return await self._watch(request, info, kind)
            case "create":
                return self._create(request, info, kind, caller)
            case "update":
                return self._update(request, info, kind, caller)
            case "patch":
                return self._patch(request, info, kind, caller)
            case "delete":
                return self._delete(request, info, kind, caller)
            case _:
                return self._delete_collection(request, info, kind, caller)

    # What is no resource

    def _non_resource(self, request: Request, info: RequestInfo) -> Response:
        path = request.path.rstrip("/") or "/"
        if path in HEALTH or path.partition("z/")[0] + "z" in HEALTH:
            return Response(200, {"Content-Type": "text/plain; charset=utf-8"}, b"ok")
        if path == "/version":
            return reply(200, discovery.VERSION)
        if path.startswith("/openapi/"):
            return openapi.respond(self.kinds, path, request.headers.get("accept", ""))
        found = self._discover(path, request.headers.get("accept", ""))
        if found is not None:
            return found
        if path.startswith(("/api/", "/apis/")):
            parts = path.split("/")
            if len(parts) <= 3 or not self.kinds.has_group_version(parts[2], parts[3] if len(parts) > 3 else ""):
                return Response(404, {"Content-Type": "text/plain; charset=utf-8"}, b"404 page not found\n")
            raise no_such_resource()
        if path == "/":
            roots = ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"]
            return reply(200, {"paths": roots})
        return Response(404, {"Content-Type": "text/plain; charset=utf-8"}, b"404 page not found\n")

    def _discover(self, path: str, accept: str) -> Response | None:
        if path in ("/api", "/apis"):
            if "as=APIGroupDiscoveryList" in accept and "v=v2" in accept:
                body = discovery.aggregated(self.kinds, core=path == "/api")
                return Response(200, {"Content-Type": discovery.AGGREGATED}, encode(body))
            if path == "/api":
                return reply(200, discovery.api_versions(self.address))
            return reply(200, discovery.api_groups(self.kinds))
        parts = path.strip("/").split("/")
        found = None
        if parts[0] == "api" and len(parts) == 2:
            found = discovery.api_resources(self.kinds, "", parts[1])
        elif parts[0] == "apis" and len(parts) == 3:
            found = discovery.api_resources(self.kinds, parts[1], parts[2])
        elif parts[0] == "apis" and len(parts) == 2:
            found = discovery.api_group(self.kinds, parts[1])
        return None if found is None else reply(200, found)

    # Reading

    def view(self, kind: Kind, accept: str, include: str = "", streams: bool = True) -> View:
        """How `kind` is to be shown; raises a 406."""
        shape = wanted(accept, streams)
        key = (kind.api_version, kind.plural, shape, include)
        found = self._views.get(key)
        if found is None:
            converter = converter_for(kind)
            if shape == "table":
                found = TableView(kind, self.clock, include or "Metadata")
            elif shape == "partial":
                found = PartialView(kind)
            else:
                found = View(kind, converter)
            self._views[key] = found
        return found

    def _view_of(self, request: Request, kind: Kind, streams: bool = True) -> View:
        include = request.query.get("includeObject", "")
        return self.view(kind, request.headers.get("accept", ""), include, streams)

    def _get(self, request: Request, info: RequestInfo, kind: Kind) -> Response:
        view = self._view_of(request, kind, streams=False)
        raw = self.registry.entry(kind, info.namespace, info.name).raw
        return Response(200, {"Content-Type": view.content_type}, view.object(raw))

    def _options(self, request: Request, info: RequestInfo, kind: Kind, watching: bool) -> ListOptions:
        options = parse_options(request.query, watching, info.name if watching else "")
        fields.check(kind, options.fields)
        return options

    async def _list(self, request: Request, info: RequestInfo, kind: Kind) -> Response:
        view = self._view_of(request, kind)
        options = self._options(request, info, kind, watching=False)
        collection = self.registry.collection(kind)
        body = await self._lister.answer(collection, view, self._scope(info, kind), options)
        return Response(200, {"Content-Type": view.content_type}, body)

    def _scope(self, info: RequestInfo, kind: Kind) -> str:
        return info.namespace if kind.namespaced else ""

    async def _watch(self, request: Request, info: RequestInfo, kind: Kind) -> Response:
        view = self._view_of(request, kind)
        options = self._options(request, info, kind, watching=True)
        empty = self.registry.empty(kind)
        collection = self.registry.collection(kind)
        stream: AsyncIterator[bytes] = await self._lister.watch(
            collection, view, self._scope(info, kind), options, empty
        )
        if self.faults.active:
            stream = self.faults.stream(info, request.user_agent, stream)
        return Response(200, {"Content-Type": view.content_type}, stream)

    # Writing

    def _written(self, request: Request, kind: Kind, status: int, raw: bytes, options: WriteOptions) -> Response:
        view = self._view_of(request, kind)
        headers = {"Content-Type": view.content_type}
        if options.warnings:
            said = (text.replace("\\", "\\\\").replace('"', '\\"') for text in options.warnings)
            headers["Warning"] = ", ".join(f'299 - "{text}"' for text in said)
        return Response(status, headers, view.object(raw))

    def _create(self, request: Request, info: RequestInfo, kind: Kind, caller: Caller) -> Response:
        check_size(request)
        wanted(request.headers.get("accept", ""))
        options = write_options(request.query, "CreateOptions")
        if self._subresources.answers(kind):
            return self._subresources.create(request, info, kind, caller, options)
        if kind.namespaced and not info.namespace:
            raise no_such_resource() if kind.plural == "" else method_not_allowed()
        obj = read_object(request, kind, options)
        raw = self.registry.create(kind, info.namespace, obj, options, caller)
        return self._written(request, kind, 201, raw, options)

    def _update(self, request: Request, info: RequestInfo, kind: Kind, caller: Caller, sub: str = "") -> Response:
        options = write_options(request.query, "UpdateOptions")
        obj = read_object(request, kind, options)
        namespace = info.namespace
        if not metadata(obj).get("name"):
            metadata(obj)["name"] = info.name
        try:
            raw = self.registry.update(kind, namespace, info.name, lambda _: obj, options, caller, sub)
        except ApiError as error:
            if error.code != 404 or sub or not self.registry.creates_on_update(kind):
                raise
            raw = self.registry.create(kind, namespace, obj, options, caller)
            return self._written(request, kind, 201, raw, options)
        return self._written(request, kind, 200, raw, options)

    def _patch(self, request: Request, info: RequestInfo, kind: Kind, caller: Caller, sub: str = "") -> Response:
        check_size(request)
        options = write_options(request.query, "PatchOptions")
        status, raw = self._patcher.patch(kind, info, request, options, caller, sub)
        return self._written(request, kind, status, raw, options)

    def _delete(self, request: Request, info: RequestInfo, kind: Kind, caller: Caller) -> Response:
        body = read_body(request, "DeleteOptions") if request.body else {}
        options = parse_delete_options(request.query, body)
        raw, details = self.deleter.delete(kind, info.namespace, info.name, options, caller)
        if raw is None:
            return reply(200, success(details))
        return Response(200, dict(JSON_HEADERS), self.view(kind, "").object(raw))

    def _delete_collection(self, request: Request, info: RequestInfo, kind: Kind, caller: Caller) -> Response:
        body = read_body(request, "DeleteOptions") if request.body else {}
        asked = parse_delete_options(request.query, body)
        options = self._options(request, info, kind, watching=False)
        predicate, collection = options.predicate(), self.registry.collection(kind)
        gone: list[bytes] = []
        for key in list(collection.keys(self._scope(info, kind))):
            entry = collection.entries[key]
            if predicate is None or predicate(decode(entry.raw)):
                each = replace(asked, uid="", resource_version="") if asked != DeleteOptions() else asked
                self.deleter.delete(kind, entry.namespace, entry.name, each, caller)
                gone.append(entry.raw)
        meta: Object = {"resourceVersion": str(self.store.revision)}
        return Response(200, dict(JSON_HEADERS), self.view(kind, "").whole_list(gone, meta))

    # Subresources

    def _subresource(self, request: Request, info: RequestInfo, kind: Kind, caller: Caller) -> Response:
        sub = kind.subresources.get(info.subresource)
        if sub is None or (kind.namespaced and not info.namespace):
            raise no_such_resource()
        if info.verb not in sub.verbs:
            raise method_not_allowed()
        if info.subresource in ("status", "ephemeralcontainers", "resize", "approval"):
            through = info.subresource
            if info.verb == "get":
                return self._get(request, info, kind)
            if info.verb == "update":
                return self._update(request, info, kind, caller, through)
            return self._patch(request, info, kind, caller, through)
        options = write_options(request.query, "CreateOptions")
        return self._subresources.respond(request, info, kind, caller, options)


def reply(status: int, body: Mapping[str, object]) -> Response:
    """A JSON answer."""
    return Response(status, dict(JSON_HEADERS), encode(body))


def error_response(error: ApiError) -> Response:
    """An error as it is sent."""
    headers = dict(JSON_HEADERS)
    if error.retry_after:
        headers["Retry-After"] = str(error.retry_after)
    return Response(error.code, headers, encode(error.status()))
