"""What is no resource: health, version, discovery in its old and aggregated form, and the way to the OpenAPI documents.

https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api
"""

from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256

from policyengine.simulator.api_server.kinds import openapi, openapi_v2
from policyengine.simulator.api_server.kinds.served import Kind, Kinds, Subresource
from policyengine.simulator.api_server.requests import Request, Response, json_response
from policyengine.simulator.api_server.statuses import Json, method_not_allowed, no_such_resource
from policyengine.simulator.api_server.store import encode

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
VERSION: dict[str, Json] = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.2",
    "gitCommit": "0",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "go1.27.3",
    "compiler": "gc",
    "platform": "linux/amd64",
}


def groups(kinds: Kinds) -> dict[str, dict[str, list[Kind]]]:
    """Kinds by group, then version, in the order served."""
    found: dict[str, dict[str, list[Kind]]] = {}
    for kind in kinds:
        found.setdefault(kind.group, {}).setdefault(kind.version, []).append(kind)
    return found


def api_versions(address: str) -> dict[str, Json]:
    """`/api`."""
    clients: list[Json] = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": clients}


def _group(name: str, versions: list[str]) -> dict[str, Json]:
    rows: list[Json] = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": rows, "preferredVersion": rows[0]}


def api_groups(kinds: Kinds) -> dict[str, Json]:
    """`/apis`."""
    rows: list[Json] = [_group(name, list(versions)) for name, versions in groups(kinds).items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": rows}


def api_group(kinds: Kinds, name: str) -> dict[str, Json] | None:
    """`/apis/<group>`; None where there is none."""
    versions = groups(kinds).get(name)
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, list(versions))} if versions else None


def storage_version_hash(kind: Kind) -> str:
    """A short hash of the version stored, which clients only compare."""
    digest = sha256(f"{kind.group}/{kind.version}/{kind.kind}".encode()).digest()
    return b64encode(digest[:8]).decode()


def _resource(kind: Kind) -> dict[str, Json]:
    out: dict[str, Json] = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        out["shortNames"] = list(kind.short_names)
    if kind.categories:
        out["categories"] = list(kind.categories)
    if "watch" in kind.verbs:
        out["storageVersionHash"] = storage_version_hash(kind)
    return out


def _subresource(kind: Kind, sub: Subresource) -> dict[str, Json]:
    out: dict[str, Json] = {
        "name": f"{kind.plural}/{sub.name}",
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": sub.kind,
        "verbs": list(sub.verbs),
    }
    if sub.group:
        out.update(group=sub.group, version=sub.version)
    return out


def api_resources(kinds: Kinds, group: str, version: str) -> dict[str, Json] | None:
    """`/api/v1` or `/apis/<group>/<version>`; None where nothing is served."""
    served = [kind for kind in kinds if (kind.group, kind.version) == (group, version)]
    if not served:
        return None
    rows: list[Json] = []
    for kind in sorted(served, key=lambda k: k.plural):
        rows.append(_resource(kind))
        rows += [_subresource(kind, sub) for _, sub in sorted(kind.subresources.items())]
    group_version = f"{group}/{version}" if group else version
    # The core group's list carries no apiVersion of its own in the real answer.
    head: dict[str, Json] = {"kind": "APIResourceList"}
    if group:
        head["apiVersion"] = "v1"
    return {**head, "groupVersion": group_version, "resources": rows}


def _aggregated_resource(kind: Kind) -> dict[str, Json]:
    out: dict[str, Json] = {
        "resource": kind.plural,
        "responseKind": {"group": "", "version": "", "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
    }
    if kind.custom is not None:
        out["responseKind"] = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    if kind.short_names:
        out["shortNames"] = list(kind.short_names)
    if kind.categories:
        out["categories"] = list(kind.categories)
    subs: list[Json] = []
    for _, sub in sorted(kind.subresources.items()):
        response: Json = {"group": sub.group, "version": sub.version, "kind": sub.kind}
        if kind.custom is not None and not sub.group:
            response = {"group": kind.group, "version": kind.version, "kind": sub.kind}
        subs.append({"subresource": sub.name, "responseKind": response, "verbs": list(sub.verbs)})
    if subs:
        out["subresources"] = subs
    return out


def aggregated(kinds: Kinds, core: bool) -> dict[str, Json]:
    """The aggregated form of `/api` (`core`) or `/apis`."""
    items: list[Json] = []
    for name, versions in groups(kinds).items():
        if bool(name) is core:
            continue
        rows: list[Json] = [
            {
                "version": version,
                "resources": [_aggregated_resource(kind) for kind in sorted(served, key=lambda k: k.plural)],
                "freshness": "Current",
            }
            for version, served in versions.items()
        ]
        meta: dict[str, Json] = {"name": name} if name else {}
        items.append({"metadata": meta, "versions": rows})
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


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
        """The document at a path; None for none."""
        if path in ("/api", "/apis") and "as=APIGroupDiscoveryList" in accept and "v=v2" in accept:
            body = aggregated(self._kinds, core=path == "/api")
            return Response(200, {"Content-Type": AGGREGATED}, encode(body))
        if path == "/openapi/v2" and any(name in accept for name in openapi_v2.ASKED):
            body = openapi_v2.document_v2(self._kinds)
            return Response(200, {"Content-Type": openapi_v2.PROTOBUF}, openapi_v2.protobuf(body))
        found = self._json(path)
        return None if found is None else json_response(200, found)

    def _json(self, path: str) -> object:
        match path.strip("/").split("/"):
            case [""]:
                return {"paths": list(ROOTS)}
            case ["version"]:
                return VERSION
            case ["api"]:
                return api_versions(self._address())
            case ["apis"]:
                return api_groups(self._kinds)
            case ["api", version]:
                return api_resources(self._kinds, "", version)
            case ["apis", group]:
                return api_group(self._kinds, group)
            case ["apis", group, version]:
                return api_resources(self._kinds, group, version)
            case ["openapi", "v2"]:
                return openapi_v2.document_v2(self._kinds)
            case ["openapi", "v3"]:
                return openapi.index(self._kinds)
            case ["openapi", "v3", "api", version]:
                return openapi.document_bytes(self._kinds, "", version)
            case ["openapi", "v3", "apis", group, version]:
                return openapi.document_bytes(self._kinds, group, version)
        return None

    def _nothing(self, path: str) -> Response:
        match path.split("/"):
            case ["", "api", version, _, *_] if self._kinds.has_group_version("", version):
                raise no_such_resource()
            case ["", "apis", group, version, *_] if self._kinds.has_group_version(group, version):
                raise no_such_resource()
        return not_found_page()

    def knows(self, group: str, version: str) -> bool:
        """Whether a path below this group is answered as a resource's: a group nobody knows is just no page."""
        return not group or any(kind.group == group for kind in self._kinds)


def not_found_page() -> Response:
    """404 of a path nothing is registered for."""
    return Response(404, dict(TEXT), b"404 page not found\n")
