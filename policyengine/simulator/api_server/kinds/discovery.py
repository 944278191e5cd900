"""What is no resource: health, version, discovery in its old and aggregated form, and the way to the OpenAPI documents.

https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api
"""

from base64 import b64encode
from collections.abc import Callable, Iterator
from hashlib import sha256

from policyengine.simulator.api_server.http_requests import Request, Response, json_response
from policyengine.simulator.api_server.kinds import openapi
from policyengine.simulator.api_server.kinds.api_types import FOLDER
from policyengine.simulator.api_server.kinds.served import Kind, Kinds
from policyengine.simulator.api_server.statuses import Json, method_not_allowed, no_such_resource
from policyengine.simulator.api_server.storage import encode

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
VERSION = (FOLDER / "version.json").read_bytes()


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


def _names(kind: Kind) -> dict[str, Json]:
    """Short names and categories, where there are any."""
    named: dict[str, tuple[str, ...]] = {"shortNames": kind.short_names, "categories": kind.categories}
    return {name: list(values) for name, values in named.items() if values}


def _resources(kind: Kind) -> Iterator[dict[str, Json]]:
    """A kind and its subresources as `/api/v1` lists them."""
    common: dict[str, Json] = {"namespaced": kind.namespaced}
    # Clients only compare the hash of the version stored.
    digest = sha256(f"{kind.group}/{kind.version}/{kind.kind}".encode()).digest()
    watched = {"storageVersionHash": b64encode(digest[:8]).decode()} if "watch" in kind.verbs else {}
    named: dict[str, Json] = {"name": kind.plural, "singularName": kind.singular, "kind": kind.kind}
    yield {**named, "verbs": list(kind.verbs), **common, **_names(kind), **watched}
    for name, sub in sorted(kind.subresources.items()):
        where = {"group": sub.group, "version": sub.version} if sub.group else {}
        row: dict[str, Json] = {"name": f"{kind.plural}/{name}", "singularName": "", "kind": sub.kind}
        yield {**row, "verbs": list(sub.verbs), **common, **where}


def api_resources(kinds: Kinds, group: str, version: str) -> dict[str, Json] | None:
    """`/api/v1` or `/apis/<group>/<version>`; None where nothing is served."""
    served = [kind for kind in kinds if (kind.group, kind.version) == (group, version)]
    if not served:
        return None
    rows: list[Json] = [row for kind in sorted(served, key=lambda k: k.plural) for row in _resources(kind)]
    # The core group's list carries no apiVersion of its own in the real answer.
    head: dict[str, Json] = {"kind": "APIResourceList", **({"apiVersion": "v1"} if group else {})}
    return {**head, "groupVersion": f"{group}/{version}" if group else version, "resources": rows}


def _aggregated_resource(kind: Kind) -> dict[str, Json]:
    own = {"group": kind.group, "version": kind.version} if kind.custom is not None else {"group": "", "version": ""}
    out: dict[str, Json] = {
        "resource": kind.plural,
        "responseKind": {**own, "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
        **_names(kind),
    }
    subs: list[Json] = []
    for name, sub in sorted(kind.subresources.items()):
        where = {"group": sub.group, "version": sub.version} if sub.group else own
        subs.append({"subresource": name, "responseKind": {**where, "kind": sub.kind}, "verbs": list(sub.verbs)})
    return {**out, "subresources": subs} if subs else out


def aggregated(kinds: Kinds, core: bool) -> dict[str, Json]:
    """The aggregated form of `/api` (`core`) or `/apis`."""
    items: list[Json] = []
    for name, versions in groups(kinds).items():
        if bool(name) is core:
            continue
        rows: list[Json] = []
        for version, served in versions.items():
            resources: list[Json] = [_aggregated_resource(kind) for kind in sorted(served, key=lambda k: k.plural)]
            rows.append({"version": version, "resources": resources, "freshness": "Current"})
        items.append({"metadata": {"name": name} if name else {}, "versions": rows})
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


HEALTH = ("/healthz", "/livez", "/readyz")
ROOTS: list[Json] = ["/api", "/api/v1", "/apis", *HEALTH, "/openapi/v2", "/openapi/v3", "/version"]
TEXT = {"Content-Type": "text/plain; charset=utf-8"}
READING = ("GET", "HEAD")
OPENAPI_V2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
NO_DEFINITIONS = b"\x0a\x032.0\x12\x15\x0a\x0aKubernetes\x12\x07v1.36.2\x42\x00\x4a\x00"
"""An openapi.v2.Document of gnostic's without definitions: kubectl looks into it before it applies a `v1 List`, and
leaves what it does not find there to the server."""


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
        if path == "/openapi/v2":
            return Response(200, {"Content-Type": OPENAPI_V2}, NO_DEFINITIONS)
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
