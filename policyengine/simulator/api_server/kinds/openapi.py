"""OpenAPI v3 documents of the kinds served, made from the schema: `kubectl explain`, validation and apply read them.

There is a document for each group and version. Schemas of CustomResourceDefinitions are given as they were defined.
Descriptions come from `schemas/descriptions.txt`; what has none there is described by its name.
"""

import re
from functools import cache
from hashlib import sha256

from policyengine.simulator.api_server.kinds.api_types import FOLDER, Field, Type, struct
from policyengine.simulator.api_server.kinds.served import Kind, Kinds, Subresource
from policyengine.simulator.api_server.statuses import Json
from policyengine.simulator.api_server.storage import encode

_WORD = re.compile(r"[A-Z]{2,}s?(?![a-z])|[A-Z]?[a-z0-9]+|[A-Z]")


@cache
def _texts() -> dict[str, str]:
    lines = (FOLDER / "descriptions.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.partition("  ") for line in lines if line and not line.startswith("#"))
    return {key: text for key, _, text in pairs}


def of_type(name: str) -> str:
    """What a type is for, by its Go name: `PodSpec`."""
    return _texts().get(name) or f"{_words(name)}."


def of_field(owner: str, name: str) -> str:
    """What a field of a type is for."""
    return _texts().get(f"{owner}.{name}") or _texts().get(f"*.{name}") or f"{_words(name)}."


def _words(name: str) -> str:
    """A name in Go's spelling as words: `podIPs` is `Pod IPs`."""
    text = " ".join(word if word[:2].isupper() and len(word) > 1 else word.lower() for word in _WORD.findall(name))
    return text[:1].upper() + text[1:]


META = "io.k8s.apimachinery.pkg.apis.meta.v1"
SCALARS: dict[str, dict[str, Json]] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "float": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
    "time": {"type": "string", "format": "date-time"},
    "microtime": {"type": "string", "format": "date-time"},
    "duration": {"type": "string"},
    "quantity": {"type": "string"},
    "intstr": {"type": "string", "format": "int-or-string"},
    "raw": {"type": "object"},
}
METHODS = {"get": "get", "list": "get", "create": "post", "update": "put", "patch": "patch", "delete": "delete"}
PATCH_TYPES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)


def schema_name(ref: str) -> str:
    """The name a struct goes by in the documents, as the real server's."""
    home, _, name = ref.rpartition(":")
    if home == "meta":
        return f"{META}.{name}"
    group, _, version = home.partition("/")
    if group == "apiextensions.k8s.io":
        return f"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}.{name}"
    if group == "apiregistration.k8s.io":
        return f"io.k8s.kube-aggregator.pkg.apis.apiregistration.{version}.{name}"
    return f"io.k8s.api.{group.split('.')[0]}.{version}.{name}"


def _reference(ref: str) -> dict[str, Json]:
    return {"$ref": f"#/components/schemas/{schema_name(ref)}"}


def _type(type_: Type, found: set[str]) -> dict[str, Json]:
    if type_.kind == "struct":
        found.add(type_.ref)
        return {"allOf": [_reference(type_.ref)]}
    if type_.kind == "list" and type_.elem:
        return {"type": "array", "items": _type(type_.elem, found)}
    if type_.kind == "map" and type_.elem:
        return {"type": "object", "additionalProperties": _type(type_.elem, found)}
    return dict(SCALARS[type_.kind])


def _field(known: Field, owner: str, found: set[str]) -> dict[str, Json]:
    out: dict[str, Json] = {"description": of_field(owner, known.name), **_type(known.type, found)}
    if known.list_type:
        name = "x-kubernetes-map-type" if known.type.kind != "list" else "x-kubernetes-list-type"
        out[name] = known.list_type
    if known.keys:
        out["x-kubernetes-list-map-keys"] = list(known.keys)
    if known.strategies:
        ordered = [s for s in ("merge", "replace", "retainKeys") if s in known.strategies]
        out["x-kubernetes-patch-strategy"] = ",".join(ordered)
    if known.merge_key:
        out["x-kubernetes-patch-merge-key"] = known.merge_key
    return out


def _struct(ref: str, found: set[str]) -> dict[str, Json]:
    type_ = struct(ref)
    properties: dict[str, Json] = {name: _field(known, type_.name, found) for name, known in type_.fields.items()}
    out: dict[str, Json] = {"description": of_type(type_.name), "type": "object", "properties": properties}
    needed: list[Json] = [name for name, known in type_.fields.items() if known.required]
    if needed:
        out["required"] = needed
    if type_.atomic:
        out["x-kubernetes-map-type"] = "atomic"
    return out


def _kind_schema(kind: Kind, found: set[str]) -> dict[str, Json]:
    if kind.custom is not None:
        schema = dict(kind.custom_schema)
        found.add("meta:ObjectMeta")
        properties = schema.get("properties")
        known = dict(properties) if isinstance(properties, dict) else {}
        known["metadata"] = _reference("meta:ObjectMeta")
    else:
        schema = _struct(f"{kind.schema_home}:{kind.kind}", found)
        held = schema["properties"]
        known = dict(held) if isinstance(held, dict) else {}
    type_meta: dict[str, Json] = {
        name: {"description": of_field("TypeMeta", name), "type": "string"} for name in ("apiVersion", "kind")
    }
    schema["properties"] = {**type_meta, **known}
    identity: Json = {"group": kind.group, "kind": kind.kind, "version": kind.version}
    schema["x-kubernetes-group-version-kind"] = [identity]
    return schema


def kind_name(kind: Kind) -> str:
    """The schema's name of a kind."""
    if kind.custom is not None:
        return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])
    return schema_name(f"{kind.schema_home}:{kind.kind}")


def _operation(kind: Kind, action: str, sub: Subresource | None) -> dict[str, Json]:
    content: Json = {"application/json": {"schema": {"$ref": f"#/components/schemas/{kind_name(kind)}"}}}
    named = sub.kind if sub else kind.kind
    identity: dict[str, Json] = {"group": kind.group, "version": kind.version, "kind": named}
    if sub and sub.group:
        identity |= {"group": sub.group, "version": sub.version}
    out: dict[str, Json] = {
        "responses": {"200": {"description": "OK", "content": content}, "401": {"description": "Unauthorized"}},
        "x-kubernetes-action": "post" if action == "create" else action,
        "x-kubernetes-group-version-kind": identity,
        "operationId": f"{action}{kind.group.split('.')[0].title() or 'Core'}{kind.version.title()}{kind.kind}{named}",
    }
    if action in ("create", "update"):
        out["requestBody"] = {"content": content, "required": True}
    if action == "patch":
        # Nobody knows by which keys the lists of a custom resource merge, so kubectl apply is not to merge them.
        types = [name for name in PATCH_TYPES if kind.custom is None or "strategic" not in name]
        patch: dict[str, Json] = {name: {"schema": {"type": "object"}} for name in types}
        out["requestBody"] = {"content": patch, "required": True}
    if action in ("create", "update", "patch"):
        names = ("dryRun", "fieldManager", "fieldValidation", *(("force",) if action == "patch" else ()))
        out["parameters"] = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in names]
    return out


def _paths(kind: Kind) -> dict[str, Json]:
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    base = f"{root}/namespaces/{{namespace}}/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"
    asked: list[tuple[str, tuple[str, ...], Subresource | None]] = [
        (base, tuple(verb for verb in kind.verbs if verb in ("list", "create")), None),
        (f"{base}/{{name}}", tuple(verb for verb in kind.verbs if verb in ("get", "update", "patch", "delete")), None),
        *((f"{base}/{{name}}/{sub.name}", sub.verbs, sub) for sub in kind.subresources.values()),
    ]
    found: dict[str, Json] = {}
    for path, verbs, sub in asked:
        item = {METHODS[verb]: _operation(kind, verb, sub) for verb in verbs if verb in METHODS}
        names = [name for name in ("namespace", "name") if "{" + name + "}" in path]
        rows: list[Json] = [{"name": n, "in": "path", "required": True, "schema": {"type": "string"}} for n in names]
        if item:
            found[path] = {**item, "parameters": rows}
    return found


def document(kinds: Kinds, group: str, version: str) -> dict[str, Json] | None:
    """The document of one group and version; None where nothing is served."""
    served = [kind for kind in kinds if (kind.group, kind.version) == (group, version)]
    if not served:
        return None
    schemas: dict[str, Json] = {}
    paths: dict[str, Json] = {}
    waiting: set[str] = set()
    for kind in served:
        if kind.struct is None and kind.custom is None:
            continue
        schemas[kind_name(kind)] = _kind_schema(kind, waiting)
        paths.update(_paths(kind))
    while waiting:
        ref = waiting.pop()
        if schema_name(ref) not in schemas:
            schemas[schema_name(ref)] = _struct(ref, waiting)
    info: Json = {"title": "Kubernetes", "version": "v1.36.2"}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


@cache
def _built_in_document(group: str, version: str) -> bytes:
    return encode(document(Kinds(), group, version))


def document_bytes(kinds: Kinds, group: str, version: str) -> bytes | None:
    """The document of one group and version as JSON; None where nothing is served."""
    if not kinds.has_group_version(group, version):
        return None
    if any(kind.custom is not None for kind in kinds if (kind.group, kind.version) == (group, version)):
        return encode(document(kinds, group, version))
    return _built_in_document(group, version)


def index(kinds: Kinds) -> dict[str, Json]:
    """`/openapi/v3`: where each document lies; a hash tells clients when one changed."""
    paths: dict[str, Json] = {}
    for kind in kinds:
        where = f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"
        if where not in paths:
            names = [
                f"{k.plural}{encode(dict(k.custom)).decode() if k.custom else ''}"
                for k in kinds
                if (k.group, k.version) == (kind.group, kind.version)
            ]
            digest = sha256("\n".join(names).encode()).hexdigest().upper()
            paths[where] = {"serverRelativeURL": f"/openapi/v3/{where}?hash={digest}"}
    return {"paths": paths}
