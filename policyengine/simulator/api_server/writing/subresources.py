"""Subresources that are no part of the object: binding, eviction, scale, tokens, logs; and access reviews."""

from policyengine.cluster.objects import format_time
from policyengine.simulator.api_server import field_errors
from policyengine.simulator.api_server.access.authentication import Authenticator, service_account
from policyengine.simulator.api_server.access.rbac import Authorizer
from policyengine.simulator.api_server.access.reviews import answered
from policyengine.simulator.api_server.decoding.bodies import parse_json, parsed, read_body, typed
from policyengine.simulator.api_server.http_requests import Response, json_response
from policyengine.simulator.api_server.statuses import ApiError, Json, bad_request, invalid, no_such_resource, success
from policyengine.simulator.api_server.storage import Object, child, encode, metadata, texts
from policyengine.simulator.api_server.writing.call import Call
from policyengine.simulator.api_server.writing.patch_formats import merge
from policyengine.simulator.api_server.writing.pod_subresources import bind, evict
from policyengine.simulator.api_server.writing.rest_storage import Registry

TOKEN_SECONDS = 3600
SHORTEST_TOKEN = 600
DONE = encode(success(code=201))


class Subresources:
    """Answers what is neither an object nor its status."""

    def __init__(self, registry: Registry, authorizer: Authorizer, authenticator: Authenticator) -> None:
        self._registry = registry
        self._authenticator = authenticator
        self._authorizer = authorizer

    def create(self, call: Call) -> Response | None:
        """A review, or a binding posted to `bindings`; None for an object to keep."""
        kind = call.kind
        if kind.kind == "Binding":
            return self._bind(call)
        if not kind.kind.endswith("Review"):
            return None
        review = typed(read_body(call.request, kind.kind), kind, call.options)
        self._registry.own(call, self._registry.empty(kind), review)
        user, now = call.caller.user, self._registry.now()
        body = answered(kind.kind, review, user, now, self._authorizer, self._authenticator)
        return json_response(201, {**kind.type_meta(), **body})

    def respond(self, call: Call) -> Response:
        """A subresource of one object; raises what it refuses."""
        match call.info.subresource:
            case "binding":
                return self._bind(call)
            case "eviction":
                evict(self._registry, call, read_object_body(call, "Eviction"))
                return json_response(201, DONE)
            case "scale":
                return self._scale(call)
            case "token":
                return self._token(call)
            case "finalize":
                return self._finalize(call)
        self._registry.entry(call.kind, call.info.namespace, call.info.name)
        if call.info.subresource == "log":
            return Response(200, {"Content-Type": "text/plain"}, b"")
        # attach, exec, portforward and proxy reach into a container; none runs here.
        why = f"the server does not run containers: {call.info.subresource} is not served"
        raise ApiError(501, "NotImplemented", why)

    def _bind(self, call: Call) -> Response:
        bind(self._registry, call, read_object_body(call, "Binding"))
        return json_response(201, DONE)

    def _scale(self, call: Call) -> Response:
        kind, info = call.kind, call.info
        held = _scale_of(self._registry.read(kind, info.namespace, info.name))
        if info.verb == "get":
            return json_response(200, held)
        if info.verb == "patch":
            desired = merge(held, parsed(parse_json, call.request.body, "error decoding patch: {}"))
        else:
            desired = read_body(call.request, "Scale")
        replicas = child(desired, "spec").get("replicas") if isinstance(desired, dict) else None
        if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 0:
            raise bad_request("spec.replicas must be a whole number that is not negative")

        def resize(obj: Object) -> Object:
            obj["spec"] = {**child(obj, "spec"), "replicas": replicas}
            return obj

        self._registry.update(call, resize)
        return json_response(200, _scale_of(self._registry.read(kind, info.namespace, info.name)))

    def _token(self, call: Call) -> Response:
        info = call.info
        self._registry.entry(call.kind, info.namespace, info.name)
        spec = child(read_object_body(call, "TokenRequest"), "spec")
        seconds = spec.get("expirationSeconds")
        length = seconds if isinstance(seconds, int) else TOKEN_SECONDS
        if length < SHORTEST_TOKEN:
            why = "may not specify a duration less than 10 minutes"
            cause = field_errors.invalid("spec.expirationSeconds", length, why)
            raise invalid("TokenRequest", "authentication.k8s.io", "", [cause])
        token = self._registry.names.uid()
        self._authenticator.add(token, service_account(info.namespace, info.name), texts(spec.get("audiences")))
        expires = format_time(self._registry.clock.now() + length)
        answer: Object = {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": info.name, "namespace": info.namespace},
            "spec": {**spec, "expirationSeconds": length},
            "status": {"token": token, "expirationTimestamp": expires},
        }
        return json_response(201, answer)

    def _finalize(self, call: Call) -> Response:
        kind = call.kind
        if kind.kind != "Namespace":
            raise no_such_resource()
        body = typed(read_body(call.request, "Namespace"), kind, call.options)
        before = self._registry.entry(kind, "", call.info.name)
        namespace = before.object()
        finalizers = child(body, "spec").get("finalizers")
        namespace["spec"] = {"finalizers": finalizers} if finalizers else {}
        if metadata(namespace).get("deletionTimestamp") and not finalizers:
            entry = self._registry.discard(kind, before, call.caller)
        else:
            entry = self._registry.commit(kind, "update", before, namespace, call.caller, "finalize")
        return json_response(200, {**kind.type_meta(), **entry.object()})


def read_object_body(call: Call, what: str) -> Object:
    """The body of a request, empty where it is no object; raises 400 and 415."""
    body = read_body(call.request, what)
    return body if isinstance(body, dict) else {}


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
