"""What is no resource: health, version, discovery and OpenAPI documents."""

from collections.abc import Callable

from policyengine.simulator.api_server.kinds import discovery, openapi
from policyengine.simulator.api_server.kinds.served import Kinds
from policyengine.simulator.api_server.requests import Request, Response
from policyengine.simulator.api_server.statuses import Json, method_not_allowed, no_such_resource
from policyengine.simulator.api_server.storage.store import encode

HEALTH = ("/healthz", "/livez", "/readyz")
ROOTS: list[Json] = ["/api", "/api/v1", "/apis", *HEALTH, "/openapi/v2", "/openapi/v3", "/version"]
TEXT = {"Content-Type": "text/plain; charset=utf-8"}
READING = ("GET", "HEAD")


class Root:
    """Answers the paths that name no resource; `address` says where the server listens."""

    def __init__(self, kinds: Kinds, address: Callable[[], str]) -> None:
        self._kinds = kinds
        self._address = address

    def answer(self, request: Request) -> Response:
        """The answer; raises 404 and 405."""
        path = request.path.rstrip("/") or "/"
        if path.startswith(HEALTH) and path.partition("z/")[0].rstrip("z") + "z" in HEALTH:
            return Response(200, dict(TEXT), b"ok")
        found = self._document(path, request.headers.get("accept", ""))
        if found is None:
            return self._nothing(path)
        if request.method not in READING:
            raise method_not_allowed()
        return found

    def _document(self, path: str, accept: str) -> Response | None:
        if path == "/version":
            return _json(discovery.VERSION)
        if path == "/":
            return _json({"paths": list(ROOTS)})
        if path == "/openapi/v2":
            return self._openapi_v2(accept)
        if path.startswith("/openapi/"):
            return openapi.respond(self._kinds, path, accept)
        return self._discovered(path, accept)

    def _openapi_v2(self, accept: str) -> Response:
        # Loaded when first asked for; only `v1 List` objects and old clients need it.
        from policyengine.simulator.api_server.kinds import openapi_v2

        found = openapi_v2.document_v2(self._kinds)
        if any(name in accept for name in openapi_v2.ASKED):
            return Response(200, {"Content-Type": openapi_v2.PROTOBUF}, openapi_v2.protobuf(found))
        return _json(found)

    def _discovered(self, path: str, accept: str) -> Response | None:
        if path in ("/api", "/apis"):
            if "as=APIGroupDiscoveryList" in accept and "v=v2" in accept:
                body = discovery.aggregated(self._kinds, core=path == "/api")
                return Response(200, {"Content-Type": discovery.AGGREGATED}, encode(body))
            if path == "/api":
                return _json(discovery.api_versions(self._address()))
            return _json(discovery.api_groups(self._kinds))
        parts = path.strip("/").split("/")
        found = None
        if parts[0] == "api" and len(parts) == 2:
            found = discovery.api_resources(self._kinds, "", parts[1])
        elif parts[0] == "apis" and len(parts) == 3:
            found = discovery.api_resources(self._kinds, parts[1], parts[2])
        elif parts[0] == "apis" and len(parts) == 2:
            found = discovery.api_group(self._kinds, parts[1])
        return None if found is None else _json(found)

    def _nothing(self, path: str) -> Response:
        parts = path.split("/")
        if path.startswith(("/api/", "/apis/")) and len(parts) > 3:
            group, version = (parts[2], parts[3]) if parts[1] == "apis" else ("", parts[2])
            if self._kinds.has_group_version(group, version):
                raise no_such_resource()
        return not_found_page()

    def knows(self, group: str, version: str) -> bool:
        """Whether a path below this group is answered as a resource's: a group nobody knows is just no page."""
        return not group or any(kind.group == group for kind in self._kinds)


def not_found_page() -> Response:
    """404 of a path nothing is registered for."""
    return Response(404, dict(TEXT), b"404 page not found\n")


def _json(body: object) -> Response:
    return Response(200, {"Content-Type": "application/json"}, encode(body))
