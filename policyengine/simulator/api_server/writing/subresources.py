"""Subresources that are no part of the object: binding, eviction, scale, tokens, logs; and access reviews."""

from policyengine.simulator.api_server.access.authentication import Authenticator, service_account
from policyengine.simulator.api_server.access.rbac import Authorizer
from policyengine.simulator.api_server.access.reviews import REVIEWS, Reviewer
from policyengine.simulator.api_server.decoding.bodies import WriteOptions, parse_json, parsed, read_body, typed
from policyengine.simulator.api_server.field_errors import invalid as invalid_value
from policyengine.simulator.api_server.kinds.served import Kind
from policyengine.simulator.api_server.requests import Request, RequestInfo, Response, json_response
from policyengine.simulator.api_server.scalars import format_time
from policyengine.simulator.api_server.statuses import ApiError, Json, bad_request, invalid, no_such_resource, success
from policyengine.simulator.api_server.store import Object, child, encode, metadata
from policyengine.simulator.api_server.writing.deletion import Deleter
from policyengine.simulator.api_server.writing.patch_formats import merge
from policyengine.simulator.api_server.writing.pods import Binder, Evicter
from policyengine.simulator.api_server.writing.registry import Caller, Registry

TOKEN_SECONDS = 3600
SHORTEST_TOKEN = 600
BOUND = encode(success(code=201))


class Subresources:
    """Answers what is neither an object nor its status."""

    def __init__(
        self, registry: Registry, deleter: Deleter, authorizer: Authorizer, authenticator: Authenticator
    ) -> None:
        pods, budgets = (
            registry.kinds.find("", "v1", "pods"),
            registry.kinds.find("policy", "v1", "poddisruptionbudgets"),
        )
        assert pods is not None and budgets is not None
        self._registry = registry
        self._binder = Binder(registry, pods)
        self._evicter = Evicter(registry, deleter, pods, budgets)
        self._authenticator = authenticator
        self._reviewer = Reviewer(authorizer, authenticator, registry.now)

    def answers(self, kind: Kind) -> bool:
        """Whether a create of `kind` is a question or an order rather than an object to keep."""
        return kind.kind in REVIEWS or kind.kind == "Binding"

    def create(
        self, request: Request, info: RequestInfo, kind: Kind, caller: Caller, options: WriteOptions
    ) -> Response:
        """A review, or a binding posted to `bindings`."""
        if kind.kind == "Binding":
            self._binder.bind(info.namespace, "", request, options.dry_run, caller)
            return json_response(201, BOUND)
        review = typed(read_body(request, kind.kind), kind, options)
        self._registry.own(kind, self._registry.empty(kind), review, options, caller)
        return json_response(201, {**kind.type_meta(), **self._reviewer.answer(kind.kind, review, caller.user)})

    def respond(
        self, request: Request, info: RequestInfo, kind: Kind, caller: Caller, options: WriteOptions
    ) -> Response:
        """A subresource of one object; raises what it refuses."""
        match info.subresource:
            case "binding":
                self._binder.bind(info.namespace, info.name, request, options.dry_run, caller)
                return json_response(201, BOUND)
            case "eviction":
                body = read_body(request, "Eviction")
                eviction = body if isinstance(body, dict) else {}
                self._evicter.evict(info.namespace, info.name, eviction, options.dry_run, caller)
                return json_response(201, BOUND)
            case "scale":
                return self._scale(request, info, kind, caller, options)
            case "token":
                return self._token(request, info, kind)
            case "finalize":
                return self._finalize(request, info, kind, caller, options)
            case "log":
                self._registry.entry(kind, info.namespace, info.name)
                return Response(200, {"Content-Type": "text/plain"}, b"")
            case _:
                # attach, exec, portforward and proxy reach into a container; none runs here.
                self._registry.entry(kind, info.namespace, info.name)
                raise ApiError(
                    501, "NotImplemented", f"the server does not run containers: {info.subresource} is not served"
                )

    def _scale(
        self, request: Request, info: RequestInfo, kind: Kind, caller: Caller, options: WriteOptions
    ) -> Response:
        current = self._registry.read(kind, info.namespace, info.name)
        if info.verb == "get":
            return json_response(200, _scale_of(current))
        patch = info.verb == "patch"
        body = parsed(parse_json, request.body, "error decoding patch: {}") if patch else read_body(request, "Scale")
        desired = merge(_scale_of(current), body) if patch else body
        replicas = child(desired, "spec").get("replicas") if isinstance(desired, dict) else None
        if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 0:
            raise bad_request("spec.replicas must be a whole number that is not negative")

        def resize(obj: Object) -> Object:
            obj["spec"] = {**child(obj, "spec"), "replicas": replicas}
            return obj

        self._registry.update(kind, info.namespace, info.name, resize, options, caller, "scale")
        return json_response(200, _scale_of(self._registry.read(kind, info.namespace, info.name)))

    def _token(self, request: Request, info: RequestInfo, kind: Kind) -> Response:
        self._registry.entry(kind, info.namespace, info.name)
        body = read_body(request, "TokenRequest")
        spec = child(body, "spec") if isinstance(body, dict) else {}
        seconds = spec.get("expirationSeconds")
        length = seconds if isinstance(seconds, int) else TOKEN_SECONDS
        if length < SHORTEST_TOKEN:
            why = "may not specify a duration less than 10 minutes"
            raise invalid(
                "TokenRequest", "authentication.k8s.io", "", [invalid_value("spec.expirationSeconds", length, why)]
            )
        token = self._registry.names.uid()
        self._authenticator.add(token, service_account(info.namespace, info.name))
        expires = format_time(self._registry.clock.now() + length)
        answer: Object = {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": info.name, "namespace": info.namespace},
            "spec": {**spec, "expirationSeconds": length},
            "status": {"token": token, "expirationTimestamp": expires},
        }
        return json_response(201, answer)

    def _finalize(
        self, request: Request, info: RequestInfo, kind: Kind, caller: Caller, options: WriteOptions
    ) -> Response:
        if kind.kind != "Namespace":
            raise no_such_resource()
        body = typed(read_body(request, "Namespace"), kind, options)
        before = self._registry.entry(kind, "", info.name)
        namespace = before.object()
        finalizers = child(body, "spec").get("finalizers")
        namespace["spec"] = {"finalizers": finalizers} if finalizers else {}
        if metadata(namespace).get("deletionTimestamp") and not finalizers:
            return json_response(200, {**kind.type_meta(), **self._registry.discard(kind, before, caller).object()})
        entry = self._registry.commit(kind, "update", before, namespace, caller, "finalize")
        return json_response(200, {**kind.type_meta(), **entry.object()})


def _scale_of(obj: Object) -> Object:
    """The Scale of a workload."""
    meta, spec, status = metadata(obj), child(obj, "spec"), child(obj, "status")
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    selector = child(spec, "selector", "matchLabels") or child(spec, "selector")
    said: Json = ",".join(f"{k}={v}" for k, v in sorted(selector.items()) if isinstance(v, str))
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: meta[name] for name in kept if name in meta},
        "spec": {"replicas": spec.get("replicas", 0)},
        "status": {"replicas": status.get("replicas", 0), "selector": said},
    }
